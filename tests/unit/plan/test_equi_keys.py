"""Equalities of a condition, and which of them are keys of a join."""

from __future__ import annotations

import pytest

from pyjoinopt.plan.equi_keys import equal_columns, equalities, equi_key, equi_keys, hash_keys, over_sides
from pyjoinopt.plan.expressions import DETERMINISTIC, Attribute, Expression, call, conjunction, literal, reference
from pyjoinopt.plan.nodes import Join, relation

A, B, C, D = (Attribute(i, i + 1, name, "int") for i, name in enumerate("abcd"))
a, b, c, d = map(reference, (A, B, C, D))
LEFT, RIGHT = A.mask | B.mask, C.mask | D.mask
THREE = literal(3, "int")
SUM = Expression("Add", (a, b), "int", DETERMINISTIC)
RANDOM = Expression("Add", (c, Expression("Rand", type="double", flags=0)), "double", flags=0)

CASES = {
    "as written": (call("EqualTo", a, c), "a = c"),
    "turned": (call("EqualTo", c, a), "a = c"),
    "null-safe": (call("EqualNullSafe", c, b), "b <=> c"),
    "of a sum": (call("EqualTo", d, SUM), f"{SUM} = d"),
    "both on one side": (call("EqualTo", a, b), None),
    "a sum over both sides": (call("EqualTo", Expression("Add", (a, c), "int"), d), None),
    "with a constant": (call("EqualTo", a, THREE), None),
    "null-safe with a constant": (call("EqualNullSafe", THREE, c), None),
    "no equality": (call("LessThan", a, c), None),
    "not": (call("Not", call("EqualTo", a, c)), None),
}


@pytest.mark.parametrize("name", CASES)
def test_equi_key(name: str) -> None:
    predicate, expected = CASES[name]
    key = equi_key(predicate, LEFT, RIGHT)
    found = None if key is None else f"{key.left} {'<=>' if key.null_safe else '='} {key.right}"
    assert found == expected
    turned = equi_key(predicate, RIGHT, LEFT)
    assert turned == (None if key is None else (key.right, key.left, key.null_safe))


@pytest.mark.parametrize("predicate", [call("EqualNullSafe", THREE, c), call("EqualNullSafe", c, THREE)], ids=str)
def test_an_operand_over_no_column_may_be_over_either_side(predicate: Expression) -> None:
    """As Catalyst's ExtractEquiJoinKeys has it for `<=>`."""
    key = over_sides(predicate, LEFT, RIGHT)
    assert key is not None and key.left is THREE and key.right is c


def test_sides_given_as_what_the_other_one_has_not() -> None:
    assert equi_key(call("EqualTo", c, a), ~RIGHT, RIGHT) == (a, c, False)


def test_of_a_condition() -> None:
    condition = conjunction(predicate for predicate, _ in CASES.values())
    assert [str(key.right) for key in equi_keys(condition, LEFT, RIGHT)] == ["c", "c", "c", "d"]
    assert len(list(equalities(condition))) == 8
    assert [(x.name, y.name) for x, y in equal_columns(condition)] == [("a", "c"), ("c", "a"), ("a", "b")]
    assert not list(equi_keys(None, LEFT, RIGHT)) and not list(equalities(None)) and not list(equal_columns(None))


def test_keys_that_bring_a_row_the_same_partners_every_time() -> None:
    condition = conjunction([call("EqualTo", a, RANDOM), call("EqualNullSafe", a, c), call("EqualTo", d, b)])
    join = Join(relation("l", [A, B]), relation("r", [C, D]), "Inner", condition)
    assert hash_keys(join) == [(b, d)]
