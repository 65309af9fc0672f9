"""Lookup joins: joins that keep each row once, and are made last instead of being searched.

A join with one relation that is unique on the join key, and has a partner for every row, neither removes nor adds rows:
a left join, or an inner join by a foreign key with a dimension that is not filtered. Thirty of them multiply the
connected subgraphs by 2^30, but the search for their place has a simple end. Let a search find the best order of all
other relations, the *core*. What a lookup join costs depends on its left side, so its place is where this is smallest:
on top, if no part of the core that it could be joined to is cheaper to join with than the whole core. There the largest
relation goes first: if its other side is the smaller one and is built, that is cheapest while the rows are narrow.

That is the cheapest order, or a hundredth more at most, for reasons that are checked of each lookup join
(`lookup_joins`) and of the core (`are_cheapest_on_top`):

* no other predicate reads its relation, and no other join must come after it, so the core is legal without it;
* its estimate is a factor of 1 for every set, so the core's joins cost no less with it below them than without;
* on the whole core, with the columns of all other lookup joins beside it, it costs no more than on any part of the
  core, but for the hundredth. Wider rows can only make other joins more expensive. (A side that is no longer broadcast
  because a lookup join made it wider may be cheaper to a cost model. Such orders are not compared.)

Where one of these fails, the relation belongs to the core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyjoinopt.cost.size import Size
from pyjoinopt.joins.graph.hypergraph import Edge, OperatorEdge
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.pair_budget import TINY
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.plan.nodes import INNER, LEFT

#: Row counts are rounded to nine digits of their logarithm, so smaller factors make no difference.
_NO_FACTOR = 1e-9
#: Inner joins are lookup joins of relations with so many neighbours, if so many are: the search is fast without, and is
#: done once more where one is not cheapest on top. (A left join seldom is: only a join can multiply rows below it.)
_NEIGHBOURS, _AT_ONCE = 7, 3
#: What an inner lookup join may cost more on top than below, relatively. Either of its sides may be built, and the left
#: one is wider on top, so that there would seldom be one without slack; estimates are not better than that.
_SLACK = 0.01


class LookupJoin(NamedTuple):
    """A join that keeps each row once.

    Attributes:
        left: the vertices that its left side must contain.
        right: its right side, one vertex as a set.
        join_type: left or inner.
    """

    left: int
    right: int
    join_type: str


def lookup_joins(context: SearchContext, component: int) -> list[LookupJoin]:
    """The joins of a connected component that can be made last, in the order in which to make them.

    Args:
        context: the group.
        component: the vertices that are to be ordered.
    """
    if context.costs.partitionings is not None or component.bit_count() < 3:
        return []
    found = _without_few(_candidates(context, component))
    if not found:
        return []
    size = context.estimates.size
    fewest = size(component & ~sum(lookup.right for lookup in found)).rows
    possible = [lookup for lookup in found if size(lookup.left).rows >= fewest]
    return sorted(possible, key=lambda lookup: size(lookup.right).bytes, reverse=True)


def are_cheapest_on_top(
    context: SearchContext, lookups: Sequence[LookupJoin], core: int, sizes: Mapping[int, Size]
) -> bool:
    """Whether no lookup join has a cheaper place below.

    Args:
        context: the group.
        lookups: the lookup joins.
        core: the vertices of the core.
        sizes: of all sets of the core that a lookup join could be joined to.
    """
    size, price = context.estimates.size, context.cost.join
    rows = sizes[core].rows
    whole = sizes[core]._replace(bytes=size(core | sum(lookup.right for lookup in lookups)).bytes)
    for left, join_type, rights in _alike(lookups):
        parts = [size for relations, size in sizes.items() if not left & ~relations and relations != core]
        if any(part.rows < rows for part in parts):
            return False
        slack = 1.0 + _SLACK if join_type == INNER else 1.0
        for right in rights:
            looked_up = size(right)
            on_top = price(whole, looked_up, whole, join_type)
            if any(price(part, looked_up, part, join_type) * slack < on_top for part in parts):
                return False
    return True


def with_lookup_joins(tree: JoinTree, lookups: Iterable[LookupJoin]) -> JoinTree:
    """The order of the core, with the lookup joins on top."""
    for lookup in lookups:
        tree = join(tree, leaf(lookup.right.bit_length() - 1))
    return tree


def _candidates(context: SearchContext, component: int) -> Iterator[LookupJoin]:
    """Joins that keep each row once, by the estimates, with relations that nothing else reads."""
    graph = context.graph
    required = 0
    for present, needed in graph.co_required:
        required |= present | needed
    fewest = min(context.estimates.upper_bound(1 << v) for v in context.canonical if component >> v & 1)
    for vertex in context.canonical:
        bit = 1 << vertex
        edges = graph.edges_of[vertex]
        if bit & required or not bit & component or len(edges) != 1:
            continue
        lookup = _lookup(edges[0], bit, component)
        if lookup is None:
            continue
        if lookup.join_type == INNER:
            if (graph.neighbours(lookup.left) & component).bit_count() < _NEIGHBOURS:
                continue
            if context.estimates.upper_bound(bit) * fewest <= TINY:
                continue  # it may form a cross product with a tiny relation
        if _keeps_rows(context, vertex):
            yield lookup


def _without_few(lookups: Iterable[LookupJoin]) -> list[LookupJoin]:
    """Without inner joins of relations that have few of them."""
    found = list(lookups)
    inner = Counter(lookup.left for lookup in found if lookup.join_type == INNER)
    return [lookup for lookup in found if lookup.join_type != INNER or inner[lookup.left] >= _AT_ONCE]


def _lookup(edge: Edge, bit: int, component: int) -> LookupJoin | None:
    """The join of a vertex by its only edge, if that may be made on top of the rest of a component."""
    if isinstance(edge, OperatorEdge):
        alone = edge.join_type == LEFT and edge.right_tes == bit == edge.max_right & component
        return LookupJoin(edge.left_tes, bit, LEFT) if alone and not component & ~(edge.max_left | bit) else None
    other = edge.tes & ~bit
    alone = edge.tes == edge.ses and edge.keys is not None and other.bit_count() == 1 and not other & ~component
    return LookupJoin(other, bit, INNER) if alone else None


def _keeps_rows(context: SearchContext, vertex: int) -> bool:
    """Whether every set has, by the estimate, as many rows with this relation as without it."""
    factor = context.estimates.log_factor(vertex)
    return factor is not None and abs(factor) < _NO_FACTOR


def _alike(lookups: Iterable[LookupJoin]) -> Iterator[tuple[int, str, list[int]]]:
    """What the left sides must contain, the join type, and the right sides of lookup joins that are alike in these."""
    groups: dict[tuple[int, str], list[int]] = {}
    for lookup in lookups:
        groups.setdefault((lookup.left, lookup.join_type), []).append(lookup.right)
    return ((left, join_type, rights) for (left, join_type), rights in groups.items())
