"""Greedy operator ordering: a good order for groups that are too large for dynamic programming.

Greedy operator ordering (Fegaras 1998) starts with every relation as a tree of its own and joins the pair of trees with
the fewest result rows until one tree is left. It makes bushy trees and needs one look at each pair of neighbours. It is
rarely far from the best order of a small group. With outer joins, which keep rows instead of removing them, it is more
often; so there are other merits by which the next join can be chosen (`MERITS`). Two things are added:

* trees that no edge connects are joined last, smallest first: these are the only cross products of the order. A
  predicate that must wait for several relations may connect trees again once such a product was made, so that is looked
  at each time;
* DPhyp then orders each small sub-tree anew (`reoptimize_subtrees`). The order of the few large results above them is
  where the greedy choice is good anyway.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from pyjoinopt.joins.cardinality.estimator import GraphEstimates, Part
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.util.bitset import members

_DIGITS = 9  # of a merit; beyond these the order of what it was computed from shows
#: The value of a join, from the logarithms of the rows of its result and of its two inputs; the smallest goes first.
Merit = Callable[[float, float, float], float]


def fewest_rows(rows: float, left: float, right: float) -> float:
    """The rows of the result."""
    return rows


def strongest_reduction(rows: float, left: float, right: float) -> float:
    """The rows of the result in relation to the larger input: what removes most rows goes first."""
    return rows - max(left, right)


def most_selective(rows: float, left: float, right: float) -> float:
    """The selectivity of the predicate."""
    return rows - left - right


MERITS: tuple[Merit, ...] = (fewest_rows, strongest_reduction, most_selective)


def greedy(
    context: SearchContext, trees: Sequence[JoinTree], merit: Merit = fewest_rows
) -> JoinTree | None:
    """Join all trees into one.

    Args:
        context: the group.
        trees: disjoint trees to start with, in canonical order: single relations, or components already ordered.
        merit: which join goes first.

    Returns:
        None if outer joins allowed no further step at some point, or if the deadline passed.
    """
    return _Greedy(context, trees, merit).run()


class _Greedy:
    def __init__(self, context: SearchContext, parts: Sequence[JoinTree], merit: Merit) -> None:
        self._deadline, self._every = context.deadline, context.limits.greedy_steps
        self._estimates = estimates = context.estimates
        self._merit = merit
        self._graph = graph = context.graph
        self._free = not graph.co_required and not graph.operators
        self._trees: dict[int, JoinTree] = dict(enumerate(parts))
        self._parts: dict[int, Part] = {i: _part_of(estimates, tree) for i, tree in self._trees.items()}
        self._next = len(parts)
        # A part keeps the place of its first member in the canonical order, for ties.
        self._place = {i: i for i in self._trees}
        self._home: dict[int, int] = {v: i for i, t in self._trees.items() for v in members(t.relations)}
        self._near: dict[int, set[int]] = {i: set() for i in self._trees}
        inside = sum(tree.relations for tree in parts)
        for vertex, home in self._home.items():
            self._near[home].update(map(self._home.__getitem__, members(graph.adjacency[vertex] & inside)))
            self._near[home].discard(home)
        # The parts over which each wide edge is still spread.
        self._across: list[set[int]] = []
        self._wide_of: dict[int, set[int]] = {i: set() for i in self._trees}
        for edge in graph.wide_edges:
            if all(v in self._home for v in members(edge.tes)):
                homes = {self._home[v] for v in members(edge.tes)}
                for home in homes:
                    self._wide_of[home].add(len(self._across))
                self._across.append(homes)
        # Each pair of neighbours is in the heap of one of them, and the least of each such heap is in the great one.
        self._own: dict[int, list[tuple[float, int, int, int]]] = {}
        self._heap: list[tuple[float, int, int, int, int]] = []

    def run(self) -> JoinTree | None:
        for homes in self._across:
            if len(homes) == 2:
                self._tie(*homes)
        for one, near in self._near.items():
            self._weigh(one, (other for other in near if one < other))
        while len(self._trees) > 1:
            if len(self._trees) % self._every == 0 and self._deadline.passed:
                return None
            if not self._heap:
                pair = self._smallest()
                if pair is None:
                    return None
                self._merge(*pair)
                continue
            _, _, _, one, other = heapq.heappop(self._heap)
            if one not in self._trees:
                continue
            if other in self._trees:
                self._merge(one, other)
            else:
                self._offer(one)
        return next(iter(self._trees.values()))

    def _allowed(self, one: int, other: int) -> bool:
        left, right = self._trees[one].relations, self._trees[other].relations
        graph, both = self._graph, left | right
        return graph.allows(both) and graph.allows_join(left, right) and graph.can_grow(both)

    def _weigh(self, one: int, others: Iterable[int]) -> None:
        """Put a part's joins with others where the least is found."""
        part, a, value, place = self._parts[one], self._place[one], self._merit, self._place
        own = self._own[one] = []
        found = [other for other in others if self._free or self._allowed(one, other)]
        parts = [self._parts[other] for other in found]
        for other, right, rows in zip(found, parts, self._estimates.log_rows_with(part, parts)):
            b, first = place[other], round(value(rows, part.log_rows, right.log_rows), _DIGITS)
            own.append((first, a, b, other) if a < b else (first, b, a, other))
        heapq.heapify(own)
        self._offer(one)

    def _offer(self, one: int) -> None:
        """Put the least of a part's own joins, those with parts that are gone left out, into the great heap."""
        own, trees = self._own[one], self._trees
        while own:
            first, a, b, other = heapq.heappop(own)
            if other in trees:
                heapq.heappush(self._heap, (first, a, b, one, other))
                return

    def _tie(self, one: int, other: int) -> None:
        self._near[one].add(other)
        self._near[other].add(one)

    def _smallest(self) -> tuple[int, int] | None:
        def key(i: int) -> tuple[bool, float, int]:
            semi_right = self._trees[i].relations in self._graph.semi_rights  # its edge connects it as soon as it may
            return semi_right, round(self._parts[i].log_rows, _DIGITS), self._place[i]

        if self._free:
            one, other = heapq.nsmallest(2, self._trees, key=key)
            return one, other
        ranked = sorted(self._trees, key=key)
        pairs = ((one, other) for j, other in enumerate(ranked) for one in ranked[:j])
        return next((pair for pair in pairs if self._allowed(*pair)), None)

    def _merge(self, one: int, other: int) -> None:
        made, self._next = self._next, self._next + 1
        a, b = self._parts.pop(one), self._parts.pop(other)
        left, right = self._trees.pop(one), self._trees.pop(other)
        self._own.pop(one, None)
        self._own.pop(other, None)
        if self._place[one] > self._place[other]:
            left, right = right, left
        sizes = self._estimates.bytes(left.relations), self._estimates.bytes(right.relations)
        self._trees[made] = join(right, left) if sizes[0] < sizes[1] else join(left, right)
        self._parts[made] = self._estimates.joined(a, b)
        self._place[made] = min(self._place[one], self._place[other])
        near, fewer = self._near.pop(one), self._near.pop(other)
        if len(near) < len(fewer):
            near, fewer = fewer, near
        near |= fewer
        near -= {one, other}
        self._near[made] = near
        wide = self._wide_of.pop(one) | self._wide_of.pop(other)
        self._wide_of[made] = wide
        for edge in wide:
            homes = self._across[edge]
            homes -= {one, other}
            homes.add(made)
            if len(homes) == 2:
                near |= homes - {made}
        for neighbour in near:
            back = self._near[neighbour]
            back.discard(one)
            back.discard(other)
            back.add(made)
        self._weigh(made, near)


def _part_of(estimates: GraphEstimates, tree: JoinTree) -> Part:
    vertices = members(tree.relations)
    part = estimates.part(next(vertices))
    for vertex in vertices:
        part = estimates.joined(part, estimates.part(vertex))
    return part


def reoptimize_subtrees(context: SearchContext, tree: JoinTree, budget: int) -> tuple[JoinTree, int]:
    """Order the small sub-trees exactly, one after the other, while the budget lasts: (the tree, pairs compared)."""
    pairs = 0
    done: list[JoinTree] = []
    stack: list[tuple[JoinTree, bool]] = [(tree, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            right = done.pop()
            done.append(join(done.pop(), right))
        elif node.left is None or node.right is None or node.relations.bit_count() == 2:
            done.append(node)
        elif node.relations.bit_count() <= context.limits.subtree_relations:
            better = exact(context, budget - pairs, node.relations)
            if better is None:
                pairs += min(budget - pairs, len(context.graph))
                done.append(node)
            else:
                pairs += better.pairs
                done.append(better.tree)
        else:
            stack += [(node, True), (node.right, False), (node.left, False)]
    return done[0], pairs


def single_relations(order: Sequence[int]) -> list[JoinTree]:
    """A tree for every relation."""
    return [leaf(vertex) for vertex in order]
