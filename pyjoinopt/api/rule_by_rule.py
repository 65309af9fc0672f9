"""Catalyst's rules on a user's DataFrame: the implementation of `pyjoinopt.rules.names`, `apply` and `trace`.

`optimize_joins` uses a few of these rules. These functions run any of them alone, or all of them in Spark's batches.
"""

from __future__ import annotations

from difflib import get_close_matches
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.catalyst.rules.finish_analysis import finish_analysis
from pyjoinopt.catalyst.rules.registry import RULES, NamedRule
from pyjoinopt.catalyst.rules.rule_context import CatalystRule, RuleContext
from pyjoinopt.catalyst.rules.spark_batches import SPARK_BATCHES, Batch
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics, reported_by_spark
from pyjoinopt.catalyst.support.pushdown_policy import PARTS
from pyjoinopt.errors import RefusedError
from pyjoinopt.optimizer.optimize import why_not_at_all
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import map_subqueries
from pyjoinopt.report.rule_trace import RuleStep, RuleTrace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def names() -> tuple[str, ...]:
    """Catalyst's names of the rules, in the order in which Spark runs them."""
    return tuple(RULES)


def apply(df: DataFrame, name: str) -> DataFrame:
    """The DataFrame after one rule, run to a fixed point; `df` itself if the rule changes nothing.

    Raises:
        ValueError, TypeError: there is no such rule.
        RefusedError: a streaming query, a command, or a plan with unresolved parts.
    """
    rule = known(name)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        root = _checked(gateway)
        context = context_of(gateway)
        plan = finished(root)
        result = _everywhere(plan, rule, context)
        if result is plan:
            return df
        return type(df)(gateway.rebuild(result, may_widen=True), df.sparkSession)


def trace(df: DataFrame, *rules: str) -> RuleTrace:
    """CatalystRule the rules in Spark's batches, and keep the plan before and after each rule that changed it.

    With names, only these rules run. Subqueries are not changed. The query is not executed, and `df` is not changed.

    Raises:
        ValueError, TypeError: there is no such rule.
        RefusedError: a streaming query, a command, or a plan with unresolved parts.
    """
    chosen = frozenset(known(name).name for name in rules)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        return traced(_checked(gateway), context_of(gateway), chosen)


def known(name: str) -> NamedRule:
    """The rule with this name.

    >>> known("EliminateOuterJoins")
    Traceback (most recent call last):
    ...
    ValueError: there is no rule 'EliminateOuterJoins'; did you mean 'EliminateOuterJoin'? ...
    """
    if not isinstance(name, str):
        raise TypeError(f"a rule's name is a string, not {type(name).__name__}; see pyjoinopt.rules.names()")
    if name not in RULES:
        close = get_close_matches(name, RULES, 1, 0.4) or get_close_matches(name.lower(), map(str.lower, RULES), 1, 0.3)
        by_lower = {rule.lower(): rule for rule in RULES}
        nearest = f"; did you mean {by_lower[close[0].lower()]!r}?" if close else ";"
        raise ValueError(f"there is no rule {name!r}{nearest} All names: {', '.join(RULES)}")
    return RULES[name]


def context_of(gateway: Py4jGateway) -> RuleContext:
    """Settings and statistics that the rules need for the plan of a gateway."""
    export = gateway.export
    statistics = SparkStatistics(reported_by_spark(gateway.statistics, export.nodes), export.version)
    return RuleContext(
        ColumnFactory(len(export.attributes)), export.conf, export.filters_null, statistics, export.version
    )


def finished(root: LogicalPlan) -> LogicalPlan:
    """The plan and its subqueries without SubqueryAlias nodes and views (Catalyst: FinishAnalysis)."""
    return finish_analysis(map_subqueries(root, finished))


def traced(root: LogicalPlan, context: RuleContext, chosen: frozenset[str] = frozenset()) -> RuleTrace:
    """CatalystRule Spark's batches over a plan; if rules are chosen, only these, after FinishAnalysis."""
    if chosen:
        root = finish_analysis(root)
    plan, steps, runs = root, [], 0
    for batch in SPARK_BATCHES:
        for _ in range(batch.rounds):
            before_round = plan
            for name, run in _chosen(batch, chosen):
                started = perf_counter()
                after = run(plan, context)
                runs += 1
                if after is not plan:
                    steps.append(RuleStep(batch.name, name, plan, after, perf_counter() - started))
                plan = after
            if plan is before_round:
                break
    return RuleTrace(root, tuple(steps), runs)


def _chosen(batch: Batch, chosen: frozenset[str]) -> list[tuple[str, CatalystRule]]:
    """The rules of a batch to run; chosen parts of PushDownPredicates, which runs three rules, take its place."""
    rules: list[tuple[str, CatalystRule]] = []
    for name, run in batch.rules:
        if not chosen or name in chosen:
            rules.append((name, run))
        if name == "PushDownPredicates":
            rules += [(part, RULES[part].run) for part in RULES if part in PARTS & chosen]
    return rules


def _everywhere(plan: LogicalPlan, rule: NamedRule, context: RuleContext) -> LogicalPlan:
    """Apply the rule to the plans of subqueries first, then to the plan itself."""
    plan = map_subqueries(plan, lambda inner: _everywhere(inner, rule, context))
    return rule.to_fixed_point(plan, context)


def _checked(gateway: Any) -> LogicalPlan:
    refusal = why_not_at_all(gateway.export)
    if refusal is not None:
        raise RefusedError(f"no rule is applied to this plan: {refusal}")
    root: LogicalPlan = gateway.export.root
    return root
