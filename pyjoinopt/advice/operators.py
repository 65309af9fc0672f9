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


def with_parents(plan: PlanNode) -> Iterator[tuple[PlanNode, PlanNode | None]]:
    """Every operator with the operator above it, from the top."""
    stack: list[tuple[PlanNode, PlanNode | None]] = [(plan, None)]
    while stack:
        node, parent = stack.pop()
        yield node, parent
        stack.extend((child, node) for child in reversed((*node.children, *node.subqueries)))


def as_run(plan: PlanNode) -> Iterator[tuple[PlanNode, tuple[PlanNode, ...]]]:
    """Every operator that ran once for itself, with those above it in its query or subquery, the nearest last.

    What is below a reused exchange or a cached table is another operator's result.
    """
    stack: list[tuple[PlanNode, tuple[PlanNode, ...]]] = [(plan, ())]
    while stack:
        node, above = stack.pop()
        yield node, above
        if kind(node) not in REUSED and kind(node) != "InMemoryTableScan":
            stack.extend((subquery, ()) for subquery in reversed(node.subqueries))
            stack.extend((child, (*above, node)) for child in reversed(node.children))


def run_in_order(plan: PlanNode) -> list[PlanNode]:
    """The operators of `as_run`, inputs before what reads them."""
    return [node for node, _ in as_run(plan)][::-1]
