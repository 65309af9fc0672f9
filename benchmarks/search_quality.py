"""Measures cost ÷ optimum of the approximate searches, where the optimum can be computed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchmarks.graphs import make
from pyjoinopt.cost import CostModel
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.search.choose_order import BUDGET
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.greedy import greedy, reoptimize_subtrees, single_relations
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.joins.search.linearized_dp import linearized
from pyjoinopt.joins.search.search_context import SearchContext

#: Pairs that the search for the optimum may compare.
MOST = 1_000_000
SIZES = {
    "chain": (10, 20, 40), "cycle": (10, 20, 40), "star": (8, 12, 14), "snowflake": (10, 16), "clique": (8, 10, 12),
    "grid": (9, 16), "random": (10, 14, 18),
}  # fmt: skip
#: Halves of intervals; more than any of these graphs has.
HALVES = 1_000_000


def ratios(shape: str, n: int, cost: CostModel, seed: int) -> tuple[float, float, float] | None:
    """Cost ÷ optimum: greedy, greedy with exact sub-trees, linearized; None if the optimum cannot be computed."""
    graph, statistics = make(shape, n, seed)
    estimates = GraphEstimates(graph, statistics)
    canonical = canonical_order(graph, estimates)
    best = exact(SearchContext(graph, estimates, cost), MOST)
    rough = greedy(SearchContext(graph, estimates, cost), single_relations(canonical))
    if best is None or rough is None or best.cost <= 0:
        return None
    polished, _ = reoptimize_subtrees(SearchContext(graph, estimates, cost), rough, BUDGET)
    lined, _, _ = linearized(SearchContext(graph, estimates, cost), polished, HALVES)
    one, two, three = (JoinCosts(graph, estimates, cost).order(tree) / best.cost for tree in (rough, polished, lined))
    return one, two, three


def print_quality(shapes: Iterable[str], cost: CostModel, graphs: int) -> None:
    """Print geometric mean, maximum, and the share within one per cent of the optimum, for each search."""
    searches = ("greedy", "with exact sub-trees", "linearized")
    print(f"{'shape':<10}{'n':>4}{'graphs':>8}" + "".join(f"{name:>28}" for name in searches))
    print(" " * 22 + f"{'mean':>12}{'worst':>10}{'best':>6}" * 3)
    for shape in shapes:
        for n in SIZES[shape]:
            found = [r for seed in range(graphs) if (r := ratios(shape, n, cost, seed)) is not None]
            line = f"{shape:<10}{n:>4}{len(found):>8}"
            for own in zip(*found):
                mean = math.exp(sum(map(math.log, own)) / len(own))
                line += f"{mean:>12.3f}{max(own):>10.2f}{sum(ratio < 1.01 for ratio in own) / len(own):>6.0%}"
            print(line, flush=True)
