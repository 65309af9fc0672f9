"""What the extension costs a query: ``python -m benchmarks.sessions``.

Spark's optimizer runs on the same analysed plans with the session switched off and on: TPC-H's query 5 (five joins), a
query of two relations, which takes the fast path, and the very first query, which starts a worker.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.support import tpc

ROUNDS = 60


def main() -> int:
    from pyspark.sql import SparkSession

    from pyjoinopt.bridge.java import ensure_java

    ensure_java()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = pyjoinopt.configure(builder.config("spark.driver.extraJavaOptions", "-Xss16m")).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tpc.register(spark, "tpch")
    five = spark.sql(tpc.spark_queries("tpch")[5])
    two = spark.sql("SELECT count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey")
    off, _ = times(spark, five, False, 1)
    cold, _ = times(spark, five, True, 1)
    print(f"first query with the session on   {cold:8.1f} ms (off: {off:.1f} ms)")
    for name, df in (("5 joins", five), ("1 join (fast path)", two)):
        times(spark, df, True, ROUNDS)
        times(spark, df, False, ROUNDS)
        off, off_best = times(spark, df, False, ROUNDS)
        on, on_best = times(spark, df, True, ROUNDS)
        best = f"best {on_best - off_best:.1f} ms"
        print(f"{name:33} {on - off:8.1f} ms more than {off:.1f} ms (medians of {ROUNDS}; {best})")
    nanos = bridge_of(spark).ruleNanos(spark._jsparkSession, two._jdf, 10_000)
    print(f"the rule itself on the fast path  {nanos / 1e6:8.4f} ms")
    spark.stop()
    return 0


def times(spark: Any, df: Any, on: bool, rounds: int) -> tuple[float, float]:
    """Median and minimum of the optimizer's time in milliseconds."""
    spark.conf.set("spark.pyjoinopt.enabled", str(on).lower())
    optimizer, plan = spark._jsparkSession.sessionState().optimizer(), df._jdf.queryExecution().analyzed()
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        optimizer.execute(plan)
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken), min(taken)


if __name__ == "__main__":
    sys.exit(main())
