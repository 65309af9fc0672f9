"""What a join may build of a set of relations: one table that is broadcast, hash tables of its partitions, or nothing.

The searches use this for every set, so that the plan that they cost is the plan that Spark will run, with the hints
that it is going to get. Three things decide:

* what Spark does by itself: it broadcasts what it *estimates* to be small, by file sizes and products of joins;
* what is *expected*: a broadcast is worth a hint if it fits `spark.sql.autoBroadcastJoinThreshold`;
* what is *proved*: a hint is a promise that Spark does not check, so it is given only if the rows that there can be at
  most do no harm, either (`allowance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.cost.size import BROADCAST_TABLE, HASH_TABLES, NO_TABLE
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.plan.nodes import LogicalPlan


class TablesOf:
    """Callable: a plan's join graphs -> their `BuildableSides`, all in one plan.

    Args:
        conf: Spark's settings.
        sizes: Spark's estimates for that plan's parts.
        allowance: what may be proved of what is hinted; zeros if there will be no hints.
    """

    def __init__(
        self, conf: Mapping[str, str], sizes: Callable[[LogicalPlan], int], allowance: MemoryAllowance
    ) -> None:
        self._conf = JoinConf.of(conf)
        self._sizes = sizes
        self._allowance = allowance

    def __call__(self, relations: Sequence[LogicalPlan], estimates: GraphEstimates) -> BuildableSides:
        return BuildableSides(estimates, [self._sizes(plan) for plan in relations], self._conf, self._allowance)


class BuildableSides:
    """Callable: set of vertices, its expected bytes -> the most that may be built of it (`Size.table`).

    Args:
        estimates: bounds of sets.
        believed: Spark's estimate of the bytes of each vertex.
        conf: Spark's settings.
        allowance: what may be proved of what is hinted; zeros if there will be no hints.
    """

    def __init__(
        self, estimates: GraphEstimates, believed: Sequence[float], conf: JoinConf, allowance: MemoryAllowance
    ) -> None:
        self._estimates = estimates
        self._believed = believed
        self._threshold = conf.threshold
        self._adaptive = conf.adaptive_threshold
        self._allowance = allowance

    def __call__(self, relations: int, bytes: float) -> int:
        fits = bytes <= self._threshold
        limit = self._threshold * (self._allowance.broadcast if fits else self._allowance.hashed)
        if bytes <= limit:
            bound = self._estimates.upper_bound(relations) * self._estimates.width(relations)
            if bound <= limit:
                return BROADCAST_TABLE if fits else HASH_TABLES
        if self._broadcast_by_spark(relations):
            return BROADCAST_TABLE
        # Adaptive execution sees the size once a side was shuffled, and then builds a table instead of sorting.
        return HASH_TABLES if bytes <= self._adaptive else NO_TABLE

    def _broadcast_by_spark(self, relations: int) -> bool:
        product = 1.0
        while relations and product <= self._threshold:
            low = relations & -relations
            relations ^= low
            product *= max(1.0, self._believed[low.bit_length() - 1])
        return product <= self._threshold
