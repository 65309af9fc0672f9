"""Expressions that may fail at run time, and expressions that may move."""

from __future__ import annotations

import pytest

from pyjoinopt.plan.expressions import ANSI, DETERMINISTIC, PYTHON_UDF, SUBQUERY, Attribute, Expression, reference
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw, why_not_movable

TEXT = reference(Attribute(0, 1, "t", "string"))
NUMBER = reference(Attribute(1, 2, "n", "int"))
VARIANT = reference(Attribute(2, 3, "v", "variant"))
HUNDRED = Expression("Literal", type="int", flags=DETERMINISTIC, value=100, text="100")
CONSTANT = Expression("Literal", type="string", flags=DETERMINISTIC, value="x%", text="x%")


@pytest.mark.parametrize(
    ("expression", "throws"),
    [
        (Expression("Like", (TEXT, CONSTANT)), False),
        (Expression("Like", (TEXT, TEXT)), True),  # the pattern of some row may be malformed
        (Expression("RLike", (TEXT, TEXT)), True),
        (Expression("Divide", (NUMBER, NUMBER), "double"), False),
        (Expression("Divide", (NUMBER, NUMBER), "double", DETERMINISTIC | ANSI), True),
        (Expression("Add", (NUMBER, NUMBER), "double", DETERMINISTIC | ANSI), False),
        (Expression("Add", (NUMBER, NUMBER), "int", DETERMINISTIC | ANSI), True),
        (Expression("Add", (NUMBER, NUMBER), "interval day to second"), True),
        (Expression("Cast", (NUMBER,), "bigint"), False),
        (Expression("Cast", (TEXT,), "int", DETERMINISTIC | ANSI), True),
        (Expression("Cast", (VARIANT,), "int"), True),
        (Expression("Cast", (HUNDRED,), "decimal(3,0)", DETERMINISTIC | ANSI), False),
        (Expression("Cast", (HUNDRED,), "decimal(5,2)", DETERMINISTIC | ANSI), False),
        (Expression("Cast", (HUNDRED,), "decimal(4,2)", DETERMINISTIC | ANSI), True),
        (Expression("Cast", (NUMBER,), "decimal(3,0)", DETERMINISTIC | ANSI), True),
        (Expression("SomethingNew", (NUMBER,), "int"), True),
    ],
)
def test_what_may_throw(expression: Expression, throws: bool) -> None:
    assert may_throw(expression) is throws
    assert may_throw(Expression("Not", (Expression("IsNull", (expression,)),))) is throws


@pytest.mark.parametrize(
    ("flags", "reason"),
    [(0, "nondeterministic"), (DETERMINISTIC | PYTHON_UDF, "Python UDF"), (DETERMINISTIC | SUBQUERY, "subquery")],
)
def test_what_must_not_move(flags: int, reason: str) -> None:
    predicate = Expression("Something", (NUMBER,), flags=flags)
    assert not is_movable(predicate)
    assert reason in why_not_movable(predicate)
