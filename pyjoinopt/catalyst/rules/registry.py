"""The rules by the names that Catalyst gives them.

Each entry runs one pass of a rule over a plan whose names (aliases, views) are gone, as Spark's optimizer does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyjoinopt.catalyst.rules.column_pruning import column_pruning
from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.catalyst.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.catalyst.rules.infer_filters_from_constraints import infer_filters_from_constraints
from pyjoinopt.catalyst.rules.limit_push_down import limit_push_down
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.push_projection_through_union import push_projection_through_union
from pyjoinopt.catalyst.rules.remove_literal_from_group_expressions import remove_literal_from_group_expressions
from pyjoinopt.catalyst.rules.remove_repetition_from_group_expressions import remove_repetition_from_group_expressions
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.rules.replace_distinct_with_aggregate import replace_distinct_with_aggregate
from pyjoinopt.catalyst.rules.replace_except_with_anti_join import replace_except_with_anti_join
from pyjoinopt.catalyst.rules.replace_except_with_filter import replace_except_with_filter
from pyjoinopt.catalyst.rules.replace_intersect_with_semi_join import replace_intersect_with_semi_join
from pyjoinopt.catalyst.rules.rewrite_except_all import rewrite_except_all
from pyjoinopt.catalyst.rules.rewrite_intersect_all import rewrite_intersect_all
from pyjoinopt.catalyst.rules.rule_context import CatalystRule, RuleContext
from pyjoinopt.catalyst.support.pushdown_policy import COMBINE, JOIN, NON_JOIN, PARTS
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.spark_defaults import MAX_ITERATIONS
from pyjoinopt.plan.traversal import to_fixed_point


@dataclass(frozen=True)
class NamedRule:
    """A rule, ready to run.

    Attributes:
        name: Catalyst's name.
        run: (plan, context) -> plan, the very same object if nothing changed.
        about: one sentence.
        once: whether Spark runs it a single time.
    """

    name: str
    run: CatalystRule
    about: str
    once: bool = False

    def to_fixed_point(self, plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
        """Run it until nothing changes; once, if that is how Spark runs it."""
        return to_fixed_point(plan, lambda p: self.run(p, context), self.rounds)

    @property
    def rounds(self) -> int:
        """How often it may run."""
        return 1 if self.once else MAX_ITERATIONS


def _push_down(parts: frozenset[str]) -> CatalystRule:
    """PushDownPredicates, or some of the three rules that it runs."""

    def run(plan: LogicalPlan, c: RuleContext) -> LogicalPlan:
        once = c.spark >= (4, 2) and c.flag("optimizer.avoidDoubleFilterEval")
        return push_down_predicates(plan, as_catalyst=True, avoid_double_evaluation=once, parts=parts)

    return run


_ALL = (
    NamedRule(
        "RewriteExceptAll",
        lambda plan, c: rewrite_except_all(plan, fresh=c.fresh),
        "EXCEPT ALL counts each row up on the left and down on the right",
    ),
    NamedRule(
        "RewriteIntersectAll",
        lambda plan, c: rewrite_intersect_all(plan, fresh=c.fresh),
        "INTERSECT ALL counts each row on both sides and takes the smaller number",
    ),
    NamedRule(
        "ReplaceIntersectWithSemiJoin",
        lambda plan, c: replace_intersect_with_semi_join(plan),
        "INTERSECT is a semi join on all columns, without duplicates",
    ),
    NamedRule(
        "ReplaceExceptWithFilter",
        lambda plan, c: replace_except_with_filter(plan, conf=c.conf),
        "EXCEPT of a relation and a part of it is a filter",
    ),
    NamedRule(
        "ReplaceExceptWithAntiJoin",
        lambda plan, c: replace_except_with_anti_join(plan),
        "EXCEPT is an anti join on all columns, without duplicates",
    ),
    NamedRule(
        "ReplaceDistinctWithAggregate",
        lambda plan, c: replace_distinct_with_aggregate(plan),
        "SELECT DISTINCT is a GROUP BY over all columns",
    ),
    NamedRule(
        "RemoveLiteralFromGroupExpressions",
        lambda plan, c: remove_literal_from_group_expressions(plan),
        "a constant does not distinguish groups",
    ),
    NamedRule(
        "RemoveRepetitionFromGroupExpressions",
        lambda plan, c: remove_repetition_from_group_expressions(plan),
        "grouping by the same thing twice is grouping by it once",
    ),
    NamedRule(
        "PushProjectionThroughUnion",
        lambda plan, c: push_projection_through_union(plan, fresh=c.fresh, repeats=c.spark < (4, 1)),
        "each branch of a union computes only what is wanted of it",
    ),
    NamedRule("LimitPushDown", lambda plan, c: limit_push_down(plan), "as few rows as possible reach a limit"),
    NamedRule("ColumnPruning", lambda plan, c: column_pruning(plan), "no operator carries a column that is not read"),
    NamedRule(
        "EliminateOuterJoin",
        lambda plan, c: eliminate_outer_join(
            plan, filters_null=c.filters_null, constraint_propagation=c.flag("constraintPropagation.enabled"),
            distinct=False,
        ).plan,  # fmt: skip
        "an outer join whose padded rows are filtered out, or never seen, becomes a simpler one",
    ),
    NamedRule("PushDownPredicates", _push_down(PARTS), "every conjunct as far down as it may go"),
    NamedRule(COMBINE, _push_down(frozenset({COMBINE})), "a filter over a filter is one filter"),
    NamedRule(NON_JOIN, _push_down(frozenset({NON_JOIN})), "a filter passes every operator that does not mind"),
    NamedRule(JOIN, _push_down(frozenset({JOIN})), "each conjunct to the side of a join that it reads"),
    NamedRule(
        "ReorderJoin",
        lambda plan, c: reorder_join(plan, as_catalyst=True, statistics=c.statistics, conf=c.conf),
        "no cross product where a condition is at hand",
    ),
    NamedRule(
        "InferFiltersFromConstraints",
        lambda plan, c: infer_filters_from_constraints(
            plan, spark=c.spark, constraint_propagation=c.flag("constraintPropagation.enabled")
        ),
        "filters that the query implies and did not write",
        once=True,
    ),
    NamedRule(
        "CostBasedJoinReorder",
        lambda plan, c: cost_based_join_reorder(plan, c.statistics, conf=c.conf, as_catalyst=True),
        "the cheapest order of inner joins by statistics of every column",
        once=True,
    ),
)

#: Catalyst's name -> rule.
RULES = {rule.name: rule for rule in _ALL}
