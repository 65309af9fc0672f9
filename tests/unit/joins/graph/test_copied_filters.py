"""Filters that may throw, and to which relations Spark copies them."""

from __future__ import annotations

import pytest

from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.plan.nodes import INNER, Filter, Join, LogicalPlan
from tests.support.letters import Letters
from tests.support.regions import region_of


@pytest.mark.parametrize(
    ("test", "on", "fixed"),
    [
        ("risky(a1) > 5", "b1 = c1", True),
        ("risky(a1) > 5", "b2 = c1", False),  # the class of a1 has two relations: one join infers it
        ("risky(a2) > 5", "b1 = c1", False),
        ("a1 > 5", "b1 = c1", False),
    ],
)
def test_the_order_decides_where_a_key_has_three_relations(
    w: Letters, abc: tuple[LogicalPlan, ...], test: str, on: str, fixed: bool
) -> None:
    a, b, c = abc
    plan = Filter(w(test), Join(a, Join(b, c, INNER, w(on)), INNER, w("a1 = b1")))
    graph, _ = build_graph(region_of(plan), {})
    assert graph.only_as_written is fixed
