"""The query store as a table, one row a query and plan or a run: data for `pyjoinopt.queries` and `joinopt_queries`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyjoinopt.feedback.compare_runs import geometric_mean
from pyjoinopt.feedback.guard import LikeRuns
from pyjoinopt.feedback.query_store import AS_WRITTEN, Run, StoredQuery

#: The columns of `rows_of_plans`, and of `rows_of_runs`. `StoreFunctions.scala` has the first list with types.
OF_PLANS = (
    "query", "tables", "plan", "changes", "runs", "seconds", "fastest", "slowest", "planning", "task_seconds", "skew",
    "rows", "spilled", "failed", "first", "last", "state",
)  # fmt: skip
OF_RUNS = (
    "query", "tables", "plan", "changes", "ended", "seconds", "planning", "task_seconds", "skew", "warm", "cores",
    "bytes", "rows", "spilled", "failed",
)  # fmt: skip
#: Letters of a hash that are shown.
LETTERS = 8


def rows_of_plans(queries: Iterable[StoredQuery]) -> list[dict[str, Any]]:
    """A row for each query and plan. Seconds are None if no run came to its end; moments are seconds of the epoch."""
    return [_plan(query, plan) for query in queries for plan in dict.fromkeys(run.plan for run in query.runs)]


def rows_of_runs(queries: Iterable[StoredQuery]) -> list[dict[str, Any]]:
    """A row for each run."""
    return [_run(query, run) for query in queries for run in query.runs]


def plan_name(plan: str) -> str:
    """The name of a plan for people: "as written", or the first letters of its hash."""
    return "as written" if plan == AS_WRITTEN else plan[:LETTERS]


def state(query: StoredQuery, plan: str) -> str:
    """Whether a plan is in use or revoked; empty for one of earlier runs."""
    latest = query.runs[-1]
    reason = LikeRuns(query.runs, latest.bytes, latest.cores, latest.ended).why_slower(plan)
    if reason is not None:
        return f"revoked: {reason}"
    return "in use" if plan == latest.plan else ""


def _plan(query: StoredQuery, plan: str) -> dict[str, Any]:
    runs = [run for run in query.runs if run.plan == plan]
    seconds = [run.seconds for run in runs if not run.failed]
    return {
        **_names(query, runs[-1]),
        "runs": len(runs),
        "seconds": geometric_mean(seconds) if seconds else None,
        "fastest": min(seconds, default=None),
        "slowest": max(seconds, default=None),
        "planning": runs[-1].planning,
        "task_seconds": runs[-1].task_seconds,
        "skew": runs[-1].skew,
        "rows": runs[-1].rows,
        "spilled": runs[-1].spilled,
        "failed": sum(bool(run.failed) for run in runs),
        "first": runs[0].ended,
        "last": runs[-1].ended,
        "state": state(query, plan),
    }


def _run(query: StoredQuery, run: Run) -> dict[str, Any]:
    names = _names(query, run)
    return {**names, **{name: getattr(run, name) for name in OF_RUNS if name not in names}}


def _names(query: StoredQuery, run: Run) -> dict[str, Any]:
    return {
        "query": query.shape[:LETTERS],
        "tables": ", ".join(sorted(set(query.tables))),
        "plan": plan_name(run.plan),
        "changes": run.changes,
    }
