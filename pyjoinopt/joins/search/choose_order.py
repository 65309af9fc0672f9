"""The search ladder: which method finds the order of a group, decided by a budget and not by a count of tables.

1. A group falls into *blocks*: what can be joined without a cross product. Most groups are one block.
2. Each block is searched exactly while the budget of pairs lasts; with the default a chain of fifty-three relations
   fits, and a star of twelve. A block of twelve or less is always searched exactly, however its edges run.
3. A block that does not fit is ordered greedily, and the exact search improves its small sub-trees. Then its
   relations are laid out in a line, and the intervals of the line are searched (`linear`), if the budget is enough for
   them: by default for eighty-four relations with any edges, for a chain of 160, for stars and grids of 300.
   Of larger blocks, sub-trees of that size. With outer joins, where greedy choices go astray more easily, all this is
   done for each notion of a choice (`greedy`).
4. Blocks are put together by cross products: six or fewer in the best order, more the smallest first.

Each rung begins with what the one before it has found, or knows that it would have found no better. A deadline ends
the search at the first tree that is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyjoinopt.cost.model import CostModel
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph, merge_parts
from pyjoinopt.joins.join_tree import JoinTree, join
from pyjoinopt.joins.search.cross_products import join_components
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.greedy import NOTIONS, greedy, reoptimize_subtrees, single_relations
from pyjoinopt.joins.search.interesting_partitionings import Partitionings
from pyjoinopt.joins.search.join_costs import cost_of
from pyjoinopt.joins.search.linearized_dp import LinearizedPlan, linearized
from pyjoinopt.util.bitset import members

#: Pairs of sets that the exact search compares at most; about sixty milliseconds.
BUDGET = 25_000
#: Blocks of at most this many relations have at most 261,625 pairs and get a budget that is enough for them all.
_ALWAYS_EXACT = 12
_FOR_SMALL = 14
#: Halves of intervals that may be compared for each pair of the budget; they are cheaper.
_HALVES_PER_PAIR = 8


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The order that was found.

    Attributes:
        tree: the order.
        cost: its cost under the model that was given.
        strategy: "exact" if every block was searched exactly, "linearized" if all others were searched as a line,
            else "greedy".
        pairs: pairs of sets whose join was considered.
    """

    tree: JoinTree
    cost: float
    strategy: str
    pairs: int


def search(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    budget: int = BUDGET,
    written: JoinTree | None = None,
    stop: Callable[[], bool] | None = None,
) -> SearchResult:
    """Find a cheap order of all relations of a graph.

    Args:
        graph: the join graph, connected or not.
        estimates: sizes of its sets of vertices.
        cost: the cost model.
        budget: pairs of sets to compare at most.
        written: the order as written. It is where the search ends up if the greedy one finds no way on, which outer,
            semi and anti joins can bring about, or is stopped.
        stop: asked now and then; once it says True, the search ends with the best complete order that it has.

    Raises:
        ValueError: the greedy search found no way on or was stopped, and there is no `written`.
    """
    canonical = canonical_order(graph, estimates)
    halves = _HALVES_PER_PAIR * budget
    partitionings = Partitionings(graph, estimates, cost)
    sharing = partitionings if partitionings.worth else None
    strategy, pairs = "exact", 0
    trees: list[JoinTree] = []
    for block in connected_components(graph, canonical):
        small = block.bit_count() <= _ALWAYS_EXACT
        left = (_FOR_SMALL if small else 1) * budget - pairs
        best = exact(graph, estimates, cost, left, block, canonical, stop, sharing)
        if best is not None:
            pairs += best.pairs
            trees.append(best.tree)
            continue
        found = _approximated(graph, estimates, cost, block, budget - pairs, halves, canonical, stop)
        if found is None:
            trees = []
            break
        strategy = "linearized" if found.in_one and strategy != "greedy" else "greedy"
        pairs += found.pairs
        trees.append(found.tree)
    whole = _put_together(graph, estimates, cost, trees, stop) if len(trees) > 1 else trees[0] if trees else None
    if whole is None:
        if written is None:
            raise ValueError("no order was found, and none was given to fall back to")
        strategy = "greedy"
        whole, looked_at = reoptimize_subtrees(graph, estimates, cost, written, budget - pairs, canonical, stop)
        pairs += looked_at
    tree = with_sides_in_place(graph, whole)
    return SearchResult(tree, cost_of(tree, estimates, cost, graph), strategy, pairs)


def _put_together(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    trees: Sequence[JoinTree],
    stop: Callable[[], bool] | None,
) -> JoinTree | None:
    """One tree of those of the blocks; None if outer joins allow none that was looked for."""
    return join_components(graph, estimates, cost, trees) or greedy(graph, estimates, trees, stop=stop)


def _approximated(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    block: int,
    budget: int,
    halves: int,
    canonical: Sequence[int],
    stop: Callable[[], bool] | None,
) -> LinearizedPlan | None:
    """A good order of a block that is too large to be searched; None if none was found."""
    alone = single_relations([v for v in canonical if block >> v & 1])
    best: tuple[float, LinearizedPlan] | None = None
    pairs = 0
    for notion in NOTIONS if graph.operators else NOTIONS[:1]:
        tree = greedy(graph, estimates, alone, notion, stop)
        if tree is None:
            continue
        tree, polished = reoptimize_subtrees(graph, estimates, cost, tree, budget - pairs, canonical, stop)
        lined = linearized(graph, estimates, cost, tree, canonical, halves, stop)
        pairs += polished + lined.pairs
        total = cost_of(lined.tree, estimates, cost, graph)
        if best is None or total < best[0]:
            best = total, lined
        if stop is not None and stop():
            break
    return None if best is None else best[1]._replace(pairs=pairs)


def with_sides_in_place(graph: JoinGraph, tree: JoinTree) -> JoinTree:
    """The tree with the sides of outer, semi and anti joins in their places."""
    if not graph.operators:
        return tree
    done: list[JoinTree] = []
    for node in tree.post_order():
        if node.is_leaf:
            done.append(node)
            continue
        right, left = done.pop(), done.pop()
        operator = graph.operator(left.relations, right.relations)
        turned = operator is not None and not operator.fits(left.relations, right.relations)
        done.append(join(right, left) if turned else join(left, right))
    return done[0]


def connected_components(graph: JoinGraph, canonical: Sequence[int]) -> list[int]:
    """The largest sets that can be joined without a cross product, in canonical order of their first members.

    Two-vertex edges join blocks at once. A wide edge joins two blocks if they complete it, which joining others may
    bring about; so wide edges are looked at until none of them changes anything.

    >>> graph = JoinGraph((), (), (), ())
    >>> connected_components(graph, [])
    []
    """
    block_of = dict.fromkeys(canonical, 0)
    for vertex in canonical:
        if block_of[vertex]:
            continue
        block, fresh = 0, 1 << vertex
        while fresh:
            block |= fresh
            fresh = graph.neighbours(fresh) & ~block
        for member in members(block):
            block_of[member] = block
    parts = merge_parts(list(dict.fromkeys(block_of.values())), [edge.required for edge in graph.wide_edges])
    for reads, together in graph.late:
        first = next((part for part in parts if reads & part), 0)
        if not reads & ~first:  # they cannot be joined by themselves
            touched = [part for part in parts if part & together or part == first]
            parts = [part for part in parts if part not in touched] + [sum(touched)]
    return sorted(parts, key=lambda part: next(i for i, vertex in enumerate(canonical) if part >> vertex & 1))
