"""Which method finds the order of a group: the search ladder, decided by a budget and not by a number of tables.

1. A group is split into *connected components*: what can be joined without a cross product. Most groups are one.
2. DPhyp orders each component while the budget of pairs lasts; the default is enough for a chain of fifty-three
   relations and for a star of twelve. A component of at most twelve is always ordered exactly.
   Joins that keep each row once are put on top where that is the cheapest place (`lookup_joins`), and only the rest of
   the component is searched.
3. A component that does not fit is ordered greedily, and DPhyp improves its small sub-trees. Then linearized DP
   searches the intervals of linear orders of its relations, if the budget is enough for that: by default for
   eighty-four relations with any edges, for a chain of 160, for stars and grids of 300. In larger components it
   searches sub-trees of that size. With outer joins, where greedy choices are more often bad, all this is done for
   each merit (`greedy`).
4. Components are put together by cross products: six or fewer in the best order, more the smallest first.

Each step starts with what the step before it has found, or would have found nothing better. A deadline ends the search
at the first tree that is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyjoinopt.cost.model import CostModel
from pyjoinopt.cost.size import Size
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph, merge_parts
from pyjoinopt.joins.join_tree import JoinTree, join
from pyjoinopt.joins.search.cross_products import join_components
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.greedy import MERITS, greedy, reoptimize_subtrees, single_relations
from pyjoinopt.joins.search.linearized_dp import LinearizedPlan, linearized
from pyjoinopt.joins.search.lookup_joins import are_cheapest_on_top, lookup_joins, with_lookup_joins
from pyjoinopt.joins.search.search_context import SearchContext, SearchLimits
from pyjoinopt.util.bitset import members

#: Pairs that are compared at most, by default.
BUDGET = SearchLimits().pairs


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The order that was found.

    Attributes:
        tree: the order.
        cost: its cost under the model that was given.
        strategy: "exact" if every component was ordered exactly, "linearized" if all others were ordered by linearized
            DP as a whole, else "greedy".
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
    deadline: Deadline | None = None,
) -> SearchResult:
    """`choose_order` for a graph of which no context was made yet; the arguments are those of the context."""
    return choose_order(SearchContext(graph, estimates, cost, deadline or Deadline()), budget, written)


def choose_order(context: SearchContext, budget: int = BUDGET, written: JoinTree | None = None) -> SearchResult:
    """Find a cheap order of all relations of a graph.

    Args:
        context: the group; its graph may be connected or not.
        budget: pairs of sets to compare at most.
        written: the order as written. The search falls back to it if the greedy search finds no further step, which
            outer, semi and anti joins can cause, or if the deadline passes before an order is complete.

    Raises:
        ValueError: the greedy search found no further step or no time, and there is no `written`.
    """
    strategy, pairs = "exact", 0
    trees: list[JoinTree] = []
    for component in connected_components(context.graph, context.canonical):
        found = _with_lookup_joins_last(context, component, budget, pairs)
        found = found or _order_of_component(context, component, budget, pairs)
        if found is None:
            trees = []
            break
        if found.strategy != "exact":
            strategy = "greedy" if "greedy" in (strategy, found.strategy) else "linearized"
        pairs += found.pairs
        trees.append(found.tree)
    whole = _put_together(context, trees) if len(trees) > 1 else trees[0] if trees else None
    if whole is None:
        if written is None:
            raise ValueError("no order was found, and none was given to fall back to")
        strategy = "greedy"
        whole, compared = reoptimize_subtrees(context, written, budget - pairs)
        pairs += compared
    tree = with_sides_in_place(context.graph, whole)
    return SearchResult(tree, context.costs.order(tree), strategy, pairs)


class _Ordered(NamedTuple):
    """An order of a component; see `SearchResult`."""

    tree: JoinTree
    strategy: str
    pairs: int
    sizes: Mapping[int, Size]


def _order_of_component(context: SearchContext, component: int, budget: int, spent: int) -> _Ordered | None:
    """The order of a component by the first method of the ladder that its size allows; None if none was found.

    Args:
        context: the group.
        component: its vertices.
        budget: pairs to compare at most in the group.
        spent: those of them that are spent.
    """
    limits = context.limits
    small = component.bit_count() <= limits.always_exact
    best = exact(context, (limits.always_exact_factor if small else 1) * budget - spent, component, partitioned=True)
    if best is not None:
        return _Ordered(best.tree, "exact", best.pairs, best.sizes)
    found = _approximate(context, component, budget - spent, limits.halves_per_pair * budget)
    if found is None:
        return None
    sizes = {part.relations: context.estimates.size(part.relations) for part in found.tree.post_order()}
    return _Ordered(found.tree, "linearized" if found.as_one else "greedy", found.pairs, sizes)


def _with_lookup_joins_last(context: SearchContext, component: int, budget: int, spent: int) -> _Ordered | None:
    """The order of a component with its lookup joins on top; None if it has none, or if they may be cheaper below."""
    lookups = lookup_joins(context, component)
    if not lookups:
        return None
    core = component & ~sum(lookup.right for lookup in lookups)
    found = _order_of_component(context, core, budget, spent)
    if found is None or not are_cheapest_on_top(context, lookups, core, found.sizes):
        return None
    tree = with_lookup_joins(found.tree, lookups)
    if not context.graph.allows_order(with_sides_in_place(context.graph, tree)):
        return None
    return found._replace(tree=tree, pairs=found.pairs + len(lookups))


def _put_together(context: SearchContext, trees: Sequence[JoinTree]) -> JoinTree | None:
    """One tree of those of the components; None if outer joins allow none that was considered."""
    return join_components(context, trees) or greedy(context, trees)


def _approximate(context: SearchContext, component: int, budget: int, halves: int) -> LinearizedPlan | None:
    """A good order of a component that is too large for DPhyp; None if none was found."""
    alone = single_relations([v for v in context.canonical if component >> v & 1])
    best: tuple[float, LinearizedPlan] | None = None
    pairs = 0
    for merit in MERITS if context.graph.operators else MERITS[:1]:
        tree = greedy(context, alone, merit)
        if tree is None:
            continue
        tree, compared = reoptimize_subtrees(context, tree, budget - pairs)
        found = linearized(context, tree, halves)
        pairs += compared + found.pairs
        total = context.costs.order(found.tree)
        if best is None or total < best[0]:
            best = total, found
        if context.deadline.passed:
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

    Two-vertex edges connect components at once. A wide edge connects two components that together complete it. Merging
    others may bring that about, so wide edges are tried until none of them changes anything.

    >>> graph = JoinGraph((), (), (), ())
    >>> connected_components(graph, [])
    []
    """
    component_of = dict.fromkeys(canonical, 0)
    for vertex in canonical:
        if component_of[vertex]:
            continue
        component, fresh = 0, 1 << vertex
        while fresh:
            component |= fresh
            fresh = graph.neighbours(fresh) & ~component
        for member in members(component):
            component_of[member] = component
    parts = merge_parts(list(dict.fromkeys(component_of.values())), [edge.tes for edge in graph.wide_edges])
    for present, needed in graph.co_required:
        first = next((part for part in parts if present & part), 0)
        if not present & ~first:  # they cannot be joined by themselves
            touched = [part for part in parts if part & needed or part == first]
            parts = [part for part in parts if part not in touched] + [sum(touched)]
    return sorted(parts, key=lambda part: next(i for i, vertex in enumerate(canonical) if part >> vertex & 1))
