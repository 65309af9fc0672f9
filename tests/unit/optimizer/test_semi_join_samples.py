"""Which left rows of a semi join are known to find themselves on its right side."""

from __future__ import annotations

import pytest

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.optimizer.semi_join_samples import own_rows
from pyjoinopt.plan.expressions import Attribute, call, conjunction, reference
from pyjoinopt.plan.nodes import ANTI, SEMI, Filter, Join, relation
from tests.support.letters import Letters


def graph_of(w: Letters, kind: str, left: str, right: str, on: str) -> JoinGraph:
    """The graph of a relation `a`, semi-joined with itself as `b`; each side has a filter."""
    a, b = w.relation("a", "a1 a2 a3", alike=1), w.relation("b", "b1 b2 b3", alike=1)
    plan = Join(Filter(w(left), a), Filter(w(right), b), kind, w(on))
    (group,) = find_groups(plan).groups.values()
    return build_graph(group, {})[0]


def estimates() -> PlanEstimates:
    def leaf(plan: object) -> RelationStatistics:
        columns = {bit: ColumnStatistics(1000.0) for bit in range(6)}
        return RelationStatistics(1e5, 8e5, "footers", True, columns, 1e5, 1e5)

    return PlanEstimates(leaf)


@pytest.mark.parametrize(
    ("left", "right", "on", "found"),
    [
        ("a2 > a3", "b2 > b3", "a1 = b1", True),
        ("a2 > a3", "b2 > b3", "a1 = b1 and not a2 = b3", True),
        ("a2 > a3", "b3 > b2", "a1 = b1", False),
        ("a2 > a3", "b2 > b3", "a1 = b2", False),
        ("a2 > a3", "b2 > b3", "a1 = b1 and a2 = b2", False),  # of two columns one is not enough
        ("a2 > a3", "b2 > b3", "a1 <=> b1", False),
    ],
)
@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_rows_with_the_same_filters(w: Letters, kind: str, left: str, right: str, on: str, found: bool) -> None:
    graph = graph_of(w, kind, left, right, on)
    assert list(own_rows(graph, estimates()).values()) == ([1.0] if found else [])


@pytest.mark.parametrize(
    ("other", "found"), [("Not", False), ("LessThan", False), ("GreaterThan", False), ("GreaterThanOrEqual", True)]
)
def test_no_row_is_another_one_than_itself(w: Letters, other: str, found: bool) -> None:
    """The columns of both sides have the same names, as those of two uses of a table do."""
    a, here = w.relation("a", "x1 x2", alike=1), (w("x1"), w("x2"))
    columns = [Attribute(10 + i, 10 + i, f"x{i}", "int") for i in (1, 2)]
    there = [reference(column) for column in columns]
    compared = call("EqualTo", here[1], there[1])
    test = call("Not", compared) if other == "Not" else call(other, here[1], there[1])
    condition = conjunction([call("EqualTo", here[0], there[0]), test])
    (group,) = find_groups(Join(a, relation("b", columns, alike=1), SEMI, condition)).groups.values()
    graph, _ = build_graph(group, {})
    assert list(own_rows(graph, estimates()).values()) == ([1.0] if found else [])


@pytest.mark.parametrize(("kind", "rows"), [(SEMI, 500.0), (ANTI, 500.0 * ASSUMPTIONS.anti_join_least)])
def test_they_have_a_partner(w: Letters, kind: str, rows: float) -> None:
    graph, estimate = graph_of(w, kind, "a2 > a3", "b2 > b3", "a1 = b1"), estimates()
    statistics = [estimate(plan).with_rows(500.0) for plan in graph.relations]
    found = GraphEstimates(graph, statistics, own_rows=own_rows(graph, estimate))
    unknown = GraphEstimates(graph, statistics)
    assert found.rows(0b11) == pytest.approx(rows)
    assert 100.0 < unknown.rows(0b11) < 400.0
