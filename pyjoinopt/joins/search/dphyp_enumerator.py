"""DPhyp's enumeration: all pairs of a connected subgraph and a connected complement, and the best plan of each set.

`dphyp` explains why every pair is found once, and its halves before it. Sets in here are masks of *canonical numbers*:
bit i is the i-th vertex in canonical order.

The plain form is `_complements`, which only grows sets, and `_compare_with_complements`, which prices the pairs. Where
all joins are inner joins of two relations at a time, `_compare_inlined` does the work of both, because there a
search spends its time: the sets that grow from one relation are made once for all sets that they are joined with, and
their prices are at hand. A test compares the two forms, set by set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pyjoinopt.cost.model import Side
from pyjoinopt.cost.size import Size
from pyjoinopt.joins.join_tree import JoinTree, build_tree
from pyjoinopt.joins.search.pair_budget import EnumerationBudget, Exhausted, adjacency_of
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.util.bitset import members

#: A complement, the same in the graph's own numbers, the one relation by which it is larger than a complement before
#: it (else 0), its cost, and its cost as a side.
_Half = tuple[int, int, int, float, Side]


class DPhyp:
    """One run over some vertices of a graph.

    Args:
        context: the group.
        vertices: those that are to be joined, in canonical order.
        budget: pairs to compare at most.
        partitioned: whether plans that reuse a partitioning are wanted, too.
        inlined: whether the loop that is written out may be used; without it the result is the same.
    """

    def __init__(
        self,
        context: SearchContext,
        vertices: Sequence[int],
        budget: int,
        partitioned: bool = False,
        inlined: bool = True,
    ) -> None:
        self._context = context
        self._graph = graph = context.graph
        self._operators, self._costs = bool(graph.operators), context.costs
        self._vertices = vertices
        self._all = (1 << len(vertices)) - 1
        rank = {vertex: i for i, vertex in enumerate(vertices)}
        self._near = adjacency_of(graph, context.estimates, vertices, rank)
        self._wide = [
            sum(1 << rank[v] for v in members(edge.tes))
            for edge in graph.wide_edges
            if all(v in rank for v in members(edge.tes))
        ]
        # Each wide edge makes every set more expensive, also those that are in no pair.
        sets = context.limits.sets_per_pair * budget // (1 + len(self._wide) // 4)
        self._budget = EnumerationBudget(budget, sets, context.deadline)
        self._partitionings = context.costs.partitionings if partitioned else None
        #: Pairs that may be joined, as sets of the graph's vertices, in the order in which they were found.
        self._recorded: list[tuple[int, int]] = []
        self._neighbours: dict[int, int] = {}  # of sets, but for wide edges
        self._grown: dict[tuple[int, int], list[_Half]] = {}
        # The best plan of each set: its cost, and the half of it that it was found from.
        self.cost: dict[int, float] = {}
        self.half: dict[int, int] = {}
        self._original: dict[int, int] = {}  # the same set in the graph's own numbers
        self._size: dict[int, Size] = {}
        self._side: dict[int, Side] = {}
        plain = self._wide or graph.operators or graph.co_required or self._partitionings is not None
        self._inlined = inlined and not plain and self._costs.by_sides
        self._side_of = self._costs.side_of if self._inlined else None
        for i, vertex in enumerate(vertices):
            self._neighbours[1 << i] = self._near[i]
            self.cost[1 << i] = 0.0
            self._add(1 << i, 1 << vertex)

    @property
    def pairs(self) -> int:
        """Pairs that were compared."""
        return self._budget.pairs

    @property
    def sizes(self) -> dict[int, Size]:
        """The sizes of all sets that have a plan, as sets of the graph's vertices."""
        return {self._original[relations]: size for relations, size in self._size.items()}

    def run(self) -> None:
        """Grow all connected subgraphs, from the last start vertex to the first.

        Raises:
            Exhausted: the budget is spent, or the deadline has passed.
        """
        compare = self._compare_inlined if self._inlined else self._compare_with_complements
        for start in range(len(self._vertices) - 1, -1, -1):
            bit = 1 << start
            below = bit - 1
            compare(bit, below)
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
                    if larger in self.cost:
                        compare(larger, below)
                    else:
                        self._budget.consume()
                    sets.append(larger)
                    addition = (addition - more) & more
                excluded |= more
                # Depth first with smaller additions before larger ones: subsets come before their supersets.
                stack.extend((larger, excluded) for larger in reversed(sets))

    def result(self) -> tuple[JoinTree, float] | None:
        """The tree of all vertices, and its cost; None if they are not connected."""
        if self._all not in self.cost:
            return None
        partitionings, recorded = self._partitionings, self._recorded
        if partitionings is not None and len(recorded) <= self._context.limits.recorded_pairs:
            tree = partitionings.best(recorded, self._original[self._all])
            return tree, partitionings.price(tree)

        def halves(relations: int) -> int | tuple[int, int]:
            one = self.half.get(relations)
            return self._vertices[relations.bit_length() - 1] if one is None else (one, relations ^ one)

        return build_tree(self._all, halves, self._context.bytes), self.cost[self._all]

    # -- the plain form ----------------------------------------------------------------------------------------

    def _compare_with_complements(self, one: int, below: int) -> None:
        """Compare every pair of `one` with a connected complement whose smallest vertex is larger."""
        self._budget.consume()
        batches = pairs = 0
        for batch in self._complements(one, below):
            for other in batch:
                if other in self.cost and self._is_connected_to(one, other):
                    pairs += 1
                    self._compare(one, other)
            batches += 1
            if not batches & 63:
                self._budget.consume(64, pairs)
                pairs = 0
        self._budget.consume(batches & 63, pairs)

    def _complements(self, one: int, below: int) -> Iterator[list[int]]:
        """Sets that grow out of the neighbours of `one`, those that grow from one set at a time.

        Subsets come before their supersets. Over a wide edge's stand-in a set may grow that is not connected.
        """
        excluded = one | below
        room = self._all & ~excluded
        starts = self._reach(one, excluded)
        while starts:
            start = 1 << (starts.bit_length() - 1)
            stack = [(start, excluded | starts)]
            starts ^= start
            yield [start]
            while stack:
                grown, beyond = stack.pop()
                more = self._reach(grown, beyond)
                if not more:
                    continue
                beyond |= more
                larger = []
                addition = more & -more
                while addition:
                    larger.append(grown | addition)
                    addition = (addition - more) & more
                yield larger
                if room & ~(beyond | grown):
                    stack.extend((each, beyond) for each in larger)

    def _compare(self, one: int, other: int) -> None:
        """Keep the join of two sets if it is legal and cheaper than what is known of the whole."""
        left, right, both = self._original[one], self._original[other], one | other
        edge = None
        if self._operators:
            legal, edge = self._graph.legal_join(left, right)
            if not legal:
                return
        if both not in self._original:
            if not self._graph.allows(left | right):
                return
            self._add(both, left | right, right if one & (one - 1) else left)
        if self._partitionings is not None:
            self._recorded.append((left, right))
        total, known = self.cost[one] + self.cost[other], self.cost.get(both, math.inf)
        if total < known:
            total += self._costs.typed(left, right, edge) if self._operators else self._costs.join(left, right)
            if total < known:
                self.cost[both] = total
                self.half[both] = one

    def _add(self, relations: int, original: int, added: int = 0) -> None:
        """Estimate a set for which a first plan was found; `added` is one half of it."""
        self._original[relations] = original
        self._size[relations] = self._context.estimates.size(original, added)
        if self._side_of is not None:
            self._side[relations] = self._side_of(self._size[relations])

    def _reach(self, grown: int, excluded: int) -> int:
        """Neighbours of a set outside `excluded`; of a wide edge one stand-in."""
        outside = ~(grown | excluded)
        near = self._near_of(grown) & outside
        for edge in self._wide:
            missing = edge & ~grown
            if missing != edge and missing and not missing & ~outside:
                near |= missing & -missing
        return near

    def _near_of(self, relations: int) -> int:
        """Neighbours of the members of a set by edges that are not wide."""
        near = self._neighbours.get(relations)
        if near is None:
            low = relations & -relations
            near = self._neighbours[relations] = self._neighbours[low] | self._near_of(relations ^ low)
        return near

    def _is_connected_to(self, one: int, other: int) -> bool:
        """True if an edge connects two disjoint sets, both of which have plans."""
        if not self._wide:
            return True
        rest = one
        while rest:
            low = rest & -rest
            if self._near[low.bit_length() - 1] & other:
                return True
            rest ^= low
        both = one | other
        return any(not edge & ~both and edge & one and edge & other for edge in self._wide)

    # -- the same, inlined -------------------------------------------------------------------------------------

    # The fast path of the two forms: local names, and no call that is not needed. A test holds it equal to the plain
    # one.
    def _compare_inlined(self, one: int, below: int) -> None:
        """`_compare_with_complements` for inner joins of two relations at a time, priced by sides."""
        complements = self._all_complements(one, one | below)
        self._budget.consume(1, len(complements))
        if not complements:
            return
        cost, half, size, inf = self.cost, self.half, self._size, math.inf
        own_cost, own_original, several = cost[one], self._original[one], bool(one & (one - 1))
        own_probe, own_built, own_shuffle, own_hashed, own_sorted = self._side[one]
        for other, right, added, other_cost, (probe, built, shuffle, hashed, ordered) in complements:
            both = one | other
            total = own_cost + other_cost
            known = cost.get(both)
            if known is None:
                self._add(both, own_original | right, added or (right if several else own_original))
                known = inf
            if total < known:  # `join_cost_of_sides`
                if (work := built if built < own_built else own_built) < inf:
                    total += own_probe + probe + work + size[both][0]
                elif (work := hashed if hashed < own_hashed else own_hashed) < inf:
                    total += own_shuffle + shuffle + work + size[both][0]
                else:
                    total += own_sorted + ordered + size[both][0]
                if total < known:
                    cost[both] = total
                    half[both] = one

    def _all_complements(self, one: int, excluded: int) -> list[_Half]:
        """What `_complements` gives, at once."""
        found: list[_Half] = []
        neighbours, room = self._neighbours, self._all & ~excluded
        starts = self._near_of(one) & room
        while starts:
            start = 1 << (starts.bit_length() - 1)
            within = room & ~starts
            starts ^= start
            fresh = reached = neighbours[start] & within
            while fresh:  # what is not connected with `start` makes no difference
                low = fresh & -fresh
                beyond = neighbours[low] & within & ~reached
                reached |= beyond
                fresh ^= low | beyond
            found += self._grown.get((start, reached)) or self._grown_from(start, reached)
        return found

    def _grown_from(self, start: int, within: int) -> list[_Half]:
        """A vertex and all sets that grow out of it within some others, subsets before their supersets.

        They are the complements of many sets: in a chain, of all that end before the vertex. None of them is part of a
        set that is still to be made, so their costs are final.
        """
        found = [self._half(start, self._original[start])]
        stack = [(start, within)]
        while stack:
            grown, room = stack.pop()
            more = self._near_of(grown) & room
            if not more:
                continue
            room ^= more
            larger = []
            addition = more & -more
            while addition:
                larger.append(grown | addition)
                several = addition & (addition - 1)
                found.append(self._half(grown | addition, 0 if several else self._original[addition]))
                addition = (addition - more) & more
            if room:
                stack.extend((each, room) for each in larger)
            self._budget.consume()
            if len(found) > self._budget.pairs_left:
                raise Exhausted
        self._grown[start, within] = found
        return found

    def _half(self, relations: int, added: int) -> _Half:
        return relations, self._original[relations], added, self.cost[relations], self._side[relations]
