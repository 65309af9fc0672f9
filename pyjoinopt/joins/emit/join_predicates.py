"""Which predicates each join of an order evaluates.

Every predicate is evaluated once, by the first join that has its whole TES; but an equality that follows from others
is not evaluated at all. Of

    SELECT * FROM a, b, c, d WHERE a.k = b.k AND a.k = c.k AND a.k = d.k

the order (a ⋈ b) ⋈ (c ⋈ d) joins c and d on the implied c.k = d.k, and then a.k = d.k follows from a.k = c.k. To
evaluate both would cost more than the comparison: Spark would take them for a key of two columns, by which neither side
is partitioned yet, so it would shuffle both sides again; and the table of a hash join on one long is cheaper than one
on two.

An equality x = y follows if a path of equalities leads from x to y, all of them evaluated below the join or by it.
Below an outer join "evaluated" means that both columns are equal or both NULL. That is enough: x and y are on different
sides, so the path has an equality that this join evaluates, whose columns are not NULL; so none along the path is.
"""

from __future__ import annotations

from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.expressions import TRUE, Expression
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.util.disjoint_sets import DisjointSets

#: Two columns, as bits.
_Equated = tuple[int, int]


def predicates_by_join(graph: JoinGraph, tree: JoinTree) -> dict[int, list[Expression]]:
    """The predicates of each join of an order; of an operator its own, too.

    Args:
        graph: of the group.
        tree: an order of its vertices.

    Returns:
        The set of relations of each join -> its predicates, equalities first, what may throw last.
    """
    found: dict[int, list[Expression]] = {}
    equated: dict[int, list[_Equated]] = {}
    for node in tree.post_order():
        if node.left is None or node.right is None:
            continue
        left, right = node.left.relations, node.right.relations
        below = equated.pop(left, []) + equated.pop(right, [])
        edges, equated[node.relations] = _without_followed(applied_edges(graph, left, right), below)
        found[node.relations] = [edge.predicate for edge in edges]
    return found


def join_predicates(graph: JoinGraph, left: int, right: int) -> list[Expression]:
    """What the join of two disjoint sets evaluates at most, whatever the joins below it evaluate."""
    return [edge.predicate for edge in applied_edges(graph, left, right)]


def applied_edges(graph: JoinGraph, left: int, right: int) -> list[Edge]:
    """The edges of `join_predicates`: implied ones only where no written one of their class is evaluated, too."""
    written: list[Edge] = []
    implied: list[Edge] = []
    for edge in graph.applied_by(left, right):
        (implied if edge.implied else written).append(edge)
    classes = {edge.equality_class for edge in written}
    for edge in implied:
        # Members of a class on one side are equal already; a needed product has no predicate.
        if edge.predicate is not TRUE and edge.equality_class not in classes:
            classes.add(edge.equality_class)
            written.append(edge)
    return sorted(written, key=_rank)


def applies_implied_equality(graph: JoinGraph, tree: JoinTree) -> bool:
    """Whether an order applies an equality that was not written, before those from which it follows.

    As written such a join would be a cross product.
    """
    for node in tree.post_order():
        if node.left is not None and node.right is not None:
            applied = graph.applied_by(node.left.relations, node.right.relations)
            written = {edge.equality_class for edge in applied if not edge.implied}
            if any(e.implied and e.predicate is not TRUE and e.equality_class not in written for e in applied):
                return True
    return False


def _without_followed(edges: list[Edge], below: list[_Equated]) -> tuple[list[Edge], list[_Equated]]:
    """The edges without the equalities that follow; and what is equated, here or below."""
    if all(edge.equality_class < 0 for edge in edges):
        return edges, below
    equal = DisjointSets[int]()
    for one, other in below:
        equal.union(one, other)
    kept = []
    for edge in edges:
        pair = _equated(edge)
        if pair is None:
            kept.append(edge)
        elif equal.union(*pair):
            kept.append(edge)
            below = [*below, pair]
    return kept, below


def _equated(edge: Edge) -> _Equated | None:
    if edge.equality_class < 0 or edge.keys is None:
        return None
    (_, left), (_, right) = edge.keys
    assert left.attribute is not None and right.attribute is not None
    return left.attribute.bit, right.attribute.bit


def _rank(edge: Edge) -> tuple[bool, bool]:
    return fallibility.may_throw(edge.predicate), edge.keys is None
