"""The cost of grouping a row, by the number of groups: measured, and by the cost model.

    python -m benchmarks.aggregates [--rows 20000000] [--runs 3]

Rows of one number are made distinct, and summed without that; the difference is the aggregate, with the exchange of its
groups. The numbers of 16 tasks are drawn at random, so that each task has nearly all groups where these are few.
"""

from __future__ import annotations

import argparse
from time import perf_counter

from pyspark.sql import DataFrame

from benchmarks.common import machine, session
from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.optimizer.operator_work import OperatorWork, Rows

#: [ns] A row through an operator, the unit of the cost model, of the run that `results/calibrate.txt` keeps.
UNIT = 19.6
GROUPS = (100, 2_000, 20_000, 100_000, 500_000, 2_000_000)
TASKS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    spark = session(**{"spark.sql.shuffle.partitions": str(TASKS), "spark.sql.adaptive.enabled": "false"})
    print(f"{machine()}, {args.rows:,} rows in {TASKS} tasks")
    print(f"{'groups':>10} {'measured':>14} {'cost model':>14}")
    work = OperatorWork(DEFAULT, TASKS)
    for groups in GROUPS:
        numbers = spark.range(0, args.rows, 1, TASKS).selectExpr(f"pmod(hash(id), {groups}) k")
        added = _best(numbers.distinct(), args.runs) - _best(numbers, args.runs)
        model = work.grouping(Rows(args.rows, 12.0, ()), 1, groups, 12.0, 1.0) * UNIT / args.rows
        print(f"{groups:>10,} {added / args.rows * 1e9:>11.1f} ns {model:>11.1f} ns", flush=True)


def _best(numbers: DataFrame, runs: int) -> float:
    """The shortest of some runs of their sum, in seconds."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        numbers.selectExpr("sum(k)").collect()
        times.append(perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
