"""How many different values a column has among the rows that fulfil a filter, from those of a sample.

Of n rows that were drawn out of N, there are d distinct values, f of which occur once. Values that occur once represent
many that were not drawn at all: with q = n / N the estimate d / (1 - (1 - q) f / n) is right both for a column in which
every value comes often (f = 0: d) and for a key (f = n: N); Haas and Stokes (1998) call it the first-order unsmoothed
jackknife. Between these it errs where few values are frequent and many are rare.

Rows that are stored together may share values that others do not have. So a sample is only used for a column if
the estimate from all of its rows comes near what is known of the whole column.

A filter that has nothing to do with a column leaves of its values what chance leaves: of n_v sampled rows with a value
at least one, with probability 1 - (1 - h / n) ** n_v if h rows of n are left. Where a filter leaves as many values as
that, within two standard deviations, it is taken to be independent of the column: all values are left, and the number
of rows that are left is known anyway. The jackknife would take a hundred rows of a hundred days for a few hundred days,
whatever the calendar.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS


def codes(text: str) -> list[int]:
    """Codes of the values of sampled rows, two bytes a row as hexadecimal text; 0 is NULL.

    >>> codes("010002000100")
    [1, 2, 1]
    """
    data = bytes.fromhex(text)
    return list(memoryview(data).cast("H")) if _LITTLE else [a | b << 8 for a, b in zip(data[::2], data[1::2])]


def left_after(values: Sequence[int], hits: int, rows: float, kept: float, ndv: float | None) -> float | None:
    """Different values among the rows of a relation that fulfil a filter; None if the sample does not support one.

    Args:
        values: of the sampled rows, as of `codes`.
        hits: the sampled rows that fulfil the filter, as bits.
        rows: of the relation.
        kept: rows of it that fulfil the filter.
        ndv: different values of the whole column, None if nobody counted them.

    >>> half = (1 << 50) - 1
    >>> left_after([1, 1, 2, 2, 1] * 10 + [3, 4] * 25, half, 10000.0, 5000.0, 4.0)
    2.0
    >>> left_after([1, 2, 3, 4] * 25, half, 10000.0, 5000.0, 4.0), left_after([1, 2, 3, 4] * 25, half, 100.0, 50.0, 4.0)
    (None, 4.0)
    """
    if hits.bit_count() < ASSUMPTIONS.distinct_least_hits or rows <= 0:
        return None
    whole = _estimate(values, rows)
    near = ASSUMPTIONS.distinct_agreement
    if ndv is not None and not ndv / near <= whole <= ndv * near:
        return None
    chosen = list(compress(values, _bits(hits, len(values))))
    if ndv is not None and len(values) < rows and _by_chance(values, chosen):
        return None
    found = _estimate(chosen, max(kept, float(len(chosen))))
    return max(1.0, min(found, kept, found if ndv is None else ndv))


def most_frequent(values: Sequence[int], hits: int) -> int:
    """How many of the sampled rows that fulfil a filter have its most frequent value; NULL is none.

    >>> most_frequent([1, 1, 2, 0, 0, 0, 1], 0b1111110)
    2
    """
    counts = Counter(compress(values, _bits(hits, len(values))))
    counts.pop(0, None)
    return max(counts.values(), default=0)


def nearly_unique(values: Sequence[int], rows: float) -> bool:
    """Whether so many values differ in a sample that the column may be a key of the relation's rows.

    >>> nearly_unique(range(1, 101), 5000.0), nearly_unique([1, 2] * 50, 5000.0)
    (True, False)
    """
    filled = sum(1 for code in values if code) / max(1, len(values))
    return _estimate(values, rows) >= ASSUMPTIONS.nearly_unique * rows * filled


def _by_chance(values: Sequence[int], chosen: Sequence[int]) -> bool:
    """Could so many different values be left if the rows were chosen without looking at them?"""
    counts = Counter(values)
    counts.pop(0, None)
    missed = 1.0 - len(chosen) / len(values)
    left = [1.0 - missed**n for n in counts.values()]
    expected, variance = sum(left), sum(p * (1.0 - p) for p in left)
    return len(set(chosen) - {0}) >= expected - ASSUMPTIONS.distinct_deviations * math.sqrt(variance)


def _estimate(values: Iterable[int], rows: float) -> float:
    counts = Counter(values)
    drawn = counts.total()
    rows -= rows * counts.pop(0, 0) / max(1, drawn)
    drawn = counts.total()
    if not drawn:
        return 0.0
    once = sum(1 for n in counts.values() if n == 1)
    share = min(1.0, drawn / max(rows, 1.0))
    return min(max(rows, 1.0), len(counts) / (1.0 - (1.0 - share) * once / drawn))


def _bits(hits: int, count: int) -> Iterable[bool]:
    text = bin(hits)[:1:-1]
    return (c == "1" for c in text.ljust(count, "0"))


_LITTLE = memoryview(b"\1\0").cast("H")[0] == 1
