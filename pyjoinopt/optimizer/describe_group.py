"""The report of a join group: its relations, its predicates, and the joins of its orders."""

from __future__ import annotations

import math

from pyjoinopt.estimation.plans.operators import weakest
from pyjoinopt.joins.emit.join_predicates import predicates_by_join
from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge, sign_of
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.optimizer.order_group import EstimatedGroup, OrderedGroup
from pyjoinopt.plan.expressions import TRUE, describe
from pyjoinopt.report.model import EdgeReport, GroupReport, JoinEstimate, RelationReport
from pyjoinopt.util.bitset import members


def _proved(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def joins_report(group: EstimatedGroup, order: JoinTree, costs: JoinCosts) -> tuple[JoinEstimate, ...]:
    """The joins of one order, innermost first."""
    graph, estimates, statistics = group.graph, group.estimates, group.statistics
    joins: list[JoinEstimate] = []
    predicates = predicates_by_join(graph, order)
    number = {1 << vertex: vertex for vertex in range(len(graph))}
    for node in order.post_order():
        if node.left is None or node.right is None:
            continue
        left, right, both = node.left.relations, node.right.relations, node.relations
        number[both] = len(graph) + len(joins)
        joins.append(
            JoinEstimate(
                relations=graph.names_of(both),
                predicates=tuple(map(describe, predicates[both])),
                rows=estimates.rows(both),
                bytes=estimates.bytes(both),
                bound=_proved(estimates.upper_bound(both)),
                source=weakest(statistics[v] for v in members(both)),
                cost=costs.join(left, right),
                sign=graph.sign(left, right),
                left=number[left],
                right=number[right],
            )
        )
    return tuple(joins)


def change_in_one_line(ordered: OrderedGroup) -> str:
    """The old and the new order of a group."""
    graph = ordered.estimated.graph
    return " -> ".join(order.show(graph.names, graph.sign) for order in (ordered.estimated.written, ordered.chosen))


def describe_group(ordered: OrderedGroup, changed: bool) -> GroupReport:
    """The report of a group.

    Args:
        ordered: the group.
        changed: whether another plan is used for it.
    """
    group, graph = ordered.estimated, ordered.estimated.graph
    return GroupReport(
        relations=tuple(
            RelationReport(name, s.rows, s.source, s.bytes, _proved(s.upper_bound))
            for name, s in zip(graph.names, group.statistics, strict=True)
        ),
        predicates=tuple(describe(e.predicate) for e in graph.edges if not e.implied),
        order_before=group.written.show(graph.names, graph.sign),
        order_after=ordered.chosen.show(graph.names, graph.sign),
        estimated_rows=joins_report(group, ordered.chosen, ordered.costs),
        cost_before=ordered.cost_before,
        cost_after=ordered.cost_after,
        strategy=ordered.strategy,
        pairs=ordered.pairs,
        seconds=ordered.seconds,
        changed=changed,
        joins_before=joins_report(group, group.written, ordered.costs) if changed else (),
        edges=edges_report(graph),
    )


def edges_report(graph: JoinGraph) -> tuple[EdgeReport, ...]:
    """The edges of a group, for people."""
    return tuple(
        EdgeReport(
            "" if edge.predicate is TRUE else describe(edge.predicate),
            graph.names_of(edge.ses),
            graph.names_of(edge.tes),
            sign_of(edge),
            (graph.names_of(edge.left_tes), graph.names_of(edge.right_tes)) if isinstance(edge, OperatorEdge) else (),
            edge.implied,
        )
        for edge in graph.edges
    )
