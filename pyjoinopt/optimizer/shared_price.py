"""Whether readers of a common table expression should share its groups, in the units of the cost model.

A reader that shares reads no relation and makes no exchange of its own: what is below the aggregate is done once, with
one broadcast less for the relation that the readers filter in different ways. On the other hand each reader gets the
groups of all of them from the exchange, and merges them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyjoinopt.cost.constants import Constants
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf
from pyjoinopt.rewrites.filtered_aggregates import source_of
from pyjoinopt.rewrites.share_common_tables import SharedBranch

#: The work must become less by this factor: estimates err.
_MARGIN = 1.5


@dataclass(frozen=True)
class SharedPrice:
    """Callable: the shared branches of a definition -> whether sharing is cheaper.

    Attributes:
        estimate: statistics of any sub-plan.
        constants: of the cost model.
    """

    estimate: StatisticsOf
    constants: Constants

    def __call__(self, branches: Sequence[SharedBranch]) -> bool:
        return _MARGIN * sum(map(self._added, branches)) < sum(map(self._spared, branches))

    def _spared(self, branch: SharedBranch) -> float:
        c = self.constants
        relations, _ = source_of(branch.aggregate)
        below = sum(self.estimate(relation).rows for relation in relations)
        broadcast = c.broadcast if len(relations) > 1 else 0.0
        return (len(branch.readers) - 1) * (below + c.shuffle + broadcast)

    def _added(self, branch: SharedBranch) -> float:
        """Groups that a reader gets and merges, and then drops."""
        c, times = self.constants, len(branch.readers) - 1
        work = 0.0
        for reader in branch.readers:
            known = self.estimate(reader)
            work += known.rows * (c.hashed_row + (c.shuffled_row + known.width * c.shuffled_byte) / 2)
        return times * work
