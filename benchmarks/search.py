"""How long the search for a join order takes, by the shape and the size of the join graph.

    python benchmarks/search.py                      # the table
    python benchmarks/search.py --shapes star --sizes 10 12 14 --cost c_out

Each figure is the best of several runs with the real estimator: statistics of every column, nothing remembered from
one run to the next. Shapes: chain, cycle, star (one fact table), snowflake (its dimensions have dimensions), clique
(all tables on one key), grid, random (a tree and half as many more edges). With `--optimum` an exact search without a
budget tells how far from the best order each one is, where that can be known within a million pairs.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyjoinopt.cost import MODELS, CostModel, cost_model
from pyjoinopt.joins.exact import exact
from pyjoinopt.joins.graph import Edge, JoinGraph
from pyjoinopt.joins.search import BUDGET, SearchResult, search
from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import relation
from pyjoinopt.statistics.graph import GraphEstimates
from pyjoinopt.statistics.relation import ColumnStatistics, RelationStatistics

SIZES = {
    "chain": (10, 20, 50, 80, 200, 1000),
    "cycle": (10, 20, 50, 200),
    "star": (8, 10, 12, 14, 20, 100),
    "snowflake": (10, 16, 40, 100, 1000),
    "clique": (8, 10, 11, 12, 20, 100),
    "grid": (9, 16, 25, 100, 900),
    "random": (10, 14, 20, 50, 100, 1000),
}
#: Pairs that the search for the optimum may compare.
MOST = 1_000_000


def pairs_of(shape: str, n: int) -> Iterator[tuple[int, int]]:
    """The edges of a shape."""
    if shape in ("chain", "cycle"):
        yield from ((i, i + 1) for i in range(n - 1))
        if shape == "cycle":
            yield 0, n - 1
    elif shape == "star":
        yield from ((0, i) for i in range(1, n))
    elif shape == "snowflake":
        yield from ((0 if i <= n // 4 or i < 4 else 1 + i % (n // 4 or 1), i) for i in range(1, n))
    elif shape == "random":
        rng = random.Random(n)
        tree = [(rng.randrange(j), j) for j in range(1, n)]
        more = {tuple(sorted(rng.sample(range(n), 2))) for _ in range(n // 2)}
        yield from tree
        yield from sorted(more - set(tree))
    elif shape == "clique":
        yield from ((i, j) for j in range(n) for i in range(j))
    else:
        side = math.isqrt(n)
        for i in range(side * side):
            if i % side:
                yield i - 1, i
            if i >= side:
                yield i - side, i


def make(shape: str, n: int) -> tuple[JoinGraph, list[RelationStatistics]]:
    """A graph of the shape, each edge on columns of its own; a clique is one class of equal columns."""
    if shape == "grid":
        n = math.isqrt(n) ** 2
    columns: list[list[Attribute]] = [[] for _ in range(n)]
    count = 0

    def column(vertex: int, name: str) -> Attribute:
        nonlocal count
        if shape == "clique" and columns[vertex]:
            return columns[vertex][0]
        attribute = Attribute(count, count, name)
        columns[vertex].append(attribute)
        count += 1
        return attribute

    edges = []
    for i, j in pairs_of(shape, n):
        a, b = reference(column(i, f"k{j}")), reference(column(j, f"k{i}"))
        both = 1 << i | 1 << j
        edges.append(Edge(call("EqualTo", a, b), both, both, ((1 << i, a), (1 << j, b))))
    statistics = []
    for vertex in range(n):
        rows = float(1000 + (vertex * 7919) % 99991)
        known = {a.bit: ColumnStatistics(ndv=rows / (1 + a.bit % 7)) for a in columns[vertex]}
        statistics.append(RelationStatistics(rows, rows * 40, "footers", True, known, rows))
    names = tuple(f"t{vertex}" for vertex in range(n))
    relations = tuple(relation(name, own) for name, own in zip(names, columns))
    return JoinGraph(relations, names, tuple(edges), tuple(() for _ in range(n))), statistics


def measure(shape: str, n: int, cost: CostModel, budget: int, runs: int) -> tuple[float, SearchResult]:
    """Best time of some runs, estimator included, and what was found."""
    graph, statistics = make(shape, n)
    best = math.inf
    for _ in range(runs):
        started = time.perf_counter()
        result = search(graph, GraphEstimates(graph, statistics), cost, budget)
        best = min(best, time.perf_counter() - started)
        if best > 1.0:
            break
    return best, result


def optimum(shape: str, n: int, cost: CostModel) -> float | None:
    """The cost of the best order, if it can be found."""
    graph, statistics = make(shape, n)
    estimates = GraphEstimates(graph, statistics)
    found = exact(graph, estimates, cost, MOST) if n < 100 else None
    return None if found is None else found.cost


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="time of the search by shape and size")
    parser.add_argument("--shapes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of relations; by default some for each shape")
    parser.add_argument("--cost", choices=MODELS, default=MODELS[0])
    parser.add_argument("--budget", type=int, default=BUDGET, help=f"pairs to compare at most (default {BUDGET:,})")
    parser.add_argument("--optimum", action="store_true", help="also tell the cost over that of the best order")
    parser.add_argument("--runs", type=int, default=3, help="best of this many runs (default 3)")
    options = parser.parse_args()
    cost = cost_model(options.cost, {})
    ratio = "cost/optimum" if options.optimum else ""
    print(f"{'shape':<10}{'n':>5}  {'strategy':<11}{'pairs':>10}{'ms':>10}{'pairs/s':>12}  {ratio}".rstrip())
    for shape in options.shapes:
        for n in options.sizes or SIZES[shape]:
            seconds, result = measure(shape, n, cost, options.budget, options.runs)
            speed = f"{result.pairs / seconds:,.0f}" if result.pairs else "-"
            line = f"{shape:<10}{n:>5}  {result.strategy:<11}{result.pairs:>10,}{seconds * 1000:>10.1f}{speed:>12}"
            best = optimum(shape, n, cost) if options.optimum else None
            print(line if best is None else f"{line}  {result.cost / best:.3f}", flush=True)


if __name__ == "__main__":
    main()
