"""Equi-height histograms: bins that hold equally many rows each, as ANALYZE makes them.

Where values are dense, bins are narrow. Within a bin values are assumed to be uniform. They give the share of the rows
(NULLs not counted) in an interval, and the share with one value.

Whole numbers need care at the ends: `x > 5` and `x >= 6` are the same for them. Each whole number is therefore taken
for the interval half a step around it, which makes counting numbers the same as measuring lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Bin(NamedTuple):
    """Lowest value, highest value, number of different values."""

    low: float
    high: float
    ndv: float


def share_between(bins: Sequence[Bin], low: float, high: float, step: float) -> float:
    """Share of the rows with a value in an interval.

    Args:
        bins: the histogram.
        low, high: the interval; of whole numbers half a step beyond the first and the last one in it.
        step: 1 for whole numbers, else 0.

    >>> years = [Bin(1880, 1999, 100), Bin(1999, 2008, 10), Bin(2009, 2012, 4), Bin(2012, 2019, 8)]
    >>> share_between(years, 2010.5, 3000, 1.0)
    0.375
    >>> share_between([Bin(0.0, 1.0, 50), Bin(1.0, 9.0, 50)], 0.5, 5.0, 0.0)
    0.5
    """
    return sum(_covered(b, low, high, step) for b in bins) / len(bins) if bins else 0.0


def values_between(bins: Sequence[Bin], low: float, high: float, step: float) -> float:
    """How many different values an interval holds.

    >>> values_between([Bin(1, 10, 10), Bin(11, 1000, 90)], 0.5, 5.5, 1.0)
    5.0
    """
    return sum(b.ndv * _covered(b, low, high, step) for b in bins)


def share_equal(bins: Sequence[Bin], value: float) -> float:
    """Share of the rows with this very value.

    >>> share_equal([Bin(1, 1, 1), Bin(1, 1, 1), Bin(1, 4, 4), Bin(4, 9, 5)], 1)
    0.5625
    """
    return sum(1.0 / max(1.0, b.ndv) for b in bins if b.low <= value <= b.high) / len(bins) if bins else 0.0


def repeat_share(bins: Sequence[Bin]) -> float:
    """Chance that two random rows have the same value; of n equally frequent values it is 1/n (Simpson's index).

    >>> repeat_share([Bin(1, 1, 1), Bin(1, 1, 1), Bin(2, 9, 8), Bin(10, 25, 16)])
    0.26171875
    """
    total, run = 0.0, 0
    for i, b in enumerate(bins):
        if b.low < b.high:
            total += 1.0 / max(1.0, b.ndv)
            continue
        run += 1  # bins full of one value
        if i + 1 == len(bins) or not bins[i + 1].low == bins[i + 1].high == b.low:
            total, run = total + run**2, 0
    return total / len(bins) ** 2 if bins else 1.0


def _covered(b: Bin, low: float, high: float, step: float) -> float:
    first, last = b.low - step / 2, b.high + step / 2
    if last <= first:
        return 1.0 if low <= first <= high else 0.0
    return max(0.0, min(last, high) - max(first, low)) / (last - first)
