"""From a join order back to a plan: every predicate exactly once, as early as its `required` set allows.

Relations are given the filters that they have from others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyjoinopt.joins.emit.pinned_semi_joins import should_pin
from pyjoinopt.joins.emit.transitive_filters import transitive_filters
from pyjoinopt.joins.graph.build_hypergraph import with_columns
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, merge_parts
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.expressions import SUBQUERY, TRUE, Expression, conjunction, conjuncts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import CROSS, INNER, Filter, Join, LogicalPlan


def emit(
    graph: JoinGraph,
    tree: JoinTree,
    region: JoinGroup,
    made: Callable[[LogicalPlan, int], object] = lambda *_: None,
    rows: Callable[[int], float] | None = None,
) -> LogicalPlan:
    """The plan of the whole group in the order `tree`, late columns on top.

    The output has all columns of the items; the caller restores order and choice where a parent cares.

    Args:
        graph: of the group.
        tree: an order of its vertices.
        region: the group as written.
        made: told of each plan that joins a set of vertices.
        rows: of a set of vertices, if Spark will still move semi and anti joins unless they are held.
    """
    if tree.relations != graph.everything:
        raise ValueError(f"the order covers {tree.relations:b}, the group {graph.everything:b}")
    plans: list[LogicalPlan] = []
    inherited = transitive_filters(graph)
    held: set[int] = set()
    product = CROSS if region.crossed or _needs_no_product(graph) else INNER
    for node in tree.post_order():
        if node.left is None or node.right is None:
            plans.append(_relation(graph, node.vertex, inherited.get(node.vertex, [])))
            continue
        right, left = plans.pop(), plans.pop()
        operator = graph.operator(node.left.relations, node.right.relations)
        if operator is not None:
            if rows is not None and should_pin(graph, operator, node.left, rows, held):
                held.add(node.relations)
            plan = _operator(graph, operator, left, right, node, node.relations in held)
        else:
            plan = inner_join(left, right, join_predicates(graph, node.left.relations, node.right.relations), product)
        made(plan, node.relations)
        plans.append(plan)
    plan = plans[0]
    return with_columns(plan, region.late.values())


def inner_join(
    left: LogicalPlan, right: LogicalPlan, predicates: Sequence[Expression], product: str = INNER
) -> LogicalPlan:
    """The join of two plans on some predicates; those that ask subqueries stand in a filter on top, as Spark wants it.

    Args:
        left, right: the plans.
        predicates: all that is tested.
        product: type of a join without any other predicate.
    """
    condition = conjunction([p for p in predicates if not p.contains & SUBQUERY])
    joined = Join(left, right, product if condition is None else INNER, condition)
    asking = conjunction([p for p in predicates if p.contains & SUBQUERY])
    return joined if asking is None else Filter(asking, joined)


def _relation(graph: JoinGraph, vertex: int, inherited: list[Expression]) -> LogicalPlan:
    """The plan of a vertex; what may fail is tested last."""
    plan = graph.relations[vertex]
    if inherited and graph.filters[vertex] and isinstance(plan, Filter):
        inherited, plan = inherited + conjuncts(plan.condition), plan.children[0]
    condition = conjunction(inherited)
    return plan if condition is None else Filter(condition, plan)


def _needs_no_product(graph: JoinGraph) -> bool:
    """True if cross products in an order are this package's idea: Spark, told to refuse them, takes the query."""
    ties = [edge.required for edge in graph.edges if edge.predicate is not TRUE or edge.join_type != INNER]
    return len(merge_parts([1 << vertex for vertex in range(len(graph))], ties)) == 1


def _operator(
    graph: JoinGraph, edge: Edge, left: LogicalPlan, right: LogicalPlan, node: JoinTree, held: bool
) -> LogicalPlan:
    """An outer, semi or anti join; predicates that waited for it go on top, its own condition is no place for them."""
    assert node.left is not None and node.right is not None
    if not edge.fits(node.left.relations, node.right.relations):
        raise ValueError(f"the order {node} has a {edge.join_type} join where it would give other rows")
    condition = None if edge.predicate is TRUE else edge.predicate
    info = {"subquery": edge.subquery} if edge.subquery is not None else {"held": True} if held else None
    joined = Join(left, right, edge.join_type, condition, info=info)
    others = [p for p in join_predicates(graph, node.left.relations, node.right.relations) if p is not edge.predicate]
    condition = conjunction(others)
    return joined if condition is None else Filter(condition, joined)


def join_predicates(graph: JoinGraph, left: int, right: int) -> list[Expression]:
    """What the join of two disjoint sets tests: equalities first, what may fail last."""
    written: list[Edge] = []
    implied: list[Edge] = []
    for edge in graph.applied_by(left, right):
        (implied if edge.implied else written).append(edge)
    tied = {edge.equality_class for edge in written}
    for edge in implied:
        # Members of a class on one side are equal already; a needed product has no predicate.
        if edge.predicate is not TRUE and edge.equality_class not in tied:
            tied.add(edge.equality_class)
            written.append(edge)
    return [e.predicate for e in sorted(written, key=_rank)]


def applies_implied_equality(graph: JoinGraph, tree: JoinTree) -> bool:
    """Does an order ask an equality that was not written, before those that it follows from can be asked?

    As written such a join would be a cross product.
    """
    for node in tree.post_order():
        if node.left is not None and node.right is not None:
            applied = graph.applied_by(node.left.relations, node.right.relations)
            written = {edge.equality_class for edge in applied if not edge.implied}
            if any(e.implied and e.predicate is not TRUE and e.equality_class not in written for e in applied):
                return True
    return False


def _rank(edge: Edge) -> tuple[bool, bool]:
    return fallibility.may_throw(edge.predicate), edge.keys is None
