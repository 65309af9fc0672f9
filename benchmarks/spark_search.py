"""Times Spark's own search for a join graph: CostBasedJoinReorder alone, on the plan of the rule before it.

The rule cannot be interrupted, and its time grows exponentially. So Spark runs in a process of its own, which is ended
when a graph takes too long. The next graph gets a new process.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.common import session
from benchmarks.graphs import catalog, make, sql
from benchmarks.injection import create_table

#: The rule's limit is twelve relations; here it has none.
CONF = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.dp.threshold": "2000"}
SWITCH = "spark.sql.cbo.joinReorder.enabled"
#: A JVM gets quicker for a while.
MOST_RUNS = 30
#: Seconds for all that comes before the rule: tables, analysis, the rest of the optimizer.
PREPARING = 120.0


class SparkSearch:
    """Measures times of Spark's search, with a limit for each.

    Args:
        limit: seconds after which a graph counts as too large.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._process: Any = None
        self._ask: Connection

    def seconds(self, shape: str, n: int, runs: int) -> float | None:
        """The best of several runs or, for fast ones, of one second of runs; None if a run exceeds the limit."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._ask, answers = context.Pipe()
            self._process = context.Process(target=_serve, args=(answers,))
            self._process.start()
            answers.close()  # or the end of the process would not be seen here
        self._ask.send((shape, n))
        if not self._ask.poll(PREPARING):
            self.close()
            return None
        self._ask.recv()
        best, spent = math.inf, 0.0
        for number in range(MOST_RUNS):
            self._ask.send("again")
            if not self._ask.poll(self._limit):
                self.close()
                return None
            seconds = self._ask.recv()
            best, spent = min(best, seconds), spent + seconds
            if best > 1.0 or (spent > 1.0 and number + 1 >= runs):
                break
        self._ask.send("enough")
        return best

    def close(self) -> None:
        """End the process and its JVM."""
        if self._process is not None and self._process.pid is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.join()
        self._process = None


def _serve(requests: Connection) -> None:
    os.setsid()  # so that the JVM ends with it
    spark = session(**CONF)
    rule = getattr(spark._jvm, "org.apache.spark.sql.catalyst.optimizer.CostBasedJoinReorder$").__getattr__("MODULE$")
    for shape, n in [("chain", 4), ("star", 5)]:  # classes to load, methods to compile
        plan = _plan(spark, shape, n)
        for _ in range(20):
            _run(spark, rule, plan)
    while True:
        shape, n = requests.recv()
        plan = _plan(spark, shape, n)
        requests.send("ready")
        while requests.recv() == "again":
            requests.send(_run(spark, rule, plan))


def _plan(spark: Any, shape: str, n: int) -> Any:
    """The plan after all rules before this one."""
    graph, statistics = make(shape, n)
    database = f"{shape}_{n}"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    spark.sql(f"USE {database}")
    for name, known in catalog(graph, statistics).items():
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        create_table(spark, name, known)
    spark.conf.set(SWITCH, "false")
    plan = spark.sql(sql(graph))._jdf.queryExecution().optimizedPlan()
    if not plan.stats().rowCount().isDefined():
        raise RuntimeError("Spark does not know the statistics, so its rule would do nothing")
    return plan


def _run(spark: Any, rule: Any, plan: Any) -> float:
    spark.conf.set(SWITCH, "true")
    started = time.perf_counter()
    rule.apply(plan)
    return time.perf_counter() - started
