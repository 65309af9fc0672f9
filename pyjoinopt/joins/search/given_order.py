"""An order that comes from elsewhere, such as from a baseline: is it one that the search could have found?

Costs do not matter here, only rows. What the search never makes is refused, too: beside the order that the graph does
not allow, a cross product of parts of components where some predicate may fail. Spark would move that predicate into
the product, or take the product apart, and then evaluate the predicate on rows on which the query does not.
"""

from __future__ import annotations

from pyjoinopt.joins.emit.join_predicates import join_predicates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import connected_components, with_sides_in_place


def legal_order(graph: JoinGraph, tree: JoinTree) -> JoinTree | None:
    """The order, with its sides in their places; None if it is not proved to give the rows of the written one."""
    placed = with_sides_in_place(graph, tree)
    if not graph.allows_order(placed):
        return None
    return placed if not graph.co_required or _only_needed_products(graph, placed) else None


def _only_needed_products(graph: JoinGraph, tree: JoinTree) -> bool:
    """Whether all cross products are between whole components, where there is no predicate."""
    components = connected_components(graph, range(len(graph)))
    for node in tree.post_order():
        if node.left is None or node.right is None:
            continue
        left, right = node.left.relations, node.right.relations
        if graph.operator(left, right) is None and not join_predicates(graph, left, right):
            if any(part & side and part & ~side for part in components for side in (left, right)):
                return False
    return True
