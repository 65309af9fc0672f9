"""The join group of a plan, for tests of its graph and its reordering."""

from __future__ import annotations

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.expressions import conjuncts, describe
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order


def region_of(plan: LogicalPlan) -> JoinGroup:
    """The group that the plan is the top of."""
    return next(region for region in find_groups(plan).groups.values() if region.top is plan)


def only_region(plan: LogicalPlan) -> JoinGroup:
    """The group of a plan that has no other, wherever its top is."""
    (region,) = find_groups(plan).groups.values()
    return region


def graph_of(plan: LogicalPlan) -> tuple[JoinGraph, JoinTree, JoinGroup]:
    """The graph of the only group, and its written order."""
    region = only_region(plan)
    graph, written = build_graph(region, {})
    assert graph.allows_order(written)
    return graph, written, region


def predicates_of(plan: LogicalPlan) -> list[str]:
    """Every conjunct of every join and filter, sorted."""
    conditions = [e for node in post_order(plan) if isinstance(node, (Join, Filter)) for e in node.expressions]
    return sorted(describe(p) for c in conditions for p in conjuncts(c))


def joins(plan: LogicalPlan) -> list[Join]:
    """The joins of a plan, outermost first."""
    found: list[Join] = []
    stack = [plan]
    while stack:
        node = stack.pop()
        if isinstance(node, Join):
            found.append(node)
        stack.extend(reversed(node.children))
    return found


def estimates(graph: JoinGraph, rows: list[float], ndv: float = 100.0) -> GraphEstimates:
    """Statistics with these rows of each vertex, and distinct values of every column."""
    known = [
        RelationStatistics(
            float(n), 40.0 * n, "test", True, {a.bit: ColumnStatistics(ndv=min(ndv, n)) for a in plan.output}, float(n)
        )
        for n, plan in zip(rows, graph.relations, strict=True)
    ]
    return GraphEstimates(graph, known)
