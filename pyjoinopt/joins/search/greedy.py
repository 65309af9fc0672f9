"""A good order for groups that are too large to search: always join the two parts whose result is smallest.

Greedy operator ordering (Fegaras 1998) begins with every relation as a part of its own and joins the pair of parts
with the fewest result rows until one part is left. It makes bushy trees, needs one look at each neighbourship and
heaps, and is rarely far off while sets are small. With outer joins, which keep rows instead of dropping them, it more
often is; so other notions of what to join next are at hand, too (`NOTIONS`). Two things are added:

* parts that no edge ties are joined in the end, smallest first: the only cross products in the tree. A predicate that
  must wait for several relations may tie parts again once such a product was made, so it is asked each time;
* the exact search then takes the tree's small sub-trees, whose relations are known by now, and orders each anew
  (`reoptimize_subtrees`). Orders of the few large results above them were the greedy choice's strong side anyway.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from pyjoinopt.cost.model import CostModel
from pyjoinopt.joins.cardinality.estimator import GraphEstimates, Part
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.util.bitset import members

#: What makes one join go before another: the least of a function of the logarithms of the rows that it gives and takes.
Merit = Callable[[float, float, float], float]
NOTIONS: tuple[Merit, ...] = (
    lambda rows, one, other: rows,  # few rows
    lambda rows, one, other: rows - max(one, other),  # few rows beside the larger side's: what drops most goes first
    lambda rows, one, other: rows - one - other,  # a strong predicate
)
#: Sub-trees of at most this many relations are ordered anew.
SMALL = 10
#: Whenever the parts that are left are a multiple of this, it is asked whether to stop; fewer take milliseconds.
_ASKED = 128
_DIGITS = 9


def greedy(
    graph: JoinGraph,
    estimates: GraphEstimates,
    parts: Sequence[JoinTree],
    notion: Merit = NOTIONS[0],
    stop: Callable[[], bool] | None = None,
) -> JoinTree | None:
    """Join all parts into one tree; None if that came to a point where outer joins allow no further step, or to a stop.

    Args:
        graph: the join graph.
        estimates: sizes of its sets of vertices.
        parts: disjoint trees to begin with, in canonical order: single relations, or what was ordered before.
        notion: which join goes first.
        stop: asked now and then.
    """
    return _Greedy(graph, estimates, parts, notion, stop).run()


class _Greedy:
    def __init__(
        self,
        graph: JoinGraph,
        estimates: GraphEstimates,
        parts: Sequence[JoinTree],
        notion: Merit,
        stop: Callable[[], bool] | None,
    ) -> None:
        self._stop = stop
        self._estimates = estimates
        self._notion = notion
        self._graph = graph
        self._looking = graph.looking
        self._free = not graph.late and not graph.operators
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
        # The parts that each wide edge still lies across.
        self._across: list[set[int]] = []
        self._wide_of: dict[int, set[int]] = {i: set() for i in self._trees}
        for edge in graph.wide_edges:
            if all(v in self._home for v in members(edge.required)):
                homes = {self._home[v] for v in members(edge.required)}
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
            if len(self._trees) % _ASKED == 0 and self._stop is not None and self._stop():
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
        return graph.allows(both) and graph.allows_join(left, right) and graph.leads_on(both)

    def _weigh(self, one: int, others: Iterable[int]) -> None:
        """Put a part's joins with others where the least is found."""
        part, a, notion, place = self._parts[one], self._place[one], self._notion, self._place
        own = self._own[one] = []
        found = [other for other in others if self._free or self._allowed(one, other)]
        parts = [self._parts[other] for other in found]
        for other, right, rows in zip(found, parts, self._estimates.log_rows_with(part, parts)):
            b, first = place[other], round(notion(rows, part.log_rows, right.log_rows), _DIGITS)
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
            semi_right = self._trees[i].relations in self._looking  # its edge ties it as soon as it may be joined
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


def reoptimize_subtrees(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    tree: JoinTree,
    budget: int,
    canonical: Sequence[int],
    stop: Callable[[], bool] | None = None,
) -> tuple[JoinTree, int]:
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
        elif node.relations.bit_count() <= SMALL:
            better = exact(graph, estimates, cost, budget - pairs, node.relations, canonical, stop)
            if better is None:
                pairs += min(budget - pairs, graph.everything.bit_count())
                done.append(node)
            else:
                pairs += better.pairs
                done.append(better.tree)
        else:
            stack += [(node, True), (node.right, False), (node.left, False)]
    return done[0], pairs


def single_relations(order: Sequence[int]) -> list[JoinTree]:
    """Every relation as a part of its own."""
    return [leaf(vertex) for vertex in order]
