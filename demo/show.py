"""What ``demo.run`` prints of TPC-H, beside what every comparison prints (``pyjoinopt.demo.show``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyjoinopt._version import __version__
from pyjoinopt.demo.measure import Measurement
from pyjoinopt.demo.show import method, paragraph, summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = (
    *("query", "form", "reordered", "outer", "hints", "cost before", "cost after"),
    *("plan ms", "s before", "s after", "faster", "rows"),
)


def introduction(spark: SparkSession, scale: float, counts: dict[str, int], rounds: int, threshold: float) -> None:
    tables = ", ".join(f"{table} {count:,}" for table, count in counts.items())
    print(f"\npyjoinopt {__version__} on Spark {spark.version}, {spark.sparkContext.defaultParallelism} threads")
    paragraph(f"TPC-H at scale {scale:g}. Rows: {tables}.")
    paragraph("No ANALYZE was run; adaptive execution is on, as by default.")
    if scale < 1:
        paragraph(
            "By default Spark broadcasts tables below 10 MB, which would be nearly all tables at this scale. Both runs "
            f"use a threshold that is scaled with the data, {threshold:g} MB."
        )
    method(rounds)


def table_of(measured: Sequence[Measurement]) -> str:
    return summary(measured, _COLUMNS)
