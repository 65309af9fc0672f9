"""What recurring queries did: `pyjoinopt.queries()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.shim import session_setting
from pyjoinopt.config import PREFIX, resolve
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.compare_runs import geometric_mean
from pyjoinopt.feedback.guard import LikeRuns
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore, Run, StoredQuery

if TYPE_CHECKING:
    import pandas

_LETTERS = 8
_COLUMNS = (
    "query", "tables", "plan", "changes", "runs", "seconds", "fastest", "slowest", "planning", "rows", "spilled",
    "failed", "first", "last", "state",
)  # fmt: skip
_OF_RUNS = (
    "query", "tables", "plan", "changes", "ended", "seconds", "planning", "warm", "cores", "bytes", "rows", "spilled",
    "failed",
)  # fmt: skip


def queries(store: str | None = None, *, runs: bool = False) -> pandas.DataFrame:
    """What the recurring queries of sessions did, as recorded while `feedback` was on.

    A query is recorded without its constants, so that `day = '2026-01-01'` and `day = '2026-01-02'` are one query.
    Sessions record queries with joins to order; calls of `optimize_joins` record none.

    Args:
        store: the path of the store, as in the option `store`; None for that of the active session, or the user's own.
        runs: True for one row a run, instead of one a query and plan.

    Returns:
        A row for each query and plan, the query that ran last at the end: its number (`query`), the tables that it
        reads, `plan` ("as written", or a number) and what that plan changed, the number of runs, their seconds
        (geometric mean, fastest and slowest), the seconds of planning in them, rows read and bytes spilled (the last
        run's), the runs that ran out of memory, when the first and the last kept run ended, and `state`: "in use",
        "revoked" with the reason if the query as written takes less time, or empty for a plan of earlier runs. Up to
        16 runs of each plan are kept.

    Raises:
        TypeError: `store` is no text.

    Example:
        >>> pyjoinopt.queries()                    # doctest: +SKIP
    """
    import pandas

    given: dict[str, Any] = {} if store is None else {"store": store}
    opened = open_store(resolve(given, session_setting(PREFIX + "store")).store)
    known = QueryStore(opened).queries() if opened is not None and opened.path.exists() else ()
    if runs:
        return _typed(pandas.DataFrame([_run(q, r) for q in known for r in q.runs], columns=list(_OF_RUNS)), "ended")
    rows = [_plan(query, plan) for query in known for plan in dict.fromkeys(run.plan for run in query.runs)]
    return _typed(pandas.DataFrame(rows, columns=list(_COLUMNS)), "first", "last")


def _plan(query: StoredQuery, plan: str) -> dict[str, Any]:
    runs = [run for run in query.runs if run.plan == plan]
    seconds = [run.seconds for run in runs if not run.failed] or [float("nan")]
    return {
        **_names(query, runs[-1]),
        "runs": len(runs),
        "seconds": geometric_mean(seconds),
        "fastest": min(seconds),
        "slowest": max(seconds),
        "planning": runs[-1].planning,
        "rows": runs[-1].rows,
        "spilled": runs[-1].spilled,
        "failed": sum(bool(run.failed) for run in runs),
        "first": runs[0].ended,
        "last": runs[-1].ended,
        "state": _state(query, plan),
    }


def _run(query: StoredQuery, run: Run) -> dict[str, Any]:
    values = {name: getattr(run, name) for name in ("ended", "seconds", "planning", "warm", "cores", "bytes", "rows")}
    return {**_names(query, run), **values, "spilled": run.spilled, "failed": run.failed}


def _names(query: StoredQuery, run: Run) -> dict[str, Any]:
    plan = "as written" if run.plan == AS_WRITTEN else run.plan[:_LETTERS]
    return {
        "query": query.shape[:_LETTERS],
        "tables": ", ".join(sorted(set(query.tables))),
        "plan": plan,
        "changes": run.changes,
    }


def _state(query: StoredQuery, plan: str) -> str:
    latest = query.runs[-1]
    reason = LikeRuns(query.runs, latest.bytes, latest.cores, latest.ended).why_slower(plan)
    if reason is not None:
        return f"revoked: {reason}"
    return "in use" if plan == query.runs[-1].plan else ""


def _typed(table: pandas.DataFrame, *moments: str) -> pandas.DataFrame:
    import pandas

    for name in moments:
        table[name] = pandas.to_datetime(table[name].astype("float64"), unit="s", utc=True)
    return table
