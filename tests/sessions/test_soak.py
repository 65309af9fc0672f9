"""Sixteen threads run thousands of queries, and memory use does not grow."""

from __future__ import annotations

import gc
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions.conftest import BAD_ORDER, planned
from tests.sessions.fakes import workers
from tests.support.run import TINY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = int(os.environ.get("PYJOINOPT_SOAK", "5000"))


def resident(process: int) -> int:
    """Kilobytes of memory that a process holds."""
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_nothing_grows(session: SparkSession) -> None:
    """Every other query is one that no worker has seen before; all of them run, to the right number of rows."""
    for key, value in {**TINY, "spark.pyjoinopt.timeout": "30s"}.items():
        session.conf.set(key, value)
    java = int(session._jvm.java.lang.ProcessHandle.current().pid())
    jvm, handles = session._jvm, bridge_of(session).openHandles()
    everything = session.sql(BAD_ORDER.format(hint="")).collect()

    def run(number: int) -> None:
        left_out = number // 2 if number % 2 else 1
        found = session.sql(BAD_ORDER.format(hint="") + f" AND fact_k <> {left_out}").collect()
        assert len(found) == sum(row.fact_k != left_out for row in everything)

    def heap_in_use() -> int:
        """Kilobytes, after Python has released its DataFrames, and Spark's cleaner their broadcasts."""
        found: list[int] = []
        while len(found) < 40 and (len(found) < 5 or min(found[-4:]) < 0.99 * min(found[:-4])):
            gc.collect()
            jvm.java.lang.System.gc()
            time.sleep(4)
            memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
            found.append(memory.getHeapMemoryUsage().getUsed() // 1024)
        return min(found)

    def beside_the_heap() -> int:
        """Kilobytes that the driver's JVM holds of classes, code and buffers."""
        factory = jvm.java.lang.management.ManagementFactory
        pools = factory.getPlatformMXBeans(jvm.java.lang.Class.forName("java.lang.management.BufferPoolMXBean"))
        buffers = sum(pool.getMemoryUsed() for pool in pools)
        return (factory.getMemoryMXBean().getNonHeapMemoryUsage().getUsed() + buffers) // 1024

    def state() -> tuple[int, int, int, int, list[int]]:
        heap = heap_in_use()
        threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean().getThreadCount()
        ours = workers()
        return heap, beside_the_heap(), threads, sum(map(resident, ours)) // max(1, len(ours)), ours

    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(run, range(QUERIES // 10)))
        heap, native, threads, memory, workers_before = state()
        list(pool.map(run, range(QUERIES)))
        heap_after, native_after, threads_after, memory_after, workers_after = state()
    assert len(workers_after) <= 2 and set(workers_before) <= set(workers_after)
    assert threads_after <= threads + 4
    assert memory_after < memory * 1.2 + 2_000, f"workers went from {memory} to {memory_after} kB"
    print(
        f"kB: heap {heap} to {heap_after}, beside it {native} to {native_after}, workers {memory} to {memory_after}; "
        f"threads {threads} to {threads_after}; resident {resident(java)}, {resident(os.getpid())}"
    )
    assert heap_after < heap * 1.3 + 20_000, f"the heap went from {heap} to {heap_after} kB"
    assert native_after < native * 1.2 + 20_000, f"beside the heap the driver went from {native} to {native_after} kB"
    assert bridge_of(session).openHandles() <= handles
    _, reports = planned(session, lambda: run(0))
    assert all(report.error is None for report in pyjoinopt.last_reports(session))
