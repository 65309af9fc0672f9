"""The last step of the optimisation: hints on the joins of a finished plan.

Spark chooses a join's operator by its estimates of the sizes of its sides, and without a cost-based optimizer a
filter or an aggregate changes these little. Where statistics differ, a hint overrides it; `choose_hint` decides
which and when. None is ever given where you gave one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.size_in_bytes import SizesOf, SparkSizes
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, StatisticsOf, row_width
from pyjoinopt.feedback.baseline import PinnedHint
from pyjoinopt.hints.choose_hint import HintChoice, join_hint
from pyjoinopt.hints.memory_limits import UNKNOWN, MemoryAllowance
from pyjoinopt.hints.pinned_hints import PinnedHints
from pyjoinopt.hints.shuffled_hash_keys import can_be_hashed
from pyjoinopt.plan.expressions import SUBQUERY, describe
from pyjoinopt.plan.nodes import NO_HINT, Hint, Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import HINTS
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.model import HintReport


class HintGiver:
    """Gives hints to the joins of a plan.

    Args:
        estimate: rows, bytes and bound of any sub-plan.
        conf: Spark's settings.
        report: gets one entry a hint.
        sizes: a whole plan -> Spark's estimates for its parts.
        allowance: what may be proved of a side that is built.
        pinned: the hints of baselines, which are given instead of those that pay; None if there are no baselines.
        spark: the version of Spark.
    """

    def __init__(
        self,
        estimate: StatisticsOf,
        conf: Mapping[str, str],
        report: JoinReport,
        sizes: SizesOf,
        allowance: MemoryAllowance = UNKNOWN,
        pinned: Sequence[PinnedHint] | None = None,
        spark: str = "",
    ) -> None:
        self._estimate = estimate
        self._sizes_of = sizes
        self._sizes = SparkSizes(conf)
        self._needed: Mapping[int, int] = {}
        self._join_conf = JoinConf.of(conf)
        self._allowance = allowance
        self._spark = spark
        self._pinned = None if pinned is None else PinnedHints(pinned, self._join_conf, allowance, spark)
        self._report = report
        #: The joins that were given a hint.
        self.hinted: list[Join] = []
        self._hinted: set[int] = set()

    def apply(self, root: LogicalPlan) -> LogicalPlan:
        """The plan with hints; `root` itself if none was worth giving."""
        self._sizes = self._sizes_of(root)
        self._needed = needed_columns(root)
        done: dict[int, LogicalPlan] = {}
        for node in post_order(root):  # what is known is known of these very nodes, not of those that hints make
            hint = self._hint(node)
            plan = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
            if hint != NO_HINT and isinstance(plan, Join):
                plan = plan.with_hint(hint)
                self.hinted.append(plan)
            done[id(node)] = plan
        return done[id(root)]

    def _hint(self, node: LogicalPlan) -> Hint:
        """The hint that a join is worth; none for one that has a hint, or is above one."""
        if self._carries_hint(node):
            self._hinted.add(id(node))
        if not isinstance(node, Join) or node.cached or node.hint != NO_HINT:
            return NO_HINT
        if any(id(child) in self._hinted for child in node.children) or node.condition is None:
            return NO_HINT
        if node.subquery is not None:  # it will be a filter
            return NO_HINT
        if node.condition.contains & SUBQUERY:  # Spark takes it apart only where the join has no hint (ReorderJoin)
            return NO_HINT
        left, right = (pruned(child, self._estimate(child), self._needed) for child in node.children)
        left_hint, right_hint, reason = self._choice(node, left, right)
        if left_hint is None and right_hint is None:
            return NO_HINT
        side = "left" if left_hint else "right"
        strategy = left_hint or right_hint or ""
        self._report.hints.append(HintReport(describe(node.condition, 80), strategy, side, reason))
        return left_hint, right_hint

    def _choice(self, node: Join, left: RelationStatistics, right: RelationStatistics) -> HintChoice:
        if self._pinned is not None:
            found = self._pinned.of(node, left, right)
            if found.left is None and found.right is None and found.reason:
                self._report.refuse("a hint of the baseline", found.reason)
            return found
        return join_hint(
            node.join_type, left, right, self._sizes(node.left), self._sizes(node.right), self._join_conf,
            self._allowance, keyed=can_be_hashed(node, self._spark),
        )  # fmt: skip

    def _carries_hint(self, node: LogicalPlan) -> bool:
        if node.kind in HINTS:
            return True
        looks_through = len(node.children) == 1 or node.kind in ("Intersect", "Except")
        return looks_through and id(node.children[0]) in self._hinted


def pruned(side: LogicalPlan, known: RelationStatistics, needed: Mapping[int, int]) -> RelationStatistics:
    """The estimate of a side of a join without the columns that Spark will prune.

    Args:
        side: of a join.
        known: its estimate with all columns.
        needed: see `needed_columns`; a plan that is not listed needs all.
    """
    read = needed.get(id(side), -1)
    width = row_width([a for a in side.output if read >> a.bit & 1], known.columns)
    return replace(known, bytes=known.rows * width if known.rows >= 1 else width)
