"""The order of blocks that no predicate ties, each of which was ordered by itself.

Cross products come last, and of whole blocks only: an order that multiplies a part of a block and joins the rest of it
later is not looked for, as in most optimizers. While the blocks are few all orders of them are priced; a predicate
that reads several blocks counts where it applies.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.cost.model import CostModel
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join
from pyjoinopt.plan.nodes import INNER

#: Six blocks are put together in 301 ways to join two sets of them.
_MOST = 6


def join_components(
    graph: JoinGraph, estimates: GraphEstimates, cost: CostModel, blocks: Sequence[JoinTree]
) -> JoinTree | None:
    """The cheapest tree of whole blocks; None if they are too many, or if outer joins allow none.

    Args:
        graph: the join graph.
        estimates: sizes of its sets of vertices.
        cost: the cost model.
        blocks: disjoint trees, in canonical order.
    """
    if len(blocks) > _MOST:
        return None
    best: dict[int, tuple[float, JoinTree]] = {1 << i: (0.0, tree) for i, tree in enumerate(blocks)}
    everything = (1 << len(blocks)) - 1
    for chosen in range(3, everything + 1):
        rest = half = chosen & ~(1 << chosen.bit_length() - 1)
        while half:  # each way to part them once; of equals the one that joins them one after the other
            one, other = best.get(half), best.get(chosen ^ half)
            if one is not None and other is not None:
                made = _joined(graph, estimates, cost, one, other)
                if made is not None and (chosen not in best or made[0] < best[chosen][0]):
                    best[chosen] = made
            half = (half - 1) & rest
    return best[everything][1] if everything in best else None


def _joined(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    one: tuple[float, JoinTree],
    other: tuple[float, JoinTree],
) -> tuple[float, JoinTree] | None:
    (one_cost, left), (other_cost, right) = one, other
    both = left.relations | right.relations
    if not graph.allows(both) or not graph.allows_join(left.relations, right.relations):
        return None
    edge, size = graph.operator(left.relations, right.relations), estimates.size
    if edge is not None and not edge.fits(left.relations, right.relations):
        left, right = right, left
    elif edge is None and size(left.relations).bytes < size(right.relations).bytes:
        left, right = right, left
    kind = INNER if edge is None else edge.join_type
    work = cost.join(size(left.relations), size(right.relations), size(both), kind)
    return one_cost + other_cost + work, join(left, right)
