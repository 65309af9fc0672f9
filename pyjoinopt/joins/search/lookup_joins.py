"""Lookup joins: left joins that keep each row once, and are joined last instead of being searched.

A left join to one relation that is unique on the join key neither removes nor adds rows. Thirty of them multiply the
connected subgraphs by 2^30, but the search for their place has a simple end. Let a search find the best order of all
other relations, the *core*. A lookup join costs what reading the rows of its left side costs, so its place is where
these are fewest: on top, if no part of the core that it could be joined to has fewer rows than the whole core. There
all lookup joins cost the same in any order, and the first in canonical order goes first.

That is the cheapest order, for reasons that are checked of each lookup join (`lookup_joins`) and of the core
(`is_cheapest_on_top`):

* no other predicate reads its relation, and no other join must come after it, so the core is legal without it;
* its estimate is a factor of 1 for every set, so the core's joins cost no less with it below them than without;
* the cost model gives a price that depends on the rows of the left side alone, not on how wide they are: the right side
  is broadcast. Wider rows can only make other joins more expensive. (A side that is no longer broadcast because a
  lookup join made it wider may be cheaper to a cost model. Such orders are not compared.)

Where one of these fails, the relation belongs to the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyjoinopt.cost.size import Size
from pyjoinopt.joins.graph.hypergraph import OperatorEdge
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.plan.nodes import LEFT

#: Row counts are rounded to nine digits of their logarithm, so smaller factors make no difference.
_NO_FACTOR = 1e-9
#: [bytes] More than any row count times any width.
_WIDE = 1e18


def lookup_joins(context: SearchContext, component: int) -> list[OperatorEdge]:
    """The left joins of a connected component that can be joined last, in the order in which to join them.

    Args:
        context: the group.
        component: the vertices that are to be ordered.
    """
    graph = context.graph
    if not graph.operators or context.costs.partitionings is not None:
        return []
    required = 0
    for present, needed in graph.co_required:
        required |= present | needed
    found: list[OperatorEdge] = []
    for vertex in context.canonical:
        bit = 1 << vertex
        edges = graph.edges_of[vertex]
        if bit & required or not bit & component or len(edges) != 1 or not isinstance(edge := edges[0], OperatorEdge):
            continue
        alone = edge.join_type == LEFT and edge.right_tes == bit == edge.max_right & component
        if alone and not component & ~(edge.max_left | bit) and _keeps_rows(context, vertex):
            found.append(edge)
    core = component & ~sum(edge.right_tes for edge in found)
    if not found:
        return []
    size = context.estimates.size
    fewest = size(core).rows
    return [edge for edge in found if size(edge.left_tes).rows >= fewest and _reads_rows(context, edge, core)]


def is_cheapest_on_top(joins: Iterable[OperatorEdge], core: int, sizes: Mapping[int, Size]) -> bool:
    """Whether no lookup join has a place below with fewer rows.

    Args:
        joins: the lookup joins.
        core: the vertices of the core.
        sizes: of all sets of the core that a lookup join could be joined to.
    """
    fewer = [relations for relations, size in sizes.items() if size.rows < sizes[core].rows]
    return not any(not edge.left_tes & ~relations for edge in joins for relations in fewer)


def with_lookup_joins(tree: JoinTree, joins: Sequence[OperatorEdge]) -> JoinTree:
    """The order of the core, with the lookup joins on top."""
    for edge in joins:
        tree = join(tree, leaf(edge.right_tes.bit_length() - 1))
    return tree


def _keeps_rows(context: SearchContext, vertex: int) -> bool:
    """Whether every set has, by the estimate, as many rows with this relation as without it."""
    factor = context.estimates.log_factor(vertex)
    return factor is not None and abs(factor) < _NO_FACTOR


def _reads_rows(context: SearchContext, edge: OperatorEdge, core: int) -> bool:
    """Whether the join's cost depends on the rows of its left side alone. The model is monotone, so two widths do."""
    left, right = context.estimates.size(core), context.estimates.size(edge.right_tes)
    narrow, wide = (left._replace(bytes=bytes) for bytes in (0.0, _WIDE))
    price = context.cost.join
    return price(narrow, right, narrow, LEFT) == price(wide, right, wide, LEFT)
