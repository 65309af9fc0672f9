"""Measures how much longer queries are planned with rewrites than without them.

    python -m benchmarks.planning_rewrites [--rewrites eager_aggregation,top_k_through_joins] [--scale 1] [--runs 6]

Each query of TPC-H and TPC-DS is planned with all rewrites and without the named ones (by default those that reduce
work), in turns, after one planning each that gathers statistics and samples. Nothing is run. The time is that of
`optimize_joins()` for a new DataFrame, the least of all runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from tqdm import tqdm

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.rewrites import rewrite_names
from tests.support import tpc

#: They make joins, aggregates or their inputs smaller or fewer; others are what makes joins reorderable.
LESS_WORK = (
    "fuse_scalar_subqueries", "filter_common_tables", "aggregate_to_window", "fuse_joined_aggregates",
    "inner_to_semi_joins", "top_k_through_joins", "distinct_build_sides", "eager_aggregation", "share_common_tables",
)  # fmt: skip
#: The number of queries whose planning warms the JVM's compiler, and of those named that became slower.
_WARM, _NAMED = 20, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rewrites", type=rewrite_names, default=LESS_WORK, help="without these; by commas")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=6)
    chosen = parser.parse_args()
    if chosen.runs < 1:
        parser.error(f"--runs is {chosen.runs}, but must be at least 1")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ["PYJOINOPT_STORE"] = str(Path(tempfile.mkdtemp()) / "store")
    spark = session(**{"spark.driver.memory": "8g"})
    print(f"{machine()}, Spark {spark.version}, scale {chosen.scale:g}, the least of {chosen.runs} plannings")
    print(f"without: {', '.join(chosen.rewrites)}")
    for benchmark in ("tpch", "tpcds"):
        tpc.register(spark, benchmark, chosen.scale)
        queries = tpc.spark_queries(benchmark)
        for text in list(queries.values())[:_WARM]:
            _milliseconds(spark, text, ())
        found: dict[int, tuple[float, float]] = {}
        for number, text in tqdm(queries.items(), benchmark, leave=False):
            pairs = [(_milliseconds(spark, text, ()), _milliseconds(spark, text, chosen.rewrites))
                     for _ in range(chosen.runs + 1)][1:]  # fmt: skip
            all_of_them, without = zip(*pairs)
            found[number] = min(all_of_them), min(without)
        _show(benchmark, found)
    spark.stop()


def _milliseconds(spark: Any, text: str, without: tuple[str, ...]) -> float:
    df = spark.sql(text)
    started = perf_counter()
    pyjoinopt.optimize_joins(df, rewrites_without=",".join(without))
    return (perf_counter() - started) * 1000


def _show(benchmark: str, found: dict[int, tuple[float, float]]) -> None:
    print(f"\n{benchmark:<12}{'median ms':>12}{'90 % ms':>12}{'total ms':>12}")
    totals = []
    for name, times in zip(("all rewrites", "without"), zip(*found.values())):
        totals.append((median(times), quantiles(times, n=10)[-1], sum(times)))
        print(f"{name:<12}" + "".join(f"{value:>12.1f}" for value in totals[-1]))
    print(f"{'ratio':<12}" + "".join(f"{one / other:>12.2f}" for one, other in zip(*totals)))
    most = sorted(found, key=lambda number: found[number][1] - found[number][0])[:_NAMED]
    print("most added: " + ", ".join(f"{n} ({found[n][1]:.0f} to {found[n][0]:.0f} ms)" for n in most))


if __name__ == "__main__":
    main()
