"""A plan from end to end, in nine steps:

    decode      bridge.decode        Spark's plan becomes a plan of immutable Python nodes (done by the caller)
    rewrite     rewrites.normalise   predicates move to their places, redundant joins go; before that, scalar
                                     subqueries over one table get the same filter (rewrites.fuse_scalar_subqueries)
    find        joins.groups         which joins may be ordered together
    choose      joins.search         the cheapest legal order of each group
    emit        joins.emit           the plan in that order
    distinct    optimizer.distinct_build_sides  what semi joins build, where it has many rows with the same key
    hint        hints.apply_hints    strategies that Spark would not choose by itself
    aggregate   optimizer.eager_aggregation  in part below joins, where that leaves these much less to do
    filter      optimizer.prefilter  what is grouped or shuffled, by what the result is joined with

and `bridge.encode` makes the edits of which Spark's plan is rebuilt (done by the caller, too). Finding, choosing and
emitting go together in `reorder`, group by group, because a group is ordered over what its inputs have become.

Nothing here knows Spark: questions go through a `Gateway`, the result is a plan of the mirror. Whether it is used is
the caller's decision; this module only promises that it gives the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from pyjoinopt.bridge.decode import Export
from pyjoinopt.bridge.gateway import Gateway
from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.join_selection import version_of
from pyjoinopt.catalyst.planner.size_in_bytes import SizesOf, SparkSizes
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.config import Options
from pyjoinopt.cost import cost_model
from pyjoinopt.cost.constants import DEFAULT, read_constants
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.feedback.baseline import PinnedHint
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.hints.apply_hints import HintGiver
from pyjoinopt.hints.buildable_sides import BuildableSidesOf
from pyjoinopt.hints.memory_limits import MemoryAllowance, slack_of
from pyjoinopt.joins.emit.unchanged_order import why_unchanged
from pyjoinopt.joins.groups.barriers import reorder_barriers, why_separate
from pyjoinopt.optimizer import distinct_build_sides
from pyjoinopt.optimizer.alternatives import Alternatives, Ordered
from pyjoinopt.optimizer.describe_group import change_in_one_line, describe_group
from pyjoinopt.optimizer.distinct_build_sides import DistinctBuildSides
from pyjoinopt.optimizer.eager_aggregation import eager_aggregation
from pyjoinopt.optimizer.eager_aggregation.eager_aggregation import EagerAggregation
from pyjoinopt.optimizer.eager_aggregation.early_plan import may_be_early
from pyjoinopt.optimizer.forecast_operators import Forecast
from pyjoinopt.optimizer.operator_work import OperatorWork, parallelism_of
from pyjoinopt.optimizer.order_group import OrderingContext
from pyjoinopt.optimizer.plan_statistics import PlanStatistics
from pyjoinopt.optimizer.prefilter.prefilter import Prefilter, may_be_a_prefilter
from pyjoinopt.optimizer.reorder import ChangedGroup, Reordered, reorder
from pyjoinopt.optimizer.shared_price import SharedPrice
from pyjoinopt.optimizer.spark_strategies import heuristic_order, spark_order
from pyjoinopt.optimizer.use_baselines import UsedBaselines, baselines_for, pinned_groups
from pyjoinopt.optimizer.window_price import WindowPrice
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.facts.equality_substitution import sensitive_columns
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import map_subqueries, post_order
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.model import GroupReport
from pyjoinopt.rewrites import (
    aggregate_to_window,
    fuse_scalar_subqueries,
    self_join_to_semi_join,
    share_common_tables,
)
from pyjoinopt.rewrites.lost_columns import has_narrowed_tables
from pyjoinopt.rewrites.normalise import RewriteContext, normalise
from pyjoinopt.rewrites.restore_subqueries import restore_subqueries

#: The export's key for the native engine that is loaded: Comet or Gluten, which may have no existence joins.
NATIVE = "pyjoinopt.native"
#: Settings of `strategy` that reimplement Spark's own.
SPARK_STRATEGIES = ("spark", "heuristic")


@dataclass(frozen=True)
class Optimized:
    """What came of a query.

    Attributes:
        plan: the better plan; the very root of the export if nothing is to be changed.
        expected: its join groups, to be recognised when they have run; none if nobody watches.
        groups: its join groups of three relations or more, with their orders.
        hinted: the joins that were given a hint.
        options: those that were used: of the call, and of its baselines.
    """

    plan: LogicalPlan
    expected: tuple[ExpectedGroup, ...] = ()
    groups: tuple[ChangedGroup, ...] = ()
    hinted: tuple[Join, ...] = ()
    options: Options = Options()


def optimize(
    export: Export,
    gateway: Gateway,
    options: Options,
    report: JoinReport,
    *,
    watching: bool = False,
    analysed: bool = True,
    watch_pairs: bool = False,
) -> Optimized:
    """Optimise one query.

    Args:
        export: the decoded plan.
        gateway: answers questions about it.
        options: of this call.
        report: gets what was done; what only its readers need is deferred until `report.complete()`.
        watching: whether the query's join groups may be seen to run.
        analysed: True for a DataFrame's analysed plan. False inside Spark's optimizer (session extension): subqueries
            arrive as plans of their own, and PushLeftSemiLeftAntiThroughJoin has run, so nothing is pinned.
        watch_pairs: whether to watch groups of two relations, too.
    """
    report.strategy = options.strategy
    refusal = why_not_at_all(export)
    root = export.root
    used = UsedBaselines((), options)
    if refusal is None:
        if options.strategy in ("auto", "none"):
            leaves = (node for node in export.nodes if not node.children or node.cached)
            used = baselines_for(leaves, options, report)
            options = used.options
        root, fused = _fuse_scalar_subqueries(export, gateway, options)
        report.spared_joins += fused
        if not any(isinstance(node, Join) for node in export.nodes):
            if root is not export.root:
                return Optimized(export.root if options.strategy == "none" else root)
            refusal = why_unchanged(root, options.strategy)
    if refusal is not None:
        report.refuse("the whole query", refusal)
        return Optimized(export.root)
    run = _Optimization(export, gateway, used, report, analysed, watching, watch_pairs)
    plan = run.of(root)
    if analysed or any(group.ordered.pinned for group in run.groups):  # a session plans each subquery by itself
        used.refuse_unused(run.groups, report)
    report.background_bytes = run.statistics.background_bytes
    report.defer(lambda: report.notes.extend(run.statistics.notes()))
    if plan is export.root:
        report.defer(lambda: _give_reason(report, export.root))
    plan = export.root if options.strategy == "none" else plan
    return Optimized(plan, tuple(run.expected), tuple(run.groups), tuple(run.hinted), options)


def _fuse_scalar_subqueries(export: Export, gateway: Gateway, options: Options) -> Rewritten:
    """The whole query after `rewrites.fuse_scalar_subqueries`, which relies on a rule of Spark that follows."""
    switched_off = options.strategy not in ("auto", "none") or fuse_scalar_subqueries.NAME in options.without_rewrites
    if switched_off or not fuse_scalar_subqueries.may_be_worthwhile(export.expressions):
        return Rewritten(export.root)
    settings = gateway.settings(fuse_scalar_subqueries.SETTINGS)
    if settings is None or not fuse_scalar_subqueries.merges_equal_inputs(settings):
        return Rewritten(export.root)
    return fuse_scalar_subqueries.fuse_scalar_subqueries(export.root)


def why_not_at_all(export: Export) -> str | None:
    """The reason to leave a whole plan unchanged, if there is one."""
    if export.streaming:
        return "it is a streaming query, whose join order determines the state that Spark keeps"
    if export.command:
        return "it is a command, not a query"
    if not export.resolved:
        return "Spark has not resolved all of its columns and relations"
    if export.root.cached:
        return "its result is cached, and Spark uses the cache only for an unchanged plan"
    return None


@dataclass(frozen=True)
class _Rewritten:
    """A plan after the rewrites.

    Attributes:
        plan: with its predicates in their places.
        eliminated: one sentence for every outer join that became a simpler one or went away.
        avoided: one sentence for every other join that went away or became a simpler one.
    """

    plan: LogicalPlan
    eliminated: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()


class _Optimization:
    """One query; plans of subqueries are optimised one by one with the same statistics."""

    def __init__(
        self, export: Export, gateway: Gateway, used: UsedBaselines, report: JoinReport, analysed: bool, watching: bool,
        watch_pairs: bool,
    ) -> None:  # fmt: skip
        options = used.options
        self._export, self._gateway, self._options, self._report = export, gateway, options, report
        self._used = used
        self._analysed, self._watch_pairs = analysed, watch_pairs
        self._fresh = ColumnFactory(len(export.attributes))
        self._sensitive = sensitive_columns(export.nodes)
        self._discerning = sensitive_columns(export.nodes, discerning_only=True) if self._sensitive else 0
        self._constants = read_constants(options.cost_constants) if options.cost_constants else DEFAULT
        self._work = OperatorWork(self._constants, parallelism_of(export.conf))
        self._allowance = slack_of(options.hint_slack, export.conf)
        self._sizes: SizesOf = lru_cache(maxsize=4)(partial(SparkSizes, export.conf))
        self.statistics = PlanStatistics(export, gateway, options, watching)
        self.expected: list[ExpectedGroup] = []
        self.groups: list[ChangedGroup] = []
        self.hinted: list[Join] = []

    def of(self, root: LogicalPlan) -> LogicalPlan:
        """One plan, its subqueries first; `root` itself if nothing is to be changed."""
        if self._analysed:
            root = map_subqueries(root, self.of)
        if not any(isinstance(node, Join) for node in post_order(root)):
            return root
        rewritten = self._with_windows(self._rewrite(root))
        estimates = self.statistics.prepare(rewritten.plan)
        reordered = self._reorder(rewritten.plan, estimates)  # find groups, choose their orders, emit
        rewritten, reordered = self._alternative(rewritten, reordered, estimates)
        distinct = self._distinct_sides(reordered.plan, estimates)
        hinted = self._hint(distinct, estimates, self._used.hints_for(reordered))
        self.groups += reordered.groups
        self._describe(rewritten, reordered, hinted)
        changed = self._prefilter(self._aggregate_early(hinted, estimates), estimates)
        changed = self._share_tables(changed, estimates)
        if changed is not hinted or distinct is not reordered.plan:  # the rows that run are not those of the groups
            return changed
        self.expected += reordered.expected
        only_moved = hinted is rewritten.plan and not rewritten.eliminated and not rewritten.avoided
        return root if only_moved and not reordered.dropped else hinted  # Spark moves the same predicates

    def _rewrite(self, root: LogicalPlan) -> _Rewritten:
        fresh = self._fresh if self._options.strategy in ("auto", "none") else None  # Spark avoids no such joins
        context = RewriteContext(self._export.filters_null, fresh, self._sensitive)
        without = self._options.without_rewrites
        plan, eliminated, avoided = normalise(root, context, without)
        if self._analysed:
            restored = restore_subqueries(plan, self._sensitive)
            if restored is not plan and has_narrowed_tables(plan):  # its subqueries read them as they were
                plan, eliminated, avoided = normalise(root, context, without | {self_join_to_semi_join.NAME})
                restored = restore_subqueries(plan, self._sensitive)
            plan = restored
        return _Rewritten(plan, eliminated, avoided)

    def _with_windows(self, rewritten: _Rewritten) -> _Rewritten:
        """The plan with windows for aggregates that are joined with their own rows."""
        off = self._options.strategy != "auto" or aggregate_to_window.NAME in self._options.without_rewrites
        before = rewritten.plan
        if off or not aggregate_to_window.may_have_candidates(before):
            return rewritten

        @cache
        def price() -> WindowPrice:
            return WindowPrice(self.statistics.prepare(before), self._constants)

        plan, notes = aggregate_to_window.aggregates_to_windows(before, self._fresh, lambda found: price()(found))
        if plan is before:
            return rewritten
        return _Rewritten(push_down_predicates(plan), rewritten.eliminated, (*rewritten.avoided, *notes))

    def _reorder(self, plan: LogicalPlan, estimates: PlanEstimates) -> Reordered:
        conf, options = self._export.conf, self._options
        allowance = self._allowance if options.hints else MemoryAllowance(0, 0)
        context = OrderingContext(
            estimate=estimates,
            cost=cost_model(options.cost, conf, options.cost_constants),
            budget=options.pair_budget,
            memory=self.statistics.memory,
            seconds=options.search_seconds,
            buildable=BuildableSidesOf(conf, self._sizes(plan), allowance),
            watch_pairs=self._watch_pairs,
            pin=self._analysed and NATIVE not in conf,
            sensitive=self._sensitive,
            discerning=self._discerning,
            baselines=self._used.baselines,
        )
        match options.strategy:
            case "spark":
                return spark_order(plan, self._gateway, conf, context, self._export.version)
            case "heuristic":
                return heuristic_order(plan, context)
            case _:
                return reorder(plan, context)

    def _alternative(
        self, rewritten: _Rewritten, reordered: Reordered, estimates: PlanEstimates
    ) -> tuple[_Rewritten, Reordered]:
        """The same, or another plan that the search finds cheaper."""
        if self._options.strategy != "auto":
            return rewritten, reordered

        def order(plan: LogicalPlan) -> Reordered:
            return self._reorder(plan, self.statistics.prepare(plan))

        def saved_early(plan: LogicalPlan) -> float:
            eager = self._eager_aggregation(plan, estimates)
            return 0.0 if eager is None else eager.saved(plan)

        without = self._options.without_rewrites
        alternatives = Alternatives(
            order, estimates, self._constants, self._fresh, self._sensitive, without, saved_early
        )
        best = alternatives.best(Ordered(rewritten.plan, reordered))
        if best.plan is rewritten.plan or pinned_groups(best.reordered) < pinned_groups(reordered):
            return rewritten, reordered
        return _Rewritten(best.plan, rewritten.eliminated, (*rewritten.avoided, *best.notes)), best.reordered

    def _distinct_sides(self, plan: LogicalPlan, estimates: PlanEstimates) -> LogicalPlan:
        """The plan with distinct right sides of semi joins."""
        options, conf = self._options, self._export.conf
        if not options.hints or options.strategy != "auto" or distinct_build_sides.NAME in options.without_rewrites:
            return plan
        if _uses_cbo(conf):
            return plan
        found = DistinctBuildSides(
            plan,
            estimates,
            self._sizes(plan),
            JoinConf.of(conf),
            self._allowance,
            self._work,
            version_of(self._export.spark),
        ).apply()
        self._report.eager_aggregations += found.notes
        return found.plan

    def _hint(
        self, plan: LogicalPlan, estimates: PlanEstimates, pinned: Sequence[PinnedHint] | None
    ) -> LogicalPlan:
        if not self._options.hints or self._options.strategy != "auto":
            return plan
        giver = HintGiver(
            estimates, self._export.conf, self._report, self._sizes, self._allowance, pinned, self._export.spark
        )
        hinted = giver.apply(plan)
        self.hinted += giver.hinted
        return hinted

    def _eager_aggregation(self, plan: LogicalPlan, estimates: PlanEstimates) -> EagerAggregation | None:
        """What decides about early aggregates below the joins of a plan; None if there are to be none."""
        options, conf = self._options, self._export.conf
        if not options.hints or options.strategy != "auto" or eager_aggregation.NAME in options.without_rewrites:
            return None
        if _uses_cbo(conf) or any(map(may_be_early, self._export.nodes)):  # CBO chooses operators by its own estimates
            return None
        return EagerAggregation(
            estimates,
            self._sizes(plan),
            self._fresh,
            JoinConf.of(conf),
            str(conf.get("spark.sql.ansi.enabled", "false")).lower() == "true",
            "DecimalAggregates" not in str(conf.get("spark.sql.optimizer.excludedRules", "")),
            self._work,
            version_of(self._export.spark),
        )

    def _aggregate_early(self, plan: LogicalPlan, estimates: PlanEstimates) -> LogicalPlan:
        eager = self._eager_aggregation(plan, estimates)
        if eager is None:
            return plan
        found = eager.apply(plan)
        self._report.eager_aggregations += found.notes
        return found.plan

    def _prefilter(self, plan: LogicalPlan, estimates: PlanEstimates) -> LogicalPlan:
        options, conf = self._options, self._export.conf
        if not options.hints or options.strategy != "auto" or any(map(may_be_a_prefilter, self._export.nodes)):
            return plan
        prefilter = Prefilter(
            estimates,
            None if _uses_cbo(conf) else self._sizes(plan),
            self._fresh,
            self._sensitive,
            JoinConf.of(conf),
            self._allowance,
            self._constants,
            version_of(self._export.spark),
            options.without_rewrites,
        )
        plan, notes = prefilter.apply(plan)
        self._report.prefilters += notes
        return plan

    def _share_tables(self, plan: LogicalPlan, estimates: PlanEstimates) -> LogicalPlan:
        options = self._options
        if options.strategy != "auto" or share_common_tables.NAME in options.without_rewrites:
            return plan
        price = SharedPrice(estimates, self._constants)
        plan, notes = share_common_tables.share_common_tables(
            plan, lambda found: price(found) and share_common_tables.is_reused(self._gateway.settings)
        )
        self._report.spared_joins += notes
        return plan

    def _describe(self, rewritten: _Rewritten, reordered: Reordered, hinted: LogicalPlan) -> None:
        """Report what was done to one plan; what only readers of the report need is deferred."""
        report = self._report
        report.eliminated_outer_joins += [*rewritten.eliminated, *reordered.dropped]
        report.spared_joins += rewritten.avoided
        for refusal in reordered.refusals:
            report.refuse(refusal.where, refusal.reason)
        ordered = [group.ordered for group in reordered.groups]
        report.expect_groups(
            [change_in_one_line(g.ordered) if g.changed else None for g in reordered.groups],
            sum(o.cost_before for o in ordered),
            sum(o.cost_after for o in ordered),
        )
        forecast = Forecast(
            rewritten.plan, hinted, self._export.conf, self._sizes, self._export.spark, tuple(report.hints)
        )
        report.defer(lambda: _describe_barriers(report, rewritten.plan))
        report.defer(lambda: report.groups.extend(_described(reordered.groups, forecast)))
        pairs = [ChangedGroup(pair, changed=False) for pair in reordered.pairs]
        report.defer(lambda: report.pairs.extend(_described(pairs, forecast)))


def _uses_cbo(conf: Mapping[str, str]) -> bool:
    return str(conf.get("spark.sql.cbo.enabled", "false")).lower() == "true"


def _described(groups: Sequence[ChangedGroup], forecast: Forecast) -> list[GroupReport]:
    relations = [group.ordered.estimated.graph.relations for group in groups]
    return forecast.of([describe_group(group.ordered, group.changed) for group in groups], relations)


def _describe_barriers(report: JoinReport, plan: LogicalPlan) -> None:
    between = reorder_barriers(plan)
    if between and not report.has_groups and not report.refusals:
        report.refuse("the whole query", why_separate(between))
        return
    for kind in between:
        report.refuse(kind, "joins are not moved across it: those above and below it are ordered separately")


def _give_reason(report: JoinReport, root: LogicalPlan) -> None:
    """A plan that is not changed gets a reason, whichever step decided that."""
    if not report.groups and not report.refusals:
        report.refuse("the whole query", why_unchanged(root, report.strategy))
