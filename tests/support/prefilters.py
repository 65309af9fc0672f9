"""What tests of filters below aggregates and shuffles have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyjoinopt import disable, enable, last_reports
from pyjoinopt.report.join_report import JoinReport
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: With these constants a filter pays for tables of a few rows.
FREE = str(Path(__file__).parent / "free_broadcasts.json")


def session_with(spark: SparkSession, tables: Mapping[str, str], folder: Path) -> SparkSession:
    """A session with tables of one file each, in which filters pay."""
    session = session_for_tiny_tables(spark)
    for name, text in tables.items():
        session.sql(text).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    session.conf.set("spark.pyjoinopt.costConstants", FREE)
    return session


@contextmanager
def enabled(session: SparkSession, constants: str = FREE) -> Iterator[Callable[[], JoinReport]]:
    """An enabled session, with the report of the one query that it planned."""
    enable(session, cost_constants=constants)
    session.conf.set("spark.pyjoinopt.timeout", "60s")
    before = len(last_reports(session))
    try:
        yield lambda: last_reports(session)[before:][0]
    finally:
        disable(session)


def checked(df: DataFrame, **options: object) -> JoinReport:
    """The report of a call, after rows and schema were compared with plain Spark's."""
    fast = df.optimize_joins(strict=True, **options)
    report: JoinReport = fast._pyjoinopt_report
    assert report.error is None
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    return report
