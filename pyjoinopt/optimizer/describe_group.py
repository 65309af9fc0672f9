"""What a report tells of a join group: its relations, its predicates, and the joins of its orders."""

from __future__ import annotations

import math

from pyjoinopt.cost import CostModel
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.operators import weakest
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.emit.emit_plan import join_predicates
from pyjoinopt.joins.graph.hypergraph import JoinGraph, sign_of
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.join_costs import price
from pyjoinopt.plan.expressions import TRUE, describe
from pyjoinopt.plan.nodes import INNER
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.model import EdgeReport, GroupReport, JoinEstimate, RelationReport
from pyjoinopt.util.bitset import members


def _proved(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def joins_report(
    graph: JoinGraph,
    statistics: list[RelationStatistics],
    estimates: GraphEstimates,
    order: JoinTree,
    cost: CostModel,
) -> tuple[JoinEstimate, ...]:
    """The joins of one order, innermost first."""
    joins: list[JoinEstimate] = []
    number = {1 << vertex: vertex for vertex in range(len(graph))}
    for node in order.post_order():
        if node.left is None or node.right is None:
            continue
        left, right, both = node.left.relations, node.right.relations, node.relations
        number[both] = len(graph) + len(joins)
        joins.append(
            JoinEstimate(
                relations=graph.names_of(both),
                predicates=tuple(map(describe, join_predicates(graph, left, right))),
                rows=estimates.rows(both),
                bytes=estimates.bytes(both),
                bound=_proved(estimates.upper_bound(both)),
                source=weakest(statistics[v] for v in members(both)),
                cost=price(graph, estimates.size, cost, left, right),
                sign=graph.sign(left, right),
                left=number[left],
                right=number[right],
            )
        )
    return tuple(joins)


def tell_group(
    report: JoinReport,
    graph: JoinGraph,
    statistics: list[RelationStatistics],
    estimates: GraphEstimates,
    written: JoinTree,
    tree: JoinTree,
    cost_before: float,
    cost_after: float,
    strategy: str,
    pairs: int,
    seconds: float,
    changed: bool,
    cost: CostModel,
) -> None:
    """Tell a report of one group: at once that it is there and whether it changed, the rest when that is read."""

    def joins_of(order: JoinTree) -> tuple[JoinEstimate, ...]:
        return joins_report(graph, statistics, estimates, order, cost)

    def write() -> None:
        report.groups.append(
            GroupReport(
                relations=tuple(
                    RelationReport(name, s.rows, s.source, s.bytes, _proved(s.upper_bound))
                    for name, s in zip(graph.names, statistics, strict=True)
                ),
                predicates=tuple(describe(e.predicate) for e in graph.edges if not e.implied),
                order_before=orders[0],
                order_after=orders[1],
                estimated_rows=joins_of(tree),
                cost_before=cost_before,
                cost_after=cost_after,
                strategy=strategy,
                pairs=pairs,
                seconds=seconds,
                changed=changed,
                joins_before=joins_of(written) if changed else (),
                edges=edges_report(graph),
            )
        )
        report.ordered(graph.relations)

    orders = [order.show(graph.names, graph.sign) for order in (written, tree)]
    report.group(" -> ".join(orders) if changed else None, write)


def edges_report(graph: JoinGraph) -> tuple[EdgeReport, ...]:
    """The edges of a group, for people."""
    return tuple(
        EdgeReport(
            "" if edge.predicate is TRUE else describe(edge.predicate),
            graph.names_of(edge.relations),
            graph.names_of(edge.required),
            sign_of(edge),
            (graph.names_of(edge.sides[0]), graph.names_of(edge.sides[1])) if edge.join_type != INNER else (),
            edge.implied,
        )
        for edge in graph.edges
    )
