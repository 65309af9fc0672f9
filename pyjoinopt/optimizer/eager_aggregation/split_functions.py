"""Which aggregate functions can be computed in two steps: over groups of the rows, and over the results of these.

| function | over the rows of a group | over the results |
|---|---|---|
| count | count | sum, 0 for no group |
| min, max | the same | the same |
| sum of whole numbers | sum | sum |
| sum of decimal(p, s) | sum: decimal(p+10, s) | sum, as a decimal(p+10, s) again |
| avg of these | sum and count | the sum of sums divided by the sum of counts, as Spark's Average does it |

Every result that joins repeat is summed or compared as often as its rows would have been. So the final step adds up
the same numbers as the plain sum does, in an order that this one may take, too. What it must not do is to fail, or to
become NULL, for rows which a join drops. So no sum of the first step may be too large for its type: the largest value
of the argument, by its type, the bounds in the footers of files and what it is computed of, times a proven number of
rows has to fit. A `bigint` holds two
to the power of 32 values of `int`, a decimal(p+10, s) ten to the power of 10 decimals(p, s); a decimal has at most 38
digits. A BIGINT that is too large starts anew at the other end without ANSI mode, in whatever order the numbers are
added up; in ANSI mode it is an error, and most sums of BIGINT are left alone.

Spark adds up the whole numbers and short decimals of an average as floating-point numbers of 53 bits. The order makes
no difference as long as no sum needs more, so that has to be proved, of all rows that the joins give: of an average of
any `int` for up to four million rows, of one of decimal(7, 2) for nine hundred million.

**A row that stands for several.** Functions of the other sides read each group of rows once, and must count it as often
as it has rows (`second_step`).

Sums of floating-point numbers depend on the order. DISTINCT functions need the rows. Values of MIN and MAX have to be
of a type in which equal values are identical.

**A padded row.** Below an outer join that pads the plan with NULLs, a row without partners has NULL for each result of
the first step, and no function has seen it. That is right where a row of NULLs adds nothing, `sum(f.x)` and
`count(f.x)`, but `count(*)` counts it:

    SELECT c.id, count(*), count(o.id) FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id

There a missing count stands for 1 (`of_padded_row`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from pyjoinopt.plan.constructors import aggregate_call
from pyjoinopt.plan.expressions import (
    ANSI,
    TRYING,
    Expression,
    rewrite,
)
from pyjoinopt.plan.facts.null_rejection import NULL, outcomes, rejects_nulls
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.fallible.value_ranges import Range, range_of, within

#: Types in which equal values are identical.
EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\(.*\)|string|date|timestamp|timestamp_ntz|boolean")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_LARGEST_BIGINT = Fraction(2**63 - 1)
#: [digits] Sums have ten digits more, and a decimal has at most 38; Spark adds up decimals of at most 18 as BIGINT.
MORE_DIGITS, MOST_DIGITS, DIGITS_OF_BIGINT = 10, 38, 18
#: [digits] Spark's decimal type for a BIGINT.
_DIGITS_OF_COUNT = 20
#: Floating-point numbers hold all whole numbers up to this one. By them Spark averages decimals of at most 11 digits.
_LARGEST_EXACT, DIGITS_AVERAGED_AS_DOUBLE = Fraction(2**53), 11
_KNOWN = ("Count", "Sum", "Min", "Max", "Average")


@dataclass(frozen=True)
class SplitConditions:
    """What decides whether a function can be split.

    Attributes:
        rows: a proven bound of the rows that are grouped first.
        joined: one of the rows that the upper aggregate reads as written, where joins have repeated them.
        ansi: whether the session is in ANSI mode.
        unscaled: whether Spark adds up short decimals as BIGINT (DecimalAggregates).
        bounds: column -> the range of its values, as far as it is proved to be smaller than its type's.
    """

    rows: float
    joined: float
    ansi: bool
    unscaled: bool = True
    bounds: Mapping[int, Range] = field(default_factory=dict)


def digits_of(type: str) -> tuple[int, int] | None:
    """The digits of a type of decimals, all and those behind the point; None for another type.

    >>> digits_of("decimal(7,2)"), digits_of("int")
    ((7, 2), None)
    """
    found = _DECIMAL.fullmatch(type)
    return (int(found[1]), int(found[2])) if found is not None else None


def arguments_of(function: Expression) -> tuple[Expression, ...]:
    """The arguments of an aggregate function, and the predicate of its FILTER."""
    return (*function.children[0].children, *function.children[1:])


def is_known(function: Expression) -> bool:
    """Whether a function is one of the table, not DISTINCT, and its arguments may be evaluated for more rows."""
    if function.info.get("fn") not in _KNOWN or function.info.get("distinct", True):
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
            return _sums_fit(function, conditions, conditions.rows)
        case "Average":
            return _averages_fit(function, conditions)
    return False


def may_be_repeated(function: Expression, conditions: SplitConditions, *, early: bool) -> bool:
    """Whether a function can be computed of rows that stand for several.

    Args:
        function: the aggregate function; it is known.
        conditions: as for `may_be_split`.
        early: whether the rows are results of the first step.
    """
    if function.info.get("fn") == "Sum" and not _sums_fit(function, conditions, conditions.joined, repeated=True):
        return False
    return may_be_split(function, conditions if early else replace(conditions, rows=0.0)) and _products_fit(
        function, conditions.joined, early
    )


def _products_fit(function: Expression, joined: float, early: bool) -> bool:
    """Whether each value can be multiplied by the number of rows that it stands for."""
    digits, name = digits_of(function.children[0].children[0].type), function.info.get("fn")
    if digits is None or name not in ("Sum", "Average"):
        return True
    if digits[0] <= (DIGITS_AVERAGED_AS_DOUBLE if name == "Average" else DIGITS_OF_BIGINT - MORE_DIGITS):
        return True
    precision = min(MOST_DIGITS, digits[0] + MORE_DIGITS) if early else digits[0]
    of_count = digits_of_count(precision)
    return of_count > 0 and joined < 10**of_count


def digits_of_count(precision: int) -> int:
    """The most digits of a count by which a decimal of so many digits can be multiplied; none if below 1.

    A BIGINT has at most 20 digits, and the product one more than both.

    >>> digits_of_count(15), digits_of_count(28)
    (20, 9)
    """
    return min(_DIGITS_OF_COUNT, MOST_DIGITS - 1 - precision)


def of_padded_row(function: Expression, columns: int) -> int | None:
    """What a known function counts for a row with NULL in these columns: 0 or 1; None if that is not known.

    MIN, MAX and sums are not changed by a row that counts 0.
    """
    arguments = function.children[0].children
    if any(rejects_nulls(e, columns) for e in function.children[1:]):
        return 0
    if any(outcomes(e, columns) == NULL for e in arguments):
        return 0
    certain = all(not outcomes(e, columns) & NULL for e in arguments)
    return 1 if function.info.get("fn") == "Count" and certain and len(function.children) == 1 else None


def _sums_fit(function: Expression, conditions: SplitConditions, rows: float, repeated: bool = False) -> bool:
    """Whether the sum has the expected type, and no sum of so many rows is too large for it, or that is no matter.

    Short decimals that stand for several rows are added up unscaled, as BIGINT. So is every one of their sums by
    Spark, and what is too large as a decimal of the result's type becomes NULL or an error of either.
    """
    sum_ = function.children[0]
    (argument,) = sum_.children
    ansi = bool(sum_.flags & ANSI)
    if sum_.flags & TRYING or ansi != conditions.ansi:
        return False
    if argument.type in _WHOLE and function.type == "bigint":
        return not ansi or _fits(argument, rows, conditions, _LARGEST_BIGINT)
    digits, summed = digits_of(argument.type), digits_of(function.type)
    if digits is None or summed is None:
        return False
    precision, scale = summed
    as_bigint = repeated and conditions.unscaled and precision <= DIGITS_OF_BIGINT
    largest = _LARGEST_BIGINT if as_bigint else Fraction(10**precision - 1)
    expected = (min(MOST_DIGITS, digits[0] + MORE_DIGITS), digits[1])
    return summed == expected and _fits(argument, rows, conditions, largest / 10**scale)


def _averages_fit(function: Expression, conditions: SplitConditions) -> bool:
    """Whether Spark's sum of an average is exact, in any order of the rows.

    The second step adds up as BIGINT or decimals what Spark adds up as floating-point numbers. So not only the sums of
    the first step must fit, but those of all rows that joins make of them.
    """
    average = function.children[0]
    (argument,) = average.children
    if average.flags & TRYING or bool(average.flags & ANSI) != conditions.ansi:
        return False
    if argument.type in _WHOLE and function.type == "double":
        return _fits(argument, conditions.joined, conditions, _LARGEST_EXACT)
    digits = digits_of(argument.type)
    if digits is None:
        return False
    precision, scale = digits
    if precision <= DIGITS_AVERAGED_AS_DOUBLE:
        return _fits(argument, conditions.joined, conditions, _LARGEST_EXACT / 10**scale)
    largest = Fraction(10 ** (precision + MORE_DIGITS) - 1, 10**scale)
    return precision + MORE_DIGITS <= MOST_DIGITS and _fits(argument, conditions.joined, conditions, largest)


def _fits(argument: Expression, rows: float, conditions: SplitConditions, largest: Fraction) -> bool:
    """Whether no sum over so many rows is farther from zero than `largest`."""

    def bounded(e: Expression) -> Expression:
        known = conditions.bounds.get(e.attribute.bit) if e.attribute is not None else None
        return within(e, known) if known is not None and e.kind == "AttributeReference" else e

    values = range_of(rewrite(argument, bounded))
    return values is not None and math.isfinite(rows) and values.largest * Fraction(rows) <= largest


def is_hashed(function: Expression) -> bool:
    """Whether Spark computes a function in a hash table; MIN and MAX of texts need sorted rows."""
    return function.type != "string"


def never_null(function: Expression) -> bool:
    """Whether a function has a result for any rows."""
    return function.info.get("fn") == "Count"


def first_step(function: Expression) -> tuple[Expression, ...]:
    """The functions over the rows of a group: the same one, or the sum and the count of an average."""
    if function.info.get("fn") != "Average":
        return (function,)
    (argument,) = function.children[0].children
    where = function.children[1] if len(function.children) > 1 else None
    digits = digits_of(argument.type)
    summed = f"decimal({digits[0] + MORE_DIGITS},{digits[1]})" if digits else "bigint"
    return aggregate_call("Sum", argument, summed, where), aggregate_call("Count", argument, where=where)
