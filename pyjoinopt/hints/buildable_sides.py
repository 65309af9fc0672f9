"""Which side of a join may be built: broadcast as a whole, built into hash tables after a shuffle, or neither.

The searches need this of every set of relations, so that the plan whose cost they compute is the plan that Spark will
run, with the hints that it will get. Three things decide:

* what Spark does by itself: it broadcasts what it *estimates* to be small, from file sizes and products of joins;
* what is *expected*: a broadcast is worth a hint if it fits `spark.sql.autoBroadcastJoinThreshold`;
* what is *bounded*: Spark does not check a hint, so it is given only if an upper bound of the rows fits into memory,
  too (`MemoryAllowance`). The bound is proved, or supported by random samples, with an error of one in a million each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, SHUFFLE_HASH
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.plan.nodes import LogicalPlan


class BuildableSidesOf:
    """The sides that may be built, for each join graph of one plan.

    Args:
        conf: Spark's settings.
        sizes: Spark's own estimates of that plan's parts.
        allowance: how large the upper bound of a hinted side may be; zeros if there will be no hints.
    """

    def __init__(self, conf: Mapping[str, str], sizes: SparkSizes, allowance: MemoryAllowance) -> None:
        self._conf = JoinConf.of(conf)
        self._sizes = sizes
        self._allowance = allowance

    def of(self, relations: Sequence[LogicalPlan]) -> BuildableSides:
        """Those of a join graph with these relations."""
        return BuildableSides([self._sizes(plan) for plan in relations], self._conf, self._allowance)


class BuildableSides:
    """Callable: set of vertices, its expected bytes, its estimates -> the most that may be built of it (`Size.build`).

    Args:
        spark_bytes: Spark's own estimate of each vertex, in bytes.
        conf: Spark's settings.
        allowance: how large the upper bound of a hinted side may be; zeros if there will be no hints.
    """

    def __init__(self, spark_bytes: Sequence[float], conf: JoinConf, allowance: MemoryAllowance) -> None:
        self._spark_bytes = spark_bytes
        self._threshold = conf.threshold
        self._adaptive = conf.adaptive_threshold
        self._allowance = allowance

    def __call__(self, relations: int, bytes: float, estimates: GraphEstimates) -> int:
        fits = bytes <= self._threshold
        limit = self._threshold * (self._allowance.broadcast if fits else self._allowance.hashed)
        if bytes <= limit and estimates.likely_bound(relations) * estimates.width(relations) <= limit:
            return BROADCAST_HASH if fits else SHUFFLE_HASH
        if self._broadcast_by_spark(relations):
            return BROADCAST_HASH
        # Adaptive execution knows the size once a side was shuffled, and then builds a hash table instead of sorting.
        return SHUFFLE_HASH if bytes <= self._adaptive else NO_BUILD

    def _broadcast_by_spark(self, relations: int) -> bool:
        product = 1.0
        while relations and product <= self._threshold:
            low = relations & -relations
            relations ^= low
            product *= max(1.0, self._spark_bytes[low.bit_length() - 1])
        return product <= self._threshold
