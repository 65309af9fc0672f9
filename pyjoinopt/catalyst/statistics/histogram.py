"""Equi-height histograms as Spark's cost-based optimizer reads them.

A histogram is a number of rows a bin and, for each bin, its lowest and highest value and its distinct values. Unlike
`histogram`, which is ours, whole numbers get no half steps here: in a bin from 4 to 6 the range [4, 5] is one half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyjoinopt.estimation.model.histogram import Bin


class SparkHistogram(NamedTuple):
    """Rows of each bin, and the bins in ascending order."""

    height: float
    bins: tuple[Bin, ...]


class Overlap(NamedTuple):
    """Where two bins meet, and how many values and rows of each lie there (Catalyst's `OverlappedRange`)."""

    low: float
    high: float
    left_ndv: float
    right_ndv: float
    left_rows: float
    right_rows: float


def bins_held(bins: Sequence[Bin], low: float, high: float, with_low: bool = True, with_high: bool = True) -> float:
    """How many bins, in parts, a range of values takes up (`EstimationUtils.numBinsHoldingRange`).

    Args:
        bins: those of a histogram.
        low, high: the range, which must lie inside the histogram.
        with_low, with_high: whether the range has its ends.

    >>> even = (Bin(1, 2, 2), Bin(2, 4, 2), Bin(4, 6, 2), Bin(6, 8, 2), Bin(8, 10, 2))
    >>> bins_held(even, 1, 3), bins_held(even, 5, 5), bins_held(even, 1, 10)
    (1.5, 0.5, 5.0)
    """
    last = _last_with(bins, high) if with_high else _first_with(bins, high)
    first = _first_with(bins, low) if with_low else _last_with(bins, low)
    if first == last:
        return _share(bins[first], low, high)
    return _share(bins[first], low, bins[first].high) + _share(bins[last], bins[last].low, high) + last - first - 1


def _first_with(bins: Sequence[Bin], value: float) -> int:
    return next((i for i, b in enumerate(bins) if value <= b.high), len(bins))


def _last_with(bins: Sequence[Bin], value: float) -> int:
    return next((i for i in reversed(range(len(bins))) if value >= bins[i].low), -1)


def _share(b: Bin, low: float, high: float) -> float:
    if b.high == b.low:
        return 1.0
    return 1.0 / b.ndv if high == low else min((high - low) / (b.high - b.low), 1.0)


def overlaps(left: SparkHistogram, right: SparkHistogram, low: float, high: float) -> list[Overlap]:
    """Where the bins of two histograms meet within a range (`EstimationUtils.getOverlappedRanges`)."""
    found = []
    for a, a_rows in _trimmed(left, low, high):
        for b, b_rows in _trimmed(right, low, high):
            lowest, highest = max(a.low, b.low), min(a.high, b.high)
            if lowest > highest:
                continue
            ndvs, rows = zip(_part(a, a_rows, lowest, highest), _part(b, b_rows, lowest, highest))
            found.append(Overlap(lowest, highest, *ndvs, *rows))
    return found


def _part(b: Bin, rows: float, low: float, high: float) -> tuple[float, float]:
    """Values and rows of a bin that lie in a part of it."""
    if b.low == low and b.high == high:
        return b.ndv, rows
    if low == high in (b.low, b.high):
        return 1.0, rows / b.ndv
    share = (high - low) / (b.high - b.low)
    return b.ndv * share, rows * share


def _trimmed(histogram: SparkHistogram, low: float, high: float) -> Iterator[tuple[Bin, float]]:
    """The bins that reach into a range, cut to it, each with its rows (`EstimationUtils.trimBin`)."""
    for b in histogram.bins:
        if b.low > high or b.high < low:
            continue
        cut = Bin(max(b.low, low), min(b.high, high), b.ndv)
        if b.low == b.high:
            yield b, histogram.height
        elif cut.low == cut.high:
            yield cut._replace(ndv=1.0), histogram.height / b.ndv
        else:
            share = (cut.high - cut.low) / (b.high - b.low)
            yield cut._replace(ndv=math.ceil(b.ndv * share)), histogram.height * share
