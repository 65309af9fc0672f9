"""The road of a plan: rules, join groups, hints. It reads like section "The road a plan travels" of the docs.

Nothing here knows Spark: the plan comes decoded, questions go through a `Gateway`, the result is a plan of the
mirror. Whether that result is used is the caller's decision; this module only promises that it means the same.
"""

from __future__ import annotations

from functools import lru_cache, partial

from pyjoinopt.bridge.decode import Export
from pyjoinopt.bridge.gateway import Gateway
from pyjoinopt.catalyst.planner.size_in_bytes import SizesOf, SparkSizes
from pyjoinopt.config import Options
from pyjoinopt.cost import cost_model
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.proven_keys import ProvedKeys
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.learned_rows import LEARNED, ExpectedGroup, LearnedRows
from pyjoinopt.hints.apply_hints import HintGiver
from pyjoinopt.hints.buildable_sides import TablesOf
from pyjoinopt.hints.memory_limits import MemoryAllowance, slack_of
from pyjoinopt.joins.emit.unchanged_order import why_unchanged
from pyjoinopt.optimizer.forecast_operators import forecast
from pyjoinopt.optimizer.reorder import Reorderer
from pyjoinopt.optimizer.spark_strategies import heuristic_order, spark_order
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.facts.equality_substitution import sensitive_columns
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import map_subqueries, post_order
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.rewrites.normalise import RewriteContext, normalise
from pyjoinopt.rewrites.restore_subqueries import restore_subqueries

#: The export's key for the native engine that is loaded: Comet or Gluten, which may have no existence joins.
NATIVE = "pyjoinopt.native"
#: Settings of `statistics` that use more than one source.
_SAMPLED = frozenset({"auto", "full"})
#: Strategies that are Spark's own.
TWINS = ("spark", "heuristic")


def optimize(
    export: Export,
    gateway: Gateway,
    options: Options,
    report: JoinReport,
    watches: list[ExpectedGroup] | None = None,
    analysed: bool = True,
    watch_pairs: bool = False,
) -> LogicalPlan:
    """The better plan; the very root of the export if nothing is to be changed.

    Args:
        export: the decoded plan.
        gateway: answers questions about it.
        options: of this call.
        report: filled with what was done; what only its readers need is put off until `report.complete()`.
        watches: filled with the join groups, to be known again when they have run; None if nobody will ask.
        analysed: whether all of Spark's optimizer is still to come; one that has begun brings the plans inside
            expressions one by one, and moves semi and anti joins no more.
        watch_pairs: let `watches` have groups of two relations, too.
    """
    report.strategy = options.strategy
    refusal = why_not_at_all(export)
    if refusal is not None:
        report.refuse("the whole query", refusal)
        return export.root
    if not any(isinstance(node, Join) for node in export.nodes):
        report.refuse("the whole query", why_unchanged(export.root, options.strategy))
        return export.root
    optimization = _Optimization(export, gateway, options, report, analysed, watch_pairs, watching=watches is not None)
    plan = optimization.run(export.root)
    if watches is not None:
        watches += optimization.memory.watches
    report.defer(lambda: report.notes.extend(optimization.known.notes()))
    if plan is export.root:
        report.defer(lambda: _give_reason(report, export.root))
    return export.root if options.strategy == "none" else plan


def _give_reason(report: JoinReport, root: LogicalPlan) -> None:
    """A plan that stays as it is gets a reason, whichever way it came through."""
    if not report.groups and not report.refusals:
        report.refuse("the whole query", why_unchanged(root, report.strategy))


def why_not_at_all(export: Export) -> str | None:
    """The reason to leave a whole plan alone, if there is one."""
    if export.streaming:
        return "it is a streaming query, whose join order determines the state that Spark keeps"
    if export.command:
        return "it is a command, not a query"
    if not export.resolved:
        return "Spark has not resolved all of its columns and relations"
    if export.root.cached:
        return "its result is cached, and Spark uses the cache only for an unchanged plan"
    return None


class _Optimization:
    def __init__(
        self, export: Export, gateway: Gateway, options: Options, report: JoinReport, analysed: bool,
        watch_pairs: bool, watching: bool,
    ) -> None:  # fmt: skip
        self.export = export
        self.gateway = gateway
        self.options = options
        self.report = report
        self.analysed = analysed
        self.watch_pairs = watch_pairs
        self.fresh = ColumnFactory(len(export.attributes))
        self.sensitive = sensitive_columns(export.nodes)
        self.discerning = sensitive_columns(export.nodes, discerning_only=True) if self.sensitive else 0
        self.allowance = slack_of(options.hint_slack, export.conf)
        self.sizes: SizesOf = lru_cache(maxsize=4)(partial(SparkSizes, export.conf))
        leaves = [node for node in export.nodes if not node.children or node.cached]
        store = open_store(options.store, options.store_folder) if options.statistics != "none" else None
        full = options.statistics == "full"
        deadline = ReadDeadline(options.statistics_ms, full)
        without = options.without
        known = LeafStatistics(gateway.statistics, leaves, options.statistics, export.nodes, store, deadline, without)
        several = options.statistics in _SAMPLED and options.strategy in ("auto", "none")  # the twins know no samples
        sampled, proved = several and "samples" not in without, several and "keys" not in without
        self.samples = Samples(gateway.samples, known.relation, store, full, deadline) if sampled else None
        self.known = known
        self.keys = ProvedKeys(known, known.relation, gateway.keys, store, deadline) if proved else None
        self.estimates = PlanEstimates(self.keys or known, export.nodes, self.samples, known.applied)
        definitions = {n.info.get("cte"): n for n in export.nodes if n.kind == "CTERelationDef"}
        remembered = store if options.statistics in LEARNED and "feedback" not in without else None
        self.memory = LearnedRows(known.identity, remembered, definitions, watching)

    def run(self, root: LogicalPlan) -> LogicalPlan:
        """One whole plan, the plans of its subqueries first, each on the same optimization."""
        if self.analysed:
            root = map_subqueries(root, self.run)
        if not any(isinstance(node, Join) for node in post_order(root)):
            return root
        before = self._joins_gone()
        report = self.report
        fresh = self.fresh if self.options.strategy in ("auto", "none") else None  # Spark spares no such joins
        context = RewriteContext(
            self.export.filters_null, report.eliminated_outer_joins, report.spared_joins, fresh, self.sensitive
        )
        plan = normalise(root, context, self.options.without_rewrites)
        if self.analysed:
            plan = restore_subqueries(plan, self.sensitive)
        nodes = list(post_order(plan))
        self.estimates.add_ctes(nodes)
        self.known.use_partition_filters(nodes)
        several = sum(isinstance(node, Join) for node in nodes) > 1  # one join has no other order
        if self.samples is not None:
            samples, self.known.on_first_file_read = self.samples, lambda: samples.begin(plan)
            samples.drawing = several
        if self.keys is not None and several:
            self.keys.prove(nodes)
        self.estimates.prefetch_samples(plan)
        orders = len(report.changes)
        ordered = self.order(plan)
        if self.options.strategy in TWINS and len(report.changes) == orders:
            ordered = plan  # a twin of Spark's rule may build the same order anew, which nobody would hear of
        hinted = self.give_hints(ordered)
        self.report.defer(lambda: forecast(self.report, plan, hinted, self.export.conf, self.sizes, self.export.spark))
        if hinted is plan and self._joins_gone() == before:
            return root  # predicates were only moved where Spark moves them too
        return hinted

    def _joins_gone(self) -> int:
        return len(self.report.eliminated_outer_joins) + len(self.report.spared_joins)

    def order(self, plan: LogicalPlan) -> LogicalPlan:
        cost = cost_model(self.options.cost, self.export.conf, self.options.cost_constants)
        budget, seconds = self.options.pair_budget, self.options.search_seconds
        allowance = self.allowance if self.options.hints else MemoryAllowance(0, 0)
        tables = TablesOf(self.export.conf, self.sizes(plan), allowance)
        hold = self.analysed and NATIVE not in self.export.conf
        reorderer = Reorderer(
            self.estimates, cost, budget, self.report, self.memory, seconds, tables, self.watch_pairs, hold,
            self.sensitive, self.discerning,
        )  # fmt: skip
        match self.options.strategy:
            case "spark":
                return spark_order(plan, self.gateway.statistics, self.export.conf, reorderer, self.export.version)
            case "heuristic":
                return heuristic_order(plan, reorderer)
            case _:
                return reorderer.apply(plan)

    def give_hints(self, plan: LogicalPlan) -> LogicalPlan:
        if not self.options.hints or self.options.strategy != "auto":
            return plan
        giver = HintGiver(self.estimates, self.export.conf, self.report, self.sizes, self.allowance)
        return giver.apply(plan)
