"""Linearized dynamic programming: good join orders for groups of up to some hundred relations.

DPhyp is too expensive for more than a few dozen relations, because there are too many connected subgraphs. Intervals of
one order of the relations are few: n (n + 1) / 2, with (n³ - n) / 6 ways to halve them. If relations that belong
together are next to each other, the best tree whose parts are all intervals is close to the best tree there is, bushy
as it may be (Neumann and Radke, "Adaptive Optimization of Very Large Join Queries", SIGMOD 2018, section 4).

Two orders of the relations are tried:

* the leaves of a tree that is known already, left to right. All parts of that tree are intervals, so the result is
  never worse;
* the best left-deep order of a spanning tree of the most selective edges (`ikkbz`).

Outer, semi and anti joins only forbid some halves of intervals, as they forbid pairs in DPhyp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyjoinopt.cost.model import CostModel, Side, beside_join, met
from pyjoinopt.cost.size import Size
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, build_tree, join
from pyjoinopt.joins.search.ikkbz import ikkbz_order
from pyjoinopt.joins.search.join_costs import price

#: A line may be so long where a graph is sparse: few of its intervals have a tree then.
_LONGEST = 300
#: Edges for each relation of a graph that counts as sparse (a grid has two), and of one that counts as dense: there the
#: sizes of intervals take longer than their halves, so fewer are compared.
_SPARSE, _DENSE = 2, 8


@dataclass(frozen=True, slots=True)
class IntervalPlan:
    """The best tree over the intervals of a line, its cost, and the halves that were compared for it."""

    tree: JoinTree
    cost: float
    pairs: int


class LinearizedPlan(NamedTuple):
    """What lines made of a tree: the halves that were compared, and whether all its relations stood in one line."""

    tree: JoinTree
    pairs: int
    in_one: bool


def longest_line(limit: int) -> int:
    """How many relations may stand in a line, however many edges they have, if so many halves of two are compared.

    >>> longest_line(200_000), longest_line(8_000_000)
    (84, 288)
    """
    return max(2, int((3.0 * limit) ** (1 / 3)))


def linearized(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    tree: JoinTree,
    canonical: Sequence[int],
    limit: int,
    stop: Callable[[], bool] | None = None,
) -> LinearizedPlan:
    """A tree that is at most as costly as the one given.

    Args:
        graph, estimates, cost: what is joined, how large it gets, what that costs.
        tree: a legal order; it is ordered anew as a whole, or, where it has too many relations for that, its parts of
            at most `longest_line(limit)` are, one by one (fewer where edges are many).
        canonical: all vertices in canonical order.
        limit: halves to compare at most.
        stop: asked now and then; True to leave the rest as it is.
    """
    pairs, in_one, density = 0, False, len(graph.edges) / len(graph)
    short = longest_line(int(limit * min(1.0, _DENSE / density))) if density else 2
    longest = max(short, _LONGEST) if density <= _SPARSE else short
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
            lines = [[part.vertex for part in node.post_order() if part.is_leaf]]
            other = ikkbz_order(graph, estimates, [v for v in canonical if node.relations >> v & 1])
            best: IntervalPlan | None = None
            for line in lines if other is None else [*lines, other]:
                found = best_over_intervals(graph, estimates, cost, line, limit - pairs, stop)
                if found is None:
                    break
                pairs += found.pairs
                if best is None or found.cost < best.cost:
                    best = found
            if best is None and node.relations.bit_count() > short:  # sparse, but not sparse enough
                longest = short
                stack.append((node, False))
                continue
            in_one = best is not None and node is tree
            done.append(node if best is None else best.tree)
    return LinearizedPlan(done[0], pairs, in_one)


# The innermost loop of this search, written out. Tests compare it with trying every tree over the line.
def best_over_intervals(  # noqa: C901
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    line: Sequence[int],
    limit: int,
    stop: Callable[[], bool] | None = None,
) -> IntervalPlan | None:
    """The cheapest tree whose parts are intervals of a line of vertices; None if there is none, or not in time.

    Args:
        graph: the join graph.
        estimates: sizes of its sets of vertices.
        cost: the cost model.
        line: the vertices, each once.
        limit: halves to compare at most.
        stop: asked now and then; True to give up.
    """
    n = len(line)
    join_cost, size_of = cost.join, estimates.size
    side_of: Callable[[Size], Side] | None = None if graph.operators else beside_join(cost, "side")
    sides: dict[int, Side] = {}
    wide = [edge.required for edge in graph.wide_edges]
    late, operators = graph.late, graph.operators
    # Per start and end: cost, vertices, their neighbours, where to halve. Only intervals that have a tree are there.
    known: list[dict[int, tuple[float, int, int, int]]] = [{} for _ in line]
    sizes: dict[int, Size] = {}
    for i, vertex in enumerate(line):
        known[i][i] = 0.0, 1 << vertex, graph.adjacency[vertex], -1
        sizes[1 << vertex] = size_of(1 << vertex)
        if side_of is not None:
            sides[1 << vertex] = side_of(sizes[1 << vertex])
    pairs = 0
    for length in range(2, n + 1):
        if pairs > limit or (stop is not None and stop()):
            return None
        for i in range(n - length + 1):
            j = i + length - 1
            best, where, whole = math.inf, -1, 0
            for k, (l_cost, left, near, _) in known[i].items():
                right_part = known[k + 1].get(j)
                if right_part is None:
                    continue
                r_cost, right, _, _ = right_part
                pairs += 1
                if not near & right and not (wide and _tied(wide, left, right)):
                    continue
                if operators and not graph.allows_join(left, right):
                    continue
                if not whole:
                    if late and not graph.allows(left | right):
                        break
                    whole = left | right
                    made = sizes[whole] = size_of(whole, 1 << line[j if j - 1 in known[i] else i])
                    if side_of is not None:
                        sides[whole] = side_of(made)
                total = l_cost + r_cost
                if total < best:
                    if sides:
                        total += met(sides[left], sides[right]) + made[0]
                    elif operators:
                        total += price(graph, size_of, cost, left, right)
                    else:
                        total += join_cost(sizes[left], sizes[right], made)
                    if total < best:
                        best, where = total, k
            if where >= 0:
                near = known[i][where][2] | known[where + 1][j][2]
                known[i][j] = best, whole, near, where
    if n - 1 not in known[0]:
        return None
    return IntervalPlan(_tree(line, known, estimates), known[0][n - 1][0], pairs)


def _tied(wide: Sequence[int], left: int, right: int) -> bool:
    both = left | right
    return any(not required & ~both and required & left and required & right for required in wide)


def _tree(
    line: Sequence[int], known: Sequence[dict[int, tuple[float, int, int, int]]], estimates: GraphEstimates
) -> JoinTree:
    def halves(part: tuple[int, int]) -> int | tuple[tuple[int, int], tuple[int, int]]:
        i, j = part
        k = known[i][j][3]
        return line[i] if i == j else ((i, k), (k + 1, j))

    return build_tree((0, len(line) - 1), halves, lambda relations: estimates.size(relations).bytes)
