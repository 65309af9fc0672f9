"""Tells a report with which operator Spark will run each join, which side it will build, and what it was hinted.

A join of a group is known again in the finished plan by the leaves below it: only one join stands above just these.
What Spark will choose follows from what it believes of sizes (`spark_sizes`) and from its own rule (`join_selection`).
It is a forecast for Spark's planner: adaptive execution may change its mind when it has seen real sizes. With Spark's
cost-based estimates switched on, sizes are others than those mirrored here, and nothing is said.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.join_selection import JoinOperator, Version, select
from pyjoinopt.catalyst.planner.size_in_bytes import SizesOf, SparkSizes
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.leaves import leaves_of
from pyjoinopt.plan.nodes import NO_HINT, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.model import JoinEstimate

_log = logging.getLogger("pyjoinopt")

#: Leaves below a join, as a set of their numbers -> the join, what Spark will run it with, leaves below its left side.
_Foreseen = dict[int, tuple[Join, JoinOperator, int]]

_OTHER = {"left": "right", "right": "left", "": ""}


def forecast(
    report: JoinReport, before: LogicalPlan, after: LogicalPlan, conf: Mapping[str, str], sizes: SizesOf,
    spark: str = "",
) -> None:  # fmt: skip
    """Complete the joins of the groups that `report` was told of since the last time.

    Args:
        report: its newest groups are of this plan.
        before, after: the plan as written, predicates in their places, and as it will be handed to Spark.
        conf: Spark's settings.
        sizes: a whole plan -> what Spark believes of its parts.
        spark: Spark's version.
    """
    orders, report._ordered = report._ordered, []
    if not orders or str(conf.get("spark.sql.cbo.enabled", "false")).lower() == "true":
        return
    try:
        _complete(report, orders, before, after, conf, sizes, spark)
    except Exception as error:  # a forecast that fails is no reason to lose the order
        _log.warning("how Spark will run the joins cannot be foreseen: %s", error, exc_info=error)


def _complete(
    report: JoinReport, orders: Sequence[Sequence[LogicalPlan]], before: LogicalPlan, after: LogicalPlan,
    conf: Mapping[str, str], sizes: SizesOf, spark: str,
) -> None:  # fmt: skip
    number: dict[int, int] = {}
    settings, version = JoinConf.of(conf), _version(spark)
    finished = _joins(after, settings, sizes(after), version, number)
    written = finished if before is after else _joins(before, settings, sizes(before), version, number)
    first = len(report.groups) - len(orders)
    for i, relations in enumerate(orders, first):
        group = report.groups[i]
        below = [sum({1 << number.get(id(leaf), len(number)) for leaf in leaves}) for leaves in leaves_of(relations)]
        report.groups[i] = replace(
            group,
            estimated_rows=_told(group.estimated_rows, below, finished, report),
            joins_before=_told(group.joins_before, below, written, report),
        )


def _version(spark: str) -> Version:
    parts = spark.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else (4, 3)


def _joins(
    root: LogicalPlan, settings: JoinConf, believed: SparkSizes, spark: Version, number: dict[int, int]
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
            operator = select(node, believed(node.left), believed(node.right), settings, spark)
            found[leaves] = node, operator, below[id(node.left)]
    return found


def _told(
    joins: Sequence[JoinEstimate], below: Sequence[int], plan: _Foreseen, report: JoinReport
) -> tuple[JoinEstimate, ...]:
    leaves = list(below)
    told = []
    for join in joins:
        leaves.append(leaves[join.left] | leaves[join.right])
        found = plan.get(leaves[-1])
        if found is not None:
            node, operator, left = found
            turned = left != leaves[join.left]  # a right join is a left one with its sides exchanged
            build = _OTHER[operator.build or ""] if turned else operator.build or ""
            join = replace(join, operator=operator.name, build=build, hint=_hint(node, report))
        told.append(join)
    return tuple(told)


def _hint(node: Join, report: JoinReport) -> str:
    """The hint of a join with its reason; the reason is in the report, if the hint is not the query's own."""
    if node.hint == NO_HINT or node.condition is None:
        return ""
    side = "left" if node.hint[0] else "right"
    strategy, condition = node.hint[0] or node.hint[1], describe(node.condition, 80)
    for given in report.hints:
        if (given.join, given.strategy, given.side) == (condition, strategy, side):
            return f"{strategy} {side}: {given.reason}"
    return f"{strategy} {side}: yours"
