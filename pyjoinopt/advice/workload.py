"""Queries that ran, and what could be better about them, as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pyjoinopt.advice.finding import Finding


@dataclass(frozen=True)
class QueryAdvice:
    """All runs of one query, without regard to its constants, with their findings.

    Attributes:
        shape: twelve hexadecimal digits that the runs share.
        description: of the run with most to win, as Spark's web interface shows it.
        application: id of the application of that run.
        execution: its number there.
        started: when it started, in seconds since 1970.
        runs: that ended without an error.
        task_hours: hours of all tasks of all these runs.
        hours: task hours of them that the best kind of finding could win.
        seconds: seconds of all runs that a finding about uneven work could win.
        findings: the one with most to win first; their hours and seconds are those of all runs.
    """

    shape: str
    description: str
    application: str
    execution: int
    started: float
    runs: int
    task_hours: float
    hours: float
    seconds: float
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data."""
        return {
            "shape": self.shape, "description": self.description, "application": self.application,
            "execution": self.execution, "started": self.started, "runs": self.runs, "task_hours": self.task_hours,
            "hours": self.hours, "seconds": self.seconds,
            "findings": [finding.to_dict() for finding in self.findings],
        }  # fmt: skip


@dataclass(frozen=True)
class AdviceData:
    """What the event logs of applications show, as data; `Advice` describes the attributes."""

    queries: tuple[QueryAdvice, ...]
    logs: int = 0
    applications: int = 0
    executions: int = 0
    unfinished: int = 0
    task_hours: float = 0.0
    hours: float = 0.0
    found: int = 0
    notes: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, int]:
        """Kind of finding -> number of queries that have it."""
        return dict(Counter(kind for query in self.queries for kind in {f.kind for f in query.findings}))

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, which JSON can hold."""
        return {
            "version": 1, "logs": self.logs, "applications": self.applications, "executions": self.executions,
            "unfinished": self.unfinished, "task_hours": self.task_hours, "hours": self.hours, "found": self.found,
            "queries": [query.to_dict() for query in self.queries], "notes": list(self.notes),
        }  # fmt: skip
