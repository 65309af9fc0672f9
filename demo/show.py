"""What ``demo.run`` prints of TPC-H, beside what every comparison prints (``pyjoinopt.demo.show``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyjoinopt._version import __version__
from pyjoinopt.demo.measure import Measurement
from pyjoinopt.demo.show import factor_of, method, paragraph, rows_of, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HEAD = (
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
    rows = [
        (
            one.query.name,
            one.query.form,
            f"{one.report.joins_reordered} joins" if one.report.joins_reordered else "-",
            str(len(one.report.eliminated_outer_joins) or "-"),
            str(len(one.report.hints) or "-"),
            _short(one.report.cost_before),
            _short(one.report.cost_after),
            f"{one.planning * 1000:.0f}",
            f"{one.before:.2f}",
            f"{one.after:.2f}",
            factor_of(one),
            rows_of(one),
        )
        for one in measured
    ]
    return table(_HEAD, rows, 2)


def _short(number: float) -> str:
    """A number in few characters.

    >>> _short(0), _short(8123), _short(1_250_000), _short(31_000_000_000)
    ('0', '8.1 k', '1.2 M', '31.0 G')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"
