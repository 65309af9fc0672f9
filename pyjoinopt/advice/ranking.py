"""Runs of the same shape as one query, ranked by the task hours that could be won.

Of each query only counts, one example and its findings are kept, so memory grows with the number of different queries
that have findings, and not with that of their runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyjoinopt.advice.examine import findings_of
from pyjoinopt.advice.finding import Finding, hours, rank
from pyjoinopt.advice.plan_shape import plan_shape
from pyjoinopt.advice.workload import QueryAdvice
from pyjoinopt.eventlog.execution import Execution

#: Findings of one query that are kept; a query with more has one idea many times.
_MOST = 25


@dataclass
class _Query:
    """What is known of the runs of one shape so far."""

    example: Execution
    most: float = -1.0
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)


class Ranking:
    """Collects executions, and ranks their queries.

    Attributes:
        executions: that were added and had ended without an error.
        unfinished: that had not, or had failed; they are not examined.
        task_ms: milliseconds of all tasks of `executions`.
        applications: ids of applications.
    """

    def __init__(self) -> None:
        self.executions = 0
        self.unfinished = 0
        self.task_ms = 0.0
        self.applications: set[str] = set()
        self._runs: dict[str, tuple[int, float]] = {}
        self._queries: dict[str, _Query] = {}

    def add(self, execution: Execution) -> None:
        """Examine one execution, and keep what was found."""
        self.applications.add(execution.application.id)
        if not execution.complete:
            self.unfinished += 1
            return
        self.executions += 1
        self.task_ms += execution.task_ms
        shape = plan_shape(execution.first_plan)
        runs, task_ms = self._runs.get(shape, (0, 0.0))
        self._runs[shape] = runs + 1, task_ms + execution.task_ms
        found = findings_of(execution)
        if not found:
            return
        query = self._queries.setdefault(shape, _Query(_without_plan(execution)))
        won = _won(found)
        if won > query.most:
            query.most, query.example = won, _without_plan(execution)
        for finding in found:
            key = finding.kind, finding.where
            known = query.findings.get(key)
            if known is None and len(query.findings) < _MOST:
                query.findings[key] = finding
            elif known is not None:
                larger = max(known, finding, key=lambda each: (each.hours, each.certainty))
                total, seconds = finding.hours + known.hours, finding.seconds + known.seconds
                query.findings[key] = replace(larger, hours=total, seconds=seconds)

    def ranked(self) -> list[QueryAdvice]:
        """The queries with findings, the one with most to win first.

        What can be won of a query is what its best kind of finding can win: kinds overlap, since they are about the
        same rows.
        """
        found = []
        for shape, query in self._queries.items():
            runs, task_ms = self._runs[shape]
            findings = sorted(query.findings.values(), key=rank)
            won = min(hours(task_ms), _won(findings))
            example = query.example
            found.append(QueryAdvice(
                shape, example.description, example.application.id, example.id, example.started / 1000, runs,
                hours(task_ms), won, max(finding.seconds for finding in findings), tuple(findings),
            ))  # fmt: skip
        return sorted(found, key=_rank)


def _rank(query: QueryAdvice) -> tuple[float, float, bool, str]:
    """The place of a query: those with most to win first, those with hints at statistics alone last."""
    return -query.hours, -query.seconds, query.findings[0].comes_last, query.shape


def _won(findings: Sequence[Finding]) -> float:
    """Task hours that the best kind of finding can win."""
    sums: dict[str, float] = {}
    for finding in findings:
        known = sums.get(finding.kind, 0.0)
        sums[finding.kind] = known + finding.hours if finding.adds_up else max(known, finding.hours)
    return max(sums.values())


def _without_plan(execution: Execution) -> Execution:
    """The execution without its operators, to keep as an example."""
    empty = replace(execution.plan, children=(), subqueries=(), metrics={}, text="", location="")
    return replace(execution, plan=empty, first_plan=empty, stages={}, planned=(), reported=())
