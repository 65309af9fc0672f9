"""From a join order back to a plan: every predicate as early as its TES allows (`join_predicates`).

Relations also get the filters that follow for them from the filters of others (`transitive_filters`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.emit.join_predicates import predicates_by_join
from pyjoinopt.joins.emit.pinned_semi_joins import should_pin
from pyjoinopt.joins.emit.transitive_filters import transitive_filters
from pyjoinopt.joins.graph.build_hypergraph import with_columns
from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge, merge_parts
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.expressions import SUBQUERY, TRUE, Expression, conjunction, conjuncts
from pyjoinopt.plan.nodes import CROSS, INNER, Filter, Join, LogicalPlan


@dataclass(frozen=True)
class Emitted:
    """The plan of a group.

    Attributes:
        plan: the whole group, with the columns that are computed on top of it.
        joins: each plan of a join in it, with the set of vertices that it joins.
    """

    plan: LogicalPlan
    joins: tuple[tuple[LogicalPlan, int], ...]


def emit(graph: JoinGraph, tree: JoinTree, group: JoinGroup, estimates: GraphEstimates | None = None) -> Emitted:
    """The plan of the whole group in the order `tree`.

    Its output has all columns of the inputs; the caller restores order and choice where a parent needs them.

    Args:
        graph: of the group.
        tree: an order of its vertices.
        group: the group as written.
        estimates: of the graph, if Spark will still move semi and anti joins, so that some have to be pinned; else
            None.
    """
    if tree.relations != graph.everything:
        raise ValueError(f"the order covers {tree.relations:b}, the group {graph.everything:b}")
    plans: list[LogicalPlan] = []
    joins: list[tuple[LogicalPlan, int]] = []
    inferred = transitive_filters(graph)
    predicates = predicates_by_join(graph, tree)
    pinned: set[int] = set()
    product = CROSS if group.crossed or _needs_no_product(graph) else INNER
    for node in tree.post_order():
        if node.left is None or node.right is None:
            plans.append(_relation(graph, node.vertex, inferred.get(node.vertex, [])))
            continue
        right, left = plans.pop(), plans.pop()
        operator = graph.operator(node.left.relations, node.right.relations)
        if operator is not None:
            if estimates is not None and should_pin(graph, operator, node.left, estimates, pinned):
                pinned.add(node.relations)
            others = [p for p in predicates[node.relations] if p is not operator.predicate]
            plan = _operator(operator, left, right, node, others, node.relations in pinned)
        else:
            plan = inner_join(left, right, predicates[node.relations], product)
        joins.append((plan, node.relations))
        plans.append(plan)
    return Emitted(with_columns(plans[0], group.deferred.values()), tuple(joins))


def inner_join(
    left: LogicalPlan, right: LogicalPlan, predicates: Sequence[Expression], product: str = INNER
) -> LogicalPlan:
    """The join of two plans on some predicates; those with a subquery go into a filter on top, as Spark requires.

    Args:
        left, right: the plans.
        predicates: all that are evaluated.
        product: type of a join without any other predicate.
    """
    condition = conjunction([p for p in predicates if not p.contains & SUBQUERY])
    joined = Join(left, right, product if condition is None else INNER, condition)
    with_subquery = conjunction([p for p in predicates if p.contains & SUBQUERY])
    return joined if with_subquery is None else Filter(with_subquery, joined)


def _relation(graph: JoinGraph, vertex: int, inferred: list[Expression]) -> LogicalPlan:
    """The plan of a vertex; what may throw is evaluated last."""
    plan = graph.relations[vertex]
    if inferred and graph.filters[vertex] and isinstance(plan, Filter):
        inferred, plan = inferred + conjuncts(plan.condition), plan.children[0]
    condition = conjunction(inferred)
    return plan if condition is None else Filter(condition, plan)


def _needs_no_product(graph: JoinGraph) -> bool:
    """True if the query has no cross product as written, so that Spark runs it where cross products are forbidden."""
    ties = [edge.tes for edge in graph.edges if edge.predicate is not TRUE or edge.join_type != INNER]
    return len(merge_parts([1 << vertex for vertex in range(len(graph))], ties)) == 1


def _operator(
    edge: OperatorEdge, left: LogicalPlan, right: LogicalPlan, node: JoinTree, others: list[Expression], pinned: bool
) -> LogicalPlan:
    """An outer, semi or anti join; predicates that waited for it go on top and not into its condition."""
    assert node.left is not None and node.right is not None
    if not edge.fits(node.left.relations, node.right.relations):
        raise ValueError(f"the order {node} has a {edge.join_type} join where it would give other rows")
    condition = None if edge.predicate is TRUE else edge.predicate
    info = {"subquery": edge.subquery} if edge.subquery is not None else {"held": True} if pinned else None
    joined = Join(left, right, edge.join_type, condition, info=info)
    condition = conjunction(others)
    return joined if condition is None else Filter(condition, joined)
