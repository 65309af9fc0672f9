"""Which operator Spark picks for a join, and which side it builds.

The mirror of `JoinSelection` (SparkStrategies.scala): hints first, in Spark's order of precedence; then sizes. It
works from what Spark *believes* (`spark_sizes`), which need not be true.

                      may build left             may build right
    broadcast hash    inner, right outer         inner, left outer, left single, semi, anti, existence
    shuffled hash     inner, the three outer     all types
    nested loop       any side; only the side it prefers without a hint or a size that fits
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyjoinopt.plan.expressions import conjuncts
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    FULL,
    INNER_LIKE,
    LEFT,
    NO_HINT,
    RIGHT,
    SEMI,
    SINGLE,
    Hint,
    Join,
)  # fmt: skip

BROADCAST_HASH = "BroadcastHashJoin"
SHUFFLED_HASH = "ShuffledHashJoin"
SORT_MERGE = "SortMergeJoin"
CARTESIAN = "CartesianProduct"
NESTED_LOOP = "BroadcastNestedLoopJoin"

BROADCAST, MERGE, HASH, REPLICATE = "BROADCAST", "SHUFFLE_MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"
_NEVER_BROADCAST = frozenset({"NO_BROADCAST_HASH", "NO_BROADCAST_AND_REPLICATION"})

BROADCASTS_LEFT = INNER_LIKE | {RIGHT}
BROADCASTS_RIGHT = INNER_LIKE | {LEFT, SINGLE, SEMI, ANTI, EXISTENCE}
_HASHES_LEFT = INNER_LIKE | {LEFT, RIGHT, FULL}
_HASHES_RIGHT = INNER_LIKE | {LEFT, RIGHT, FULL, SEMI, ANTI, EXISTENCE, SINGLE}


@dataclass(frozen=True, slots=True)
class JoinOperator:
    """A physical operator; `build` is the side that is built or broadcast ("left", "right"), if any."""

    name: str
    build: str | None = None


@dataclass(frozen=True, slots=True)
class JoinConf:
    """The settings that decide, as Spark comes."""

    threshold: float = 10485760.0
    shuffle_partitions: int = 200
    prefer_sort_merge: bool = True
    hash_factor: float = 3.0

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> JoinConf:
        """From Spark's configuration; a value that cannot be read counts as unset.

        >>> JoinConf.of({"spark.sql.autoBroadcastJoinThreshold": "-1"}).threshold
        -1.0
        """
        return cls(
            _float(conf, "spark.sql.autoBroadcastJoinThreshold", cls().threshold),
            int(_float(conf, "spark.sql.shuffle.partitions", cls().shuffle_partitions)),
            str(conf.get("spark.sql.join.preferSortMergeJoin", "true")).lower() != "false",
            _float(conf, "spark.sql.shuffledHashJoinFactor", cls().hash_factor),
        )

    def fits(self, size: float) -> bool:
        """Spark's `canBroadcastBySize`."""
        return 0 <= size <= self.threshold


def select_join(
    join_type: str,
    left_bytes: float,
    right_bytes: float,
    conf: JoinConf,
    equi: bool = True,
    hint: Hint = NO_HINT,
    sortable: bool = True,
    hashable: bool = True,
    null_aware: bool = False,
) -> JoinOperator:
    """The operator for a join.

    Args:
        join_type: the type, as `Join.join_type` has it.
        left_bytes, right_bytes: sizes as Spark believes them.
        conf: the settings.
        equi: True if some equality ties the sides.
        hint: strategies of the two sides.
        sortable: False if the keys have no order (maps).
        hashable: False if the keys do not compare byte by byte (a collation), from Spark 4.0 on.
        null_aware: True for a NOT IN over one column: `a = b OR (a = b) IS NULL`.

    >>> select_join("Inner", 1e9, 1e6, JoinConf())
    JoinOperator(name='BroadcastHashJoin', build='right')
    >>> select_join("LeftOuter", 1e6, 1e9, JoinConf())
    JoinOperator(name='SortMergeJoin', build=None)
    """
    if not equi and null_aware and join_type == ANTI and hint == NO_HINT:
        return JoinOperator(BROADCAST_HASH, "right")
    choose = _equi if equi else _loop
    return choose(join_type, left_bytes, right_bytes, conf, hint, sortable, hashable)


def select(node: Join, left_bytes: float, right_bytes: float, conf: JoinConf) -> JoinOperator:
    """The operator for a join of a plan."""
    left, right = node.left.output_set, node.right.output_set
    equi = null_aware = False
    tests = conjuncts(node.condition)
    for e in tests:
        if e.kind in ("EqualTo", "EqualNullSafe"):
            a, b = (child.references for child in e.children)
            straight, crossed = not a & ~left and not b & ~right, not a & ~right and not b & ~left
            equi |= bool(a and b and (straight or crossed))
        if e.kind == "Or" and len(tests) == 1 and [c.kind for c in e.children] == ["EqualTo", "IsNull"]:
            null_aware = e.children[0].same(e.children[1].children[0])
    return select_join(
        node.join_type, left_bytes, right_bytes, conf, equi, node.hint, null_aware=null_aware
    )  # fmt: skip


def _equi(
    kind: str, left: float, right: float, conf: JoinConf, hint: Hint, sortable: bool, hashable: bool
) -> JoinOperator:
    def side(may_left: bool, may_right: bool) -> str | None:
        if may_left and may_right:
            return "right" if right <= left else "left"
        return "left" if may_left else "right" if may_right else None

    hinted = hint[0] == BROADCAST and kind in BROADCASTS_LEFT, hint[1] == BROADCAST and kind in BROADCASTS_RIGHT
    if hashable and (build := side(*hinted)):
        return JoinOperator(BROADCAST_HASH, build)
    if MERGE in hint and sortable and kind != SINGLE:
        return JoinOperator(SORT_MERGE)
    if hashable and (
        build := side(hint[0] == HASH and kind in _HASHES_LEFT, hint[1] == HASH and kind in _HASHES_RIGHT)
    ):
        return JoinOperator(SHUFFLED_HASH, build)
    if REPLICATE in hint and kind in INNER_LIKE:
        return JoinOperator(CARTESIAN)
    fits = [conf.fits(size) and h not in _NEVER_BROADCAST for size, h in zip((left, right), hint)]
    if hashable and (build := side(fits[0] and kind in BROADCASTS_LEFT, fits[1] and kind in BROADCASTS_RIGHT)):
        return JoinOperator(BROADCAST_HASH, build)
    if hashable and not conf.prefer_sort_merge:
        small = conf.threshold * conf.shuffle_partitions
        may_left = kind in _HASHES_LEFT and left < small and left * conf.hash_factor <= right
        may_right = kind in _HASHES_RIGHT and right < small and right * conf.hash_factor <= left
        if build := side(may_left, may_right):
            return JoinOperator(SHUFFLED_HASH, build)
    if sortable and kind != SINGLE:
        return JoinOperator(SORT_MERGE)
    return JoinOperator(CARTESIAN) if kind in INNER_LIKE else JoinOperator(NESTED_LOOP, _preferred(kind, left, right))


def _loop(
    kind: str, left: float, right: float, conf: JoinConf, hint: Hint, sortable: bool, hashable: bool
) -> JoinOperator:
    def broadcast(may_left: bool, may_right: bool) -> JoinOperator | None:
        if may_left and may_right:
            return JoinOperator(NESTED_LOOP, _preferred(kind, left, right))
        return JoinOperator(NESTED_LOOP, "left" if may_left else "right") if may_left or may_right else None

    if hinted := broadcast(hint[0] == BROADCAST, hint[1] == BROADCAST):
        return hinted
    if REPLICATE in hint and kind in INNER_LIKE:
        return JoinOperator(CARTESIAN)
    fits = [conf.fits(s) and h != "NO_BROADCAST_AND_REPLICATION" for s, h in zip((left, right), hint)]
    if fitting := broadcast(fits[0], fits[1]):
        return fitting
    if kind in INNER_LIKE and "NO_BROADCAST_AND_REPLICATION" not in hint:
        return JoinOperator(CARTESIAN)
    return JoinOperator(NESTED_LOOP, _preferred(kind, left, right))


def _preferred(kind: str, left: float, right: float) -> str:
    """The side that a nested loop broadcasts if both would do."""
    if kind in INNER_LIKE or kind == FULL:
        return "right" if right <= left else "left"
    return "left" if kind == RIGHT else "right"


def _float(conf: Mapping[str, str], key: str, default: float) -> float:
    try:
        return float(conf.get(key, default))
    except ValueError:
        return default
