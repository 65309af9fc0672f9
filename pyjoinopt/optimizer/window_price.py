"""Whether a window over joined rows is cheaper than an aggregate that they are joined with.

A window shuffles the rows by its key and sorts them. The aggregate reads its relations a second time, shuffles its
groups, and is joined, which takes a broadcast at least. Its rows may be prefiltered to those that will be joined, so
that no more of them are hashed than a window would read. A relation that is no file, such as an aggregate, is taken to
be computed once for both of its readers, as Spark reuses what it shuffles.

All rows of a key are sorted by one task. A key with many rows, on average or by the most frequent values if these are
known, is left to the aggregate, whatever the sums say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyjoinopt.cost.constants import Constants
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf, row_width
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import reference
from pyjoinopt.rewrites.aggregate_to_window import WindowCandidate

#: The work must become less by this factor: estimates err.
_MARGIN = 1.5
#: [rows' worth of work] A row that is written to the buffer of a partition, read from it, and gets a value.
_BUFFERED = 4.0
#: [rows] of one key, which one task sorts in a few tenths of a second. Ours, not fitted.
_MOST_ROWS_OF_KEY = 200_000


@dataclass(frozen=True)
class WindowPrice:
    """Callable: candidate -> whether the window is cheaper.

    Attributes:
        estimate: statistics of any sub-plan.
        constants: of the cost model.
    """

    estimate: StatisticsOf
    constants: Constants

    def __call__(self, candidate: WindowCandidate) -> bool:
        keys = [reference(a) for a in candidate.partition]
        known = self.estimate(candidate.rows)
        partitions = max(1.0, self.estimate(aggregate(keys, keys, candidate.rows)).rows)
        tops = [max((share for _, share in known.column(a.bit).heavy), default=0.0) for a in candidate.partition]
        most = known.rows * max(math.prod(tops), 1.0 / partitions)
        return most <= _MOST_ROWS_OF_KEY and self._after(candidate) * _MARGIN < self._before(candidate)

    def _after(self, candidate: WindowCandidate) -> float:
        """The work of the window."""
        c, known = self.constants, self.estimate(candidate.rows)
        width = row_width([a for a in candidate.rows.output if a.mask & candidate.read], known.columns)
        row = 1.0 + c.shuffled_row + width * c.shuffled_byte + c.sorted_row + _BUFFERED
        return c.shuffle + known.rows * row

    def _before(self, candidate: WindowCandidate) -> float:
        """The work of the aggregate, and of joining it; not more than that."""
        c, groups = self.constants, self.estimate(candidate.aggregate)
        read = sum(self.estimate(relation).rows for relation in candidate.relations)
        hashed = min(self.estimate(candidate.aggregate.child).rows, self.estimate(candidate.rows).rows)
        found = min(groups.rows, hashed)
        shuffled = c.shuffle + found * (1.0 + c.shuffled_row + groups.width * c.shuffled_byte)
        return read + hashed * c.hashed_row + shuffled + c.broadcast
