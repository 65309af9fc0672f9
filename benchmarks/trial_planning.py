"""Measures the cost of planning a new DataFrame on trial, where it is not certain that Spark can plan it.

    python -m benchmarks.trial_planning [--runs 5]

It plans all TPC queries over tiny tables, warm. For each query that is planned on trial it prints milliseconds of
`optimize_joins()`, of the trial alone (Spark's optimizer and planner on the same analysed plan), and of planning the
written query.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from time import perf_counter
from typing import Any

import pyjoinopt
from benchmarks.common import machine, session
from pyjoinopt.bridge.shim import bridge_for
from tests.support import tpc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session()
    print(f"{machine()}, Spark {spark.version}; milliseconds, median of {runs} runs\n")
    shares: list[float] = []
    queries = 0
    for benchmark in ("tpch", "tpcds"):
        tpc.register(spark, benchmark)
        for number, text in tpc.spark_queries(benchmark).items():
            queries += 1
            row = _measured(spark, text, runs)
            if row is not None:
                whole, trial, plain = row
                shares.append(trial / whole)
                print(f"{benchmark} {number:3}: call {whole:6.1f}, of it trial {trial:6.1f}; plain {plain:6.1f}")
    print(f"\n{len(shares)} of {queries} queries are tried; the trial is {statistics.median(shares):.0%} of the call")
    spark.stop()


def _measured(spark: Any, text: str, runs: int) -> tuple[float, float, float] | None:
    trials = bridge_for(spark.range(1)).trials
    pyjoinopt.optimize_joins(spark.sql(text))  # reads footers, and warms up
    before = trials()
    fast = pyjoinopt.optimize_joins(spark.sql(text))
    if trials() == before:
        return None
    state = spark._jsparkSession.sessionState()
    whole, trial, plain = [], [], []
    for _ in range(runs):
        df = spark.sql(text)
        whole.append(_milliseconds(lambda df=df: pyjoinopt.optimize_joins(df)))
        new, old = fast._jdf.queryExecution().analyzed(), df._jdf.queryExecution().analyzed()
        trial.append(_milliseconds(lambda new=new: state.executePlan(new, _mode(spark)).executedPlan()))
        plain.append(_milliseconds(lambda old=old: state.executePlan(old, _mode(spark)).executedPlan()))
    return statistics.median(whole), statistics.median(trial), statistics.median(plain)


def _mode(spark: Any) -> Any:
    return spark.sparkContext._jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()


def _milliseconds(run: Any) -> float:
    started = perf_counter()
    run()
    return (perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
