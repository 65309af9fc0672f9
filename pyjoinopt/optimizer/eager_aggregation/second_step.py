"""The second step of aggregate functions: over results of groups, or over rows that stand for several (eager count).

    SELECT d.name, sum(f.x), sum(d.y), count(d.z) FROM fact f JOIN dim d ON f.k = d.k GROUP BY d.name

If the rows of `fact` are grouped before the join, the sum of x is that of the groups' sums s. A row of the join stands
for all rows of its group, as many as the group's `count(*)`, here c:

    sum(f.x)    becomes sum(s)
    sum(d.y)    becomes sum(d.y * c)
    count(d.z)  becomes sum(c) FILTER (WHERE d.z IS NOT NULL), or 0

and an average is the one divided by the other. MIN and MAX do not depend on repetitions. If rows of `dim` are grouped
as well, with a count of their own, the results of `fact` stand for so many rows, too: sum(s * c').

**Types and overflow.** A sum of rows that stand for c rows each is the sum of all of them, so what `split_functions`
proves of the sum of all joined rows holds for it, and each product is a sum of some of them. BIGINT that does not fit
starts anew at the other end without ANSI mode, in products as in sums. A decimal of p digits times a count of k digits
has p + k + 1 digits, of which there are 38 (`may_be_repeated`). Short decimals are multiplied unscaled, as Spark's
DecimalAggregates adds them up.

Source: Yan and Larson, Eager aggregation and lazy aggregation, VLDB 1995 (eager group-by, eager count, double eager).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.optimizer.eager_aggregation.split_functions import (
    DIGITS_AVERAGED_AS_DOUBLE,
    DIGITS_OF_BIGINT,
    MORE_DIGITS,
    MOST_DIGITS,
    digits_of,
    digits_of_count,
    keeps_repetitions,
)
from pyjoinopt.plan.constructors import aggregate_call, constant
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    DETERMINISTIC,
    UNEVALUABLE,
    Attribute,
    Expression,
    call,
    conjunction,
    reference,
)


def over_results(
    function: Expression, results: Sequence[Attribute], padded: int = 0, times: Expression | None = None
) -> Expression:
    """A function over the results of groups.

    Args:
        function: the aggregate function, which may be split.
        results: the columns with the results of `first_step` over groups of rows.
        padded: what the function counts for a row without partners.
        times: how many rows each row of the results stands for; None for one.
    """
    values, counts = reference(results[0]), counted(results[-1], padded)
    match function.info.get("fn"):
        case "Count":
            return _total(_times(counts, times))
        case "Average":
            return _average(function, values, _total(_times(counts, times)), times)
        case "Sum":
            return _sum(function, values, times)
    return _again(function, values)


def counted(column: Attribute, padded: int) -> Expression:
    """A count of a group, or of a row without partners, which has no group."""
    counts = reference(column)
    return Expression("Coalesce", (counts, constant(padded, "bigint")), "bigint") if padded else counts


def over_repeated_rows(function: Expression, times: Expression) -> Expression:
    """A function of columns that are not grouped.

    Args:
        function: the aggregate function, for which `may_be_repeated`; its FILTER remains.
        times: how many rows each row stands for.
    """
    if keeps_repetitions(function):
        return function
    arguments, where = function.children[0].children, function.children[1:]
    counts = _total(times, conjunction([*(call("IsNotNull", e) for e in arguments), *where]))
    match function.info.get("fn"):
        case "Count":
            return counts
        case "Average":
            return _average(function, arguments[0], counts, times, *where)
    return _sum(function, arguments[0], times, *where)


def product(values: Expression, times: Expression) -> Expression:
    """Values, as often as rows that they stand for."""
    digits = digits_of(values.type)
    if digits is None:
        return Expression("Times", (values, times), "bigint")
    precision = digits[0] + digits_of_count(digits[0]) + 1
    return Expression("Times", (values, times), f"decimal({precision},{digits[1]})")


def _times(values: Expression, times: Expression | None) -> Expression:
    return values if times is None else product(values, times)


def _total(counts: Expression, where: Expression | None = None) -> Expression:
    """The sum of counts."""
    return Expression("Coalesce", (aggregate_call("Sum", counts, where=where), constant(0, "bigint")), "bigint")


def _average(
    function: Expression,
    values: Expression,
    counts: Expression,
    times: Expression | None,
    where: Expression | None = None,
) -> Expression:
    """Spark's Average of sums and counts; decimals are added up as BIGINT where Spark does so."""
    digits = digits_of(function.children[0].children[0].type)
    if digits is None:
        total = aggregate_call("Sum", _times(values, times), where=where)
    elif digits[0] <= DIGITS_AVERAGED_AS_DOUBLE:
        total = aggregate_call("Sum", _times(_unscaled(values), times), where=where)
    else:
        total = aggregate_call("Sum", _times(values, times), f"decimal({MOST_DIGITS},{digits[1]})", where)
    return Expression("AverageOf", (total, counts), function.type, info={"typed_like": function})


def _sum(
    function: Expression, values: Expression, times: Expression | None, where: Expression | None = None
) -> Expression:
    """The sum, of the type of `function`; decimals are added up as Spark's DecimalAggregates does it."""
    digits = digits_of(function.type)
    if digits is None:
        return _again(function, _times(values, times), where=where)
    if digits[0] <= DIGITS_OF_BIGINT:
        total = _again(function, _times(_unscaled(values), times), "bigint", where)
        return Expression("MakeDecimal", (total,), function.type, info={"typed_like": function})
    added = _times(values, times)
    precision = (digits_of(added.type) or digits)[0]
    total = _again(function, added, f"decimal({min(MOST_DIGITS, precision + MORE_DIGITS)},{digits[1]})", where)
    return Expression("CastLike", (total,), function.type, info={"typed_like": function})


def _unscaled(values: Expression) -> Expression:
    return Expression("UnscaledValue", (values,), "bigint")


def _again(
    function: Expression, argument: Expression, type: str | None = None, where: Expression | None = None
) -> Expression:
    """The same function, in the same mode, of another argument and with another FILTER."""
    before = function.children[0]
    flags = DETERMINISTIC | AGGREGATE_OR_WINDOW | UNEVALUABLE
    result = type or function.type
    same = Expression(before.kind, (argument,), result, flags, info=before.info, origin=before.origin)
    info = {"distinct": False, "fn": function.info.get("fn")}
    children = (same,) if where is None else (same, where)
    return Expression("AggregateExpression", children, result, flags, info=info)
