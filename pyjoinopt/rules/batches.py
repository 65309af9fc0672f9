"""Which rules run on a plan, in what order, and why.

Before join groups are looked for, `set_operations_as_joins` runs once: INTERSECT and EXCEPT over joins become semi and
anti joins, which a join group can take in; so do the existence joins of frames that were optimised before
(`existence_as_semi`). `extract_common_factors` takes out of ORs what all their alternatives
demand, which may be what joins the tables. Then three rules run in turn until nothing changes:

1. `push_down_predicates` puts every conjunct where it belongs, so that a relation's own filters count when its rows
   are estimated, and a join's condition holds what connects its sides.
2. `eliminate_outer_join` turns outer joins into inner ones where a filter allows it, because inner joins can be
   ordered freely. What it uncovers is filters that may move further, hence the loop: a filter that stopped at a left
   join passes it once the join is inner, and may then reach the next outer join.
3. `demote_outer_join` does the same for outer joins that an inner join or a filter further up makes needless.

Then every relation is told what an OR over several of them says of it (`push_extra_predicate_through_join`). Left joins
of which a filter keeps only the rows without a partner become anti joins at the end (`outer_join_as_anti_join`).

Two more rules order joins. They are alternatives to the search, not steps: `reorder_join` needs no statistics,
`cost_based_join_reorder` needs a row count of every relation.

The others give join ordering nothing that it could use, and Spark runs them afterwards anyway. A filter inferred from
an equality changes no estimate (equality classes see the same); which columns are read at all is worked out on the
side (`plan.columns`), without projections between joins that would have to be looked through again; limits, grouping
keys and projections over unions lie outside any join group. They are here to be looked at: `SPARK_BATCHES` is what
`pyjoinopt.rules.trace` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pyjoinopt.plan.make import Fresh
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.tree import MOST_PASSES
from pyjoinopt.rules.catalog import RULES
from pyjoinopt.rules.common_factors import extract_common_factors
from pyjoinopt.rules.context import RuleContext
from pyjoinopt.rules.demote_outer_join import demote_outer_join
from pyjoinopt.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.rules.existence_as_semi import existence_as_semi
from pyjoinopt.rules.finish_analysis import finish_analysis
from pyjoinopt.rules.fuse_aggregates import fuse_aggregates
from pyjoinopt.rules.outer_join_as_anti_join import outer_join_as_anti_join
from pyjoinopt.rules.pivot_self_join import pivot_self_joins
from pyjoinopt.rules.push_down_predicates import push_down_predicates
from pyjoinopt.rules.push_extra_predicate_through_join import push_extra_predicate_through_join
from pyjoinopt.rules.self_join_as_semi import self_join_as_semi
from pyjoinopt.rules.set_operations_as_joins import set_operations_as_joins

Rule = Callable[[LogicalPlan], LogicalPlan]


@dataclass(frozen=True)
class Batch:
    """Rules that Spark runs in turn, until nothing changes or once.

    Attributes:
        name: Spark's name of the batch.
        rules: (Catalyst's name, rule) in order.
        rounds: how often the batch runs at most.
    """

    name: str
    rules: tuple[tuple[str, Callable[[LogicalPlan, RuleContext], LogicalPlan]], ...]
    rounds: int = MOST_PASSES


def _batch(name: str, *rules: str, rounds: int = MOST_PASSES) -> Batch:
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


def run_batch(plan: LogicalPlan, rules: tuple[Rule, ...], most: int = MOST_PASSES) -> LogicalPlan:
    """Run the rules in order, again and again until a whole pass changes nothing, `most` passes at most.

    A rule that changes nothing gives the same object back, so the pass that confirms the fixed point costs one walk
    per rule.
    """
    for _ in range(most):
        before = plan
        for rule in rules:
            plan = rule(plan)
        if plan is before:
            break
    return plan


def normalise(
    plan: LogicalPlan,
    filters_null: frozenset[int] = frozenset(),
    log: list[str] | None = None,
    spared: list[str] | None = None,
    fresh: Fresh | None = None,
    sensitive: int | None = None,
) -> LogicalPlan:
    """The default road up to the join groups: predicates in place, needless outer joins gone.

    Args:
        plan: an analysed plan; plans of subquery expressions are not entered.
        filters_null: see `eliminate_outer_join`.
        log: gets one sentence for every outer join that changed.
        spared: gets one sentence for every join that was found needless, or to be a simpler one.
        fresh: gives new columns, which finding such joins may need; None to look for none.
        sensitive: see `plan.equality_substitution.sensitive_columns`, of the whole query; None for that of `plan`.

    Returns:
        The plan, the very same object if nothing changed.
    """
    eliminate = partial(eliminate_outer_join, filters_null=filters_null, log=log)
    plan = extract_common_factors(set_operations_as_joins(existence_as_semi(plan, sensitive or 0)))
    plan = run_batch(plan, (push_down_predicates, eliminate, partial(demote_outer_join, log=log, sensitive=sensitive)))
    if fresh is not None:
        once = pivot_self_joins(fuse_aggregates(plan, spared), fresh, spared)
        if once is not plan:
            plan = push_down_predicates(extract_common_factors(once))
    told = push_extra_predicate_through_join(plan)
    plan = plan if told is plan else push_down_predicates(told)
    plan = outer_join_as_anti_join(plan, log=log)
    return plan if fresh is None else self_join_as_semi(plan, spared)
