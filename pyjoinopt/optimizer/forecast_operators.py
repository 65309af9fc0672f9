"""A forecast of how Spark will run each join: with which operator, which side built, and which hint.

A join of a group is found in the finished plan by the leaves below it: only one join is right above these. What Spark
will choose follows from its own estimates of sizes (`catalyst.planner.size_in_bytes`) and from its own rule
(`catalyst.planner.join_selection`). The forecast is of Spark's planner; adaptive execution may choose otherwise once it
has true sizes. With Spark's cost-based estimates switched on, sizes are others than those mirrored here, and there is
no forecast.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.join_selection import JoinOperator, Version, select, version_of
from pyjoinopt.catalyst.planner.size_in_bytes import SizesOf, SparkSizes
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.leaves import leaves_of
from pyjoinopt.plan.nodes import NO_HINT, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.report.model import GroupReport, HintReport, JoinEstimate

_log = logging.getLogger("pyjoinopt")

#: Leaves below a join, as a set of their numbers -> the join, what Spark will run it with, leaves below its left side.
_Foreseen = dict[int, tuple[Join, JoinOperator, int]]

_OTHER = {"left": "right", "right": "left", "": ""}


@dataclass(frozen=True)
class Forecast:
    """What Spark will do with the joins of a plan.

    Attributes:
        before, after: the plan as written, predicates in their places, and as Spark will get it.
        conf: Spark's settings.
        sizes: a whole plan -> Spark's own estimates of its parts.
        spark: Spark's version.
        hints: those that were given, with their reasons.
    """

    before: LogicalPlan
    after: LogicalPlan
    conf: Mapping[str, str]
    sizes: SizesOf
    spark: str = ""
    hints: tuple[HintReport, ...] = ()

    def of(
        self, groups: Sequence[GroupReport], relations: Sequence[Sequence[LogicalPlan]]
    ) -> list[GroupReport]:
        """Groups whose joins have their operators, built sides and hints.

        Args:
            groups: join groups of the plan.
            relations: the plans of each group's relations.
        """
        if not groups or str(self.conf.get("spark.sql.cbo.enabled", "false")).lower() == "true":
            return list(groups)
        try:
            return self._completed(groups, relations)
        except Exception as error:  # a forecast that fails is no reason to lose the order
            _log.warning("how Spark will run the joins cannot be foreseen: %s", error, exc_info=error)
            return list(groups)

    def _completed(
        self, groups: Sequence[GroupReport], relations: Sequence[Sequence[LogicalPlan]]
    ) -> list[GroupReport]:
        number: dict[int, int] = {}
        finished = self._joins(self.after, number)
        written = finished if self.before is self.after else self._joins(self.before, number)
        found = []
        for group, plans in zip(groups, relations, strict=True):
            below = [sum({1 << number.get(id(leaf), len(number)) for leaf in leaves}) for leaves in leaves_of(plans)]
            found.append(
                replace(
                    group,
                    estimated_rows=self._with_operators(group.estimated_rows, below, finished),
                    joins_before=self._with_operators(group.joins_before, below, written),
                )
            )
        return found

    def _joins(self, root: LogicalPlan, number: dict[int, int]) -> _Foreseen:
        return _joins(root, JoinConf.of(self.conf), self.sizes(root), version_of(self.spark), number)

    def _with_operators(
        self, joins: Sequence[JoinEstimate], below: Sequence[int], plan: _Foreseen
    ) -> tuple[JoinEstimate, ...]:
        leaves = list(below)
        completed = []
        for join in joins:
            leaves.append(leaves[join.left] | leaves[join.right])
            found = plan.get(leaves[-1])
            if found is not None:
                node, operator, left = found
                turned = left != leaves[join.left]  # a right join is a left one with its sides exchanged
                build = _OTHER[operator.build or ""] if turned else operator.build or ""
                join = replace(join, operator=operator.name, build=build, hint=self._hint(node))
            completed.append(join)
        return tuple(completed)

    def _hint(self, node: Join) -> str:
        """The hint of a join with its reason, if the hint is not the query's own."""
        if node.hint == NO_HINT or node.condition is None:
            return ""
        side = "left" if node.hint[0] else "right"
        strategy, condition = node.hint[0] or node.hint[1], describe(node.condition, 80)
        for given in self.hints:
            if (given.join, given.strategy, given.side) == (condition, strategy, side):
                return f"{strategy} {side}: {given.reason}"
        return f"{strategy} {side}: yours"


def _joins(
    root: LogicalPlan, settings: JoinConf, spark_sizes: SparkSizes, spark: Version, number: dict[int, int]
) -> _Foreseen:
    below: dict[int, int] = {}
    found: _Foreseen = {}
    for node in post_order(root):
        if node.cached or not node.children:
            below[id(node)] = 1 << number.setdefault(id(node), len(number))
            continue
        leaves = 0
        for child in node.children:
            leaves |= below[id(child)]
        below[id(node)] = leaves
        if isinstance(node, Join):
            operator = select(node, spark_sizes(node.left), spark_sizes(node.right), settings, spark)
            found[leaves] = node, operator, below[id(node.left)]
    return found
