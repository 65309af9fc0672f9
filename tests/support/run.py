"""Sessions for tiny tables, and a helper that runs two frames concurrently."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


#: Over tiny tables, interpreting an expression takes less time than compiling it; the TPC tests compile theirs.
TINY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


def session_for_tiny_tables(spark: SparkSession) -> SparkSession:
    """A session of its own, of the same application, in which a small query costs little."""
    session = spark.newSession()
    for key, value in TINY.items():
        session.conf.set(key, value)
    return session


def collect_both(first: DataFrame, second: DataFrame) -> tuple[list[Row], list[Row]]:
    """The rows of both frames, collected at the same time: planning is single-threaded, machines are not.

    Raises:
        Exception: the first exception of either.
    """
    if first is second:
        rows = first.collect()
        return rows, rows
    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead = pool.submit(first.collect)
        rows = second.collect()
        return ahead.result(), rows
