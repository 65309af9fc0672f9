"""How large can the values of an expression get? What follows from types and constants alone.

In ANSI mode `price * 1.1` is an error where the result does not fit its type, so a predicate that computes it must not
meet rows that it did not meet as written. But the types that Spark gives to results of decimals hold nearly always what
the operands' types allow: decimal(7,2) times decimal(2,1) is a decimal(10,3), and no product of the two needs more than
eight digits. Interval arithmetic shows that: every expression has a lowest and a highest value, exact fractions, from
its type, its operands and constants. What fits for both cannot fail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.facts.constant_values import is_fixed

_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
#: Scala's decimals have 34 digits: results of more, even of a minus, are rounded once before they are to their type.
_DIGITS, _FIRST_ROUNDING = 34, Fraction(1, 10**30)
#: Spark's whole quotients and remainders of decimals fail, in any mode, where the quotient has more than 38 digits.
_WHOLE, _LARGEST_QUOTIENT = frozenset({"IntegralDivide", "Remainder", "Pmod"}), Fraction(10**37)
#: Kinds with one child, whose value is theirs.
STANDS_FOR_CHILD = frozenset({"Alias", "NullIf", "KnownNotNull", "KnownNullable"})
FLOATING = frozenset({"float", "double"})
_WITHIN = "within"  # in `info`: see `within`


class Range(NamedTuple):
    """All values lie between these two, both included; NULL is no value."""

    low: Fraction
    high: Fraction

    @property
    def largest(self) -> Fraction:
        """The largest distance from zero."""
        return max(abs(self.low), abs(self.high))


def range_of(e: Expression, deep: int = limits.OPERAND_DEPTH) -> Range | None:
    """What a whole number or a decimal can be; None for other types.

    >>> from pyjoinopt.plan.expressions import Attribute, literal, reference
    >>> price = reference(Attribute(0, 1, "price", "decimal(3,1)"))
    >>> [str(end) for end in range_of(Expression("Add", (price, literal(5, "int")), "decimal(13,1)"))]
    ['-949/10', '1049/10']
    """
    typed = _by_type(e.type)
    if typed is None:
        return None
    if is_fixed(e):
        return _constant(e.value) or typed
    if _WITHIN in e.info:
        return Range(max(typed.low, e.info[_WITHIN].low), min(typed.high, e.info[_WITHIN].high))
    if deep <= 0:
        return typed
    if e.kind in STANDS_FOR_CHILD and len(e.children) == 1:
        return range_of(e.children[0], deep - 1) or typed
    computed = _computed(e, deep - 1)
    # Without ANSI mode a whole number that does not fit starts anew at the other end.
    return computed if computed is not None and _fits(computed, e.type) else typed


def at_least(column: Expression, least: int) -> Expression:
    """The same use of a column, of which is known that its values are `least` or more.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> range_of(at_least(reference(Attribute(0, 1, "rank", "tinyint")), 1))
    Range(low=Fraction(1, 1), high=Fraction(127, 1))
    """
    typed = _by_type(column.type)
    return column if typed is None else within(column, Range(Fraction(least), typed.high))


def within(column: Expression, known: Range) -> Expression:
    """The same use of a column, all of whose values are known to be in a range.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> range_of(within(reference(Attribute(0, 1, "pieces", "int")), Range(Fraction(0), Fraction(9))))
    Range(low=Fraction(0, 1), high=Fraction(9, 1))
    """
    info = {**column.info, _WITHIN: known}
    return Expression(column.kind, (), column.type, column.flags, column.attribute, info=info)


def cannot_overflow(e: Expression) -> bool:
    """True if the result of one arithmetic operation or cast fits its type, whatever the operands are.

    A division by zero is another matter: see `pyjoinopt.plan.fallible.nonzero_divisors`.
    """
    computed = _computed(e, limits.OPERAND_DEPTH)
    return computed is not None and _fits(computed, e.type)


def is_of_decimals(e: Expression) -> bool:
    """True if an operation has decimals for operands."""
    return any(_DECIMAL.fullmatch(child.type) for child in e.children)


def _computed(e: Expression, deep: int) -> Range | None:
    """What one operation can give before it must fit a type; None if that is not known."""
    if e.kind not in _OPERATIONS or _by_type(e.type) is None:
        return None
    below = [values for child in e.children if (values := range_of(child, deep)) is not None]
    if len(below) < len(e.children):
        return None
    if e.kind in _WHOLE and is_of_decimals(e) and _quotient(e, *below).largest > _LARGEST_QUOTIENT:
        return None
    exact = _OPERATIONS[e.kind](e, *below)
    digits = _DECIMAL.fullmatch(e.type)
    if digits and int(digits[1]) > _DIGITS and e.kind != "Cast":
        slack = exact.largest * _FIRST_ROUNDING
        exact = Range(exact.low - slack, exact.high + slack)
    return _rounded(exact, scale_of(e.type) or 0)


def _rounded(exact: Range, scale: int) -> Range:
    """Rounded outwards, so that it holds what any way of rounding gives.

    >>> _rounded(Range(Fraction(-1, 3), Fraction(2)), 1)
    Range(low=Fraction(-2, 5), high=Fraction(2, 1))
    """
    unit = Fraction(10) ** -scale
    return Range(math.floor(exact.low / unit) * unit, math.ceil(exact.high / unit) * unit)


def _ends(*ends: Fraction) -> Range:
    return Range(min(ends), max(ends))


def _quotient(e: Expression, left: Range, right: Range) -> Range:
    """A divisor next to zero is as small as its type can be."""
    if right.low <= 0 <= right.high:
        smallest = Fraction(1, 10 ** (scale_of(e.children[1].type) or 0))
    else:
        smallest = min(abs(right.low), abs(right.high))
    return _around_zero(left.largest / smallest)


def _around_zero(largest: Fraction) -> Range:
    return Range(-largest, largest)


_OPERATIONS: dict[str, Callable[..., Range]] = {
    "Add": lambda e, a, b: Range(a.low + b.low, a.high + b.high),
    "Subtract": lambda e, a, b: Range(a.low - b.high, a.high - b.low),
    "Multiply": lambda e, a, b: _ends(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high),
    "Divide": _quotient,
    "IntegralDivide": _quotient,
    "Remainder": lambda e, a, b: _around_zero(min(a.largest, b.largest)),
    "Pmod": lambda e, a, b: _around_zero(b.largest),
    "UnaryMinus": lambda e, a: Range(-a.high, -a.low),
    "Abs": lambda e, a: Range(Fraction(0), a.largest),
    "Cast": lambda e, a: a,
}


def _fits(values: Range, type: str) -> bool:
    typed = _by_type(type)
    return typed is not None and typed.low <= values.low and values.high <= typed.high


def _by_type(type: str) -> Range | None:
    bits = _BITS.get(type)
    if bits is not None:
        return Range(Fraction(-(2**bits)), Fraction(2**bits - 1))
    digits = _DECIMAL.fullmatch(type)
    if digits is None:
        return None
    largest = (10 ** int(digits[1]) - 1) * Fraction(10) ** -int(digits[2])
    return Range(-largest, largest)


def scale_of(type: str) -> int | None:
    """Digits behind the point; None for what is no exact number."""
    if type in _BITS:
        return 0
    digits = _DECIMAL.fullmatch(type)
    return int(digits[2]) if digits else None


def _constant(value: object) -> Range | None:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return Range(Fraction(value), Fraction(value))
    return None
