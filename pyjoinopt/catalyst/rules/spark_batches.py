"""Spark's batches of the rules that are here, in Spark's order: what `pyjoinopt.rules.trace` runs."""

from __future__ import annotations

from dataclasses import dataclass

from pyjoinopt.catalyst.rules.finish_analysis import finish_analysis
from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.catalyst.rules.rule_context import CatalystRule
from pyjoinopt.plan.spark_defaults import MAX_ITERATIONS


@dataclass(frozen=True)
class Batch:
    """Rules that Spark runs in turn, until nothing changes or once.

    Attributes:
        name: Spark's name of the batch.
        rules: (Catalyst's name, rule) in order.
        rounds: how often the batch runs at most.
    """

    name: str
    rules: tuple[tuple[str, CatalystRule], ...]
    rounds: int = MAX_ITERATIONS


def _batch(name: str, *rules: str, rounds: int = MAX_ITERATIONS) -> Batch:
    return Batch(name, tuple((rule, RULES[rule].run) for rule in rules), rounds)


_OPERATORS = (
    "PushProjectionThroughUnion", "ReorderJoin", "EliminateOuterJoin", "PushDownPredicates", "LimitPushDown",
    "ColumnPruning",
)  # fmt: skip

#: The batches of Spark's optimizer that these rules belong to, in Spark's order.
SPARK_BATCHES = (
    Batch("Finish Analysis", (("FinishAnalysis", lambda plan, _: finish_analysis(plan)),), 1),
    _batch(
        "Replace Operators", "RewriteExceptAll", "RewriteIntersectAll", "ReplaceIntersectWithSemiJoin",
        "ReplaceExceptWithFilter", "ReplaceExceptWithAntiJoin", "ReplaceDistinctWithAggregate",
    ),
    _batch("Aggregate", "RemoveLiteralFromGroupExpressions", "RemoveRepetitionFromGroupExpressions"),
    _batch("Operator Optimization before Inferring Filters", *_OPERATORS),
    _batch("Infer Filters", "InferFiltersFromConstraints", rounds=1),
    _batch("Operator Optimization after Inferring Filters", *_OPERATORS),
    _batch("Join Reorder", "CostBasedJoinReorder", rounds=1),
)  # fmt: skip
