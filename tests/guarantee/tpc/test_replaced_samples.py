"""Samples appear and vanish in the JVM's memory while a query is planned: it gets the same estimates all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.shim import bridge_for
from tests.guarantee.tpc.check import queries
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A star with three filtered dimensions.
QUERY = 68


def test_samples_that_appear_and_vanish(spark: SparkSession) -> None:
    tpc.register(spark, "tpcds")
    df, memory = spark.sql(dict(queries("tpcds"))[QUERY]), _memory(spark)

    def rows() -> list[float]:
        fast = df.optimize_joins(strict=True, statistics="full", statistics_ms=60_000, store="off")
        return [join.rows for group in fast._pyjoinopt_report.groups for join in group.estimated_rows]

    expected = rows()
    samples = [(entry.getKey(), entry.getValue()) for entry in _field(_field(memory, "known"), "known").entrySet()]

    def replaced() -> None:
        memory.forget()
        for key, sample in samples:
            memory.put(key, sample)

    with _repeated(replaced):
        found = [rows() for _ in range(20)]
    assert found == [expected] * len(found)


def _memory(spark: SparkSession) -> Any:
    """The samples in the memory of a session's JVM."""
    bridge_for(spark.range(1)).forgetSamples()
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.loadClass("org.apache.spark.sql.pyjoinopt.Samples$").getField("MODULE$").get(None)


def _field(of: Any, name: str) -> Any:
    field = of.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


@contextmanager
def _repeated(call: Callable[[], object]) -> Iterator[None]:
    """`call` is called over and over by another thread."""
    done = Event()

    def repeat() -> None:
        while not done.is_set():
            call()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
