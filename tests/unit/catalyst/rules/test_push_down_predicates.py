"""The destination of each conjunct, for every join type, and conjuncts that do not move."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import DETERMINISTIC, PYTHON_UDF, Expression, conjuncts, reference, walk
from pyjoinopt.plan.format import show  # fmt: skip
from pyjoinopt.plan.nodes import (
    ANTI,
    CROSS,
    EXISTENCE,
    FULL,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    SINGLE,
    Filter,
    Join,
    LogicalPlan,
    SubqueryAlias,
)
from pyjoinopt.plan.traversal import to_fixed_point
from tests.support.letters import Letters, join


def places(plan: LogicalPlan) -> dict[str, str]:
    """Of a plan [Filter] Join ([Filter] x, [Filter] y): the predicates in each place."""
    found = {"above": "", "join": "", "left": "", "right": ""}

    def text(e: Expression) -> str:
        return " ".join(repr(p) for p in conjuncts(e))

    if isinstance(plan, Filter):
        found["above"] = text(plan.condition)
        plan = plan.child
    assert isinstance(plan, Join)
    if plan.condition is not None:
        found["join"] = text(plan.condition)
    for side, child in (("left", plan.left), ("right", plan.right)):
        if isinstance(child, Filter):
            found[side] = text(child.condition)
    return {place: predicates for place, predicates in found.items() if predicates}


@pytest.mark.parametrize(
    ("join_type", "expected"),
    [
        (INNER, {"left": "(b > 1)", "right": "(e > 2)", "join": "((b + e) > 3) (a = d)"}),
        (CROSS, {"left": "(b > 1)", "right": "(e > 2)", "join": "((b + e) > 3) (a = d)"}),
        (LEFT, {"left": "(b > 1)", "above": "(e > 2) ((b + e) > 3)", "join": "(a = d)"}),
        (SINGLE, {"left": "(b > 1)", "above": "(e > 2) ((b + e) > 3)", "join": "(a = d)"}),
        (RIGHT, {"right": "(e > 2)", "above": "(b > 1) ((b + e) > 3)", "join": "(a = d)"}),
        (FULL, {"above": "(b > 1) (e > 2) ((b + e) > 3)", "join": "(a = d)"}),
    ],
)
def test_filter_above_a_join(join_type: str, expected: dict[str, str]) -> None:
    w = Letters()
    plan = join(w.relation("x", "a b c"), w.relation("y", "d e f"), w("a = d"), join_type)
    assert places(push_down_predicates(Filter(w("b > 1 and e > 2 and b + e > 3"), plan))) == expected


@pytest.mark.parametrize("join_type", [SEMI, ANTI])
def test_filter_above_a_semi_or_anti_join(join_type: str) -> None:
    w = Letters()
    plan = join(w.relation("x", "a b c"), w.relation("y", "d e f"), w("a = d"), join_type)
    assert places(push_down_predicates(Filter(w("b > 1"), plan))) == {"left": "(b > 1)", "join": "(a = d)"}


def test_filter_above_an_existence_join_keeps_what_reads_the_mark() -> None:
    w = Letters()
    x, y, mark = w.relation("x", "a b c"), w.relation("y", "d e f"), w.attribute("found")
    pushed = push_down_predicates(Filter(w("b > 1 and found"), join(x, y, w("a = d"), EXISTENCE, exists=mark)))
    assert places(pushed) == {"left": "(b > 1)", "above": "found", "join": "(a = d)"}
    assert pushed.output[-1] is mark


@pytest.mark.parametrize(
    ("join_type", "left", "right"),
    [
        (INNER, True, True),
        (CROSS, True, True),
        (SEMI, True, True),
        (LEFT, False, True),
        (SINGLE, False, True),
        (ANTI, False, True),
        (EXISTENCE, False, True),
        (RIGHT, True, False),
        (FULL, False, False),
    ],
)
def test_one_sided_conjuncts_of_a_join_condition(join_type: str, left: bool, right: bool) -> None:
    w = Letters()
    exists = w.attribute("found") if join_type == EXISTENCE else None
    condition = w("a = d and b > 1 and e > 2")
    plan = join(w.relation("x", "a b c"), w.relation("y", "d e f"), condition, join_type, exists=exists)
    pushed = push_down_predicates(plan)
    found = places(pushed)
    assert found.get("left") == ("(b > 1)" if left else None)
    assert found.get("right") == ("(e > 2)" if right else None)
    assert ("(b > 1)" in found["join"]) is not left and ("(e > 2)" in found["join"]) is not right
    assert pushed.output == plan.output
    if not (left or right):
        assert pushed is plan


def test_filters_are_combined_inner_first_without_repeats() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    plan = Filter(w("b > 2 and a > 1"), Filter(w("b > 3"), Filter(w("a > 1"), x)))
    assert show(push_down_predicates(plan)) == "Filter (((a > 1) AND (b > 3)) AND (b > 2))\n  LocalRelation x"
    twice = Filter(w("a > 1"), Filter(w("a > 1"), x))
    assert push_down_predicates(twice) is twice.child


def test_a_throwing_conjunct_is_neither_combined_nor_pushed_through_a_join() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    stacked = Filter(w("raise_error(a) = 1"), Filter(w("b > 3"), x))
    assert push_down_predicates(stacked) is stacked
    above = push_down_predicates(Filter(w("raise_error(a) = 1 and e > 2"), join(x, y, w("a = d"))))
    assert places(above) == {"join": "(raiseerror(a) = 1) (a = d)", "right": "(e > 2)"}
    in_condition = join(x, y, w("a = d and raise_error(e) = 1"))
    assert push_down_predicates(in_condition) is in_condition


def test_aliases_are_replaced_below_a_projection() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    plan = Filter(w("t > 5 and a > 1"), w.project("a", x, w.alias("t", "a + b")))
    assert show(push_down_predicates(plan)).splitlines() == [
        "Project a, (a + b) AS t",
        "  Filter (((a + b) > 5) AND (a > 1))",
        "    LocalRelation x",
    ]


def test_a_nondeterministic_projection_is_a_wall() -> None:
    w = Letters()
    plan = Filter(w("a > 1"), w.project("a", w.relation("x", "a b"), w.alias("r", "rand()")))
    assert push_down_predicates(plan) is plan


def test_a_costly_column_is_not_computed_twice() -> None:
    w = Letters()
    costly = Expression("RLike", (w("a"),), "boolean", DETERMINISTIC)
    plan = Filter(w("t and b > 1"), w.project("b", w.relation("x", "a b"), w.alias("t", costly)))
    assert [line.split()[0] for line in show(push_down_predicates(plan)).splitlines()] == [
        "Filter", "Project", "Filter", "LocalRelation",
    ]  # fmt: skip
    assert show(push_down_predicates(plan, avoid_double_evaluation=False)).startswith("Project")


def test_nested_definitions_do_not_explode() -> None:
    w = Letters()
    plan: LogicalPlan = w.relation("x", "c0")
    for i in range(60):
        plan = w.project("", plan, w.alias(f"c{i + 1}", f"c{i} + c{i}"))
    pushed = to_fixed_point(Filter(w("c60 > 1"), plan), push_down_predicates)
    assert show(pushed).count("Filter") == 1 and pushed.output == plan.output
    assert sum(1 for _ in walk(_bottom_filter(pushed).condition)) <= limits.PREDICATE_AS_CATALYST


def test_names_are_transparent_and_cached_plans_are_not() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    view = LogicalPlan("View", (x,), x.output)
    assert show(push_down_predicates(Filter(w("a > 1"), SubqueryAlias("s", view)))).splitlines()[1:] == [
        "  View",
        "    Filter (a > 1)",
        "      LocalRelation x",
    ]
    renamed = LogicalPlan("View", (x,), (w.attribute("other"),))
    blocked = Filter(w("other > 1"), renamed)
    assert push_down_predicates(blocked) is blocked
    for child in (SubqueryAlias("s", x, info={"cached": True}), Filter(w("b > 2"), x, info={"cached": True})):
        kept = Filter(w("a > 1"), child)
        assert push_down_predicates(kept) is kept
    inside = Filter(w("a > 1"), SubqueryAlias("s", x), info={"cached": True})
    assert push_down_predicates(inside) is inside


def test_python_udfs_are_not_moved_unless_as_catalyst_does() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    udf = Expression("PythonUDF", (reference(w.attribute("a")),), "boolean", DETERMINISTIC | PYTHON_UDF)
    plan = Filter(udf, join(x, y, w("a = d")))
    assert push_down_predicates(plan) is plan
    assert places(push_down_predicates(plan, as_catalyst=True)) == {"left": "pythonudf(a)", "join": "(a = d)"}


def test_many_levels() -> None:
    w = Letters()
    plan: LogicalPlan = w.relation("x", "a b")
    for i in range(2000):
        plan = Filter(w(f"a > {i}"), w.project("a b", plan))
    pushed = to_fixed_point(plan, push_down_predicates)
    assert show(pushed).count("Filter") == 1
    assert len(conjuncts(_bottom_filter(pushed).condition)) == 2000


def _bottom_filter(plan: LogicalPlan) -> Filter:
    while not isinstance(plan, Filter):
        plan = plan.children[0]
    return plan
