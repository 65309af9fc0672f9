"""Which aggregate functions can be computed in two steps: over groups of the rows, and over the results of these.

| function | over the rows of a group | over the results |
|---|---|---|
| count | count | sum, 0 for no group |
| min, max | the same | the same |
| sum of whole numbers | sum | sum |
| sum of decimal(p, s) | sum: decimal(p+10, s) | sum, as a decimal(p+10, s) again |

Every result that joins repeat is summed or compared as often as its rows would have been. So the final step adds up
the same numbers as the plain sum does, in an order that this one may take, too. What it must not do is to fail, or to
become NULL, for rows which a join drops. So no sum of the first step may be too large for its type: the largest value
of the argument, by its type and what it is computed of, times a proven number of rows has to fit. A `bigint` holds two
to the power of 32 values of `int`, a decimal(p+10, s) ten to the power of 10 decimals(p, s); a decimal has at most 38
digits. A BIGINT that is too large starts anew at the other end without ANSI mode, in whatever order the numbers are
added up; in ANSI mode it is an error, and most sums of BIGINT are left alone.

Sums of floating-point numbers depend on the order. `avg` divides in ways that depend on Spark's version and types.
DISTINCT functions need the rows. Values of MIN and MAX have to be of a type in which equal values are identical.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from pyjoinopt.plan.constructors import aggregate_call, constant
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    ANSI,
    DETERMINISTIC,
    TRYING,
    UNEVALUABLE,
    Attribute,
    Expression,
    reference,
)
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.fallible.value_ranges import range_of

#: Types in which equal values are identical.
EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\(.*\)|string|date|timestamp|timestamp_ntz|boolean")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_LARGEST_BIGINT = Fraction(2**63 - 1)
#: [digits] Sums have ten digits more, and a decimal has at most 38; Spark adds up decimals of at most 18 as BIGINT.
_MORE, _MOST_DIGITS, _DIGITS_OF_BIGINT = 10, 38, 18


@dataclass(frozen=True)
class SplitConditions:
    """What decides whether a function can be split.

    Attributes:
        rows: a proven bound of the rows that are grouped first.
        ansi: whether the session is in ANSI mode.
    """

    rows: float
    ansi: bool


def arguments_of(function: Expression) -> tuple[Expression, ...]:
    """The arguments of an aggregate function, and the predicate of its FILTER."""
    return (*function.children[0].children, *function.children[1:])


def is_known(function: Expression) -> bool:
    """Whether a function is one of the table, not DISTINCT, and its arguments may be evaluated for more rows."""
    if function.info.get("fn") not in ("Count", "Sum", "Min", "Max") or function.info.get("distinct", True):
        return False
    return all(is_movable(e) and not may_throw(e) for e in arguments_of(function))


def keeps_repetitions(function: Expression) -> bool:
    """Whether a known function has the same result if rows are repeated (MIN, MAX)."""
    return function.info.get("fn") in ("Min", "Max")


def may_be_split(function: Expression, conditions: SplitConditions) -> bool:
    """Whether the two steps have the result of the function; it is known."""
    match function.info.get("fn"):
        case "Count":
            return True
        case "Min" | "Max":
            return EXACT.fullmatch(function.type) is not None
        case "Sum":
            return _sums_fit(function, conditions)
    return False


def _sums_fit(function: Expression, conditions: SplitConditions) -> bool:
    """Whether the sum has the expected type, and no group's sum is too large for it, or that is no matter."""
    sum_ = function.children[0]
    (argument,) = sum_.children
    ansi = bool(sum_.flags & ANSI)
    if sum_.flags & TRYING or ansi != conditions.ansi:
        return False
    if argument.type in _WHOLE and function.type == "bigint":
        return not ansi or _fits(argument, conditions.rows, _LARGEST_BIGINT)
    digits, summed = _DECIMAL.fullmatch(argument.type), _DECIMAL.fullmatch(function.type)
    if digits is None or summed is None:
        return False
    precision, scale = int(summed[1]), int(summed[2])
    expected = (min(_MOST_DIGITS, int(digits[1]) + _MORE), int(digits[2]))
    return (precision, scale) == expected and _fits(argument, conditions.rows, Fraction(10**precision - 1, 10**scale))


def _fits(argument: Expression, rows: float, largest: Fraction) -> bool:
    values = range_of(argument)
    return values is not None and math.isfinite(rows) and values.largest * Fraction(rows) <= largest


def is_hashed(function: Expression) -> bool:
    """Whether Spark computes a function in a hash table; MIN and MAX of texts need sorted rows."""
    return function.type != "string"


def never_null(function: Expression) -> bool:
    """Whether a function has a result for any rows."""
    return function.info.get("fn") == "Count"


def over_results(function: Expression, results: Attribute) -> Expression:
    """The second step.

    Args:
        function: the aggregate function, which may be split.
        results: the column with its results over groups of rows.
    """
    column = reference(results)
    match function.info.get("fn"):
        case "Count":
            total = aggregate_call("Sum", column)
            return Expression("Coalesce", (total, constant(0, "bigint")), "bigint")
        case "Sum" if _DECIMAL.fullmatch(function.type):
            return _sum_of_decimals(function, column)
    return _again(function, column)


def _sum_of_decimals(function: Expression, column: Expression) -> Expression:
    """The sum as a decimal of the type of `function`, computed as Spark's DecimalAggregates does."""
    digits = _DECIMAL.fullmatch(function.type)
    assert digits is not None
    if int(digits[1]) <= _DIGITS_OF_BIGINT:
        total = _again(function, Expression("UnscaledValue", (column,), "bigint"), "bigint")
        return Expression("MakeDecimal", (total,), function.type, info={"typed_like": function})
    total = _again(function, column, f"decimal({min(_MOST_DIGITS, int(digits[1]) + _MORE)},{digits[2]})")
    return Expression("CastLike", (total,), function.type, info={"typed_like": function})


def _again(function: Expression, argument: Expression, type: str | None = None) -> Expression:
    """The same function, in the same mode, of another argument and without FILTER."""
    before = function.children[0]
    flags = DETERMINISTIC | AGGREGATE_OR_WINDOW | UNEVALUABLE
    result = type or function.type
    same = Expression(before.kind, (argument,), result, flags, info=before.info, origin=before.origin)
    info = {"distinct": False, "fn": function.info.get("fn")}
    return Expression("AggregateExpression", (same,), result, flags, info=info)
