"""Times the search for a join order, by the shape and the size of the join graph.

    python -m benchmarks.search                      # the table
    python -m benchmarks.search --spark 30           # also Spark's own rule, half a minute at most for each graph
    python -m benchmarks.search --shapes star --sizes 10 12 14 --cost c_out
    python -m benchmarks.search --quality 30         # cost ÷ optimum of the approximate searches

Each time is the best of several runs with the real estimator: statistics of every column, without caches between runs.
Peak memory is that of Python's objects, including the estimator's, in a separate run. Shapes: chain, cycle, star (one
fact table), snowflake (its dimensions have dimensions), clique (all tables on one key), grid, random (a tree and half
as many further edges). `--optimum` prints cost ÷ optimum, if an exact search without a budget finds the optimum within
a million pairs.

Spark's rule is CostBasedJoinReorder without its limit of twelve relations, called on the plan of the rule before it, on
empty tables with the same row counts and column statistics. It both estimates sizes and searches, as ours does.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import machine
from benchmarks.graphs import SHAPES, make
from benchmarks.search_quality import MOST, print_quality
from benchmarks.spark_search import SparkSearch
from pyjoinopt.cost import MODELS, CostModel, cost_model
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.search.choose_order import BUDGET, SearchResult, search
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.search_context import SearchContext

SIZES = {
    "chain": (6, 10, 20, 50, 80, 100, 200, 1000),
    "cycle": (6, 10, 20, 50, 100, 200, 1000),
    "star": (6, 8, 10, 12, 14, 20, 100, 1000),
    "snowflake": (6, 10, 16, 40, 100, 1000),
    "clique": (6, 8, 10, 11, 12, 20, 100, 1000),
    "grid": (9, 16, 25, 100, 900),
    "random": (6, 10, 14, 20, 50, 100, 1000),
}


def measure(shape: str, n: int, cost: CostModel, budget: int, runs: int) -> tuple[float, SearchResult]:
    """The best time of several runs, including the estimator, and the result."""
    graph, statistics = make(shape, n)
    best = math.inf
    for _ in range(runs):
        started = time.perf_counter()
        result = search(graph, GraphEstimates(graph, statistics), cost, budget)
        best = min(best, time.perf_counter() - started)
        if best > 1.0:
            break
    return best, result


def peak_memory(shape: str, n: int, cost: CostModel, budget: int) -> int:
    """Peak bytes of Python objects during a search."""
    graph, statistics = make(shape, n)
    tracemalloc.start()
    try:
        search(graph, GraphEstimates(graph, statistics), cost, budget)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def optimum(shape: str, n: int, cost: CostModel) -> float | None:
    """The cost of the best order; None if it cannot be found."""
    graph, statistics = make(shape, n)
    estimates = GraphEstimates(graph, statistics)
    found = exact(SearchContext(graph, estimates, cost), MOST) if n < 100 else None
    return None if found is None else found.cost


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="time of the search by shape and size")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of relations; by default some for each shape")
    parser.add_argument("--cost", choices=MODELS, default=MODELS[0])
    parser.add_argument("--budget", type=int, default=BUDGET, help=f"pairs to compare at most (default {BUDGET:,})")
    parser.add_argument("--optimum", action="store_true", help="also tell the cost over that of the best order")
    parser.add_argument("--runs", type=int, default=3, help="best of this many runs (default 3)")
    parser.add_argument("--spark", type=float, metavar="SECONDS", help="Spark's rule too, so long at most for a graph")
    parser.add_argument("--quality", type=int, metavar="GRAPHS", help="only costs, over so many random graphs")
    options = parser.parse_args()
    cost = cost_model(options.cost, {})
    print(machine())
    if options.quality:
        print_quality(options.shapes, cost, options.quality)
        return
    spark = SparkSearch(options.spark) if options.spark else None
    head = f"{'shape':<10}{'n':>5}  {'strategy':<11}{'pairs':>10}{'ms':>10}{'pairs/s':>12}{'peak MB':>9}"
    print(head + ("  Spark, ms" if spark else "") + ("  cost/optimum" if options.optimum else ""))
    try:
        for shape in options.shapes:
            beyond = False
            for n in options.sizes or SIZES[shape]:
                seconds, result = measure(shape, n, cost, options.budget, options.runs)
                speed = f"{result.pairs / seconds:,.0f}" if result.pairs else "-"
                line = f"{shape:<10}{n:>5}  {result.strategy:<11}{result.pairs:>10,}{seconds * 1000:>10.1f}{speed:>12}"
                line += f"{peak_memory(shape, n, cost, options.budget) / 1e6:>9.1f}"
                if spark:
                    theirs = None if beyond else spark.seconds(shape, n, options.runs)
                    beyond = theirs is None
                    line += f"{f'> {options.spark:.0f} s' if theirs is None else f'{theirs * 1000:,.1f}':>11}"
                best = optimum(shape, n, cost) if options.optimum else None
                print(line if best is None else f"{line}{result.cost / best:>14.3f}", flush=True)
    finally:
        if spark:
            spark.close()


if __name__ == "__main__":
    main()
