"""Runs a DataFrame's query to its end, or until a limit of time has passed: then its jobs are cancelled."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from uuid import uuid4

from pyjoinopt.bridge.shim import bridge_for

#: Seconds until the jobs that were started since are cancelled, too.
_AGAIN = 0.2


@dataclass(frozen=True)
class TimedRun:
    """What a run did.

    Attributes:
        seconds: until its end, or until it was cancelled.
        cancelled: whether it was.
        operators: of the plan that ran, with their metrics, as the JVM reports them; none if it was cancelled.
    """

    seconds: float
    cancelled: bool = False
    operators: tuple[dict[str, Any], ...] = field(default=(), repr=False)


def run_with_limit(df: Any, seconds: float) -> TimedRun:
    """Run a query, and discard its rows.

    The limit holds for Spark's jobs: those that are running when it has passed are cancelled.

    Args:
        df: a classic DataFrame.
        seconds: the limit; infinite for none.

    Raises:
        Exception: what the query raises by itself.
    """
    context, tag = df.sparkSession.sparkContext, f"pyjoinopt-{uuid4().hex}"
    ended, passed = threading.Event(), threading.Event()

    def cancel_jobs() -> None:
        if ended.wait(min(seconds, threading.TIMEOUT_MAX)):
            return
        passed.set()
        while True:  # a query starts one job after another
            context.cancelJobsWithTag(tag)
            if ended.wait(_AGAIN):
                return

    context.addJobTag(tag)
    started = perf_counter()
    threading.Thread(target=cancel_jobs, daemon=True).start()
    try:
        done = json.loads(bridge_for(df).run(df._jdf))
        return TimedRun(float(done["seconds"]), False, tuple(done["operators"]))
    except KeyboardInterrupt:
        context.cancelJobsWithTag(tag)
        raise
    except Exception:
        if not passed.is_set():
            raise
        return TimedRun(perf_counter() - started, True)
    finally:
        ended.set()
        context.removeJobTag(tag)
