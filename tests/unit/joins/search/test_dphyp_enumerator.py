"""The exact search skips only graphs on which it would exceed its budget."""

from __future__ import annotations

import random

import pytest

from pyjoinopt.cost import COut
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.pair_budget import certainly_over_budget
from pyjoinopt.joins.search.search_context import SearchContext
from tests.support.graphs import Builder


@pytest.mark.parametrize("seed", range(12))
def test_no_graph_is_given_up_that_could_be_searched(seed: int) -> None:
    """A budget of exactly the number of pairs is enough; a much smaller one is recognised as too small."""
    rng = random.Random(seed)
    n = rng.randint(13, 15)
    builder = Builder([float(rng.randint(1, 10**6)) for _ in range(n)])
    for v in range(1, n):
        builder.equal(rng.randint(max(0, v - 3), v - 1), v)
    for _ in range(rng.randint(0, 2)):
        a, b = rng.sample(range(n), 2)
        builder.equal(a, b)
    graph = builder.graph()
    estimates = GraphEstimates(graph, builder.statistics())
    found = exact(SearchContext(graph, estimates, COut()), 200_000)
    assert found is not None
    assert not certainly_over_budget(graph, graph.everything, found.pairs)
    assert certainly_over_budget(graph, graph.everything, n - 2)


def test_graphs_are_given_up_at_once_that_have_too_many_pairs() -> None:
    """A grid is neither chain nor star: only its connected sets give the number."""
    side = 5
    builder = Builder([1000.0] * side**2)
    for v in range(side**2):
        if v % side:
            builder.equal(v - 1, v)
        if v >= side:
            builder.equal(v - side, v)
    graph = builder.graph()
    assert certainly_over_budget(graph, graph.everything, 25_000)
    assert not certainly_over_budget(graph, 0b11111, 25_000)
