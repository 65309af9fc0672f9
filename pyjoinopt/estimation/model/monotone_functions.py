"""Comparisons of a column that is cast to another type, as comparisons of the column itself.

`cast(ts as date) >= date '2010-07-19'` is a range of `ts`: the cast never exchanges two values, so what it turns into a
range was one. The same holds between dates, timestamps of both kinds and seconds since the epoch. A comparison with the
cast is one with the column and another constant; a cast that cuts the time of day off makes a whole day of an equality.

The time zone counts by its distance from UTC without summer time: an estimate may be wrong by an hour.
"""

from __future__ import annotations

from typing import NamedTuple

from pyjoinopt.estimation.model.literals import constant_value, same_unit
from pyjoinopt.plan.expressions import REPLACED, Attribute, Expression, literal
from pyjoinopt.plan.facts.constant_values import is_cast

_DAY, _SECOND = 86_400e6, 1e6
_NUMBERS = ("bigint", "int", "double", "float", "decimal")
_WHOLE = ("bigint", "int")
#: A cast that cuts something off gives the same for all that lie between one whole number and the next.
_UP_TO_THE_NEXT = {"LessThanOrEqual": "LessThan", "GreaterThan": "GreaterThanOrEqual"}


class _Step(NamedTuple):
    """A cast makes `value * scale + shift` of a value, and cuts that off to a whole number or not."""

    scale: float
    shift: float
    cuts: bool


def unwrapped(side: Expression, kind: str, constant: Expression) -> list[tuple[Attribute, str, Expression]]:
    """What a comparison with the cast of a column implies for it: nothing, one comparison, or two that both hold.

    Args:
        side: an expression over a column.
        kind: how it is compared.
        constant: what with.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> ts = reference(Attribute(0, 1, "ts", "timestamp"))
    >>> unwrapped(Expression("Cast", (ts,), "date"), "EqualTo", literal(1, "date"))
    [(ts#1, 'GreaterThanOrEqual', 86400000000.0), (ts#1, 'LessThan', 172800000000.0)]
    """
    steps: list[_Step] = []
    while len(side.children) == 1:
        below = side.children[0]
        if is_cast(side):
            step = _step(side, below)
            if step is None:
                return []
            steps.append(step)
        elif not (side.kind in ("Alias", "KnownNotNull") or side.flags & REPLACED):
            return []
        side = below
    if side.kind != "AttributeReference" or side.attribute is None or not steps:
        return []
    value, column = constant_value(constant), side.attribute
    if value is None:
        return [(column, kind, constant)]
    found = [(kind, value)]
    for step in steps:
        found = [(k, (v - step.shift) / step.scale) for kind, v in found for k, v in _before_cut(step, kind, v)]
    return [(column, k, literal(v, column.type)) for k, v in found]


def _before_cut(step: _Step, kind: str, value: float) -> list[tuple[str, float]]:
    """What must hold of a value before the cast cuts it off."""
    if not step.cuts:
        return [(kind, value)]
    if kind in _UP_TO_THE_NEXT:
        return [(_UP_TO_THE_NEXT[kind], value + 1.0)]
    if kind in ("LessThan", "GreaterThanOrEqual"):
        return [(kind, value)]
    return [("GreaterThanOrEqual", value), ("LessThan", value + 1.0)]


def _step(cast: Expression, below: Expression) -> _Step | None:
    source, target = below.type, cast.type
    if same_unit(source, target):
        return _Step(1.0, 0.0, False)
    ahead = float(cast.info.get("offset") or 0.0) * _SECOND
    match source, target:
        case "date", "timestamp":
            return _Step(_DAY, -ahead, False)
        case "date", "timestamp_ntz":
            return _Step(_DAY, 0.0, False)
        case "timestamp", "date":
            return _Step(1.0 / _DAY, ahead / _DAY, True)
        case "timestamp_ntz", "date":
            return _Step(1.0 / _DAY, 0.0, True)
        case "timestamp", "timestamp_ntz":
            return _Step(1.0, ahead, False)
        case "timestamp_ntz", "timestamp":
            return _Step(1.0, -ahead, False)
    if source == "timestamp" and target.startswith(_NUMBERS):
        return _Step(1.0 / _SECOND, 0.0, target in _WHOLE)
    if target == "timestamp" and source.startswith(_NUMBERS):
        return _Step(_SECOND, 0.0, False)
    return None
