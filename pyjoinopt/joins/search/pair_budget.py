"""The budget of the exact search, and whether a graph can fit it at all.

`adjacency_of` has the relations that may be joined at once: those that an edge connects, and those whose cross
product is proved to be tiny.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.util.bitset import members

#: Two relations that are proved to have at most this many rows between them, multiplied, may form a cross product.
TINY = 64.0
#: Graphs of so many vertices are not worth counting in.
_SMALL = 12


class Exhausted(Exception):
    """The budget is spent, or the deadline has passed."""


class EnumerationBudget:
    """What one run of DPhyp may still look at.

    Args:
        pairs: pairs at most.
        sets: sets that are grown at most, with or without a pair.
        deadline: looked at once every 64 sets and pairs.
    """

    __slots__ = ("pairs", "_sets", "_most_pairs", "_most_sets", "_deadline")

    def __init__(self, pairs: int, sets: int, deadline: Deadline) -> None:
        #: Pairs that were looked at.
        self.pairs = 0
        self._sets = 0
        self._most_pairs, self._most_sets, self._deadline = pairs, sets, deadline

    @property
    def pairs_left(self) -> int:
        """Pairs that may still be compared."""
        return self._most_pairs - self.pairs

    def consume(self, sets: int = 1, pairs: int = 0) -> None:
        """Count sets that were grown and pairs that were compared.

        Raises:
            Exhausted: the run has to end.
        """
        before = self._sets + self.pairs
        self._sets += sets
        self.pairs += pairs
        if self.pairs > self._most_pairs or self._sets > self._most_sets:
            raise Exhausted
        if before >> 6 != self._sets + self.pairs >> 6 and self._deadline.passed:
            raise Exhausted


def adjacency_of(
    graph: JoinGraph, estimates: GraphEstimates, order: Sequence[int], rank: dict[int, int]
) -> list[int]:
    """Per vertex of an order its neighbours, all by their rank in the order."""
    near = [sum(1 << rank[v] for v in members(graph.adjacency[vertex]) if v in rank) for vertex in order]
    # The right side of a semi join has no place in a cross product. And Spark's ReorderJoin takes products apart: where
    # it matters which other relations are present when a predicate is evaluated, none is made.
    bounds = [
        math.inf if 1 << vertex in graph.semi_rights or graph.co_required else estimates.relations[vertex].upper_bound
        for vertex in order
    ]
    for i, one in enumerate(bounds):
        for j in range(i):
            if one * bounds[j] <= TINY:
                near[i] |= 1 << j
                near[j] |= 1 << i
    return near


def certainly_over_budget(graph: JoinGraph, within: int, budget: int) -> bool:
    """True if there are certainly more pairs than the budget; much sooner than by looking at so many.

    No connected graph has fewer pairs than a chain, and a vertex with d neighbours is the centre of a star. Otherwise
    connected sets are counted: each of k vertices can be halved in k - 1 ways at least.
    """
    n = within.bit_count()
    if (n**3 - n) // 6 > budget:
        return True
    degrees = [(graph.adjacency[v] & within).bit_count() for v in members(within)]
    degree = max(degrees, default=0)
    if degree > 1 and degree * 2 ** (degree - 1) > budget:
        return True
    if n <= _SMALL or (degree == 2 and sum(degrees) < 2 * n):
        return False  # a chain has no more pairs than a chain
    return _least_pairs(graph, within, budget) > budget


def _least_pairs(graph: JoinGraph, within: int, most: int) -> int:
    """How many pairs there are at least; counted no further than `most`.

    Each connected set is grown once from its smallest vertex, as by DPhyp.
    """
    near = {1 << v: graph.adjacency[v] & within for v in members(within)}
    pairs = 0
    for start in sorted(near, reverse=True):
        stack = [(start, near[start], start - 1)]
        while stack:
            grown, reached, excluded = stack.pop()
            more = reached & ~(grown | excluded)
            excluded |= more
            reach_of = {0: reached}
            addition = more & -more
            while addition:
                low = addition & -addition
                reach_of[addition] = reach_of[addition ^ low] | near[low]
                larger = grown | addition
                pairs += larger.bit_count() - 1
                if pairs > most:
                    return pairs
                stack.append((larger, reach_of[addition], excluded))
                addition = (addition - more) & more
    return pairs
