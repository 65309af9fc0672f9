"""Which relations may be joined at once: those that an edge ties, and those whose product is proved to be tiny."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyjoinopt.joins.graph import JoinGraph, vertices
from pyjoinopt.statistics.graph import GraphEstimates

#: Two relations that are proved to have at most this many rows between them, multiplied, may form a cross product.
TINY = 64.0


def adjacency_of(
    graph: JoinGraph, estimates: GraphEstimates, order: Sequence[int], rank: dict[int, int]
) -> list[int]:
    """Per vertex of an order its neighbours, all by their rank in the order."""
    near = [sum(1 << rank[v] for v in vertices(graph.adjacency[vertex]) if v in rank) for vertex in order]
    # What a semi join looks into has no place in a cross product.
    bounds = [
        math.inf if 1 << vertex in graph.looking else estimates.relations[vertex].upper_bound for vertex in order
    ]
    for i, one in enumerate(bounds):
        for j in range(i):
            if one * bounds[j] <= TINY:
                near[i] |= 1 << j
                near[j] |= 1 << i
    return near


def hopeless(graph: JoinGraph, within: int, budget: int) -> bool:
    """True if there are certainly more pairs than the budget, which is seen at a glance for large graphs.

    No connected graph has fewer pairs than a chain, and a vertex with d neighbours is the centre of a star.
    """
    n = within.bit_count()
    if (n**3 - n) // 6 > budget:
        return True
    degree = max(((graph.adjacency[v] & within).bit_count() for v in vertices(within)), default=0)
    return degree > 1 and degree * 2 ** (degree - 1) > budget
