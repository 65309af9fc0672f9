"""The best order of one join group: from the group to a record of what was found, without changing anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.cost import CostModel
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.feedback.baseline import Baseline
from pyjoinopt.feedback.learned_rows import LearnedRows, with_true_rows
from pyjoinopt.feedback.match_baseline import PinnedOrder, pinned_order
from pyjoinopt.hints.buildable_sides import BuildableSidesOf
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Synopsis
from pyjoinopt.joins.emit.join_predicates import applies_implied_equality
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import SearchResult, choose_order
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.given_order import legal_order
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.optimizer.group_synopses import synopses_of
from pyjoinopt.optimizer.semi_join_samples import own_rows
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan

#: The strategy of an order that a baseline has.
PINNED = "baseline"
_ILLEGAL = "it cannot be proved that another order of it gives the same rows"
_COPIED = "its order decides to which relations Spark copies a filter on a join key that may fail"
_OUTDATED = "it cannot be proved that its order gives the same rows now, so the search has chosen another one"
_TOO_LATE = "the search for its order ran out of time before it found a better one"


@dataclass(frozen=True)
class OrderingContext:
    """What the groups of a plan are ordered with.

    Attributes:
        estimate: rows and bytes of any sub-plan.
        cost: the cost model that is minimised.
        budget: pairs that the exact search may compare in a group.
        memory: row counts of groups that ran before.
        seconds: how long the search for one group's order may take.
        buildable: which sides of joins may be built; None to decide by expected sizes alone.
        watch_pairs: whether the rows of groups of two relations, in which there is nothing to order, are remembered.
        pin: whether Spark will still move semi and anti joins, so that some have to be pinned; never where a native
            engine runs the query, which may have no existence joins.
        sensitive: columns over which Spark must see no new equality (`plan.facts.equality_substitution`).
        discerning: those of them that are read by a predicate which distinguishes equal values.
        baselines: orders that take precedence over those that the search would find.
    """

    estimate: PlanEstimates
    cost: CostModel
    budget: int
    memory: LearnedRows
    seconds: float = math.inf
    buildable: BuildableSidesOf | None = None
    watch_pairs: bool = False
    pin: bool = False
    sensitive: int = 0
    discerning: int = 0
    baselines: Sequence[Baseline] = ()


@dataclass(frozen=True)
class Above:
    """What the plan above a group does with its result.

    Attributes:
        needed: columns that are read there, as an attribute mask.
        never_null: columns that are not NULL in any row that is kept there.
        conjuncts: those of filters right above it; None if several readers have their own.
    """

    needed: int
    never_null: int
    conjuncts: list[Expression] | None


@dataclass(frozen=True, eq=False)
class EstimatedGroup:
    """A group as a graph, with estimates.

    Attributes:
        graph: the join graph.
        written: the order as written.
        statistics: of each relation.
        estimates: of sets of relations.
        synopses: the samples of joins that these rest on.
    """

    graph: JoinGraph
    written: JoinTree
    statistics: list[RelationStatistics]
    estimates: GraphEstimates
    synopses: Sequence[Synopsis] = ()


@dataclass(frozen=True, eq=False)
class OrderedGroup:
    """A group and its best order.

    Attributes:
        group: as written.
        estimated: its graph and estimates.
        costs: of joins and orders.
        chosen: the order that is used; as written if no better one was found or may be used.
        cost_before, cost_after: of the order as written, and of the chosen one.
        strategy: which search found it, see `SearchResult`; `PINNED` if a baseline has it; empty for two relations.
        pairs: pairs of sets that were compared.
        seconds: how long that took.
        moved: whether the chosen order is not the written one.
        why_not: the reason why the order that was found is not used; empty if it is.
        pinned: the order of a baseline for this group, used or not; None if there is none.
    """

    group: JoinGroup
    estimated: EstimatedGroup
    costs: JoinCosts
    chosen: JoinTree
    cost_before: float
    cost_after: float
    strategy: str
    pairs: int
    seconds: float
    moved: bool
    why_not: str = ""
    pinned: PinnedOrder | None = None

    @property
    def why_not_pinned(self) -> str:
        """The reason why the order of a baseline is not used; empty if it is, or if there is none."""
        if self.pinned is None:
            return ""
        return self.why_not or ("" if self.strategy == PINNED else _OUTDATED)


def estimate_group(
    group: JoinGroup, plans: Mapping[int, LogicalPlan], above: Above, context: OrderingContext
) -> EstimatedGroup:
    """The graph of a group, and its estimates.

    Args:
        group: the group.
        plans: id of an input's plan -> the plan to use for it.
        above: what the plan above reads.
        context: what groups are ordered with.
    """
    graph, written = build_graph(group, plans, context.sensitive)
    true_rows = context.memory.recall(graph, above.conjuncts)
    statistics = with_true_rows([context.estimate(plan) for plan in graph.relations], true_rows)
    needed = above.needed
    for alias in group.deferred.values():
        needed |= alias.references
    buildable = None if context.buildable is None else context.buildable.of(graph.relations)
    synopses = synopses_of(graph, statistics, context.estimate)
    own = own_rows(graph, context.estimate)
    estimates = GraphEstimates(graph, statistics, needed, above.never_null, true_rows, buildable, synopses, own)
    return EstimatedGroup(graph, written, statistics, estimates, synopses)


def as_written(
    group: JoinGroup, plans: Mapping[int, LogicalPlan], above: Above, context: OrderingContext
) -> OrderedGroup:
    """A group of two relations, in its only order; for the arguments see `estimate_group`."""
    whole = Deadline()
    estimated = estimate_group(group, plans, above, context)
    costs = SearchContext(estimated.graph, estimated.estimates, context.cost, whole).costs
    cost = costs.order(estimated.written)
    return OrderedGroup(group, estimated, costs, estimated.written, cost, cost, "", 0, whole.elapsed, False)


def order_group(
    group: JoinGroup, plans: Mapping[int, LogicalPlan], above: Above, context: OrderingContext
) -> OrderedGroup:
    """The best order of a group of three relations or more; for the arguments see `estimate_group`.

    The order as written is no candidate: the order that the search finds replaces it even at equal cost, so that a
    query gets the same plan in whatever order it is written.
    """
    whole = Deadline()
    estimated = estimate_group(group, plans, above, context)
    graph, written = estimated.graph, estimated.written
    search = SearchContext(graph, estimated.estimates, context.cost, Deadline(context.seconds))
    before = search.costs.order(written)
    pinned = pinned_order(graph, context.baselines) if context.baselines else None
    found = _of_baseline(search, pinned) or choose_order(search, context.budget, written)
    why_not = ""
    if graph.only_as_written:
        why_not = _COPIED
    elif not graph.allows_order(written) or not graph.allows_order(found.tree):
        why_not = _ILLEGAL
    elif found.strategy != PINNED and search.deadline.passed and found.cost > before:
        # Only a search that was stopped looks at the written order.
        why_not = _TOO_LATE
    other = found.tree.sets != written.sets or applies_implied_equality(graph, written)
    moved = not why_not and other
    chosen, after = (found.tree, found.cost) if moved else (written, before)
    return OrderedGroup(
        group, estimated, search.costs, chosen, before, after, found.strategy, found.pairs, whole.elapsed, moved,
        why_not, pinned,
    )  # fmt: skip


def _of_baseline(search: SearchContext, pinned: PinnedOrder | None) -> SearchResult | None:
    """The order of a baseline; None if there is none, or none that is proved to give the same rows."""
    if pinned is None:
        return None
    tree = legal_order(search.graph, pinned.tree)
    return None if tree is None else SearchResult(tree, search.costs.order(tree), PINNED, 0)
