"""Event logs for the tab "Join orders": one that repeats the query of another log, and one of an older release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PACKAGE = "org.apache.spark.sql.pyjoinopt."
PLANNING, PLANNED, EXECUTED = (f"{_PACKAGE}JoinOrders{kind}" for kind in ("Planning", "Planned", "Executed"))
_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
START, END = f"{_SQL}Start", f"{_SQL}End"
_FRAME = ("SparkListenerLogStart", "SparkListenerApplicationStart", "SparkListenerEnvironmentUpdate")


def events(log: Path) -> list[dict[str, Any]]:
    """The events of a log that is not compressed."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def repeated(log: Path, count: int, application: str, query: int = 1) -> Path:
    """A log beside another one, whose application ran one query of it so many times."""
    found = events(log)
    (number,) = {e["executionId"] for e in found if e["Event"] == PLANNED and e["query"] == query}
    kinds = (START, PLANNING, PLANNED, EXECUTED, END)
    ours = [event for event in found if event.get("executionId") == number and event["Event"] in kinds]

    def copies() -> Iterator[dict[str, Any]]:
        for i in range(count):
            for event in ours:
                copy = {**event, "executionId": i, "time": event["time"] + i}
                if "query" in event:
                    copy["query"] = i + 1
                if event["Event"] == START:
                    copy["description"] = f"query number {i + 1}"
                if event["Event"] == PLANNED:
                    report = json.loads(event["report"])
                    copy["report"] = json.dumps({**report, "cost_before": float(i), "changed": i % 2 == 0})
                yield copy

    return _written(log, application, copies())


def of_older_release(log: Path, application: str) -> Path:
    """A log beside another one, in which only reports are of pyjoinopt, and without the fields that came later."""
    fields = ("Event", "executionId", "time", "report")
    kept = [e for e in events(log) if e["Event"] in (START, PLANNED, END)]
    shorter = ({name: e[name] for name in fields} if e["Event"] == PLANNED else e for e in kept)
    return _written(log, application, shorter)


def damaged(log: Path, application: str) -> Path:
    """A log beside another one, whose reports and pictures are not what they should be."""
    found = events(log)
    (first, second) = [e for e in found if e["Event"] == PLANNED][:2]
    broken = [
        {**first, "report": "no JSON {"},
        {**first, "query": 2, "pictures": "no Base64"},
        {**second, "query": 3, "report": '{"groups": 7, "hints": "x", "changed": "yes"}', "pictures": None},
        {**second, "query": 4},
    ]
    return _written(log, application, broken)


def _written(log: Path, application: str, more: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> Path:
    own = [event for event in events(log) if event["Event"] in _FRAME]
    end = [event for event in events(log) if event["Event"] == "SparkListenerApplicationEnd"]
    result = log.with_name(application)
    with result.open("w", encoding="utf-8") as out:
        for event in (*own, *more, *end):
            if "App ID" in event:
                event["App ID"] = application
            # A History Server looks for lines that begin as those of Spark, without blanks.
            out.write(json.dumps(event, separators=(",", ":")) + "\n")
    return result
