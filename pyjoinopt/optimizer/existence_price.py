"""Which inner joins that only look for partners are worth a search with semi joins.

The search decides (`alternatives`). A branch with about one partner for each row is not tried: an inner join has as
many rows then, and either side of it may be built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyjoinopt.plan.constructors import aggregate

if TYPE_CHECKING:
    from pyjoinopt.estimation.model.relation_statistics import StatisticsOf
    from pyjoinopt.rewrites.inner_to_semi_joins import ExistenceBranch, ExistenceRegion

#: [rows] of a branch with one key, on average: with fewer it hardly repeats any rows. Ours, not fitted.
_REPEATS = 1.5
#: Branches that are tried alone where all of them together do not pay.
_ALONE = 3

#: Of each region, the branches that become semi joins.
Choice = Sequence[tuple["ExistenceRegion", Sequence["ExistenceBranch"]]]


def choices(regions: Iterable[ExistenceRegion], estimate: StatisticsOf) -> list[Choice]:
    """What is worth a search: all branches that repeat rows, and each alone.

    Args:
        regions: of a plan.
        estimate: statistics of any sub-plan.
    """
    found = [(region, [b for b in region.branches if _repeats(b, estimate)]) for region in regions]
    together = [(region, branches) for region, branches in found if branches]
    alone = [[(region, [branch])] for region, branches in together for branch in branches]
    return [together, *(alone[:_ALONE] if len(alone) > 1 else [])] if together else []


def _repeats(branch: ExistenceBranch, estimate: StatisticsOf) -> bool:
    """Whether a row of the core has several partners in a branch, on average."""
    plan = branch.plan
    return estimate(plan).rows >= _REPEATS * max(1.0, estimate(aggregate(branch.keys, branch.keys, plan)).rows)
