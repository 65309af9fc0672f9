"""True row counts and times, from Spark into the store: `report.observe()`, and the listener behind `feedback=True`.

The listener lives in the JVM and keeps the last plans that ran as text; Python fetches them whenever it plans the next
query, and when it ends. No query waits for it, and no thread is started. At its end Python waits a second at most.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from pyjoinopt.bridge.rule_of_thread import OFF, rule_of_thread
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.errors import NotRunError
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.call_runs import CallRun, ended, expect, is_awaiting
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.feedback.match_metrics import Observation
from pyjoinopt.report.executed_run import run_report
from pyjoinopt.report.join_report import JoinReport

_log = logging.getLogger("pyjoinopt")
#: How long Python waits at its end for Spark to report the last query (milliseconds).
_LAST = 1000
_expected: deque[tuple[ExpectedGroup, Store]] = deque(maxlen=256)
_listening: list[tuple[Any, int]] = []  # the shim that listens, and its number there


def let_observe(report: JoinReport, df: Any, shim: Any, watches: Sequence[ExpectedGroup], store: Store | None) -> None:
    """Make `report.observe()` look at this DataFrame."""
    alive = weakref.ref(df)

    def observe() -> list[Observation]:
        frame = alive()
        if frame is None:
            raise NotRunError("the DataFrame of this report is gone; keep a reference to it until its rows are counted")
        executed = shim.executed(frame._jdf)
        if executed is None:
            raise NotRunError(
                "this DataFrame's own query did not run: collect() or toPandas() runs it; for count(), show() and "
                "write, which run another query, switch on the option feedback"
            )
        return [found for watch in watches for found in learn(watch, json.loads(executed), store)]

    report._observer = observe
    report._watches = tuple(watches)


def analyze(report: JoinReport, df: Any, optimised: Any, which: bool | str) -> None:
    """Run a query as written, optimised, or both, and put what it did into its report."""
    shim, watches = bridge_for(df), report._watches
    for name, frame in (("as written", df), ("optimised", optimised)):
        wanted = which is True or (which == "before") == (name == "as written")
        if not wanted or (name == "optimised" and optimised is df and report.runs):
            continue
        executed = executed_plan(shim, frame)
        expected: dict[int, tuple[tuple[str, ...], float]] = {}
        for watch in watches:
            expected.update(watch.located(executed["operators"]))
        report.runs.append(run_report(name, executed, expected))


def executed_plan(shim: Any, df: Any) -> dict[str, Any]:
    """Run a query as it is to its end: what the JVM reports of it (`seconds`, `planning`, `operators`)."""
    with rule_of_thread(df.sparkSession, OFF):
        return dict(json.loads(shim.run(df._jdf)))


def listen(df: Any, shim: Any, watches: Sequence[ExpectedGroup], store: Store) -> None:
    """Expect these groups to run, in whatever query they will be part of."""
    number = int(shim.listen(df._jdf, True))
    _expected.extend((watch, store) for watch in watches if watch.fingerprint is not None)
    if not _listening:
        atexit.register(_last_words)
    _listening[:] = [(shim, number)]


def await_run(df: Any, shim: Any, run: CallRun) -> None:
    """Expect the DataFrame's own query to run for the first time. Never raises: it would run without this."""
    try:
        number = int(shim.expectRun(df._jdf))
        if number >= 0:
            expect(number, run)
    except Exception:
        _log.exception("the run of a query is not recorded")


def listen_for_metrics(shim: Any) -> None:
    """Learn from the queries that have ended since the last time."""
    if not _listening:
        return
    listening, number = _listening[0]
    if listening is not shim:  # of a JVM that has gone
        return
    for run in json.loads(shim.takeExecuted(number)):
        ended(run)
        for watch, store in tuple(_expected):
            try:
                learn(watch, run["operators"], store)
            except Exception:  # of the rows of another query than the one that is planned now
                _log.exception("the rows of a query are not stored")


def learn(watch: ExpectedGroup, plan: Sequence[Any], store: Store | None) -> list[Observation]:
    """The true rows of a group in a plan that was run; they are put into the store, if there is one."""
    rows = watch.observe(plan)
    if store is not None:
        watch.remember(rows, store)
    return watch.observations(rows)


def _last_words() -> None:
    shim = _listening[0][0]
    with contextlib.suppress(Exception):  # the JVM may have gone first
        if is_awaiting():
            shim.awaitListeners(_LAST)
        listen_for_metrics(shim)
