"""The order of components that no predicate connects, each of which was ordered by itself.

Cross products come last, and only between whole components: an order that multiplies a part of a component and joins
the rest of it later is not considered, as in most optimizers. While there are few components, all orders of them are
priced; a predicate over several components counts where it applies.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.joins.join_tree import JoinTree, join
from pyjoinopt.joins.search.search_context import SearchContext


def join_components(context: SearchContext, components: Sequence[JoinTree]) -> JoinTree | None:
    """The cheapest tree of whole components; None if there are too many, or if outer joins allow none.

    Args:
        context: the group.
        components: disjoint trees, in canonical order.
    """
    if len(components) > context.limits.products:
        return None
    best: dict[int, tuple[float, JoinTree]] = {1 << i: (0.0, tree) for i, tree in enumerate(components)}
    everything = (1 << len(components)) - 1
    for chosen in range(3, everything + 1):
        rest = half = chosen & ~(1 << chosen.bit_length() - 1)
        while half:  # each way to halve them once; of equal ones the left-deep one
            one, other = best.get(half), best.get(chosen ^ half)
            if one is not None and other is not None:
                made = _joined(context, one, other)
                if made is not None and (chosen not in best or made[0] < best[chosen][0]):
                    best[chosen] = made
            half = (half - 1) & rest
    return best[everything][1] if everything in best else None


def _joined(
    context: SearchContext, one: tuple[float, JoinTree], other: tuple[float, JoinTree]
) -> tuple[float, JoinTree] | None:
    (one_cost, left), (other_cost, right), graph = one, other, context.graph
    if not graph.allows(left.relations | right.relations) or not graph.allows_join(left.relations, right.relations):
        return None
    edge = graph.operator(left.relations, right.relations)
    if edge is not None and not edge.fits(left.relations, right.relations):
        left, right = right, left
    elif edge is None and context.bytes(left.relations) < context.bytes(right.relations):
        left, right = right, left
    return one_cost + other_cost + context.costs.join(left.relations, right.relations), join(left, right)
