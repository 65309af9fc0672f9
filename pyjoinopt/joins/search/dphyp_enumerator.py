"""The loop of the exact search: all pairs of connected sets that may be joined, and the cheapest plan of each set.

Why every pair is met once, and its halves before it, is told in `exact`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pyjoinopt.cost.model import CostModel, Side, beside_join
from pyjoinopt.cost.size import Size
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, build_tree
from pyjoinopt.joins.search.interesting_partitionings import Partitionings
from pyjoinopt.joins.search.join_costs import price
from pyjoinopt.joins.search.pair_budget import adjacency_of
from pyjoinopt.util.bitset import members

#: A set that is grown without finding pairs costs time too: at most this many sets for each pair of the budget.
_SETS_PER_PAIR = 4
#: Pairs that may be gone through again for plans that join on one key in a row; about a tenth of a second.
_MOST_RECORDED = 25_000
_NO_SIDE = Side(0.0, 0.0, 0.0, 0.0, 0.0)


class Exhausted(Exception):
    """The budget is spent."""


class DPhyp:
    """One run. Sets are masks of canonical numbers; `_original` translates them for the estimates."""

    def __init__(
        self,
        graph: JoinGraph,
        estimates: GraphEstimates,
        cost: CostModel,
        budget: int,
        order: Sequence[int],
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.everything = (1 << len(order)) - 1
        self._graph = graph
        self._count = len(order)
        self._model = cost
        self._price = cost.join
        self._size_of = estimates.size
        self._budget = budget
        self._stop = stop
        self._order = order
        rank = {vertex: i for i, vertex in enumerate(order)}
        self._near = adjacency_of(graph, estimates, order, rank)
        self._wide: list[int] = []
        chosen = sum(1 << vertex for vertex in order)
        for edge in graph.wide_edges:
            if not edge.required & ~chosen:
                self._wide.append(sum(1 << rank[v] for v in members(edge.required)))
        # Wide edges make every set dearer, those that find no pairs, too.
        self._most_sets = _SETS_PER_PAIR * budget // (1 + len(self._wide) // 4)
        self._neighbours: dict[int, int] = {}
        self._cost: dict[int, float] = {}
        self._left: dict[int, int] = {}
        self._size: dict[int, Size] = {}
        self._original: dict[int, int] = {}
        self._sides: dict[int, Side] = {}  # none unless all joins are inner ones and the model knows sides
        self._side_of: Callable[[Size], Side] | None = None if graph.operators else beside_join(cost, "side")
        self.pairs = 0
        self.recorded: list[tuple[int, int]] | None = None  # pairs that may be joined, in the order they were found
        self._sets = 0
        for i, vertex in enumerate(order):
            self._neighbours[1 << i] = self._near[i]
            self._cost[1 << i] = 0.0
            self._found(1 << i, 1 << vertex)

    def run(self) -> None:
        """Grow all sets, from the last start vertex to the first."""
        for start in range(self._count - 1, -1, -1):
            bit = 1 << start
            below = bit - 1
            self._partners(bit, below)
            stack = [(bit, below)]
            while stack:
                grown, excluded = stack.pop()
                more = self._reach(grown, excluded)
                if not more:
                    continue
                sets = []
                addition = more & -more
                while addition:
                    larger = grown | addition
                    if larger in self._cost:
                        self._partners(larger, below)
                    else:
                        self._spend()
                    sets.append(larger)
                    addition = (addition - more) & more
                excluded |= more
                # Depth first with smaller additions before larger ones: subsets come before their supersets.
                stack.extend((larger, excluded) for larger in reversed(sets))

    def _spend(self, pairs: int = 0, sets: int = 1) -> None:
        """Count sets that were grown, and ask whether to go on; of `pairs` the caller keeps count until it is done."""
        before = self._sets
        self._sets += sets
        if self.pairs + pairs > self._budget or self._sets > self._most_sets:
            raise Exhausted
        if self._stop is not None and before >> 6 != self._sets >> 6 and self._stop():
            raise Exhausted

    def _found(self, relations: int, original: int, added: int = 0) -> None:
        """Take note of a set that a join makes for the first time; `added` is one half of it."""
        size = self._size_of(original, added)
        self._original[relations] = original
        self._size[relations] = size
        if self._side_of is not None:
            self._sides[relations] = self._side_of(size)

    def _reach(self, grown: int, excluded: int) -> int:
        """Neighbours of a set outside `excluded`; of a wide edge one stand-in."""
        near = self._neighbours.get(grown)
        if near is None:
            near = 0
            rest = grown
            while rest:
                low = rest & -rest
                near |= self._near[low.bit_length() - 1]
                rest ^= low
            self._neighbours[grown] = near
        outside = ~(grown | excluded)
        near &= outside
        for edge in self._wide:
            missing = edge & ~grown
            if missing != edge and missing and not missing & ~outside:
                near |= missing & -missing
        return near

    def _tied(self, one: int, other: int) -> bool:
        """True if an edge ties two disjoint sets, both of which have plans."""
        rest = one
        while rest:
            low = rest & -rest
            if self._near[low.bit_length() - 1] & other:
                return True
            rest ^= low
        both = one | other
        return any(not edge & ~both and edge & one and edge & other for edge in self._wide)

    # The innermost loop of the search, written out for its time. Tests compare what it finds with trying every pair.
    def _partners(self, one: int, below: int) -> None:  # noqa: C901, PLR0914
        """Compare every pair of `one` with a set of larger smallest vertex."""
        self._spend()
        # This is the loop that counts: local names, and no call that is not needed.
        cost, size, original, left, sides = self._cost, self._size, self._original, self._left, self._sides
        price, wide, reach, neighbours = self._price, self._wide, self._reach, self._neighbours
        late, operated, recorded = self._graph.late, self._operated, self.recorded
        allows_join = self._graph.allows_join if self._graph.operators else None
        room, inf = self.everything & ~(one | below), math.inf
        own_cost, own_size, own_original = cost[one], size[one], original[one]
        own_beside, own_built, own_moved, own_hashed, own_sorted = sides[one] if sides else _NO_SIDE
        excluded = one | below
        start_at = reach(one, excluded)
        pairs = sets = 0
        while start_at:
            start = 1 << (start_at.bit_length() - 1)
            excluded_here = excluded | start_at
            start_at ^= start
            partners = [start]
            stack = [(start, excluded_here)]
            while partners:
                for other in partners:
                    other_cost = cost.get(other)
                    if other_cost is None or (wide and not self._tied(one, other)):
                        continue
                    pairs += 1
                    if allows_join is not None and not allows_join(own_original, original[other]):
                        continue
                    both = one | other
                    total = own_cost + other_cost
                    known = cost.get(both)
                    if known is None:
                        whole = own_original | original[other]
                        if late and not self._graph.allows(whole):
                            continue
                        self._found(both, whole, original[other] if one & (one - 1) else own_original)
                        known = inf
                    if recorded is not None:
                        recorded.append((own_original, original[other]))
                    if total < known:
                        if sides:  # `met`, spelled out
                            beside, built, moved, hashed, ordered = sides[other]
                            if (work := built if built < own_built else own_built) < inf:
                                total += own_beside + beside + work + size[both][0]
                            elif (work := hashed if hashed < own_hashed else own_hashed) < inf:
                                total += own_moved + moved + work + size[both][0]
                            else:
                                total += own_sorted + ordered + size[both][0]
                        elif allows_join is None:
                            total += price(own_size, size[other], size[both])
                        else:
                            total += operated(own_original, original[other])
                        if total < known:
                            cost[both] = total
                            left[both] = one
                partners = []
                while stack and not partners:
                    grown, beyond = stack.pop()
                    near = None if wide else neighbours.get(grown)
                    more = reach(grown, beyond) if near is None else near & ~(beyond | grown)
                    if more:
                        passed = beyond | more
                        addition = more & -more
                        while addition:
                            partners.append(grown | addition)
                            addition = (addition - more) & more
                        if room & ~(passed | grown):
                            for larger in partners:
                                stack.append((larger, passed))
                sets += 1
                if not sets & 63:
                    self._spend(pairs, 64)
        self.pairs += pairs
        self._spend(0, sets & 63)

    def _operated(self, one: int, other: int) -> float:
        """What a join costs that may be an outer, semi or anti join."""
        return price(self._graph, self._size_of, self._model, one, other)

    def result(self, partitionings: Partitionings | None = None) -> tuple[JoinTree, float] | None:
        """The tree of the whole set, and its cost."""
        if self.everything not in self._cost:
            return None
        if partitionings is not None and self.recorded is not None and len(self.recorded) <= _MOST_RECORDED:
            tree = partitionings.best(self.recorded, self._original[self.everything])
            return tree, partitionings.price(tree)

        def halves(relations: int) -> int | tuple[int, int]:
            one = self._left.get(relations)
            return self._order[relations.bit_length() - 1] if one is None else (one, relations ^ one)

        tree = build_tree(self.everything, halves, lambda relations: self._size_of(relations).bytes)
        return tree, self._cost[self.everything]
