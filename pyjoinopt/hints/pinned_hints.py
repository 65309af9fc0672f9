"""The hints of a baseline, on the joins of a plan at hand: the same ones where they are still safe, and no others."""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.feedback.baseline import PinnedHint
from pyjoinopt.feedback.query_shape import tables_of
from pyjoinopt.hints.choose_hint import HintChoice, why_unsafe
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.hints.shuffled_hash_keys import can_be_hashed
from pyjoinopt.plan.nodes import Join

_PINNED = "pinned by a baseline"


class PinnedHints:
    """Hints by the tables of both sides of a join.

    Args:
        hints: of the baselines that are used for this plan.
        conf: Spark's settings.
        allowance: how large the bound of a side that is built may be.
        spark: the version of Spark.
    """

    def __init__(
        self, hints: Iterable[PinnedHint], conf: JoinConf, allowance: MemoryAllowance, spark: str
    ) -> None:
        self._strategies = {(hint.on, hint.other): hint.strategy for hint in hints}
        self._conf, self._allowance, self._spark = conf, allowance, spark

    def of(self, join: Join, left: RelationStatistics, right: RelationStatistics) -> HintChoice:
        """The hint of a join; a reason without a strategy if its baseline has one that is not safe now."""
        tables = tables_of(join.left), tables_of(join.right)
        for side, known, sides in (("right", right, tables[::-1]), ("left", left, tables)):
            strategy = self._strategies.get(sides)
            if strategy is None:
                continue
            keyed = can_be_hashed(join, self._spark)
            problem = why_unsafe(strategy, side, join.join_type, known, self._conf, self._allowance, keyed)
            if problem is not None:
                return HintChoice(None, None, problem)
            on_left, on_right = (strategy, None) if side == "left" else (None, strategy)
            return HintChoice(on_left, on_right, _PINNED)
        return HintChoice(None, None, "")
