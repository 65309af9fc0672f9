"""INTERSECT, EXCEPT and DISTINCT rewritten to other operators: by hand, compared with Catalyst, and by their rows."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.catalyst.rules.replace_distinct_with_aggregate import replace_distinct_with_aggregate
from pyjoinopt.catalyst.rules.replace_except_with_anti_join import replace_except_with_anti_join
from pyjoinopt.catalyst.rules.replace_except_with_filter import SETTING, replace_except_with_filter
from pyjoinopt.catalyst.rules.replace_intersect_with_semi_join import replace_intersect_with_semi_join
from pyjoinopt.catalyst.rules.rule_context import RuleContext
from pyjoinopt.plan import constructors
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import ANTI, SEMI, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import Rule
from tests.support.letters import Letters

#: Spark's order.
FAMILY = (
    "RewriteExceptAll", "RewriteIntersectAll", "ReplaceIntersectWithSemiJoin", "ReplaceExceptWithFilter",
    "ReplaceExceptWithAntiJoin", "ReplaceDistinctWithAggregate",
)  # fmt: skip


def operation(kind: str, left: LogicalPlan, right: LogicalPlan, every: bool = False) -> LogicalPlan:
    return LogicalPlan(kind, (left, right), left.output, info={"all": every})


def test_distinct_groups_by_all_columns(w: Letters) -> None:
    x = w.relation("x", "a b")
    plan = replace_distinct_with_aggregate(constructors.distinct(x))
    assert isinstance(plan, Aggregate) and plan.group_only and plan.output == x.output and plan.child is x


def test_nested_distincts_are_all_replaced(w: Letters) -> None:
    plan = replace_distinct_with_aggregate(constructors.distinct(constructors.distinct(w.relation("x", "a"))))
    assert [node.kind for node in post_order(plan)] == ["LocalRelation", "Aggregate", "Aggregate"]


@pytest.mark.parametrize(
    ("kind", "join_type", "rule"),
    [("Intersect", SEMI, replace_intersect_with_semi_join), ("Except", ANTI, replace_except_with_anti_join)],
)
def test_set_operations_compare_null_safely(kind: str, join_type: str, rule: Rule, w: Letters) -> None:
    x, y = w.relation("x", "a b"), w.relation("y", "c d")
    plan = rule(operation(kind, x, y))
    (join,) = plan.children
    assert plan.kind == "Distinct" and plan.output == x.output
    assert isinstance(join, Join) and join.join_type == join_type and str(join.condition) == "((a <=> c) AND (b <=> d))"


def test_a_duplicate_column_is_compared_at_each_place(w: Letters) -> None:
    x, y = w.project("a a", w.relation("x", "a")), w.relation("y", "c d")
    (join,) = replace_except_with_anti_join(operation("Except", x, y)).children
    assert str(join.expressions[0]) == "((a <=> c) AND (a <=> d))"


def test_all_and_distinct_are_different_rules(w: Letters) -> None:
    x, y, context = w.relation("x", "a"), w.relation("y", "b"), RuleContext(constructors.ColumnFactory(10))
    for kind, every, rules in [
        ("Except", True, {"RewriteExceptAll"}), ("Intersect", True, {"RewriteIntersectAll"}),
        ("Except", False, {"ReplaceExceptWithAntiJoin"}), ("Intersect", False, {"ReplaceIntersectWithSemiJoin"}),
    ]:  # fmt: skip
        plan = operation(kind, x, y, every)
        assert {name for name in FAMILY if RULES[name].run(plan, context) is not plan} == rules


def test_new_columns_are_new_for_each_operation(w: Letters) -> None:
    x, y, z = w.relation("x", "a"), w.relation("y", "b"), w.relation("z", "c")
    inner = operation("Except", x, y, True)
    context = RuleContext(constructors.ColumnFactory(len(w.columns)))
    plan = RULES["RewriteExceptAll"].run(operation("Except", inner, z, True), context)
    made = [e.attribute.bit for n in post_order(plan) for e in n.expressions if e.kind == "Alias" and e.attribute]
    assert len(made) == len(set(made)) == 6 and min(made) == len(w.columns)
    assert plan.output == x.output


def test_intersect_all_by_hand(w: Letters) -> None:
    plan = RULES["RewriteIntersectAll"].run(
        operation("Intersect", w.relation("x", "a"), w.relation("y", "b"), True),
        RuleContext(constructors.ColumnFactory(2))
    )
    assert show(plan).splitlines() == [
        "Project a",
        "  Generate replicaterows(min_count, a)",
        "    Project a, if((vcol1_count > vcol2_count), vcol2_count, vcol1_count) AS min_count",
        "      Filter ((vcol1_count >= 1) AND (vcol2_count >= 1))",
        "        Aggregate a, aggregateexpression(count(vcol1)) AS vcol1_count, "
        "aggregateexpression(count(vcol2)) AS vcol2_count, a",
        "          Union",
        "            Project true AS vcol1, null AS vcol2, a",
        "              LocalRelation x",
        "            Project null AS vcol1, true AS vcol2, b",
        "              LocalRelation y",
    ]


def test_cached_sub_plans_stay(w: Letters) -> None:
    x, y, context = w.relation("x", "a"), w.relation("y", "b"), RuleContext(constructors.ColumnFactory(10))
    for kind, every in [("Except", True), ("Except", False), ("Intersect", True), ("Intersect", False)]:
        plan = operation(kind, x, y, every)
        plan.cached = True
        assert all(RULES[name].run(plan, context) is plan for name in FAMILY)
    plan = constructors.distinct(x)
    plan.cached = True
    assert replace_distinct_with_aggregate(plan) is plan


def test_two_thousand_levels(w: Letters) -> None:
    x, y = w.relation("x", "a"), w.relation("y", "b")
    plan = x
    for _ in range(500):
        plan = operation("Except", constructors.distinct(operation("Intersect", plan, y)), y)
    context = RuleContext(constructors.ColumnFactory(10))
    for name in FAMILY:
        plan = RULES[name].run(plan, context)
    kinds = [node.kind for node in post_order(plan)]
    assert kinds.count("Join") == 1000 and kinds.count("Aggregate") == 1500 and "Distinct" not in kinds


def both_sides(left: LogicalPlan, right: LogicalPlan, bases: tuple[LogicalPlan, LogicalPlan]) -> LogicalPlan:
    """An EXCEPT whose sides differ only in filters according to the JVM."""
    plan = operation("Except", left, right)
    for number, node in enumerate({id(n): n for n in (left, right, *bases)}.values(), 1):
        node.number = number
    plan.info["sides"] = [left.number, bases[0].number, right.number, bases[1].number]
    return plan


def test_except_with_filter_reads_the_condition_on_the_left(w: Letters) -> None:
    left = w.relation("t", "a b")
    right = Filter(w("a = 1"), left)
    (kept,) = replace_except_with_filter(both_sides(left, right, (left, left))).children
    assert isinstance(kept, Filter) and kept.child is left
    assert str(kept.condition) == "(NOT coalesce((a = 1), false))"


def test_except_with_filter_merges_filters(w: Letters) -> None:
    left = w.relation("t", "a b")
    right = Filter(w("a = 1 and b = 2"), Filter(w("b = 2"), Filter(w("a > 0"), left)))
    (kept,) = replace_except_with_filter(both_sides(left, right, (left, left))).children
    assert str(kept.expressions[0]) == "(NOT coalesce(((a > 0) AND ((b = 2) AND (a = 1))), false))"


@pytest.mark.parametrize(
    "upper, lower", [("a = 1", "rand() > 0"), ("rand() > 0", "a = 1"), ("raise_error(a)", "b = 1")]
)
def test_except_with_filter_refuses_what_cannot_be_one_condition(upper: str, lower: str, w: Letters) -> None:
    left = w.relation("t", "a b")
    plan = both_sides(left, Filter(w(upper), Filter(w(lower), left)), (left, left))
    assert replace_except_with_filter(plan) is plan


def test_except_with_filter_needs_the_column_itself(w: Letters) -> None:
    base = w.relation("t", "a b")
    swapped = Project((w.alias("a2", "b"),), base)
    plan = both_sides(swapped, Project((w.alias("a3", "b"),), Filter(w("a = 1"), base)), (base, base))
    assert replace_except_with_filter(plan) is plan


def test_except_with_filter_can_be_switched_off(w: Letters) -> None:
    left = w.relation("t", "a b")
    plan = both_sides(left, Filter(w("a = 1"), left), (left, left))
    assert replace_except_with_filter(plan, conf={SETTING: "false"}) is plan
    assert replace_except_with_filter(plan, conf={SETTING: "true"}) is not plan


def test_except_with_filter_needs_the_sides_that_spark_compared(w: Letters) -> None:
    left = w.relation("t", "a b")
    plan = both_sides(left, Filter(w("a = 1"), left), (left, left))
    limited = constructors.local_limit(constructors.constant(1, "int"), left)
    for changed in (
        plan.with_children((limited, plan.children[1])),
        plan.with_children((left, Filter(w("a = 1"), limited))),
        plan.with_children((w.project("a b", left), plan.children[1])),
    ):
        assert replace_except_with_filter(changed) is changed
