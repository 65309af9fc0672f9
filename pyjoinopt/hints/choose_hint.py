"""Which hint a join is worth giving, and is safe with.

A hint is a promise that Spark does not check: the hinted side is built, whatever its size. So two things
must hold of it. Its *expected* size must be small enough for the hint to pay. And its *upper bound* must do no harm to
the memory of driver and executors (`allowance`): one that is proved (exact counts, catalog counts, a limit, groups of
which there cannot be more, joins on keys), or one that random samples support, with an error of one in a million for
each of them. A hint is given only where Spark would choose otherwise by itself: it goes by sizes of files and products
of joins.

* **BROADCAST** if the expected bytes fit the threshold; or twice the threshold, where the other side, which need not be
  shuffled then, has ten times as many bytes. (The threshold is about memory, which the bound is for, and an estimate
  that is a little too high should not decide about a large shuffle.) Where Spark would broadcast the other side by
  itself, only if this one is smaller by enough to matter.
* **SHUFFLE_HASH** if they do not, and the other side is much larger: hash tables of the partitions save the sort of
  both sides. Such a table cannot be spilled, but the bytes of the bound fit even if all rows fall into one partition.
  Only a side that could be broadcast is hashed: to hash the row-preserving side of an outer join is no clear gain.
* **MERGE** where Spark would broadcast a side of which so many rows were counted that the driver may not survive it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyjoinopt.catalyst.planner.build_side import (
    BROADCAST,
    BROADCASTS_LEFT,
    BROADCASTS_RIGHT,
    HASH,
    MERGE,
    JoinConf,
    broadcast_side,
)
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.hints.memory_limits import HARMFUL_BROADCAST, LEAST_SAVING, UNKNOWN, MemoryAllowance
from pyjoinopt.plan.nodes import NO_HINT, Hint

#: [factor] A side may be expected to exceed the threshold by so much, if the other side has so many times its bytes.
#: Ours. Measured on TPC-H 12 at scale 10 (10.5 MB and 720 MB), where it took half of the time of shuffling both.
_MODEST_EXCESS, _MUCH_LARGER = 2.0, 10.0


class HintChoice(NamedTuple):
    """A strategy for one side or for none, with the reason either way."""

    left: str | None
    right: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Side:
    name: str
    known: RelationStatistics
    spark_bytes: float

    @property
    def likely_bytes(self) -> float:
        """The bytes of the rows that are not exceeded, by a proof or by samples."""
        return max(self.known.likely_bound * self.known.width, self.known.width)


def join_hint(
    join_type: str,
    left: RelationStatistics,
    right: RelationStatistics,
    left_spark_bytes: float,
    right_spark_bytes: float,
    conf: JoinConf,
    allowance: MemoryAllowance = UNKNOWN,
    existing: Hint = NO_HINT,
    keyed: bool = True,
) -> HintChoice:
    """The hint for a join.

    Args:
        join_type: the type of the join.
        left, right: what is known of the two sides.
        left_spark_bytes, right_spark_bytes: Spark's estimates (`catalyst.planner.size_in_bytes`).
        conf: Spark's settings; with a threshold below 0 nothing is ever hinted.
        allowance: how large the bound of a side that is built may be.
        existing: hints that the query gives; they are never touched.
        keyed: has it keys to hash by? Without, it can be broadcast only.

    >>> small = RelationStatistics(500.0, 20000.0, "footers", False, upper_bound=1000.0)
    >>> large = RelationStatistics(1e9, 1e11, "footers", True, upper_bound=1e9)
    >>> join_hint("Inner", large, small, 1e11, 1e9, JoinConf())
    HintChoice(left=None, right='BROADCAST', reason='at most 1,000 rows (40.0 kB), Spark estimates 1.0 GB')
    """
    if existing != NO_HINT:
        return HintChoice(None, None, "the join has a hint already")
    if conf.threshold < 0:
        return HintChoice(None, None, "broadcasting is switched off")
    sides = _Side("left", left, left_spark_bytes), _Side("right", right, right_spark_bytes)
    itself = broadcast_side(join_type, left_spark_bytes, right_spark_bytes, conf, NO_HINT, hinted=False)
    harmful = None if itself is None else _harmful(sides[itself == "right"], conf)
    allowed = [s for s in sides if join_type in (BROADCASTS_LEFT if s.name == "left" else BROADCASTS_RIGHT)]
    most = conf.threshold * allowance.broadcast
    other = {"left": right, "right": left}
    small = [s for s in _harmless(allowed, most) if is_worth_a_broadcast(s.known.bytes, other[s.name].bytes, conf)]
    if itself is not None and harmful is None:
        built = sides[itself == "right"]
        small = [side for side in small if side is not built and built.known.bytes - side.known.bytes > LEAST_SAVING]
        if not small:
            return HintChoice(None, None, "Spark broadcasts it by itself")
    if small:
        side = min(small, key=_smaller)
        return _chosen(side, BROADCAST, f"{_expected(side, conf, most)}, Spark estimates {_bytes(side.spark_bytes)}")
    if not keyed:
        return HintChoice(None, None, "no side is proved to fit")
    most = conf.threshold * allowance.hashed
    fitting = _harmless(allowed, most)
    much = [side for side in fitting if conf.much_smaller(side.known.bytes, other[side.name].bytes)]
    if much:
        side = min(much, key=_smaller)
        times = other[side.name].bytes / max(1.0, side.known.bytes)
        why = f"{_at_most(side, most)}; the other side is {times:,.0f} times as large and need not be sorted"
        return _chosen(side, HASH, why)
    if harmful is not None:
        return harmful
    return HintChoice(None, None, "no side is proved to fit")


def why_unsafe(
    strategy: str, side: str, join_type: str, known: RelationStatistics, conf: JoinConf, allowance: MemoryAllowance,
    keyed: bool,
) -> str | None:  # fmt: skip
    """The reason not to give a hint that was chosen elsewhere; None if it does no harm.

    Args:
        strategy: BROADCAST, SHUFFLE_HASH or SHUFFLE_MERGE.
        side: "left" or "right", the one that is built.
        join_type: the type of the join.
        known: what is known of that side.
        conf: Spark's settings.
        allowance: how large its bound may be.
        keyed: see `join_hint`.

    >>> large = RelationStatistics(1e9, 1e11, "footers", True, upper_bound=1e9)
    >>> why_unsafe(BROADCAST, "right", "Inner", large, JoinConf(), UNKNOWN, True)
    'the right side may have 1,000,000,000 rows (100.0 GB), more than the 83.9 MB that are safe'
    """
    if strategy == MERGE:
        return None if keyed else "the join has no keys to sort by"
    if conf.threshold < 0:
        return "broadcasting is switched off"
    if join_type not in (BROADCASTS_LEFT if side == "left" else BROADCASTS_RIGHT):
        return f"the {side} side of this type of join cannot be built"
    if strategy == HASH and not keyed:
        return "the join has no keys to hash by"
    most = conf.threshold * (allowance.broadcast if strategy == BROADCAST else allowance.hashed)
    built = _Side(side, known, 0.0)
    if _harmless([built], most):
        return None
    rows = "any number of rows"
    if known.likely_bound < 1e300:
        rows = f"{known.likely_bound:,.0f} rows ({_bytes(built.likely_bytes)})"
    return f"the {side} side may have {rows}, more than the {_bytes(most)} that are safe"


def is_worth_a_broadcast(built: float, probed: float, conf: JoinConf) -> bool:
    """Whether to build a broadcast of so many expected bytes pays, instead of shuffling both sides."""
    return conf.fits(built) or (conf.fits(built / _MODEST_EXCESS) and probed >= _MUCH_LARGER * built)


def _smaller(side: _Side) -> tuple[float, float, bool]:
    """By what of two sides one is built; where they are written decides if nothing else does."""
    return side.known.bytes, side.likely_bytes, side.name == "left"


def _harmless(sides: Sequence[_Side], limit: float) -> list[_Side]:
    """The sides that do no harm when they are built, by a proof or by samples."""
    return [side for side in sides if 0 <= side.likely_bytes <= limit]


def _harmful(side: _Side, conf: JoinConf) -> HintChoice | None:
    """A hint against the broadcast that Spark means to make, if it is counted to be too large."""
    known = side.known
    if not known.exact or known.bytes <= conf.threshold * HARMFUL_BROADCAST:
        return None
    counted = f"{known.rows:,.0f} rows were counted ({_bytes(known.bytes)}), too many to broadcast"
    return _chosen(side, MERGE, f"{counted}; Spark estimates {_bytes(side.spark_bytes)}")


def _chosen(side: _Side, strategy: str, reason: str) -> HintChoice:
    return HintChoice(strategy, None, reason) if side.name == "left" else HintChoice(None, strategy, reason)


def _expected(side: _Side, conf: JoinConf, limit: float) -> str:
    if conf.fits(side.known.bytes_bound):
        return _at_most(side, limit)
    return f"about {side.known.rows:,.0f} rows ({_bytes(side.known.bytes)}), {_at_most(side, limit)}"


def _at_most(side: _Side, limit: float) -> str:
    """The bound that fits a limit: what is proved, if that is enough."""
    known = side.known
    if known.likely is None or known.bytes_bound <= limit:
        return f"at most {known.upper_bound:,.0f} rows ({_bytes(known.bytes_bound)})"
    summary = "sketch" if known.likely.sketched else "sample"
    sampled = f"by a {summary} of {known.likely.sampled:,} rows (error: one in {1 / ASSUMPTIONS.sample_failure:,.0f})"
    return f"at most {known.likely.rows:,.0f} rows ({_bytes(side.likely_bytes)}) {sampled}"


def _bytes(size: float) -> str:
    size = min(size, 1e300)  # products of many joins are larger than a float can be
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    return f"{size:.1e} PB" if size >= 1000 else f"{size:.1f} PB"
