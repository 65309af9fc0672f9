"""Intervals of one column's values: what comparisons narrow a column to, and which share of its rows that keeps.

An interval of whole numbers ends half a step beyond the first and the last number in it; see `histogram`.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pyjoinopt.estimation.model.histogram import share_between, values_between
from pyjoinopt.estimation.model.relation_statistics import WHOLE_NUMBERS, ColumnStatistics
from pyjoinopt.plan.expressions import Attribute

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)


def step_of(attribute: Attribute) -> float:
    """1 if its values are whole numbers (days count as such), else 0."""
    return 1.0 if attribute.type in WHOLE_NUMBERS else 0.0


def narrow(interval: Interval, kind: str, value: float, step: float) -> Interval:
    """The interval after one more comparison (its kind as Catalyst names it) with a constant.

    >>> narrow((0.5, 9.5), "LessThan", 5.0, 1.0), narrow((0.0, 9.0), "GreaterThanOrEqual", 5.0, 0.0)
    ((0.5, 4.5), (5.0, 9.0))
    """
    low, high = interval
    if step and math.isfinite(value):
        down = kind in ("LessThanOrEqual", "GreaterThan")
        value = math.floor(value) + 0.5 if down else math.ceil(value) - 0.5
    return (low, min(high, value)) if kind.startswith("Less") else (max(low, value), high)


def _more(mean: float, count: float) -> float:
    """Share of the groups with more rows than this: sizes of groups fall off geometrically, from 1 on.

    >>> round(_more(2.0, 1.5), 3), round(_more(2.0, 3.5), 3), _more(2.0, -1.0), _more(2.0, math.inf)
    (0.5, 0.125, 1.0, 0.0)
    """
    return 0.0 if count == math.inf else (1.0 - 1.0 / max(1.0, mean)) ** math.floor(max(0.0, count))


def is_ranged(known: ColumnStatistics) -> bool:
    """True if something is known about where the column's values lie."""
    return known.mean is not None or (known.min is not None and known.max is not None)


def fraction(known: ColumnStatistics, interval: Interval, step: float) -> float | None:
    """Share of the column's values, NULL not counted, that lie in the interval; None if its range is unknown."""
    if known.mean is not None:
        return _more(known.mean, interval[0]) - _more(known.mean, interval[1])
    if known.min is None or known.max is None:
        return None
    first, last = known.min - step / 2, known.max + step / 2
    low, high = max(first, interval[0]), min(last, interval[1])
    if low > high or step and low == high:
        return 0.0
    if known.bins:
        share = share_between(known.bins, low, high, step)
    else:
        share = (high - low) / (last - first) if last > first else 1.0
    return max(share, 1.0 / known.ndv if known.ndv else 0.0)


def narrowed(known: ColumnStatistics, interval: Interval, step: float) -> ColumnStatistics:
    """The column when only values of the interval are left."""
    share = fraction(known, interval, step)
    if share is None or known.min is None or known.max is None:
        return known
    low, high = max(known.min, interval[0] + step / 2), min(known.max, interval[1] - step / 2)
    ndv = known.ndv
    if ndv is not None:
        if known.bins:
            held = sum(b.ndv for b in known.bins)  # values on the border of two bins count in both
            share = values_between(known.bins, *interval, step) / held
        ndv = max(1.0, ndv * share)
    return replace(known, ndv=ndv, min=low, max=max(low, high), nulls=0.0, bins=())


def share_below(a: ColumnStatistics, b: ColumnStatistics) -> float | None:
    """Chance that a value of one column is less than one of another, both even over their ranges and independent.

    None if a range is unknown. Of whole numbers ties count half.

    >>> stock, order = ColumnStatistics(min=0, max=999), ColumnStatistics(min=1, max=100)
    >>> round(share_below(stock, order), 3), round(share_below(order, stock), 3), share_below(order, order)
    (0.051, 0.949, 0.5)
    """
    if a.min is None or a.max is None or b.min is None or b.max is None:
        return None
    low, high = max(a.min, b.min), min(a.max, b.max)
    if low > high:
        return float(a.max < b.min)
    if a.max == a.min or b.max == b.min:  # one of them is a constant
        if a.max == a.min == b.min == b.max:
            return 0.5
        return (b.max - low) / (b.max - b.min) if a.max == a.min else (high - a.min) / (a.max - a.min)
    below = max(0.0, b.min - a.min) * (b.max - b.min)  # values of a that all of b are beyond
    among = ((b.max - low) ** 2 - (b.max - high) ** 2) / 2
    return (below + among) / ((a.max - a.min) * (b.max - b.min))
