"""The build side of a join, which is hashed or broadcast, and with it the probe side: by type, by hint, by size.

                      may be built left            may be built right
    broadcast hash    inner, right outer           inner, left outer, left single, semi, anti, existence
    shuffled hash     inner, the three outer       all types
    nested loop       any side of any type

A side that would be padded with NULLs or must be streamed to answer "is there a match" cannot be the one that is
copied to every executor. If both sides may and should be built it is the smaller, and the right one if they are even.

The mirror of `JoinSelectionHelper`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyjoinopt.plan.nodes import ANTI, EXISTENCE, FULL, INNER_LIKE, LEFT, RIGHT, SEMI, SINGLE, Hint
from pyjoinopt.plan.spark_defaults import BROADCAST_THRESHOLD

BROADCAST, MERGE, HASH, REPLICATE = "BROADCAST", "SHUFFLE_MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"
#: Strategies that Spark gives itself. PREFER_HASH exists up to Spark 4.2.
NO_BROADCAST_HASH, NO_BROADCAST, PREFER_HASH = (
    "NO_BROADCAST_HASH",
    "NO_BROADCAST_AND_REPLICATION",
    "PREFER_SHUFFLE_HASH",
)

BROADCASTS_LEFT = INNER_LIKE | {RIGHT}
BROADCASTS_RIGHT = INNER_LIKE | {LEFT, SINGLE, SEMI, ANTI, EXISTENCE}
HASHES_LEFT = INNER_LIKE | {LEFT, RIGHT, FULL}
HASHES_RIGHT = HASHES_LEFT | {SEMI, ANTI, EXISTENCE, SINGLE}

_BYTES = re.compile(r"(-?)\s*([0-9]+)\s*([a-z]*)")
_UNITS = {"": 0, "b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4, "p": 5, "pb": 5}


def parse_bytes(text: str) -> int | None:
    """A size as Spark's settings write it; None if it is none.

    >>> parse_bytes("10MB"), parse_bytes("-1"), parse_bytes("20 k"), parse_bytes("many")
    (10485760, -1, 20480, None)
    """
    match = _BYTES.fullmatch(str(text).strip().lower())
    if match is None or match[3] not in _UNITS:
        return None
    return int(match[1] + match[2]) << 10 * _UNITS[match[3]]


@dataclass(frozen=True, slots=True)
class JoinConf:
    """The settings that decide, as Spark comes.

    Attributes:
        threshold: spark.sql.autoBroadcastJoinThreshold.
        shuffle_partitions: how many partitions a shuffle makes.
        prefer_sort_merge: spark.sql.join.preferSortMergeJoin.
        hash_factor: spark.sql.shuffledHashJoinFactor.
        null_aware: spark.sql.optimizeNullAwareAntiJoin.
        null_aware_threshold: spark.sql.optimizeNullAwareAntiJoin.broadcastThreshold (from Spark 4.2.1 on).
        adaptive_threshold: spark.sql.adaptive.autoBroadcastJoinThreshold, which adaptive execution goes by once it has
            counted; -1 if that is off.
    """

    threshold: float = BROADCAST_THRESHOLD
    shuffle_partitions: int = 200
    prefer_sort_merge: bool = True
    hash_factor: float = 3
    null_aware: bool = True
    null_aware_threshold: float = -1
    adaptive_threshold: float = BROADCAST_THRESHOLD

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> JoinConf:
        """From Spark's configuration; a value that cannot be read counts as unset.

        >>> JoinConf.of({"spark.sql.autoBroadcastJoinThreshold": "20kb"}).threshold
        20480
        """
        default = cls()
        threshold = _number(conf, "spark.sql.autoBroadcastJoinThreshold", default.threshold)
        adaptive = _number(conf, "spark.sql.adaptive.autoBroadcastJoinThreshold", threshold)
        return cls(
            threshold,
            _shuffle_partitions(conf, default.shuffle_partitions),
            _flag(conf, "spark.sql.join.preferSortMergeJoin", default.prefer_sort_merge),
            _number(conf, "spark.sql.shuffledHashJoinFactor", default.hash_factor),
            _flag(conf, "spark.sql.optimizeNullAwareAntiJoin", default.null_aware),
            _number(conf, "spark.sql.optimizeNullAwareAntiJoin.broadcastThreshold", default.null_aware_threshold),
            adaptive if _flag(conf, "spark.sql.adaptive.enabled", True) else -1,
        )

    def fits(self, size: float) -> bool:
        """Small enough to broadcast (Spark's `canBroadcastBySize`)."""
        return 0 <= size <= self.threshold

    def fits_hash_table(self, size: float) -> bool:
        """Small enough for a hash table a partition (Spark's `canBuildLocalHashMapBySize`)."""
        product = int(self.threshold) * self.shuffle_partitions
        return size < (product + (1 << 63)) % (1 << 64) - (1 << 63)  # Spark multiplies 64-bit numbers: they wrap

    def much_smaller(self, size: float, other: float) -> bool:
        """Small enough beside the other side to be worth a hash table."""
        return size * self.hash_factor <= other

    def fits_null_aware(self, size: float) -> bool:
        """Small enough to be the right side of a NOT IN that is answered by a hash table."""
        limit = self.null_aware_threshold
        return limit < 0 or 0 <= size <= limit or self.fits(size)


def smaller_side(left: float, right: float) -> str:
    """ "right" if the right side is no larger (Spark's `getSmallerSide`)."""
    return "right" if right <= left else "left"


def broadcast_side(join_type: str, left: float, right: float, conf: JoinConf, hint: Hint, hinted: bool) -> str | None:
    """The side that a broadcast hash join builds (Spark's `getBroadcastBuildSide`).

    Args:
        join_type: the type, as `Join.join_type` has it.
        left, right: sizes as Spark estimates them.
        conf: the settings.
        hint: strategies of the two sides.
        hinted: look at hints only; otherwise at sizes only, but for sides that must not be broadcast.
    """
    if hinted:
        wanted = [strategy == BROADCAST for strategy in hint]
    else:
        wanted = [
            conf.fits(size) and strategy not in (NO_BROADCAST_HASH, NO_BROADCAST)
            for size, strategy in zip((left, right), hint)
        ]
    return _side(wanted[0] and join_type in BROADCASTS_LEFT, wanted[1] and join_type in BROADCASTS_RIGHT, left, right)


def hash_side(
    join_type: str, left: float, right: float, conf: JoinConf, hint: Hint, hinted: bool, spark: tuple[int, int] = (4, 3)
) -> str | None:
    """The side that a shuffled hash join builds (Spark's `getShuffleHashJoinBuildSide`); see `broadcast_side`."""
    if hinted:
        wanted = [strategy == HASH for strategy in hint]
    else:
        wanted = [
            strategy == PREFER_HASH
            and spark < (4, 3)
            or not conf.prefer_sort_merge
            and conf.fits_hash_table(size)
            and conf.much_smaller(size, other)
            for strategy, size, other in ((hint[0], left, right), (hint[1], right, left))
        ]
    return _side(wanted[0] and join_type in HASHES_LEFT, wanted[1] and join_type in HASHES_RIGHT, left, right)


def required_loop_side(join_type: str, hint: Hint) -> str | None:
    """The only side that a nested loop may broadcast (Spark's `getBroadcastNestedLoopJoinBuildSide`)."""
    if hint[0] == NO_BROADCAST or join_type == SINGLE:
        return "right"
    return "left" if hint[1] == NO_BROADCAST else None


def desired_loop_side(join_type: str, left: float, right: float) -> str:
    """The side that a nested loop broadcasts if both would do: of outer joins not the one it must keep whole."""
    if join_type in INNER_LIKE or join_type == FULL:
        return smaller_side(left, right)
    return "left" if join_type in BROADCASTS_LEFT else "right"


def loop_side(join_type: str, left: float, right: float, conf: JoinConf, hint: Hint, hinted: bool) -> str | None:
    """The side that a nested loop broadcasts by hint, or by size; None if neither names one."""
    if hinted:
        wanted = [strategy == BROADCAST for strategy in hint]
    else:
        wanted = [conf.fits(size) and strategy != NO_BROADCAST for size, strategy in zip((left, right), hint)]
    if all(wanted):
        return desired_loop_side(join_type, left, right)
    return "left" if wanted[0] else "right" if wanted[1] else None


def _side(may_left: bool, may_right: bool, left: float, right: float) -> str | None:
    if may_left and may_right:
        return smaller_side(left, right)
    return "left" if may_left else "right" if may_right else None


def _number(conf: Mapping[str, str], key: str, default: float) -> float:
    value = parse_bytes(str(conf.get(key, "")))
    return default if value is None else value


def _flag(conf: Mapping[str, str], key: str, default: bool) -> bool:
    value = str(conf.get(key, default)).strip().lower()
    return value == "true" if value in ("true", "false") else default


def _shuffle_partitions(conf: Mapping[str, str], default: int) -> int:
    """Adaptive execution may start with more partitions than it means to end with."""
    partitions = _number(conf, "spark.sql.shuffle.partitions", default)
    adaptive = _flag(conf, "spark.sql.adaptive.enabled", True)
    if adaptive and _flag(conf, "spark.sql.adaptive.coalescePartitions.enabled", True):
        partitions = _number(conf, "spark.sql.adaptive.coalescePartitions.initialPartitionNum", partitions)
    return int(partitions)
