"""Whether rows that are stored together refer to the same things.

A sample's rows come from a few places in the files. If sales are stored by day, those of one place are of few days, and
a month may be missed by all places: then the places are the sample, not the rows. It shows in how often two rows have
the same value: of two rows of one place far more often than of two rows of different places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS


def is_clustered(codes: Sequence[int], starts: Sequence[int]) -> bool:
    """Whether equal values of a column are stored together.

    Args:
        codes: of the values of sampled rows; 0 is NULL.
        starts: the first row of each place.

    >>> is_clustered([1, 1, 2, 2, 3, 3, 4, 4] * 8, range(0, 64, 16))
    False
    >>> is_clustered([i // 4 for i in range(1, 65)], range(0, 64, 16))
    True
    """
    if len(starts) < 2:
        return False
    ends = [*starts[1:], len(codes)]
    inside = pairs_inside = 0
    for start, end in zip(starts, ends):
        same, pairs = _coincidences(codes[start:end])
        inside, pairs_inside = inside + same, pairs_inside + pairs
    same, pairs = _coincidences(codes)
    between, pairs_between = same - inside, pairs - pairs_inside
    if not inside or not pairs_between:
        return False
    return inside / pairs_inside > ASSUMPTIONS.clustered_coincidences * between / pairs_between


def may_be_clustered(codes: Sequence[int], starts: Sequence[int]) -> bool:
    """Whether a value may have all of its rows in one place, so that a sample shows only the values of its places.

    Rows of a single place cannot show that they do not. A sample of all rows has no places.

    Args:
        codes, starts: as of `is_clustered`.

    >>> may_be_clustered([1, 2, 3], [0]), may_be_clustered([1, 2, 3], [])
    (True, False)
    """
    return len(starts) == 1 or is_clustered(codes, starts)


def _coincidences(codes: Sequence[int]) -> tuple[int, int]:
    """Pairs of rows with the same value, and all pairs; rows without a value are left out."""
    counts = Counter(codes)
    counts.pop(0, None)
    rows = counts.total()
    return sum(n * (n - 1) // 2 for n in counts.values()), rows * (rows - 1) // 2
