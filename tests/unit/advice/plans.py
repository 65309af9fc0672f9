"""Executions of made-up plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.executions import read_executions
from pyjoinopt.eventlog.files import LogFiles
from pyjoinopt.eventlog.lines import ReadingNotes
from tests.support.made_up_logs import LogWriter, Operator, op


def ran(folder: Path, plan: Operator, tasks: Mapping[int, Sequence[float]] | None = None, **more: Any) -> Execution:
    """The execution of a plan."""
    path = LogWriter().start().execution(1, plan, tasks, **more).write(folder / "app-1")
    (execution,) = read_executions(LogFiles("app-1", (path,)), ReadingNotes())
    return execution


def scan(table: str, columns: str, rows: float, stage: int = 0) -> Operator:
    """A scan with its filter; columns such as `a#1,b#2`."""
    text = f"FileScan parquet spark_catalog.default.{table}[{columns}] Batched: true"
    read = op(f"Scan parquet spark_catalog.default.{table}", text, rows=rows, stage=stage)
    return op("Filter", "Filter isnotnull(x)", read, rows=rows, stage=stage)


def shuffled(child: Operator, rows: float, size: float, stage: int = 0) -> Operator:
    """An input of a sort-merge join."""
    exchange = op(
        "Exchange", "Exchange hashpartitioning(x)", child, stage=stage, data_size=size, shuffle_records_written=rows
    )
    return op("Sort", "Sort [x]", op("ShuffleQueryStage", "", exchange), stage=stage)


def merged(left: Operator, right: Operator, keys: str, rows: float, stage: int = 1, how: str = "Inner") -> Operator:
    """A sort-merge join; keys such as `[a#1], [b#2]`."""
    return op("SortMergeJoin", f"SortMergeJoin {keys}, {how}", left, right, rows=rows, stage=stage)


def broadcast(left: Operator, right: Operator, keys: str, rows: float, how: str = "Inner") -> Operator:
    """A broadcast hash join that builds its right side."""
    text = f"BroadcastHashJoin {keys}, {how}, BuildRight, false"
    exchange = op("BroadcastExchange", "BroadcastExchange HashedRelationBroadcastMode", right, rows=1)
    return op("BroadcastHashJoin", text, left, op("InputAdapter", "", exchange), rows=rows)
