"""Sixteen threads, thousands of queries: nothing grows."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions.conftest import BAD_ORDER, planned, rows
from tests.sessions.test_worker_faults import workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = int(os.environ.get("PYJOINOPT_SOAK", "5000"))
#: One query in so many runs to its end; the others are planned only, which is what may leak here.
RUN = 10
#: Threads that Spark may keep for broadcasts alone (`spark.sql.broadcastExchange.maxThreadThreshold`).
SPARKS = 128


def resident(process: int) -> int:
    """Kilobytes of memory that a process holds."""
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@pytest.mark.slow
def test_nothing_grows(session: SparkSession) -> None:
    session.conf.set("spark.pyjoinopt.timeout", "30s")
    jvm = session._jvm
    optimizer = session._jsparkSession.sessionState().optimizer()
    texts = [BAD_ORDER.format(hint="") + f" AND fact_k % {n} = 0" for n in range(2, 18)]
    pyjoinopt.disable(session)
    expected = [rows(session.sql(text)) for text in texts]
    pyjoinopt.enable(session)
    plans = [session.sql(text)._jdf.queryExecution().analyzed() for text in texts]

    def plan(number: int) -> None:
        which = number // RUN % len(texts)
        if number % RUN:
            optimizer.execute(plans[which])
        else:
            assert rows(session.sql(texts[which])) == expected[which]

    def used() -> int:
        """Kilobytes after a collection; a moment later, for Spark only then lets go of broadcasts nobody names."""
        jvm.java.lang.System.gc()
        time.sleep(1)
        return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() // 1024)

    def state() -> tuple[int, tuple[int, int], int, list[int]]:
        heap = min(used() for _ in range(5))
        names = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()]
        threads = (sum(name.startswith("pyjoinopt") for name in names), len(names))
        ours = workers()
        return heap, threads, sum(map(resident, ours)) // max(1, len(ours)), ours

    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(plan, range(QUERIES // 10)))
        heap, threads, memory, workers_before = state()
        list(pool.map(plan, range(QUERIES)))
        heap_after, threads_after, memory_after, workers_after = state()
    assert len(workers_after) <= 2 and set(workers_before) <= set(workers_after)
    assert threads_after[0] <= threads[0] + 1
    assert threads_after[1] <= threads[1] + SPARKS, "more than the pools in which Spark runs queries"
    assert memory_after < memory * 1.2 + 2_000, f"workers went from {memory} to {memory_after} kB"
    assert heap_after < heap * 1.3 + 20_000, f"the heap went from {heap} to {heap_after} kB"
    assert bridge_of(session).openHandles() == 0
    _, reports = planned(session, lambda: plan(0))
    assert [report.changed for report in reports] == [True]
    assert all(report.error is None for report in pyjoinopt.last_reports(session))
