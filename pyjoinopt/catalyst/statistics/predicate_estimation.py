"""Which share of the rows Spark takes a single predicate to keep, and what the predicate leaves of its columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics
from pyjoinopt.catalyst.statistics.histogram import bins_held
from pyjoinopt.plan.expressions import EQUALITIES, MIRRORED, Attribute, Expression

_TEXTS = ("string", "binary", "char", "varchar")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp", "boolean")
_EPOCH = date(1970, 1, 1)
_DIGITS = Context(prec=34)
#: From this version on Spark distrusts contradictory statistics.
CAREFUL = (4, 2)


class SparkColumns:
    """The columns of an input while the conjuncts of a condition are looked at, one after the other.

    Args:
        child: what is known of the input.
        of_leaf: whether the input is a leaf; only there Spark uses counts of NULLs.
        spark: the version.
    """

    def __init__(self, child: CatalystStatistics, of_leaf: bool, spark: tuple[int, int]) -> None:
        self.now: dict[int, ColumnStatistics] = dict(child.columns)
        self._rows = child.rows
        self._of_leaf = of_leaf
        self._careful = spark >= CAREFUL

    def share(self, e: Expression, narrow: bool) -> float | None:
        """Share of the rows that a predicate without AND, OR and NOT keeps; None if Spark has no formula for it.

        Args:
            e: the predicate.
            narrow: whether the columns are to hold what it leaves.
        """
        if e.kind == "Literal":
            return 1.0 if e.value is True else 0.0 if e.value is None or e.value is False else None
        if e.kind in EQUALITIES or e.kind in MIRRORED:
            return self._comparison(e, narrow)
        column = e.children[0].attribute if e.children and e.children[0].kind == "AttributeReference" else None
        if column is None:
            return None
        if e.kind in ("IsNull", "IsNotNull") and self._of_leaf:
            return self._nulls(column, e.kind == "IsNull", narrow)
        if e.kind == "In" and all(value.kind == "Literal" for value in e.children[1:]):
            return self._list(column, [plain(value.value) for value in e.children[1:]], narrow)
        return None

    def _comparison(self, e: Expression, narrow: bool) -> float | None:
        left, right = e.children
        kind = e.kind
        if left.kind == "Literal" and right.kind == "AttributeReference":
            left, right, kind = right, left, MIRRORED.get(kind, kind)
        if left.kind != "AttributeReference" or left.attribute is None:
            return None
        if right.kind == "Literal":
            value = plain(right.value)
            if kind in EQUALITIES:
                return self._equality(left.attribute, value, narrow)
            return self._range(left.attribute, kind, value, narrow)
        if right.kind == "AttributeReference" and right.attribute is not None:
            return self._two_columns(kind, left.attribute, right.attribute, narrow)
        return None

    def _nulls(self, column: Attribute, is_null: bool, narrow: bool) -> float | None:
        known = self.now.get(column.bit)
        if known is None or known.nulls is None:
            return None
        rows = self._rows
        share = 0.0 if rows == 0 else 1.0 if known.nulls > rows else known.nulls / rows
        if narrow:
            none = replace(known, ndv=0, min=None, max=None)
            self.now[column.bit] = none if is_null else replace(known, nulls=0)
        return share if is_null else 1.0 - share

    def _equality(self, column: Attribute, value: Any, narrow: bool) -> float | None:
        known = self.now.get(column.bit)
        if known is None:
            return None
        bounds = self._bounds(column, known)
        if bounds is not None and (value is None or not bounds[0] <= float(value) <= bounds[1]):
            return 0.0
        if self._careful and not known.ndv:
            return None
        if narrow:
            after = replace(known, ndv=1, nulls=0)
            self.now[column.bit] = after if is_text(column) else replace(after, min=value, max=value)
        if known.histogram is not None and known.min is not None and known.max is not None:
            bins = known.histogram.bins
            return bins_held(bins, value, value) / bins_held(bins, float(known.min), float(known.max))
        if known.ndv is None:
            return None
        return 1.0 / known.ndv if known.ndv else math.inf

    def _bounds(self, column: Attribute, known: ColumnStatistics) -> tuple[float, float] | None:
        """Between what the column's values lie; None if that excludes nothing, an empty range if all are NULL."""
        if is_text(column):
            return None
        if known.min is None or known.max is None:
            return None if self._careful else (math.inf, -math.inf)
        return float(known.min), float(known.max)

    def _list(self, column: Attribute, values: Iterable[Any], narrow: bool) -> float | None:
        known = self.now.get(column.bit)
        if known is None or known.ndv is None:
            return None
        different = set(values)
        after = replace(known, nulls=0)
        if column.type.startswith(_NUMBERS):
            if known.ndv == 0:
                return 0.0
            if known.min is None or known.max is None:
                return None if self._careful else 0.0
            low, high = float(known.min), float(known.max)
            different = {v for v in different if v is not None and low <= float(v) <= high}
            if not different:
                return 0.0
            after = replace(after, min=min(different), max=max(different))
        elif known.ndv == 0:
            return 0.0
        ndv = min(known.ndv, len(different))
        if narrow:
            self.now[column.bit] = replace(after, ndv=ndv)
        return min(ndv / known.ndv, 1.0)

    def _range(self, column: Attribute, kind: str, value: Any, narrow: bool) -> float | None:
        known = self.now.get(column.bit)
        if known is None or not column.type.startswith(_NUMBERS) or not known.has_range or known.ndv is None:
            return None
        if value is None:
            return 0.0
        low, high = float(known.min), float(known.max)
        number, upwards = float(value), kind.startswith("Greater")
        beyond, near = (number - high, number - low) if upwards else (low - number, high - number)
        with_end = kind.endswith("OrEqual")
        if beyond > 0 or (beyond == 0 and not with_end):
            return 0.0
        if near < 0 or (near == 0 and with_end):
            return 1.0
        if known.histogram is not None:
            bins = known.histogram.bins
            held = (
                bins_held(bins, number, high, with_low=with_end)
                if upwards
                else bins_held(bins, low, number, with_high=with_end)
            )
            share = held / bins_held(bins, low, high)
        elif beyond == 0:
            share = 1.0 / known.ndv
        elif near == 0:
            share = 1.0 - 1.0 / known.ndv
        else:
            share = (high - number if upwards else number - low) / (high - low)
        if narrow:
            ndv = int(_ceiling(Decimal(repr(known.ndv * share))))
            after = replace(known, ndv=ndv, nulls=0)
            self.now[column.bit] = replace(after, min=value) if upwards else replace(after, max=value)
        return share

    def _two_columns(self, kind: str, one: Attribute, other: Attribute, narrow: bool) -> float | None:
        a, b = self.now.get(one.bit), self.now.get(other.bit)
        if a is None or b is None or not (a.has_counts and b.has_counts and a.has_range and b.has_range):
            return None
        if is_text(one):
            return None
        filled = a.nulls == 0 == b.nulls
        if kind.startswith("Greater"):  # a > b is b < a
            one, other, a, b = other, one, b, a
        if kind in EQUALITIES:
            none = a.max < b.min or b.max < a.min
            if kind == "EqualNullSafe":
                none = none and filled
            whole = (a.min, a.max, a.ndv) == (b.min, b.max, b.ndv) and filled
        elif kind.endswith("OrEqual"):
            none, whole = a.min > b.max, a.max <= b.min and filled
        else:
            none, whole = a.min >= b.max, a.max < b.min and filled
        if none or whole:
            return 0.0 if none else 1.0
        share = 1.0 / 3.0
        if narrow:
            low, high = max(a.min, b.min), min(a.max, b.max)
            if kind in EQUALITIES:
                a, b = replace(a, min=low, max=high), replace(b, min=low, max=high)
            else:
                a, b = replace(a, max=high), replace(b, min=low)
            self.now[one.bit] = replace(a, ndv=scaled_up(a.ndv, share))
            self.now[other.bit] = replace(b, ndv=scaled_up(b.ndv, share))
        return share


def bounded(share: float) -> float:
    """Within [0, 1]."""
    return max(0.0, min(1.0, share))


def plain(value: Any) -> Any:
    """A constant in the unit of column statistics: days, microseconds, numbers.

    >>> plain(date(1970, 1, 3)), plain(True), plain(Decimal("0.40"))
    (2, True, Decimal('0.40'))
    """
    return (value - _EPOCH).days if isinstance(value, date) and not isinstance(value, datetime) else value


def is_text(column: Attribute) -> bool:
    """True of a column that Spark keeps no bounds of."""
    return column.type.startswith(_TEXTS)


def scaled_up(count: int | None, share: float) -> int:
    """A share of a count, rounded up as decimals of 34 digits are."""
    return int(_ceiling(_DIGITS.multiply(Decimal(count or 0), Decimal(repr(share)))))


def _ceiling(number: Decimal) -> Decimal:
    return number.to_integral_value(ROUND_CEILING)
