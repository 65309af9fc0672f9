"""Where a random sample is worth drawing: where a bound of what a filter keeps may decide about a broadcast."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.model.sample_bounds import chernoff

#: [bytes] A row of one column: other columns may be pruned.
_LEAST_WIDTH = 12.0
#: Places that are drawn at random at least and at most, and the step between numbers that are tried.
_FEWEST_DRAWS, _MOST_DRAWS, _STEP = 48, 256, 8 / 7
#: [factor] The part of a limit that the expected bound may take: another sample has a few hits more.
_SPARE = 0.8


@dataclass(frozen=True, slots=True)
class BoundLimits:
    """Where a bound of the rows that a filter keeps may decide whether they are broadcast.

    Attributes:
        expected: bytes that may be expected of a side that is broadcast.
        bounded: bytes that the upper bound of a side that is broadcast may have.
    """

    expected: float
    bounded: float

    def draws(self, base: RelationStatistics, rows: float, width: float) -> int:
        """How many places to draw, so that the bound of what a filter keeps is likely to fit.

        Args:
            base: the relation.
            rows: that the filter is expected to keep.
            width: bytes of a row of the columns that are read.

        >>> table = RelationStatistics(6e7, 6e9, "footers", True, upper_bound=6e7)
        >>> limits = BoundLimits(10e6, 500e6)
        >>> limits.draws(table, 3e5, 40.0), limits.draws(table, 3e5, 10.0), limits.draws(table, 3e5, 1000.0)
        (93, 48, 256)
        """
        share, fits = min(1.0, rows / base.upper_bound), _SPARE * self.bounded / (width * base.upper_bound)
        draws = float(_FEWEST_DRAWS)
        while draws < _MOST_DRAWS and chernoff(share, int(draws), ASSUMPTIONS.sample_failure) > fits:
            draws *= _STEP
        return min(_MOST_DRAWS, int(draws))

    def matter(self, base: RelationStatistics, rows: float) -> bool:
        """Whether a bound may make the difference, of so many rows that a filter keeps of a relation.

        >>> table = RelationStatistics(1e8, 1e10, "footers", True, upper_bound=1e8)
        >>> limits = BoundLimits(10e6, 80e6)
        >>> limits.matter(table, 1e5), limits.matter(table, 1e7)
        (True, False)
        """
        return self.bounded < base.bytes_bound < math.inf and rows * _LEAST_WIDTH <= self.expected
