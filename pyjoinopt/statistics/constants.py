"""Reading the two sides of a comparison: a column, and a constant as a number in the unit of column statistics."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

from pyjoinopt.plan.expressions import SUBQUERY, Attribute, Expression

_NUMERIC = ("tinyint", "smallint", "int", "integer", "bigint", "float", "double", "decimal")
_EPOCH = datetime.date(1970, 1, 1)


def constant_value(e: Expression) -> float | None:
    """A constant as a number in the unit of column statistics; None for NULL, text, or what is not understood."""
    sign = 1.0
    while e.kind in ("Cast", "UpCast", "Alias", "UnaryMinus") and e.children:
        if e.kind == "UnaryMinus":
            sign = -sign
        elif e.kind == "Cast" and e.type != e.children[0].type and not _same_unit(e.type, e.children[0].type):
            return _parsed_date(e)
        e = e.children[0]
    if e.kind in ("DateAdd", "DateSub") and len(e.children) == 2:
        start, days = (_literal_value(child) for child in e.children)
        if start is None or days is None:
            return None
        return start + days if e.kind == "DateAdd" else start - days
    value = _literal_value(e)
    return None if value is None else sign * value


def column_of(e: Expression) -> Attribute | None:
    """The column whose values `e` has, looking through casts between numbers."""
    while e.kind in ("Cast", "UpCast", "Alias", "KnownNotNull") and len(e.children) == 1:
        if e.kind in ("Cast", "UpCast") and not _same_unit(e.type, e.children[0].type):
            return None
        e = e.children[0]
    return e.attribute if e.kind == "AttributeReference" else None


def _literal_value(e: Expression) -> float | None:
    value = e.value if e.kind == "Literal" else None
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


def _same_unit(one: str, other: str) -> bool:
    return one == other or (one.startswith(_NUMERIC) and other.startswith(_NUMERIC))


def is_constant(e: Expression) -> bool:
    """True if it has the same value for every row."""
    return not e.references and e.deterministic and not e.contains & SUBQUERY
