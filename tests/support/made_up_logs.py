"""Small event logs for tests: executions with plans in a short notation, and the framings of compressed files."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
ROWS = "number of output rows"
EVENT = "org.apache.spark.sql.pyjoinopt.JoinOrdersPlanned"


@dataclass
class Operator:
    """An operator with the values that its metrics get; one without values has the metric of rows, with 0."""

    name: str
    text: str = ""
    children: Sequence[Operator] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    stage: int = 0


def op(
    name: str, text: str = "", *children: Operator, rows: float | None = None, stage: int = 0, **more: float
) -> Operator:
    """An operator; further metrics are named with underscores for blanks."""
    metrics = {key.replace("_", " "): value for key, value in more.items()}
    if rows is not None:
        metrics[ROWS] = rows
    return Operator(name, text or name, children, metrics, stage)


@dataclass
class LogWriter:
    """The events of a log.

    Attributes:
        events: so far, as objects.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    def start(self, **properties: str) -> LogWriter:
        """The application and its properties; dots are written as underscores."""
        self.events += [
            {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"},
            {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties},
            {"Event": "SparkListenerApplicationStart", "App Name": "made up", "App ID": "app-1", "Timestamp": 1},
        ]
        return self

    def execution(
        self,
        number: int,
        plan: Operator,
        tasks: Mapping[int, Sequence[float]] | None = None,
        seconds: float = 10.0,
        description: str = "a query",
        error: str = "",
        started: float = 1_700_000_000_000,
        first: Operator | None = None,
        text: str = "",
        reported: Sequence[tuple[str, float, str]] = (),
        **settings: str,
    ) -> LogWriter:
        """One execution with one job.

        Args:
            number: of the execution, the job and (times 100) its stages.
            plan: as it ran.
            tasks: stage of an operator -> milliseconds of each task; one second each by default.
            seconds: of the whole.
            description: of the execution.
            error: why it failed.
            started: milliseconds since 1970.
            first: the plan before adaptive execution; that which ran, by default.
            text: of the plan.
            reported: name, estimated rows and source of each relation in a report of pyjoinopt.
            settings: of the session; dots are written as double underscores.
        """
        by_stage: dict[int, list[dict[str, Any]]] = {}
        info = self._info(plan, by_stage)
        changed = {key.replace("__", "."): value for key, value in settings.items()}
        tasks = dict.fromkeys(by_stage, (1000.0,)) if tasks is None else tasks
        stages = [100 * number + stage for stage in sorted({*by_stage, *tasks})]
        self.events += [
            {
                "Event": _SQL + "SQLExecutionStart", "executionId": number, "description": description,
                "sparkPlanInfo": _without_metrics(self._info(first, {}) if first else info), "time": started,
                "modifiedConfigs": changed, "physicalPlanDescription": text,
            },
            {
                "Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": stages,
                "Properties": {"spark.sql.execution.id": str(number)},
            },
            {"Event": _SQL + "SQLAdaptiveExecutionUpdate", "executionId": number, "sparkPlanInfo": info},
        ]  # fmt: skip
        if reported:
            self.report(number, reported)
        for stage in sorted({*by_stage, *tasks}):
            for ms in tasks.get(stage, ()):
                self.events.append(task_end(100 * number + stage, ms))
            done = {"Stage ID": 100 * number + stage, "Accumulables": by_stage.get(stage, [])}
            self.events.append({"Event": "SparkListenerStageCompleted", "Stage Info": done})
        self.events += [
            {"Event": "SparkListenerJobEnd", "Job ID": number},
            {
                "Event": _SQL + "SQLExecutionEnd", "executionId": number, "time": started + 1000 * seconds,
                "errorMessage": error,
            },
        ]  # fmt: skip
        return self

    def report(self, number: int, reported: Sequence[tuple[str, float, str]]) -> LogWriter:
        """The event of a report of pyjoinopt on an execution."""
        relations = [{"name": name, "rows": rows, "source": source} for name, rows, source in reported]
        report = json.dumps({"groups": [{"relations": relations}]})
        self.events.append({"Event": EVENT, "executionId": number, "time": 1, "report": report})
        return self

    def _info(self, plan: Operator, by_stage: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
        metrics = []
        for name, value in (plan.metrics or {ROWS: 0}).items():
            number = next(self.numbers)
            metrics.append({"name": name, "accumulatorId": number, "metricType": "sum"})
            if value:
                update = {"ID": number, "Name": name, "Value": str(int(value)), "Metadata": "sql"}
                by_stage.setdefault(plan.stage, []).append(update)
        children = [self._info(child, by_stage) for child in plan.children]
        return {"nodeName": plan.name, "simpleString": plan.text, "children": children, "metrics": metrics}

    def text(self, end: bool = True) -> bytes:
        """The log as Spark writes it; `end`: with the end of the application."""
        events = [*self.events, *([{"Event": "SparkListenerApplicationEnd", "Timestamp": 2}] if end else ())]
        return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)

    def write(self, path: Path) -> Path:
        """The log as a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.text())
        return path


def task_end(stage: int, ms: float, read: int = 0, spilled: int = 0) -> dict[str, Any]:
    """The event of a task."""
    metrics = {
        "Executor Run Time": int(ms), "Disk Bytes Spilled": spilled,
        "Shuffle Read Metrics": {"Remote Bytes Read": read, "Local Bytes Read": 0},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 0},
    }  # fmt: skip
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Info": {"Task ID": 1}, "Task Metrics": metrics}


def _without_metrics(info: Mapping[str, Any]) -> dict[str, Any]:
    return {**info, "metrics": [], "children": [_without_metrics(child) for child in info["children"]]}


# -- framings, written as Spark's libraries write them ---------------------------------------------------------------


def compressed(codec: str, data: bytes, block: int = 1000) -> bytes:
    """Data in the framing of a codec, in blocks of so many bytes."""
    import cramjam
    import zstandard

    pieces = [data[at : at + block] for at in range(0, len(data), block)]
    if codec == "zstd":
        return b"".join(zstandard.ZstdCompressor().compress(piece) for piece in pieces)
    if codec == "lz4":
        return b"".join(map(_lz4_block, pieces)) + _lz4_block(b"")
    if codec == "snappy":
        head = b"\x82SNAPPY\x00" + struct.pack(">II", 1, 1)
        blocks = [bytes(cramjam.snappy.compress_raw(piece)) for piece in pieces]
        return head + b"".join(struct.pack(">I", len(each)) + each for each in blocks)
    assert codec == "lzf"
    return b"".join(b"ZV" + (_lzf_literals(piece)) for piece in pieces)


def _lz4_block(piece: bytes) -> bytes:
    import cramjam

    packed = bytes(cramjam.lz4.compress_block(piece, store_size=False)) if piece else b""
    return b"LZ4Block" + struct.pack("<BIII", 0x26, len(packed), len(piece), 0) + packed


def _lzf_literals(piece: bytes) -> bytes:
    runs = [piece[at : at + 32] for at in range(0, len(piece), 32)]
    packed = b"".join(bytes([len(run) - 1]) + run for run in runs)
    return b"\x01" + struct.pack(">HH", len(packed), len(piece)) + packed
