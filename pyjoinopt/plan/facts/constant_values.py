"""Which expressions are constants with a value, and for how long that value holds.

The exporter evaluates every constant expression as Catalyst will when it folds constants: `date '2000-02-01' + interval
60 days` is 2000-04-01, and evaluating it cannot fail. The expression is kept in the plan; its value is kept beside it.

What reads the current date, the time, the time zone or the user has the value of the moment at which the plan was
optimised. It is good for an estimate. Nothing may be proved by it, for the plan may run another day.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from pyjoinopt.plan.expressions import CONSTANT, CURRENT, FOLDABLE, THROWABLE, Expression

_VALUES = (bool, int, float, str, Decimal, date)


def has_value(e: Expression) -> bool:
    """True if it is a constant whose value is known, NULL included, and good for estimates.

    >>> from pyjoinopt.plan.expressions import literal
    >>> has_value(literal(3, "int")), has_value(Expression("CurrentDate", (), "date"))
    (True, False)
    """
    return (e.kind == "Literal" or bool(e.flags & CONSTANT)) and (e.value is None or isinstance(e.value, _VALUES))


def is_fixed(e: Expression) -> bool:
    """True if it is a constant that has the same value whenever the plan runs. The value itself may be unknown here."""
    return e.kind == "Literal" or e.flags & (CONSTANT | CURRENT) == CONSTANT


def is_cast(e: Expression) -> bool:
    """True if it is a cast of its only operand, by whatever name: TO_DATE of a timestamp is one."""
    return e.kind in ("Cast", "UpCast") or bool(e.info.get("cast"))


def evaluates(e: Expression, always: bool) -> bool:
    """True if a constant cannot fail on any row.

    Spark evaluates a constant before it reads any row, so one that fails there fails in every plan alike. A branch that
    no row may take is different: a constant in it must have been evaluated, and to a value that holds for good.

    Args:
        e: an expression.
        always: whether it is at a place that is evaluated for every row.
    """
    if e.flags & CONSTANT:
        return always or not e.flags & CURRENT or not e.children
    return always and bool(e.flags & FOLDABLE and e.children) and not e.contains & THROWABLE
