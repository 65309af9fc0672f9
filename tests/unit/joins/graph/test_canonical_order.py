"""The numbering of vertices does not depend on how the query is written."""

from __future__ import annotations

import itertools
import random

import pytest

from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.plan.expressions import Attribute, call, conjunction, describe, literal, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, relation
from pyjoinopt.plan.traversal import post_order
from tests.support.regions import estimates, graph_of


def copies(order: tuple[int, ...], *, filters: bool) -> list[str]:
    """Three copies of a relation and one that all are compared with, in some order; returns the differences."""
    hub = relation("hub", [Attribute(i, i, f"h{i}") for i in range(3)])
    plan: LogicalPlan = hub
    for place, copy in enumerate(order):
        key, kind = (Attribute(10 + 2 * place + i, 10 + 2 * place + i, name) for i, name in enumerate(("key", "kind")))
        read: LogicalPlan = relation("copy", [key, kind])
        if filters:
            read = Filter(call("EqualTo", reference(kind), literal(copy)), read)
        tie = call("LessThan" if filters else "EqualTo", reference(key), reference(hub.output[0 if filters else copy]))
        plan = Join(plan, read, "Inner", tie)
    graph, _, _ = graph_of(plan)
    found = canonical_order(graph, estimates(graph, [100.0] * 4))
    seen = []
    for vertex in found:
        edges = sorted(describe(e.predicate) for e in graph.edges_of[vertex])
        kept = [describe(n.condition) for n in post_order(graph.relations[vertex]) if isinstance(n, Filter)]
        seen.append(f"{kept} {edges}")
    return seen


def test_a_long_chain_of_copies_is_distinguished() -> None:
    """Each differs from its neighbours only by how far it is from the ends."""
    seen = set()
    for seed in range(4):
        places = random.Random(seed).sample(range(45), 45)
        columns = {i: [Attribute(2 * n + k, 2 * n + k, "kl"[k]) for k in range(2)] for n, i in enumerate(places)}
        ties = [call("EqualTo", reference(columns[i][1]), reference(columns[i + 1][0])) for i in range(44)]
        plan: LogicalPlan = relation("copy", columns[places[0]])
        for i in places[1:]:
            plan = Join(plan, relation("copy", columns[i]), "Inner", None)
        graph, _, _ = graph_of(Filter(conjunction(ties), plan))
        found = canonical_order(graph, estimates(graph, [100.0] * 45))
        seen.add(tuple(places[vertex] for vertex in found))
    assert len(seen) == 1


@pytest.mark.parametrize("filters", [True, False], ids=["by their filters", "by what ties them"])
def test_copies_are_distinguished(filters: bool) -> None:
    assert len({tuple(copies(order, filters=filters)) for order in itertools.permutations(range(3))}) == 1
