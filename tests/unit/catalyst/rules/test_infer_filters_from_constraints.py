"""Inferred filters and their places, and a comparison with Catalyst's own rule on edge cases."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.rules.infer_filters_from_constraints import infer_filters_from_constraints
from pyjoinopt.plan.constructors import union
from pyjoinopt.plan.expressions import DETERMINISTIC, Expression, call, conjuncts, reference
from pyjoinopt.plan.facts.constraints import PlanFacts
from pyjoinopt.plan.facts.value_numbers import ValueNumbering
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, FULL, LEFT, RIGHT, SEMI, SINGLE, Filter, Join, LogicalPlan
from tests.support.letters import Letters, join

IS = " IS NOT NULL)"


def inferred(condition: str, columns: str = "a b c", spark: tuple[int, int] = (4, 3)) -> set[str]:
    """The conjuncts that are added to a filter over a relation."""
    w = Letters()
    plan = Filter(w(condition), w.relation("x", columns))
    after = infer_filters_from_constraints(plan, spark=spark)
    if after is plan:
        return set()
    assert isinstance(after, Filter) and after.condition.children[1] is plan.condition
    return set(map(repr, conjuncts(after.condition.children[0])))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a > 1", {"(a" + IS}),
        ("a is not null", set()),
        ("a = b", {"(a" + IS, "(b" + IS}),
        ("a = b and a > 1", {"(a" + IS, "(b" + IS, "(b > 1)"}),
        ("a = b and b = c", {"(a" + IS, "(b" + IS, "(c" + IS, "(a = c)"}),
        ("a <=> b and a > 1", {"(a" + IS}),
        ("coalesce(a, b) = 1", set()),
        ("f(a + b) > 1", {"(a" + IS, "(b" + IS}),
        ("a is null or b > 1", set()),
        ("not (a > 1)", {"(a" + IS}),
        ("a = 1 and b > a", {"(a" + IS, "(b" + IS, "(b > 1)"}),
        ("1 = a and b = a + 1", {"(a" + IS, "(b" + IS, "(b = (1 + 1))"}),
        ("a = 1 and a <=> b and a = c", {"(a" + IS, "(c" + IS, "(c = 1)", "(c <=> b)"}),
        ("a = b and b > a", {"(a" + IS, "(b" + IS, "(b > b)", "(a > a)"}),
        ("rand() > 1 and a > 1", {"(a" + IS}),
        ("a > 1 and 1 < a", {"(a" + IS}),
    ],
)
def test_what_follows_from_a_filter(condition: str, expected: set[str]) -> None:
    assert inferred(condition) == expected


def test_literals_are_put_in_place_of_columns_from_4_3_on() -> None:
    assert "(b > 1)" not in inferred("a = 1 and b > a", spark=(4, 2))
    # Two literals for one column contradict each other; the later one is used.
    assert inferred("a = 1 and a = 2 and b > a") == {"(a" + IS, "(b" + IS, "(b > 2)"}


def test_a_filter_gets_no_predicate_that_its_input_has() -> None:
    w = Letters()
    plan = Filter(w("a > 1"), Filter(w("a > 1 and a is not null"), w.relation("x", "a b")))
    assert infer_filters_from_constraints(plan) is plan
    w = Letters()
    w.attribute("a", nullable=False)
    plan = Filter(w("a > 1"), w.relation("x", "a b"))
    assert infer_filters_from_constraints(plan) is plan


ON_LEFT = {"(a" + IS, "(b" + IS, "(a > 2)"}
ON_RIGHT = {"(d" + IS, "(e" + IS, "(d > 2)"}
NONE: set[str] = set()


@pytest.mark.parametrize(
    ("join_type", "left", "right"),
    [
        ("Inner", ON_LEFT, ON_RIGHT),
        (SEMI, ON_LEFT, ON_RIGHT),
        (LEFT, NONE, ON_RIGHT),
        (ANTI, NONE, ON_RIGHT),
        (RIGHT, ON_LEFT, NONE),
        (FULL, NONE, NONE),
        (EXISTENCE, NONE, NONE),
        (SINGLE, NONE, NONE),
    ],
)
def test_which_inputs_of_a_join_are_filtered(join_type: str, left: set[str], right: set[str]) -> None:
    w = Letters()
    x, y, mark = w.relation("x", "a b c"), w.relation("y", "d e"), w.attribute("found")
    condition = w("a = d and d > 2 and b + e > 3")
    plan = join(x, y, condition, join_type, exists=mark if join_type == EXISTENCE else None)
    after = infer_filters_from_constraints(plan)
    assert isinstance(after, Join) and after.condition is condition and after.join_type == join_type
    for side, original, expected in ((after.left, x, left), (after.right, y, right)):
        if expected:
            assert isinstance(side, Filter) and side.child is original
            assert set(map(repr, conjuncts(side.condition))) == expected
        else:
            assert side is original
    assert (after is plan) == (not left and not right)


def cast(e: Expression) -> Expression:
    return Expression("Cast", (e,), "bigint", DETERMINISTIC)


def test_only_the_side_without_a_cast_is_replaced() -> None:
    w = Letters()
    a, b = reference(w.attribute("a")), reference(w.attribute("b", "bigint"))
    x = w.relation("x", "a b")
    equality = call("EqualTo", cast(a), b)
    reported = set(map(repr, PlanFacts().constraints(Filter(call("And", equality, w("b > 1")), x))))
    assert "(cast(a as bigint) > 1)" in reported
    reported = set(map(repr, PlanFacts().constraints(Filter(call("And", equality, w("a > 1")), x))))
    assert "(b > 1)" not in reported


def test_equal_strings_that_differ_are_replaced_in_comparisons_only() -> None:
    w = Letters()
    for name in "lk":
        w.attribute(name, "string collate UTF8_LCASE")
    x = w.relation("x", "l k a")
    plan = Filter(w("l = k and f(l) = a and l > k"), x)
    reported = set(map(repr, PlanFacts().constraints(plan)))
    assert "(k > k)" in reported and "(f(k) = a)" not in reported


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a > 1", "d > 1", {"(a > 1)", "(a" + IS}),
        ("a > 1", "d < 3", {"((a > 1) OR (a < 3))", "(a" + IS}),
        ("a > 1 and b = 2", "d < 3", {"((a > 1) OR (a < 3))", "(a" + IS}),
        ("a > 1 and a < 9", "d = 3", {"(((a > 1) AND (a < 9)) OR (a = 3))", "(a" + IS}),
        ("a > b", "e > d", {"(a" + IS, "(b" + IS}),
    ],
)
def test_a_union_knows_what_each_branch_knows(first: str, second: str, expected: set[str]) -> None:
    w = Letters()
    branches = [Filter(w(first), w.relation("x", "a b")), Filter(w(second), w.relation("y", "d e"))]
    assert set(map(repr, PlanFacts().constraints(union(branches)))) == expected


def test_set_operations() -> None:
    w = Letters()
    x, y = Filter(w("a > 1"), w.relation("x", "a")), Filter(w("d < 9"), w.relation("y", "d"))
    facts = PlanFacts()
    both = LogicalPlan("Intersect", (x, y), x.output)
    assert {"(a > 1)", "(a < 9)"} <= set(map(repr, facts.constraints(both)))
    less = LogicalPlan("Except", (x, y), x.output)
    assert set(map(repr, facts.constraints(less))) == {"(a > 1)", "(a" + IS}


def test_aliases_rename_and_never_refer_to_themselves() -> None:
    w = Letters()
    inner = w.project("a", Filter(w("a + 1 > 2"), w.relation("x", "a b")), w.alias("z", "a + 1"), w.alias("one", "1"))
    reported = set(map(repr, PlanFacts().constraints(inner)))
    assert reported == {"((a + 1) > 2)", "(a" + IS, "(z > 2)", "(z" + IS, "((a + 1) <=> z)", "(one <=> 1)"}
    after = infer_filters_from_constraints(join(inner, w.relation("y", "d"), w("z = d")))
    assert isinstance(after, Join) and isinstance(after.right, Filter)
    assert set(map(repr, conjuncts(after.right.condition))) == {"(d > 2)", "(d" + IS}


def test_padding_takes_not_null_away() -> None:
    w = Letters()
    w.attribute("d", nullable=False)
    padded = join(w.relation("x", "a"), w.relation("y", "d"), w("a = d"), LEFT)
    assert not list(PlanFacts().constraints(padded))
    assert inferred_over(padded, w, "d > 1") == {"(d" + IS}
    assert not inferred_over(join(w.relation("z", "e"), w.relation("u", "d")), w, "d > 1")


def inferred_over(child: LogicalPlan, w: Letters, condition: str) -> set[str]:
    plan = Filter(w(condition), child)
    after = infer_filters_from_constraints(plan)
    assert isinstance(after, Filter)
    return set(map(repr, conjuncts(after.condition))) - {repr(plan.condition)}


def test_cached_plans_and_the_switch() -> None:
    w = Letters()
    plan = Filter(w("a > 1"), w.relation("x", "a"))
    assert infer_filters_from_constraints(plan, constraint_propagation=False) is plan
    plan.cached = True
    assert infer_filters_from_constraints(plan) is plan
    assert not list(PlanFacts().constraints(plan))


def test_meanings() -> None:
    w = Letters()
    same = [
        ("a = b", "b = a"),
        ("a < b", "b > a"),
        ("not (a <= b)", "a > b"),
        ("a > 1 and (b > 1 and c > 1)", "(c > 1 and b > 1) and a > 1"),
        ("in(a, 1, 2)", "in(a, 2, 1)"),
        ("a + (b + c) = 1", "(c + a) + b = 1"),
    ]
    different = [("a < b", "b < a"), ("a = 1", "a <=> 1"), ("a = 1", "a = true"), ("f(a) = 1", "g(a) = 1")]
    meanings = ValueNumbering()
    assert all(meanings(w(one)) == meanings(w(other)) for one, other in same)
    assert all(meanings(w(one)) != meanings(w(other)) for one, other in different)
    assert meanings(w("rand()")) != meanings(w("rand()"))
    like = [Expression("Like", (w("a"), w("1")), origin=n) for n in (1, 2)]  # may have different escape characters
    assert meanings(like[0]) == meanings(like[1]) and not meanings.replaceable(*like)
    assert meanings.replaceable(w("a + b"), w("b + a"))


def test_large_plans() -> None:
    w = Letters()
    plan: LogicalPlan = Filter(w("c0 > 1"), w.relation("x", "c0"))
    for i in range(2000):
        plan = w.project(f"c{i}", plan, w.alias(f"c{i + 1}", f"c{i} + 1"))
    after = infer_filters_from_constraints(Filter(w("c2000 > 3"), plan))
    assert isinstance(after, Filter)
    w = Letters()
    plan = w.relation("r0", "a0 b0")
    for i in range(1, 100):
        plan = join(plan, w.relation(f"r{i}", f"a{i} b{i}"), w(f"a{i - 1} = a{i} and b{i} > {i}"))
    assert infer_filters_from_constraints(plan) is not plan
