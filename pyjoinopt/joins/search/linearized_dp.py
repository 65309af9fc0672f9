"""Linearized dynamic programming: good join orders for groups of up to some hundred relations.

DPhyp is too expensive for more than a few dozen relations, because there are too many connected subgraphs. Intervals of
one linear order of the relations are few: n (n + 1) / 2, with (n³ - n) / 6 ways to halve them. If relations that belong
together are next to each other, the best tree whose parts are all intervals is close to the best tree there is, also
when that is bushy (Neumann and Radke, "Adaptive Optimization of Very Large Join Queries", SIGMOD 2018, section 4).

Two linear orders of the relations are tried:

* the leaves of a tree that is known already, left to right. All parts of that tree are intervals, so the result is
  never worse;
* the best left-deep order of a spanning tree of the most selective edges (`ikkbz`).

Outer, semi and anti joins make some halves of intervals illegal, as they make pairs illegal in DPhyp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyjoinopt.cost.model import Side, join_cost_of_sides
from pyjoinopt.joins.join_tree import JoinTree, build_tree, join
from pyjoinopt.joins.search.ikkbz import ikkbz_order
from pyjoinopt.joins.search.search_context import SearchContext


@dataclass(frozen=True, slots=True)
class IntervalPlan:
    """The best tree over the intervals of a linear order, its cost, and the halves that were compared for it."""

    tree: JoinTree
    cost: float
    pairs: int


class LinearizedPlan(NamedTuple):
    """An improved tree.

    Attributes:
        tree: the tree.
        pairs: halves that were compared.
        as_one: whether all its relations were in one linear order.
    """

    tree: JoinTree
    pairs: int
    as_one: bool


def longest_order(limit: int) -> int:
    """How many relations may be in one linear order, however many edges they have, if `limit` halves may be compared.

    >>> longest_order(200_000), longest_order(8_000_000)
    (84, 288)
    """
    return max(2, int((3.0 * limit) ** (1 / 3)))


def linearized(context: SearchContext, tree: JoinTree, limit: int) -> LinearizedPlan:
    """A tree that costs at most as much as the one given.

    Args:
        context: the group.
        tree: a legal order. It is ordered anew as a whole or, where it has too many relations for that, in its parts of
            at most `longest_order(limit)` relations, one by one (fewer where there are many edges).
        limit: halves to compare at most.
    """
    graph, limits = context.graph, context.limits
    pairs, as_one, density = 0, False, len(graph.edges) / len(graph)
    short = longest_order(int(limit * min(1.0, limits.dense / density))) if density else 2
    longest = max(short, limits.interval_relations) if density <= limits.sparse else short
    done: list[JoinTree] = []
    stack: list[tuple[JoinTree, bool]] = [(tree, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            right = done.pop()
            done.append(join(done.pop(), right))
        elif node.left is None or node.right is None or node.relations.bit_count() == 2:
            done.append(node)
        elif node.relations.bit_count() > longest:
            stack += [(node, True), (node.right, False), (node.left, False)]
        else:
            best, compared = _best_of_two_orders(context, node, limit - pairs)
            pairs += compared
            if best is None and node.relations.bit_count() > short:  # sparse, but not sparse enough
                longest = short
                stack.append((node, False))
                continue
            as_one = best is not None and node is tree
            done.append(node if best is None else best.tree)
    return LinearizedPlan(done[0], pairs, as_one)


def _best_of_two_orders(context: SearchContext, tree: JoinTree, limit: int) -> tuple[IntervalPlan | None, int]:
    """The best plan over the leaves of a tree, or over IKKBZ's order of them, and the halves that were compared."""
    leaves = [part.vertex for part in tree.post_order() if part.is_leaf]
    by_rank = ikkbz_order(context, [v for v in context.canonical if tree.relations >> v & 1])
    best: IntervalPlan | None = None
    pairs = 0
    for order in [leaves] if by_rank is None else [leaves, by_rank]:
        found = best_over_intervals(context, order, limit - pairs)
        if found is None:
            break
        pairs += found.pairs
        if best is None or found.cost < best.cost:
            best = found
    return best, pairs


def best_over_intervals(context: SearchContext, order: Sequence[int], limit: int) -> IntervalPlan | None:
    """The cheapest tree whose parts are intervals of a linear order of vertices.

    Args:
        context: the group.
        order: the vertices, each once.
        limit: halves to compare at most.

    Returns:
        None if there is no such tree, if it takes more halves than the limit, or if the deadline passed.
    """
    table = _Intervals(context, order)
    for length in range(2, len(order) + 1):
        if table.pairs > limit or context.deadline.passed:
            return None
        for first in range(len(order) - length + 1):
            table.fill(first, first + length - 1)
    return table.result()


class _Interval(NamedTuple):
    """The best tree of an interval.

    Attributes:
        cost: of the tree.
        relations: its vertices.
        near: their neighbours.
        half: the last place of its left half; -1 for one vertex.
        side: what it costs as a side of a join; None unless all joins are priced by sides. It is here because looking
            up a set of several hundred vertices takes longer than a comparison.
    """

    cost: float
    relations: int
    near: int
    half: int
    side: Side | None


class _Intervals:
    """The table of linearized DP; only intervals that have a tree are in it."""

    def __init__(self, context: SearchContext, order: Sequence[int]) -> None:
        self._context, self._graph, self._order = context, context.graph, order
        self._wide = [edge.tes for edge in context.graph.wide_edges]
        #: First place -> last place -> the interval.
        self._best: list[dict[int, _Interval]] = [{} for _ in order]
        costs = context.costs
        self._side_of = costs.side_of if costs.by_sides else None
        for i, vertex in enumerate(order):
            side = costs.side(1 << vertex) if costs.by_sides else None
            self._best[i][i] = _Interval(0.0, 1 << vertex, context.graph.adjacency[vertex], -1, side)
        #: Halves that were compared.
        self.pairs = 0

    def fill(self, i: int, j: int) -> None:
        """Find the best tree of the interval from place i to place j; all shorter ones are known."""
        graph, operators, wide, ending = self._graph, self._graph.operators, self._wide, self._best
        join_cost, typed_cost = self._context.costs.join, self._context.costs.typed
        best, half, whole, size = math.inf, -1, 0, None
        for k, (l_cost, left, near, _, l_side) in ending[i].items():
            right_part = ending[k + 1].get(j)
            if right_part is None:
                continue
            r_cost, right, _, _, r_side = right_part
            self.pairs += 1
            if not near & right and not (wide and _completed(wide, left, right)):
                continue
            legal, edge = graph.legal_join(left, right) if operators else (True, None)
            if not legal:
                continue
            if not whole:
                whole = left | right
                if not graph.allows(whole):
                    return
                # It is estimated sooner from an interval that is one vertex shorter.
                size = self._context.estimates.size(whole, 1 << self._order[j if j - 1 in ending[i] else i])
            total = l_cost + r_cost
            if total < best:
                if l_side is not None and r_side is not None and size is not None:
                    total += join_cost_of_sides(l_side, r_side) + size.rows
                else:
                    total += typed_cost(left, right, edge) if operators else join_cost(left, right)
                if total < best:
                    best, half = total, k
        if half >= 0:
            side = None if self._side_of is None or size is None else self._side_of(size)
            ending[i][j] = _Interval(best, whole, ending[i][half].near | ending[half + 1][j].near, half, side)

    def result(self) -> IntervalPlan | None:
        """The tree of the whole order."""
        last = len(self._order) - 1
        if last not in self._best[0]:
            return None

        def halves(part: tuple[int, int]) -> int | tuple[tuple[int, int], tuple[int, int]]:
            i, j = part
            k = self._best[i][j].half
            return self._order[i] if i == j else ((i, k), (k + 1, j))

        tree = build_tree((0, last), halves, self._context.bytes)
        return IntervalPlan(tree, self._best[0][last].cost, self.pairs)


def _completed(wide: Sequence[int], left: int, right: int) -> bool:
    """True if the two sets together complete one of some wide edges."""
    both = left | right
    return any(not tes & ~both and tes & left and tes & right for tes in wide)
