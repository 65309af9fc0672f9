"""The runs of DataFrames that calls of `optimize_joins` have made, for the query store and the guard.

    df.optimize_joins(feedback=True).collect()      a run of our plan
    df.optimize_joins(feedback=True).count()        another query, whose time is not that of the DataFrame

A call gets the analysed plan, and the session extension an optimised one, so both have histories of their own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.changed_parts import changes_without_constants
from pyjoinopt.feedback.guard import LikeRuns
from pyjoinopt.feedback.planned_query import PlannedQuery, planned_query, process_name
from pyjoinopt.feedback.query_shape import query_shape
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.report.join_report import JoinReport

_log = logging.getLogger("pyjoinopt")
#: Runs that are awaited, at most.
_MOST = 256
_awaited: dict[int, CallRun] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class CallRun:
    """A query as a call has planned it, whose run can be recorded.

    Attributes:
        query: with the plan that was chosen.
        store: for its runs.
        planning: seconds that the call took; 0 if the query is as written.
        revoked: the reason to run it as written, if our plan is known to be slower; else empty.
    """

    query: PlannedQuery
    store: Store
    planning: float = 0.0
    revoked: str = ""

    def as_written(self, revoked: str = "") -> CallRun:
        """The same query without our plan."""
        return CallRun(replace(self.query, plan=AS_WRITTEN, changes=()), self.store, revoked=revoked)

    def record(self, ended: Mapping[str, Any], warm: bool = False) -> None:
        """Store a run of it. Never raises: the query has its rows.

        Args:
            ended: what the JVM reports of it.
            warm: whether this process has run it before; if not, its runs in the store decide.
        """
        whole = {"ended": time.time(), **ended}
        for name in ("seconds", "planning"):
            whole[name] = float(whole.get(name, 0.0)) + self.planning
        try:
            self.query.record(QueryStore(self.store), whole, process_name(os.getpid()), warm)
        except Exception:
            _log.exception("what a query did is not stored")


def call_run(
    written: LogicalPlan,
    chosen: LogicalPlan,
    conf: Mapping[str, str],
    spark: str,
    report: JoinReport,
    store: Store,
    planning: float,
    guarded: bool,
) -> CallRun | None:
    """What is known of a query that a call has planned. Never raises: None if that failed.

    Args:
        written: the plan as written.
        chosen: the plan of the result; the same object if nothing was changed.
        conf: the settings of its export.
        spark: the version of Spark.
        report: of the call.
        store: for its runs.
        planning: seconds that the call took.
        guarded: whether our plan is revoked if it is known to be slower.
    """
    try:
        query = planned_query(query_shape(written), conf, spark, None)
        if chosen is written:
            return CallRun(query, store)
        query = query.with_plan(query_shape(chosen).shape, changes_without_constants(report, written))
        run, reason = CallRun(query, store, planning), None
        if guarded:
            known = QueryStore(store).runs(query.shape, query.conditions)
            reason = LikeRuns(known, query.bytes, query.cores, time.time()).why_slower(query.plan)
        return run if reason is None else run.as_written(reason)
    except Exception:
        _log.exception("the runs of a query are not recorded")
        return None


def expect(number: int, run: CallRun) -> None:
    """Await the run that the JVM will report under this number."""
    with _lock:
        _awaited[number] = run
        if len(_awaited) > _MOST:
            del _awaited[next(iter(_awaited))]


def is_awaiting() -> bool:
    """Whether any run is awaited."""
    return bool(_awaited)


def ended(run: Mapping[str, Any]) -> None:
    """Record a run that the JVM reports, if it is awaited: the first, since a second one may find results of stages."""
    with _lock:
        awaited = _awaited.pop(int(run.get("query", -1)), None)
    if awaited is not None and "seconds" in run:
        awaited.record(run)
