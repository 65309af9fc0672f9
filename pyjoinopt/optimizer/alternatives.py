"""Rewrites that the search decides about: the joins of both plans are ordered, and the cheaper plan is taken.

What a semi join costs instead of an inner join, or what joins cost after a limit, depends on the order of all joins,
so neither is decided before. Each alternative costs a search, and few queries have one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.cost.constants import Constants
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.optimizer.existence_price import choices
from pyjoinopt.optimizer.reorder import Reordered
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites import fuse_joined_aggregates, inner_to_semi_joins, top_k_through_joins
from pyjoinopt.rewrites.filtered_aggregates import inner_join_source
from pyjoinopt.rewrites.fuse_joined_aggregates import JoinedFusion
from pyjoinopt.rewrites.top_k_through_joins import TopK

#: The joins must become cheaper by this factor: estimates err.
MARGIN = 1.2
#: Limits of a query that are tried.
_MOST_LIMITS = 3
#: Pairs of aggregates of a query that are fused.
_MOST_FUSIONS = 3


@dataclass(frozen=True)
class Ordered:
    """A plan, with its joins in the best orders found.

    Attributes:
        plan: as it was before its joins were ordered.
        reordered: what came of that.
        notes: one sentence for each rewrite.
    """

    plan: LogicalPlan
    reordered: Reordered
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alternatives:
    """The rewrites that are tried.

    Attributes:
        order: orders the joins of a plan.
        estimate: statistics of any sub-plan.
        constants: of the cost model.
        fresh: makes new columns.
        sensitive: see `plan.facts.equality_substitution.sensitive_columns`.
        without: names of rewrites that are switched off.
        saved_early: what early aggregates would save of a plan's work (`eager_aggregation`). They have the same use as
            semi joins: fewer repeated rows. An inner join below one may be cheaper than a semi join without.
    """

    order: Callable[[LogicalPlan], Reordered]
    estimate: PlanEstimates
    constants: Constants
    fresh: ColumnFactory
    sensitive: int
    without: Collection[str]
    saved_early: Callable[[LogicalPlan], float]

    def best(self, first: Ordered) -> Ordered:
        """The cheapest plan found; `first` itself if no other one is cheaper by a margin."""
        found = first
        if fuse_joined_aggregates.NAME not in self.without:
            for _ in range(_MOST_FUSIONS):
                before, found = found, self._fused(found)
                if found is before:
                    break
        if inner_to_semi_joins.NAME not in self.without:
            found = self._semi_joins(found)
        if top_k_through_joins.NAME not in self.without:
            for _ in range(_MOST_LIMITS):
                before, found = found, self._top_k(found)
                if found is before:
                    break
        return found

    def _fused(self, first: Ordered) -> Ordered:
        """With one pass for two aggregates of which one joins a relation more."""
        for fusion in fuse_joined_aggregates.joined_fusions(first.plan, self.fresh):
            other = self._ordered(first, push_down_predicates(fusion.plan), (fusion.note,))
            before, after = (self._cost(o) - self.saved_early(o.reordered.plan) for o in (first, other))
            if after + self._marked(fusion) < (before + self._scanned(fusion)) / MARGIN:
                return self._settled(other)
        return self._settled(first)

    def _semi_joins(self, first: Ordered) -> Ordered:
        """With semi joins for inner joins that only look for partners."""
        regions = inner_to_semi_joins.existence_regions(first.plan, self.sensitive)
        considered = choices(regions, self.estimate)
        if not considered:
            return first
        tops = [region.top for region in regions]
        best, cost = first, self._cost(first, tops) / MARGIN
        saved = self.saved_early(first.reordered.plan)
        for choice in considered:
            plan, notes = inner_to_semi_joins.with_semi_joins(first.plan, choice)
            other = self._ordered(first, push_down_predicates(plan), notes)
            replaced = {id(region.top): region.with_semi_joins(branches) for region, branches in choice}
            found = self._cost(other, [replaced.get(id(top), top) for top in tops])
            found += saved - self.saved_early(other.reordered.plan)
            if found < cost:
                best, cost = other, found
        return self._settled(best)

    def _top_k(self, first: Ordered) -> Ordered:
        """With the first rows of one limit chosen before they are joined."""
        for place in top_k_through_joins.places_for_top_k(first.plan):
            if self.estimate(place.below).rows <= MARGIN * place.rows:
                continue
            plan, notes = top_k_through_joins.with_top_k(first.plan, place)
            other = self._ordered(first, plan, notes)
            if self._cost(other) + self._chosen(place) < self._cost(first) / MARGIN:
                return self._settled(other)
        return self._settled(first)

    def _ordered(self, first: Ordered, plan: LogicalPlan, notes: tuple[str, ...]) -> Ordered:
        return replace(first, plan=plan, reordered=self.order(plan), notes=(*first.notes, *notes))

    def _settled(self, chosen: Ordered) -> Ordered:
        """A plan whose common table expressions are those that are estimated from now on, whatever was tried last."""
        self.estimate.add_ctes(post_order(chosen.reordered.plan))
        return chosen

    def _cost(self, found: Ordered, regions: Iterable[LogicalPlan] = ()) -> float:
        """The cost of all joins of a plan, and of the rows that are hashed above some regions of it."""
        groups = [group.ordered for group in found.reordered.groups]
        hashed = self.constants.hashed_row * sum(self.estimate(region).rows for region in regions)
        return hashed + sum(group.cost_after for group in (*groups, *found.reordered.pairs))

    def _marked(self, fusion: JoinedFusion) -> float:
        """The work of grouping the further relations, which Spark may do once or twice."""
        if not fusion.grouped:
            return 0.0
        c, known = self.constants, self.estimate(fusion.further)
        return 2 * (c.shuffle + known.rows * (1.0 + c.hashed_row + c.shuffled_row))

    def _scanned(self, fusion: JoinedFusion) -> float:
        """The work of reading the common rows once more, if no join does that."""
        relations, _ = inner_join_source(fusion.common)
        return self.estimate(fusion.common).rows if len(relations) == 1 else 0.0

    def _chosen(self, place: TopK) -> float:
        """The work of choosing the first rows: each row is compared, and those of each task are sent to one."""
        return self.constants.shuffle + (1.0 + self.constants.sorted_row) * self.estimate(place.below).rows
