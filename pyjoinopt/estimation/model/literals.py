"""Reading the two sides of a comparison: a column, and a constant as a number in the unit of column statistics.

Constant expressions of an exported plan were evaluated by Catalyst. Arithmetic here is for those of plans made by hand.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

from pyjoinopt.plan.expressions import CORRELATED, REPLACED, Attribute, Expression
from pyjoinopt.plan.facts.constant_values import has_value, is_cast

_NUMERIC = ("tinyint", "smallint", "int", "integer", "bigint", "float", "double", "decimal")
#: Operators that add: the sign of their right side.
_SUMS = {"Add": 1.0, "Subtract": -1.0, "DateAdd": 1.0, "DateSub": -1.0}
_EPOCH = datetime.date(1970, 1, 1)


def constant_value(e: Expression) -> float | None:
    """A constant as a number in the unit of column statistics; None for NULL, text, or what is not understood.

    A sum of two constants (`19 + 1`, `date '2000-01-27' + 30`) is understood, sums of sums are not.

    >>> from pyjoinopt.plan.expressions import call, literal
    >>> constant_value(call("Add", literal(19, "int"), literal(1, "int")))
    20.0
    """
    if has_value(e):
        return _literal_value(e)
    sign, e = _bare(e)
    if e.kind not in _SUMS or len(e.children) != 2:
        value = _number(e)
        return None if value is None else sign * value
    inner = [(s, _number(part)) for s, part in map(_bare, e.children)]
    left, right = (None if value is None else s * value for s, value in inner)
    if left is None or right is None:
        return None
    return sign * (left + _SUMS[e.kind] * right)


def _bare(e: Expression) -> tuple[float, Expression]:
    """The sign, and what is left without casts and names that do not change the value."""
    sign = 1.0
    while not has_value(e) and e.children and (
        e.kind in ("UnaryMinus", "UpCast", "Alias") or e.kind == "Cast" and same_unit(e.type, e.children[0].type)
    ):
        sign = -sign if e.kind == "UnaryMinus" else sign
        e = e.children[0]
    return sign, e


def _number(e: Expression) -> float | None:
    return _parsed_date(e) if e.kind == "Cast" and not has_value(e) else _literal_value(e)


def column_of(e: Expression) -> Attribute | None:
    """The column whose values `e` has, looking through casts between numbers."""
    while len(e.children) == 1 and (is_cast(e) or e.kind in ("Alias", "KnownNotNull") or e.flags & REPLACED):
        if is_cast(e) and not same_unit(e.type, e.children[0].type):
            return None
        e = e.children[0]
    return e.attribute if e.kind == "AttributeReference" else None


def _literal_value(e: Expression) -> float | None:
    value = e.value if has_value(e) else None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return float((value - _EPOCH).days)
    if isinstance(value, (bool, int, float, Decimal)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return None if math.isnan(number) else number
    return None


def _parsed_date(cast: Expression) -> float | None:
    text = cast.children[0].value
    if cast.type != "date" or not isinstance(text, str):
        return None
    try:
        return float((datetime.date.fromisoformat(text.strip()) - _EPOCH).days)
    except ValueError:
        return None


def same_unit(one: str, other: str) -> bool:
    """True if statistics count values of both types in the same unit."""
    return one == other or (one.startswith(_NUMERIC) and other.startswith(_NUMERIC))


def is_constant(e: Expression) -> bool:
    """True if it has the same value for every row, that of a subquery, for one."""
    return not e.references and e.deterministic and not e.contains & CORRELATED
