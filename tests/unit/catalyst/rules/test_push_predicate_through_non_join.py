"""Conjuncts that can be pushed through unary operators and unions, and their form below."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import ANSI, DETERMINISTIC, PYTHON_UDF, Expression, reference
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import LEFT, Aggregate, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import to_fixed_point
from tests.support.letters import Letters, join


def lines(plan: LogicalPlan) -> list[str]:
    """The operators from the top, without indentation."""
    return [line.strip() for line in show(plan).splitlines()]


def window(w: Letters, child: LogicalPlan, partition: str, name: str = "n") -> LogicalPlan:
    """count(*) OVER (PARTITION BY the columns) AS name."""
    keys = tuple(w(c) for c in partition.split(", ") if c)
    function = w.alias(name, "row_number()")
    assert function.attribute is not None
    output = (*child.output, function.attribute)
    return LogicalPlan("Window", (child,), output, (function, *keys), info={"parts": [1, len(keys), 0]})


def opaque(kind: str, child: LogicalPlan, *expressions: Expression) -> LogicalPlan:
    return LogicalPlan(kind, (child,), child.output, expressions)


def total(w: Letters, name: str = "s", of: str = "b") -> Expression:
    return w.alias(name, constructors.aggregate_call("Sum", w(of)))


def test_only_conjuncts_over_grouping_columns_pass_an_aggregate() -> None:
    w = Letters()
    grouped = w.group("a", w.relation("x", "a b"), total(w))
    assert lines(push_down_predicates(Filter(w("s > 1 and a > 2 and a + s > 3"), grouped))) == [
        "Filter ((s > 1) AND ((a + s) > 3))",
        "Aggregate a, a, aggregateexpression(sum(b)) AS s",
        "Filter (a > 2)",
        "LocalRelation x",
    ]


def test_a_renamed_grouping_expression_is_written_out_below() -> None:
    w = Letters()
    key = w("a + b")
    name = w.alias("k", key)
    assert name.attribute is not None
    grouped = Aggregate((key,), (name,), w.relation("x", "a b"), (name.attribute,))
    assert lines(push_down_predicates(Filter(w("k = 7"), grouped)))[1:] == ["Filter ((a + b) = 7)", "LocalRelation x"]


def test_nothing_passes_a_global_aggregate_and_no_constant_passes_any() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    one_row = Filter(w("s > 1"), w.group("", x, total(w)))
    assert push_down_predicates(one_row) is one_row
    never = Filter(w("false"), w.group("a", x, total(w, "t")))
    assert push_down_predicates(never) is never
    moody = Filter(w("a > 1"), w.group("a", x, w.alias("r", "rand()")))
    assert push_down_predicates(moody) is moody


def test_only_conjuncts_over_the_partition_pass_a_window() -> None:
    w = Letters()
    plan = Filter(w("n = 1 and a > 2 and a + b > 4 and c > 3"), window(w, w.relation("x", "a b c"), "a, b"))
    assert lines(push_down_predicates(plan)) == [
        "Filter ((n = 1) AND (c > 3))",
        "Window rownumber() AS n, a, b",
        "Filter ((a > 2) AND ((a + b) > 4))",
        "LocalRelation x",
    ]


def test_a_window_over_everything_or_over_an_expression_lets_no_column_pass() -> None:
    w = Letters()
    for partition in ("", "a + b"):
        plan = Filter(w("a > 2"), window(w, w.relation("x", "a b c"), partition))
        assert push_down_predicates(plan) is plan


def test_a_filter_is_written_in_the_columns_of_each_branch() -> None:
    w = Letters()
    inner = constructors.union([w.relation("y", "c d"), w.relation("z", "e f")])
    plan = Filter(w("a > 1 and rand() > 2 and a + b > 3"), constructors.union([w.relation("x", "a b"), inner]))
    assert show(push_down_predicates(plan)).splitlines() == [
        "Filter (rand() > 2)",
        "  Union",
        "    Filter ((a > 1) AND ((a + b) > 3))",
        "      LocalRelation x",
        "    Union",
        "      Filter ((c > 1) AND ((c + d) > 3))",
        "        LocalRelation y",
        "      Filter ((e > 1) AND ((e + f) > 3))",
        "        LocalRelation z",
    ]


def test_a_cached_union_or_branch_is_not_entered() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "c d")
    cached = LogicalPlan("Union", (x, y), x.output, info={"cached": True})
    plan = Filter(w("a > 1"), cached)
    assert push_down_predicates(plan) is plan
    branch = Filter(w("d > 1"), y, info={"cached": True})
    pushed = push_down_predicates(Filter(w("a > 1"), constructors.union([x, branch])))
    assert pushed.children[1].children[0] is branch


@pytest.mark.parametrize("kind", ["Distinct", "Sort", "Repartition", "RepartitionByExpression", "Expand", "Generate"])
def test_operators_that_hand_on_rows_are_passed(kind: str) -> None:
    w = Letters()
    x = w.relation("x", "a b")
    made = LogicalPlan(kind, (x,), (*x.output, w.attribute("g")))
    plan = Filter(w("g = 1 and a > 1"), made)
    assert [line.split(" ", 1)[0] for line in lines(push_down_predicates(plan))] == [
        "Filter", kind, "Filter", "LocalRelation",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["LocalLimit", "GlobalLimit", "Offset", "Tail", "Sample", "Deduplicate"])
def test_operators_that_choose_rows_are_not_passed(kind: str) -> None:
    w = Letters()
    plan = Filter(w("a > 1"), opaque(kind, w.relation("x", "a b")))
    assert push_down_predicates(plan, as_catalyst=True) is plan


def test_an_operator_that_computes_something_random_is_a_wall() -> None:
    w = Letters()
    plan = Filter(w("a > 1"), opaque("RepartitionByExpression", w.relation("x", "a b"), w("rand()")))
    assert push_down_predicates(plan, as_catalyst=True) is plan


def test_a_watermark_keeps_what_reads_the_event_time() -> None:
    w = Letters()
    plan = Filter(w("a > 1 and b > 2"), opaque("EventTimeWatermark", w.relation("x", "a b"), w("b")))
    assert lines(push_down_predicates(plan)) == [
        "Filter (b > 2)", "EventTimeWatermark b", "Filter (a > 1)", "LocalRelation x",
    ]  # fmt: skip


def strict_cast(w: Letters, column: str) -> Expression:
    """CAST(column AS TINYINT) under ANSI: it fails on what is no number."""
    return Expression("Cast", (w(column),), "tinyint", DETERMINISTIC | ANSI)


def test_what_may_fail_does_not_meet_rows_that_a_join_or_an_explode_would_have_removed() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    test = Expression("IsNotNull", (strict_cast(w, "b"),))
    above = Filter(test, join(x, y, w("a = d"), LEFT))
    assert push_down_predicates(above) is above
    inner = push_down_predicates(Filter(test, join(x, y, w("a = d"))))
    assert isinstance(inner, Join) and inner.left is x  # in the condition
    assert lines(push_down_predicates(above, as_catalyst=True))[1].startswith("Filter")
    explode = Filter(test, opaque("Generate", x))
    assert push_down_predicates(explode) is explode
    distinct = push_down_predicates(Filter(test, constructors.distinct(x)))
    assert lines(distinct)[1].startswith("Filter")


def test_a_constant_that_may_fail_is_no_danger_for_single_rows() -> None:
    w = Letters()
    constant = Expression("Cast", (w("7"),), "int", DETERMINISTIC | ANSI | 4)
    test = Expression("EqualTo", (w("b"), constant))
    pushed = push_down_predicates(Filter(test, join(w.relation("x", "a b"), w.relation("y", "d e"), w("a = d"))))
    assert isinstance(pushed, Join) and isinstance(pushed.left, Filter)


def test_what_may_fail_does_not_overtake_its_guard() -> None:
    w = Letters()
    fails = Expression("IsNotNull", (strict_cast(w, "a"),))
    guard = w("s > 1")
    grouped = w.group("a", w.relation("x", "a b"), total(w))
    guarded = Filter(Expression("And", (guard, fails)), grouped)
    assert push_down_predicates(guarded) is guarded
    first = push_down_predicates(Filter(Expression("And", (fails, guard)), grouped))
    assert [line.split()[0] for line in lines(first)] == ["Filter", "Aggregate", "Filter", "LocalRelation"]
    assert lines(push_down_predicates(guarded, as_catalyst=True))[2].startswith("Filter")


def test_python_udfs_stay_above_unless_faithful() -> None:
    w = Letters()
    udf = Expression("PythonUDF", (reference(w.attribute("a")),), "boolean", DETERMINISTIC | PYTHON_UDF)
    x, y = w.relation("x", "a b"), w.relation("y", "c d")
    for node in (constructors.distinct(x), constructors.union([x, y]), w.group("a", x, total(w)), window(w, x, "a")):
        plan = Filter(udf, node)
        assert push_down_predicates(plan) is plan
        assert "pythonudf" in show(push_down_predicates(plan, as_catalyst=True).children[0])


def test_many_levels_of_everything() -> None:
    w = Letters()
    plan: LogicalPlan = w.relation("x", "a b")
    for i in range(500):
        plan = w.group("a b", constructors.distinct(opaque("Sort", Filter(w(f"a > {i}"), plan))))
    pushed = to_fixed_point(plan, push_down_predicates)
    assert show(pushed).count("Filter") == 1 and pushed.output == plan.output
