"""The equi-join keys of a condition."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys, null_aware_anti_keys
from pyjoinopt.plan.expressions import DETERMINISTIC, SUBQUERY, Expression, call
from pyjoinopt.plan.nodes import Join
from tests.support.letters import Letters


def join(w: Letters, condition: str | None, join_type: str = "Inner") -> Join:
    return Join(w.relation("x", "a b"), w.relation("y", "c d"), join_type, w(condition) if condition else None)


@pytest.mark.parametrize(
    ("condition", "left", "right", "rest"),
    [
        ("a = c", "(a,)", "(c,)", "None"),
        ("c = a", "(a,)", "(c,)", "None"),
        ("a = c and d = b", "(a, b)", "(c, d)", "None"),
        ("a + b = c + 1", "((a + b),)", "((c + 1),)", "None"),
        ("a = c and b < d and a > 1", "(a,)", "(c,)", "((b < d) AND (a > 1))"),
        ("a <=> c", "(coalesce(a, default), (a IS NULL))", "(coalesce(c, default), (c IS NULL))", "None"),
        ("d <=> b", "(coalesce(b, default), (b IS NULL))", "(coalesce(d, default), (d IS NULL))", "None"),
        ("a = c and b = 3 and a = b", "(a,)", "(c,)", "((b = 3) AND (a = b))"),
        ("a <=> 3", "(coalesce(a, default), (a IS NULL))", "(coalesce(3, default), (3 IS NULL))", "None"),
    ],
)
def test_keys(w: Letters, condition: str, left: str, right: str, rest: str) -> None:
    found = extract_equi_keys(join(w, condition))
    assert found is not None
    assert (str(found.left), str(found.right), str(found.condition)) == (left, right, rest)


@pytest.mark.parametrize(
    "condition",
    [None, "a < c", "a = 3", "3 = c", "1 = 2", "a = b", "a = c + b", "a = c or b = d", "not a = c", "a = b and c = d"],
)
def test_no_keys(w: Letters, condition: str | None) -> None:
    assert extract_equi_keys(join(w, condition)) is None


def test_a_key_may_be_random(w: Letters) -> None:
    found = extract_equi_keys(join(w, "a + rand(1) = c"))
    assert found is not None and len(found.left) == 1


def test_keys_of_text_keep_their_type(w: Letters) -> None:
    w.attribute("a", "string collate UTF8_LCASE")
    found = extract_equi_keys(join(w, "a <=> c"))
    assert found is not None
    assert [e.type for e in found.left] == ["string collate UTF8_LCASE", "boolean"]


def test_an_outer_reference_of_a_subquery_counts(w: Letters) -> None:
    w.relation("x", "a b")
    question = Expression(
        "ScalarSubquery", (), "int", SUBQUERY | DETERMINISTIC, info={"outer_references": w("a").references}
    )
    x, y = w.relation("x", "a b"), w.relation("y", "c d")
    assert extract_equi_keys(Join(x, y, "Inner", call("EqualTo", question, w("c")))) is not None
    assert extract_equi_keys(Join(x, y, "Inner", call("EqualTo", question, w("b")))) is None


def not_in(w: Letters, one: str, other: str) -> Expression:
    return call("Or", w(one), call("IsNull", w(other)))


def test_not_in_over_one_column(w: Letters) -> None:
    plan = join(w, None, "LeftAnti")
    for one, other in (("a = c", "a = c"), ("c = a", "c = a"), ("a = c", "c = a")):
        anti = Join(plan.left, plan.right, "LeftAnti", not_in(w, one, other))
        assert str(null_aware_anti_keys(anti)) == "(a, c)"
        assert extract_equi_keys(anti) is None
    computed = Join(plan.left, plan.right, "LeftAnti", not_in(w, "a + b = c", "a + b = c"))
    assert str(null_aware_anti_keys(computed)) == "((a + b), c)"


@pytest.mark.parametrize(
    ("join_type", "equality", "unknown"),
    [
        ("LeftSemi", "a = c", "a = c"),
        ("LeftOuter", "a = c", "a = c"),
        ("LeftAnti", "a = c", "b = d"),
        ("LeftAnti", "a = b", "a = b"),
        ("LeftAnti", "a <=> c", "a <=> c"),
        ("LeftAnti", "a = c", "a <=> c"),
        ("LeftAnti", "a + rand(1) = c", "a + rand(1) = c"),
    ],
)
def test_no_not_in(w: Letters, join_type: str, equality: str, unknown: str) -> None:
    plan = join(w, None, join_type)
    assert null_aware_anti_keys(Join(plan.left, plan.right, join_type, not_in(w, equality, unknown))) is None


def test_not_in_in_another_shape(w: Letters) -> None:
    plan = join(w, None, "LeftAnti")
    turned = call("Or", call("IsNull", w("a = c")), w("a = c"))
    two = call("And", not_in(w, "a = c", "a = c"), not_in(w, "b = d", "b = d"))
    for condition in (turned, two, w("a = c"), None):
        assert null_aware_anti_keys(Join(plan.left, plan.right, "LeftAnti", condition)) is None
