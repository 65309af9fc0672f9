"""Sides of joins that could have been broadcast, and broadcasts that were too large.

A side counts as small if its rows, as they were shuffled, need at most half the threshold of the execution. What the
shuffle cost is estimated by the cost model: the price of the join with and without a broadcast, as a share of the task
time of its stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding, hours
from pyjoinopt.advice.operators import above, as_run, data_size, kind, milliseconds, parents_of, pipeline_stages
from pyjoinopt.advice.physical_joins import PhysicalJoin, joins_of
from pyjoinopt.advice.relation_names import name_of
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, Size
from pyjoinopt.cost.spark import SparkCost
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.eventlog.settings import broadcast_threshold
from pyjoinopt.report.render.number_format import memory, quantity

#: A small side is at most this share of the threshold, and the other side so many times as large.
_SHARE, _OTHER = 0.5, 10.0
#: [bytes] A broadcast is large from here on, or from so many times the threshold.
_LARGE, _THRESHOLDS = 1 << 28, 8.0
#: [ms] A broadcast is slow from here on, if it takes this share of the query's time.
_SLOW, _SLOW_SHARE = 10_000.0, 0.2
#: [rows] A broadcast of fewer rows is no matter of its size: it waited for something else.
_ROWS = 100_000
#: Which sides a join of a type may build.
_BUILDABLE = {
    "Inner": ("left", "right"), "LeftOuter": ("right",), "LeftSemi": ("right",), "LeftAnti": ("right",),
    "RightOuter": ("left",),
}  # fmt: skip
_TIMES = ("time to collect", "time to build", "time to broadcast")


@dataclass(frozen=True)
class MissedBroadcast(Finding):
    """A join that shuffled both sides, of which one is small.

    Attributes:
        side: names of the tables of the small side.
        bytes: of that side.
        other_bytes: of the other side.
        threshold: bytes up to which Spark broadcasts in this execution.
    """

    kind: ClassVar[str] = "missed broadcast"
    side: str = ""
    bytes: float = 0.0
    other_bytes: float = 0.0
    threshold: int = 0


@dataclass(frozen=True)
class LargeBroadcast(Finding):
    """A broadcast that is large, or took long.

    Attributes:
        bytes: of the built relation.
        rows: in it.
        milliseconds: to collect, build and send it.
    """

    kind: ClassVar[str] = "large broadcast"
    bytes: float = 0.0
    rows: float = 0.0
    milliseconds: float = 0.0


def missed_broadcasts(execution: Execution) -> Iterator[MissedBroadcast]:
    """The joins of an execution that could have broadcast a side."""
    threshold = broadcast_threshold(execution.settings)
    if threshold <= 0:
        return
    for join in joins_of(execution.plan):
        if join.operator not in ("SortMergeJoin", "ShuffledHashJoin"):
            continue
        sizes = {"left": data_size(join.left), "right": data_size(join.right)}
        for side, other in (("right", "left"), ("left", "right")):
            size, other_size = sizes[side], sizes[other]
            if side not in _BUILDABLE.get(join.join_type, ()) or size is None or other_size is None:
                continue
            if size <= _SHARE * threshold and other_size >= _OTHER * max(size, 1.0):
                found = _missed(execution, join, side, size, other_size)
                if found is not None:
                    yield found
                break


def _missed(
    execution: Execution, join: PhysicalJoin, side: str, size: float, other_size: float
) -> MissedBroadcast | None:
    left, right = join.input_rows
    if left is None or right is None:
        return None
    small, large = (right, left) if side == "right" else (left, right)
    cost, output = SparkCost(), Size(join.rows or 0.0, 0.0)
    with_it = cost.join(Size(large, other_size, NO_BUILD), Size(small, size, BROADCAST_HASH), output)
    without = cost.join(Size(large, other_size, NO_BUILD), Size(small, size, NO_BUILD), output)
    if with_it >= without:
        return None
    stages = pipeline_stages(join.node)
    node = join.right if side == "right" else join.left
    threshold = broadcast_threshold(execution.settings)
    return MissedBroadcast(
        f"{name_of(join.left)} {join.sign} {name_of(join.right)}",
        f"{name_of(node)} has {quantity(small)} rows and {memory(size)}, and was shuffled with the other side "
        f"({memory(other_size)}), although Spark broadcasts up to {memory(threshold)}: give the join a BROADCAST hint, "
        "or the tables statistics (ANALYZE TABLE)",
        hours(milliseconds(execution, stages) * (1.0 - with_it / without)), certainty=0.7,
        surer="a run with the hint", side=name_of(node), bytes=size, other_bytes=other_size,
        threshold=threshold,
    )  # fmt: skip


def large_broadcasts(execution: Execution) -> Iterator[LargeBroadcast]:
    """The broadcasts of an execution that are large or slow."""
    limit = max(_LARGE, _THRESHOLDS * broadcast_threshold(execution.settings))
    parents = parents_of(execution.plan)
    for node in as_run(execution.plan):
        if kind(node) != "BroadcastExchange":
            continue
        size = node.metrics.get("data size", 0.0)
        took = sum(node.metrics.get(name, 0.0) for name in _TIMES)
        slow = took >= max(_SLOW, _SLOW_SHARE * 1000 * (execution.seconds or 0.0))
        rows = node.rows or 0.0
        if rows < _ROWS or (size < limit and not slow):
            continue
        yield LargeBroadcast(
            _join_above(node, parents),
            f"{name_of(node)} was broadcast with {quantity(rows)} rows and {memory(size)}, which took "
            f"{took / 1000:.0f} s on the driver: let Spark shuffle it (a MERGE hint, a lower "
            "threshold), or filter it before",
            seconds=took / 1000, certainty=0.5, surer="a run with the hint", bytes=size, rows=rows,
            milliseconds=took,
        )  # fmt: skip


def _join_above(node: PlanNode, parents: dict[int, PlanNode]) -> str:
    """The join that uses a broadcast, in names of tables."""
    return name_of(next((each for each in above(node, parents) if len(each.children) > 1), node))
