"""What the operators of a physical plan do with rows, and how many rows and bytes they returned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode

#: Operators without a meaning of their own.
WRAPPERS = frozenset({
    "WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan", "ShuffleQueryStage", "BroadcastQueryStage",
    "ResultQueryStage", "TableCacheQueryStage", "AQEShuffleRead", "CustomShuffleReader", "ColumnarToRow",
    "RowToColumnar",
})  # fmt: skip
#: Operators that move or order rows.
MOVERS = frozenset({"Exchange", "BroadcastExchange", "Sort"})
#: Operators that keep every row.
KEEPS_ROWS = WRAPPERS | MOVERS | {"Project"}
#: Their results are those of another operator of the plan.
REUSED = frozenset({"ReusedExchange", "ReusedSubquery"})
LIMITS = frozenset({"LocalLimit", "GlobalLimit", "CollectLimit", "CollectTail", "TakeOrderedAndProject"})
JOINS = frozenset({
    "SortMergeJoin", "BroadcastHashJoin", "ShuffledHashJoin", "BroadcastNestedLoopJoin", "CartesianProduct",
})  # fmt: skip
SCANS = frozenset({"Scan", "BatchScan", "FileScan", "InMemoryTableScan", "HiveTableScan"})
#: Filters that Spark adds at run time, out of the other side of a join: what is left depends on the order.
_RUN_TIME_FILTERS = ("dynamicpruning", "might_contain(")
_STOPPING = LIMITS - {"TakeOrderedAndProject"}
_BLOCKING = frozenset({
    "Exchange", "BroadcastExchange", "Sort", "HashAggregate", "ObjectHashAggregate", "SortAggregate",
})  # fmt: skip
#: Ends of a column reference: `a#12` or `a#12L`.
_ID = re.compile(r"#(\d+)")


def kind(node: PlanNode) -> str:
    """The operator without its number or table, such as `WholeStageCodegen` or `Scan`."""
    return re.split(r"[ (]", node.name, maxsplit=1)[0]


def column_ids(text: str) -> frozenset[int]:
    """The ids of the columns that a text names.

    >>> sorted(column_ids("Filter (isnotnull(a#1) AND (b#2L > 3))"))
    [1, 2]
    """
    return frozenset(map(int, _ID.findall(text)))


def result_rows(node: PlanNode) -> float | None:
    """Rows that an operator returned: its own count, or that of the nearest input below that kept every row.

    An exchange counts the rows that were written into it.
    """
    at: PlanNode | None = node
    while at is not None:
        if at.rows is not None and kind(at) not in WRAPPERS:
            return at.rows
        written = at.metrics.get("shuffle records written")
        if written is not None:
            return written
        keeps = kind(at) in KEEPS_ROWS or kind(at) in REUSED
        at = at.children[0] if keeps and len(at.children) == 1 else None
    return None


def data_size(node: PlanNode) -> float | None:
    """Bytes of an input of a join in memory, from the exchange that shuffled it; None if there is none.

    What a broadcast counts is the size of its hash table, which is another thing.
    """
    at: PlanNode | None = node
    while at is not None:
        if kind(at) == "Exchange" and "data size" in at.metrics:
            return at.metrics["data size"]
        keeps = kind(at) in WRAPPERS or kind(at) in REUSED or kind(at) == "Sort"
        at = at.children[0] if keeps and len(at.children) == 1 else None
    return None


def is_thinned(node: PlanNode) -> bool:
    """Whether a filter made at run time has taken rows away from a sub-plan."""
    return any(has_run_time_filter(each) for each in node.post_order())


def has_run_time_filter(node: PlanNode) -> bool:
    """Whether an operator has a filter that Spark made at run time, out of the other side of a join."""
    return any(word in node.text for word in _RUN_TIME_FILTERS)


def pipeline_stages(node: PlanNode) -> frozenset[int]:
    """The stages that ran an operator; of one that counts nothing, those of its inputs up to the next exchange."""
    if node.stages and kind(node) not in MOVERS:
        return node.stages
    found: set[int] = set()
    stack = [node]
    while stack:
        at = stack.pop()
        if kind(at) in ("Exchange", "BroadcastExchange") or kind(at) in REUSED:
            continue
        if at.stages:
            found |= at.stages
        else:
            stack.extend(at.children)
    return frozenset(found)


def milliseconds(execution: Execution, stages: Iterable[int]) -> float:
    """Task time of some stages of an execution."""
    return sum(execution.stages[stage].run_ms for stage in set(stages) if stage in execution.stages)


def as_run(plan: PlanNode) -> Iterator[PlanNode]:
    """Every operator that ran for itself, what reads it first; subqueries, too.

    What is below a reused exchange or a cached table is another operator's result.
    """
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(_inputs_run(node)))
        stack.extend(node.subqueries if kind(node) not in REUSED else ())


def run_in_order(plan: PlanNode) -> list[PlanNode]:
    """The operators of `as_run`, inputs before what reads them."""
    return list(as_run(plan))[::-1]


def parents_of(plan: PlanNode) -> dict[int, PlanNode]:
    """Object id of an operator of `as_run` -> the operator that reads it; none for the top of a query or subquery."""
    return {id(child): node for node in as_run(plan) for child in _inputs_run(node)}


def above(node: PlanNode, parents: dict[int, PlanNode]) -> Iterator[PlanNode]:
    """The operators above one in its query or subquery, the nearest first.

    Args:
        node: the operator.
        parents: see `parents_of`.
    """
    at = parents.get(id(node))
    while at is not None:
        yield at
        at = parents.get(id(at))


def may_stop_early(plan: PlanNode) -> set[int]:
    """Object ids of the operators that a limit above them may have stopped before they had read all.

    A limit stops the operators below it up to those that read all of their input before they return a row.
    """
    found: set[int] = set()
    for node in as_run(plan):
        if kind(node) in _STOPPING or id(node) in found:
            found.update(id(child) for child in _inputs_run(node) if kind(child) not in _BLOCKING)
    return found


def _inputs_run(node: PlanNode) -> tuple[PlanNode, ...]:
    return () if kind(node) in REUSED or kind(node) == "InMemoryTableScan" else node.children
