"""Inputs to which a local limit is pushed, and inputs for which this would be wrong or useless."""

from __future__ import annotations

from typing import Any

import pytest

from pyjoinopt.catalyst.rules.eliminate_sorts import eliminate_sorts
from pyjoinopt.catalyst.rules.limit_push_down import limit_push_down
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.facts.max_rows import MaxRows
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
from tests.support.letters import Letters, join


def local(n: int, child: LogicalPlan) -> LogicalPlan:
    return constructors.local_limit(constructors.constant(n, "int"), child)


def node(kind: str, child: LogicalPlan, *expressions: Expression, **info: Any) -> LogicalPlan:
    return LogicalPlan(kind, (child,), child.output, expressions, info=info)


def limit(n: int, child: LogicalPlan) -> LogicalPlan:
    return node("GlobalLimit", local(n, child), constructors.constant(n, "int"))


def limited(plan: LogicalPlan) -> tuple[bool, ...]:
    """Which inputs of the join or union under a local limit are limited."""
    while plan.kind in ("LocalLimit", "GlobalLimit", "Project"):
        plan = plan.children[0]
    return tuple(child.kind == "LocalLimit" for child in plan.children)


@pytest.mark.parametrize(
    ("join_type", "with_condition", "without"),
    [
        (INNER, (False, False), (True, True)),
        (CROSS, (False, False), (True, True)),
        (LEFT, (True, False), (True, True)),
        (RIGHT, (False, True), (True, True)),
        (FULL, (False, False), (True, True)),
        (SEMI, (False, False), (True, True)),  # one row of the right side is enough
        (ANTI, (False, False), (True, True)),
        (EXISTENCE, (False, False), (False, False)),
        (SINGLE, (False, False), (False, False)),
    ],
)
def test_joins(join_type: str, with_condition: tuple[bool, bool], without: tuple[bool, bool]) -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    exists = w.attribute("found") if join_type == EXISTENCE else None
    for condition, expected in ((w("a = d"), with_condition), (None, without)):
        joined = join(x, y, condition, join_type, exists=exists)
        for plan in (local(5, joined), limit(5, w.project("a", joined))):
            result = limit_push_down(plan)
            assert limited(result) == expected
            assert (result is plan) is (not any(expected)) and result.output == plan.output


def test_the_right_side_of_a_semi_join_without_condition_needs_one_row() -> None:
    w = Letters()
    plan = join(w.relation("x", "a"), w.relation("y", "d"), type=SEMI)
    result = limit_push_down(plan)
    assert isinstance(result, Join) and show(result.right).splitlines()[0] == "LocalLimit 1"
    assert limit_push_down(result).children[1].children[0].kind == "LocalRelation"
    single = join(w.relation("x", "a"), w.relation("z", "g", rows=1), type=ANTI)
    assert limit_push_down(single) is single


def test_branches_of_a_union() -> None:
    w = Letters()
    few = w.relation("y", "b", rows=3)
    many = w.relation("z", "c", rows=30)
    plan = local(5, constructors.union([w.relation("x", "a"), few, many, local(9, w.relation("v", "d"))]))
    assert [line.strip() for line in show(limit_push_down(plan)).splitlines()] == [
        "LocalLimit 5", "Union", "LocalLimit 5", "LocalRelation x", "LocalRelation y", "LocalLimit 5",
        "LocalRelation z", "LocalLimit 5", "LocalLimit 9", "LocalRelation v",
    ]  # fmt: skip
    again = limit_push_down(plan)
    assert limit_push_down(again) is again


def test_a_larger_global_limit_makes_place() -> None:
    w = Letters()
    plan = local(5, constructors.union([limit(9, w.relation("x", "a")), limit(2, w.relation("y", "b"))]))
    first, second = limit_push_down(plan).children[0].children
    assert [line.strip() for line in show(first).splitlines()][:2] == ["LocalLimit 5", "LocalLimit 9"]
    assert second is plan.children[0].children[1]


def test_an_offset_needs_more_rows() -> None:
    w = Letters()
    plan = local(5, node("Offset", w.relation("x", "a"), constructors.constant(2, "int")))
    assert show(limit_push_down(plan)).splitlines() == ["Offset 2", "  LocalLimit (5 + 2)", "    LocalRelation x"]


def test_one_group_is_any_row() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    grouped = w.group("a b", node("Sort", x, w("a"), **{"global": True}), w.alias("k", "7"), names="a")
    for plan in (limit(1, grouped), limit(1, w.project("a", grouped))):
        result = limit_push_down(plan)
        assert [line.split()[0] for line in show(result).splitlines() if "Project a\n" not in line][-2:] == [
            "LocalLimit", "LocalRelation",
        ]  # fmt: skip
        assert "Aggregate" not in show(result) and "Sort" not in show(result) and result.output == plan.output


def test_one_group_of_several_or_with_a_function_is_not_any_row() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    counted = w.group("a", x, w.alias("n", constructors.aggregate_call("Count", w("b"))))
    for plan in (limit(2, w.group("a", x)), limit(1, counted), limit(1, w.group("", x)), local(1, w.group("a", x))):
        assert limit_push_down(plan) is plan


def test_cached_plans_stay() -> None:
    w = Letters()
    branches = (w.relation("x", "a"), w.relation("y", "b"))
    union = LogicalPlan("Union", branches, branches[0].output, info={"cached": True})
    assert limit_push_down(local(1, union)).children[0] is union


def test_max_rows() -> None:
    w = Letters()
    x, y, z = (w.relation(name, name, rows=rows) for name, rows in (("x", 3), ("y", 5), ("z", None)))
    rows = MaxRows()
    n = constructors.constant(2, "int")
    assert [rows(join(x, y, w("x = y"), t)) for t in (INNER, CROSS, LEFT, RIGHT, FULL, SEMI, ANTI, SINGLE)] == [
        15, 15, 15, 15, 15, 3, 3, 15,
    ]  # fmt: skip
    nothing = w.relation("none", "n", rows=0)
    assert [rows(join(x, nothing, None, t)) for t in (INNER, LEFT, RIGHT, FULL)] == [0, 3, 0, 3]
    assert rows(join(x, z)) is None and rows(join(x, y, type=EXISTENCE, exists=w.attribute("found"))) is None
    assert rows(constructors.union([x, y])) == 8 and rows(constructors.union([x, z])) is None
    assert rows(w.group("", z)) == 1 and rows(w.group("x", x)) == 3
    assert rows(Filter(w("x > 1"), x)) == 3 and rows(Filter(w("false"), z)) == 0
    once = node("Offset", x, n)
    assert rows(limit(2, z)) == 2 and rows(once) == 1 and rows(node("Offset", once, n)) == 0
    assert (rows(local(2, z)), rows.per_partition(local(2, z)), rows.per_partition(x)) == (None, 2, 3)
    assert rows.per_partition(node("Sort", local(2, z), **{"global": False})) == 2
    assert rows.per_partition(node("Sort", local(2, z), **{"global": True})) is None
    assert rows(node("Sample", x, replacement=True)) is None and rows(node("Sample", x)) == 3
    lists = [(w("x"),), (w("x"),)]
    assert rows(node("Expand", x, lists=lists)) == 6
    assert rows.per_partition(node("Expand", local(2, z), lists=lists)) == 4
    assert rows(LogicalPlan("Intersect", (x, y), x.output)) == 3 and rows(LogicalPlan("Except", (y, z), y.output)) == 5
    assert rows(node("Generate", x)) is None and rows(SubqueryAlias("s", x)) == 3
    assert rows.per_partition(LogicalPlan("Range", (), (), info={"rows": 10, "slices": 4})) == 3
    assert rows(LogicalPlan("Range", (), (), info={"rows": 2.0**70})) is None


def test_sorts_that_nobody_sees() -> None:
    w = Letters()
    x = w.relation("x", "a b")

    def ordered(child: LogicalPlan, everywhere: bool = True) -> LogicalPlan:
        order = Expression("SortOrder", (w("a"),), "int")
        return node("Sort", child, order, **{"global": everywhere})

    def sorts(plan: LogicalPlan) -> int:
        return show(eliminate_sorts(plan)).count("Sort")

    below = w.project("a b", Filter(w("a > 1"), ordered(x)))
    assert sorts(ordered(below)) == 1 and sorts(ordered(below, False)) == 2
    assert sorts(ordered(node("Repartition", ordered(x)), False)) == 1
    assert sorts(join(below, ordered(w.relation("y", "d")), w("a = d"))) == 0
    assert sorts(join(below, x, w("rand() > 1"))) == 1
    assert sorts(w.group("a", below, w.alias("s", constructors.aggregate_call("Sum", w("b"))))) == 0
    assert sorts(w.group("a", below, w.alias("f", constructors.aggregate_call("First", w("b"))))) == 1
    assert sorts(limit(5, below)) == 1
    assert sorts(node("Sort", x, Expression("SortOrder", (constructors.constant(1, "int"),), "int"))) == 0


def test_many_levels() -> None:
    w = Letters()
    plan = w.relation("x", "a")
    for i in range(1500):
        plan = join(plan, w.relation(f"y{i}", f"b{i}"), w(f"a = b{i}"), LEFT)
    assert show(limit_push_down(local(5, plan))).count("LocalLimit") == 1501
