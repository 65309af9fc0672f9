"""Linearized dynamic programming: the search over the intervals of a linear order."""

from __future__ import annotations

import itertools
import random

import pytest

from pyjoinopt.cost import COut, SparkCost
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.greedy import greedy, single_relations
from pyjoinopt.joins.search.ikkbz import ikkbz_order
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.joins.search.linearized_dp import best_over_intervals, linearized
from pyjoinopt.joins.search.search_context import SearchContext
from tests.oracles.joins.test_choose_order import MODELS, chain, check_tree, cross_products
from tests.oracles.joins.test_choose_order_with_operators import drawn
from tests.support.graphs import Builder, join_cost, random_builder


def best_of_a_line(graph: JoinGraph, estimates: GraphEstimates, model, line: list[int]) -> float:
    """By trying all bracketings without cross products."""
    best: dict[tuple[int, int], tuple[float, int]] = {(i, i): (0.0, 1 << v) for i, v in enumerate(line)}
    for length in range(2, len(line) + 1):
        for i in range(len(line) - length + 1):
            j = i + length - 1
            for k in range(i, j):
                if (i, k) in best and (k + 1, j) in best:
                    (a, left), (b, right) = best[i, k], best[k + 1, j]
                    if graph.connected(left, right) and graph.allows_join(left, right):
                        total = a + b + join_cost(graph, estimates, model, left, right)
                        best[i, j] = min(best.get((i, j), (total, left | right)), (total, left | right))
    return best.get((0, len(line) - 1), (float("inf"), 0))[0]


def test_the_best_bracketing_of_a_line() -> None:
    found = 0
    for seed in range(120):
        if seed % 2:
            g, _, estimates = drawn(seed, 7)
        else:
            builder = random_builder(seed, connected=True)
            g = builder.graph()
            estimates = GraphEstimates(g, builder.statistics())
        line = random.Random(seed).sample(range(len(g)), len(g))
        for model in MODELS:
            expected = best_of_a_line(g, estimates, model, line)
            result = best_over_intervals(SearchContext(g, estimates, model), line, 100_000)
            assert (result is None) == (expected == float("inf")), seed
            if result is not None:
                found += 1
                assert result.cost == pytest.approx(expected), seed
                assert JoinCosts(g, estimates, model).order(result.tree) == pytest.approx(expected), seed
                check_tree(g, result.tree)
    assert found > 100


def test_never_worse_than_the_tree_it_begins_with() -> None:
    better = 0
    for seed in range(100):
        builder = random_builder(seed, most=14, connected=True)
        g = builder.graph()
        estimates = GraphEstimates(g, builder.statistics())
        canonical = canonical_order(g, estimates)
        for model in MODELS:
            rough = greedy(SearchContext(g, estimates, COut()), single_relations(canonical))
            tree, _, _ = linearized(SearchContext(g, estimates, model), rough, 1_000_000)
            check_tree(g, tree)
            assert cross_products(g, tree) == 0
            before, after = (JoinCosts(g, estimates, model).order(t) for t in (rough, tree))
            best = search(g, estimates, model, 1_000_000)
            assert best.strategy == "exact"
            assert best.cost * (1 - 1e-9) <= after <= before * (1 + 1e-9), seed
            better += after < before * 0.99
    assert better > 10


def left_deep_cost(graph: JoinGraph, estimates: GraphEstimates, line: tuple[int, ...]) -> float:
    tree: JoinTree = leaf(line[0])
    for vertex in line[1:]:
        if not graph.connected(tree.relations, 1 << vertex):
            return float("inf")
        tree = join(tree, leaf(vertex))
    return JoinCosts(graph, estimates, COut()).order(tree)


def test_the_line_of_a_tree_is_its_best_left_deep_order() -> None:
    """Where no column is shared by two edges, rows of a set are a product, and the ranks find the optimum."""
    for seed in range(40):
        rng = random.Random(seed)
        n = rng.randint(2, 6)
        builder = Builder([float(rng.choice((2, 10, 300, 4000))) for _ in range(n)])
        for j in range(1, n):
            i = rng.randrange(j)
            builder.equal(i, j, builder.column(i, None, rng.choice((5.0, 50.0))), builder.column(j, None, 20.0))
        g = builder.graph()
        estimates = GraphEstimates(g, builder.statistics())
        line = ikkbz_order(SearchContext(g, estimates, COut()), list(range(n)))
        assert line is not None and sorted(line) == list(range(n))
        best = min(left_deep_cost(g, estimates, order) for order in itertools.permutations(range(n)))
        assert left_deep_cost(g, estimates, tuple(line)) == pytest.approx(best, rel=1e-6), seed


def test_no_line_where_relations_do_not_hang_together() -> None:
    builder = Builder([10.0, 10.0, 10.0])
    builder.equal(0, 1)
    g = builder.graph()
    assert ikkbz_order(SearchContext(g, GraphEstimates(g, builder.statistics()), COut()), [0, 1, 2]) is None


def test_a_limit_is_kept() -> None:
    g, estimates = chain(40)
    line = canonical_order(g, estimates)
    assert best_over_intervals(SearchContext(g, estimates, SparkCost(), Deadline(0.0)), line, 100_000) is None
    tree = greedy(SearchContext(g, estimates, COut()), single_relations(line))
    same, pairs, _ = linearized(SearchContext(g, estimates, SparkCost()), tree, 0)
    costs = JoinCosts(g, estimates, SparkCost())
    assert costs.order(same) <= costs.order(tree) and pairs < 200
