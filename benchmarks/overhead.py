"""Times `optimize_joins()`, compared with Spark's own optimizer on the same query.

    python -m benchmarks.overhead [--most 30] [--repeat 20] [--memory] [--sessions] [--shapes] [--share]

For 2 … 30 joins (a chain with a filter on every third table, written in a bad order) it times the whole warm call, from
the DataFrame to the new DataFrame, and Spark's `optimizedPlan` of a new DataFrame with the cost-based optimizer off and
on (tables ANALYZEd, so that it reorders up to its limit of 12).

Then it times the call for some shapes of queries (`planning_shapes`); `--shapes` measures only this. The targets, for a
warm call on a quiet machine: 8 ms at 5 joins, 12 ms at 10 joins, 40 ms for a star of 30 left joins to dimensions with
unique keys, 12 ms for a star of 12 dimensions, 25 ms for a chain of 50 relations; and 2.5 s for the search alone over
1,000 relations, because Spark itself takes minutes for such a query.

Then it times what the session extension adds to Spark's own planning, from the analysed to the physical plan,
alternating the session off and on: warm for 2 … 10 joins, for new queries and for a repeated one; the first query,
which starts a worker; and a query that is not sent to a worker. The targets are 8 ms for a new query of 5 joins and
0.2 ms without a worker. `--sessions` measures only this.

`--share` runs the queries of TPC-H and TPC-DS at scale 1 (`--scale`) instead, and prints which share of a query's time
the planning of its joins is. It also times the first planning of each query over files of which nothing is known. The
targets are 25 ms for nine in ten queries of TPC-DS, and 150 ms in the median for the first planning.

`--memory` makes 1,000 calls and prints, every 250 calls, the driver's heap after a collection, the number of objects
that py4j holds, and the open handles of the shim.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyjoinopt
from benchmarks.common import machine, measure, session
from benchmarks.planning_shapes import RELATIONS, chain, print_shapes, tables
from benchmarks.planning_share import print_shares
from pyjoinopt.bridge.shim import bridge_for
from tests.support.oracle_bridge import oracle_of


def spark_milliseconds(spark: Any, text: str, cbo: bool, repeat: int) -> float:
    """Median time of Spark's optimizer on a new DataFrame."""
    spark.conf.set("spark.sql.cbo.enabled", cbo)
    spark.conf.set("spark.sql.cbo.joinReorder.enabled", cbo)
    frames = [spark.sql(text) for _ in range(repeat + 5)]
    times = measure(lambda: frames.pop()._jdf.queryExecution().optimizedPlan(), repeat)
    spark.conf.set("spark.sql.cbo.enabled", False)
    spark.conf.set("spark.sql.cbo.joinReorder.enabled", False)
    return times[len(times) // 2]


def sessions(spark: Any, repeat: int) -> None:
    """Print what the extension adds to the planning of a query."""
    spark.conf.set("spark.pyjoinopt.timeout", "60s")
    spark.conf.set("spark.pyjoinopt.prestart", "off")  # the first query is to start the worker
    pyjoinopt.enable(spark, hints=True)
    planning_milliseconds(spark, chain(5), on=False)
    off, cold = (planning_milliseconds(spark, chain(5), on=on) for on in (False, True))
    print(f"\nthe first query of a session   {cold:8.1f} ms (off: {off:.1f} ms)")
    print("more: what a query's planning takes longer with the session on; median, and a quarter of them at most")
    print("                                 a new query                           the same query again")
    print("joins   Spark's planning, off    on     more    quarter   in worker     on     more    quarter   in worker")
    new = count(1)
    for joins in (2, 3, 5, 8, 10):
        for _ in range(2 * repeat):
            planning_milliseconds(spark, chain(joins, next(new)), on=True)
        figures = []
        for step in (1, 0):
            texts = [chain(joins, next(new) * step) for _ in range(repeat + 2)]
            pairs = [[planning_milliseconds(spark, text, on=on) for on in (False, True)] for text in texts][2:]
            more = sorted(on - off for off, on in pairs)
            off, on = (median(times) for times in zip(*pairs))
            worker = median(report.seconds * 1000 for report in pyjoinopt.last_reports(spark)[-repeat:])
            figures += [off, on, median(more), more[len(more) // 4], worker]
        row = "{:5}   {:21.1f} {:6.1f}   {:6.1f}   {:6.1f}   {:9.1f}   {:6.1f}   {:6.1f}   {:6.1f}   {:9.1f}"
        print(row.format(joins, *figures[:5], *figures[6:]))
    if Path("/proc/self/stat").exists():
        for name, step in (("a new query", 1), ("the same again", 0)):
            texts = [chain(5, 10_000 + step * i) for i in range(2 * repeat)]
            (off, _), (driver, worker) = (processor_milliseconds(spark, texts, on) for on in (False, True))
            print(f"processor time at 5 joins, {name}   driver {driver - off:.1f} ms, worker {worker:.1f} ms")
    plain = spark.sql("SELECT count(*) FROM t0 JOIN t1 ON f0 = k1")._jdf
    oracle_of(spark).ruleNanos(spark._jsparkSession, plain, 10_000)
    nanos = oracle_of(spark).ruleNanos(spark._jsparkSession, plain, 10_000)
    print(f"the rule on the fast path   {nanos / 1e6:.4f} ms")
    pyjoinopt.disable(spark)


def planning_milliseconds(spark: Any, text: str, on: bool) -> float:
    """Spark's time from the analysed plan to the physical one, of a new DataFrame."""
    spark.conf.set("spark.pyjoinopt.enabled", str(on).lower())
    execution = spark.sql(text)._jdf.queryExecution()
    started = perf_counter()
    execution.executedPlan()
    return (perf_counter() - started) * 1000


def processor_milliseconds(spark: Any, texts: Sequence[str], on: bool) -> tuple[float, float]:
    """Processor time of a planning, in the planning thread and in the workers; it does not depend on other load on the
    machine.
    """
    bean = spark._jvm.java.lang.management.ManagementFactory.getThreadMXBean()

    def spent() -> tuple[float, float]:
        driver = spark._jvm.java.lang.ProcessHandle.current().pid()
        ticks = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_text().split("\0")
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if "pyjoinopt.worker" in words and int(fields[1]) == driver:
                ticks += int(fields[11]) + int(fields[12])
        return bean.getCurrentThreadCpuTime() / 1e6, ticks * 1000 / os.sysconf("SC_CLK_TCK")

    before = spent()
    for text in texts:
        planning_milliseconds(spark, text, on)
    after = spent()
    return (after[0] - before[0]) / len(texts), (after[1] - before[1]) / len(texts)


def memory(spark: Any, text: str) -> None:
    """Print heap, py4j objects and handles over a thousand calls."""
    frame = spark.sql(text)
    jvm = spark._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    print("\ncalls   driver heap   py4j objects   open handles")
    for calls in range(1, 1001):
        frame.optimize_joins(strict=True)
        if calls % 250 == 0 or calls == 1:
            gc.collect()
            jvm.java.lang.System.gc()
            used = (runtime.totalMemory() - runtime.freeMemory()) / 1e6
            handles = bridge_for(frame).openHandles()
            print(f"{calls:5}   {used:8.1f} MB   {_py4j_objects():12}   {handles:12}")


def _py4j_objects() -> int:
    """The number of objects that the JVM keeps alive for Python."""
    from py4j.finalizer import ThreadSafeFinalizer

    return len(ThreadSafeFinalizer.finalizers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--sessions", action="store_true", help="only what the session extension costs")
    parser.add_argument("--shapes", action="store_true", help="only the shapes")
    parser.add_argument("--share", action="store_true", help="only the share of planning in the time of TPC queries")
    parser.add_argument("--scale", type=float, default=1.0, help="of the TPC data (1)")
    arguments = parser.parse_args()
    if arguments.share:
        os.environ["PYJOINOPT_STORE"] = str(Path(tempfile.mkdtemp()) / "store")  # it is emptied over and over
        spark = session(**{"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "200"})
        print(f"{machine()}, Spark {spark.version}, scale {arguments.scale:g}, the faster of two runs")
        print_shares(spark, arguments.scale, 2)
        spark.stop()
        return
    spark = session(**{"spark.sql.catalogImplementation": "in-memory", "spark.sql.warehouse.dir": tempfile.mkdtemp()})
    tables(spark, max(arguments.most + 1, RELATIONS))
    print(f"{machine()}, Spark {spark.version}, median of {arguments.repeat}, milliseconds")
    if not arguments.sessions and not arguments.shapes:
        calls(spark, arguments.most, arguments.repeat)
    if not arguments.sessions:
        print_shapes(spark, arguments.repeat)
    if not arguments.shapes:
        sessions(spark, arguments.repeat)
    if arguments.memory:
        memory(spark, chain(min(10, arguments.most)))
    spark.stop()


def calls(spark: Any, most: int, repeat: int) -> None:
    """Print the times of `optimize_joins()` and of Spark's own optimizer."""
    print("joins   optimize_joins   Spark, CBO off   Spark, CBO on   pairs   strategy")
    for joins in sorted({2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, most}):
        if joins > most:
            continue
        text = chain(joins)
        frame = spark.sql(text)
        ours = measure(lambda frame=frame: pyjoinopt.optimize_joins(frame), repeat, warm=10)
        report = pyjoinopt.join_report(frame, strict=True)
        off, on = (spark_milliseconds(spark, text, cbo, repeat) for cbo in (False, True))
        group = report.groups[0] if report.groups else None
        print(
            f"{joins:5}   {ours[len(ours) // 2]:14.1f}   {off:14.1f}   {on:13.1f}   "
            f"{group.pairs if group else 0:5}   {group.strategy if group else '-'}"
        )


if __name__ == "__main__":
    main()
