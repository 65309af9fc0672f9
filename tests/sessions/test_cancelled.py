"""Queries that are cancelled during planning, busy workers, and applications that have ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.shim import bridge_of
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.fakes import GREETS, fake, give, gone, workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")


def planning_threads(session: SparkSession) -> list[Any]:
    """The JVM's threads that wait for a worker's response, or for a worker."""
    stacks = session._jvm.java.lang.Thread.getAllStackTraces()
    entries = [(entry.getKey(), entry.getValue()) for entry in stacks.entrySet().toArray()]
    return [t for t, stack in entries if any("pyjoinopt.Workers" in frame.getClassName() for frame in stack)]


def interrupt_all(session: SparkSession, count: int) -> None:
    """Interrupt so many planning threads, as Spark Connect and `FutureAction` do."""
    until = time.monotonic() + 20
    while len(found := planning_threads(session)) < count and time.monotonic() < until:
        time.sleep(0.05)
    assert len(found) == count
    for thread in found:
        thread.interrupt()


def test_a_cancelled_query_does_not_wait_for_its_order(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """One thread waits for the worker's response, one for the worker: both continue at once with the written query,
    and the interrupt flag stays set for Spark."""
    give(session, python=fake(tmp_path, GREETS + "time.sleep(60)"))
    session.conf.set("spark.pyjoinopt.timeout", "60s")
    give(session, workers=1)
    plans = [session.sql(SQL)._jdf.queryExecution().analyzed() for _ in range(2)]
    optimizer = session._jsparkSession.sessionState().optimizer()

    def run(plan: Any) -> tuple[Any, bool]:
        planned_as = optimizer.execute(plan)
        return planned_as, session._jvm.java.lang.Thread.interrupted()

    warnings()
    before = bridge_of(session).openHandles()
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(run, plan) for plan in plans]
        started = time.monotonic()
        interrupt_all(session, 2)
        found = [result.result(timeout=20) for result in results]
    assert time.monotonic() - started < 20
    assert [interrupted for _, interrupted in found] == [True, True]
    assert all("Join" in plan.toString() for plan, _ in found)
    assert [line for line in warnings() if line.startswith("WARN")] == []
    assert gone(str(tmp_path)) and bridge_of(session).openHandles() <= before


def test_a_running_query_that_is_cancelled_leaves_planning_alone(session: SparkSession) -> None:
    """Jobs are cancelled, in the middle: the next query in the same group is planned and runs."""
    expected = rows(session.sql(SQL))
    context = session.sparkContext
    slow = SQL.replace("SELECT", "SELECT reflect('java.lang.Thread', 'sleep', 500L),", 1)

    def run_slowly() -> object:
        context.setJobGroup("mine", "to be cancelled", interruptOnCancel=True)
        try:
            return session.sql(slow).collect()
        except Exception as error:
            return error

    _, reports = planned(session, lambda: session.sql(slow)._jdf.queryExecution().optimizedPlan())
    assert orders(reports) == [BETTER] and len(expected) > 60  # half a second for each row, two at a time
    before = bridge_of(session).openHandles()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_slowly)
        until = time.monotonic() + 30
        while not running.done() and time.monotonic() < until:  # between two jobs there is nothing to cancel
            context.cancelJobGroup("mine")
            time.sleep(0.02)
        error = running.result(timeout=15)
    assert isinstance(error, Exception) and "cancel" in str(error)
    context.setJobGroup("mine", "goes on", interruptOnCancel=True)
    try:
        found, reports = planned(session, lambda: rows(session.sql(SQL)))
        assert (found, orders(reports)) == (expected, [BETTER])
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert bridge_of(session).openHandles() <= before


def test_where_all_workers_stay_busy_it_is_said_once(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    requested, answer = tmp_path / "asked", tmp_path / "answer"
    slow = (
        f"{GREETS}\nimport os\nopen({str(requested)!r}, 'w').close()\n"
        f"while not os.path.exists({str(answer)!r}): time.sleep(0.01)\n"
        "write({'id': request['id'], 'answer': {'edits': None, 'report': {}}})\nread()"
    )
    give(session, python=fake(tmp_path, slow))
    give(session, workers=1)
    session.conf.set("spark.pyjoinopt.timeout", "60s")
    optimizer = session._jsparkSession.sessionState().optimizer()
    plans = [session.sql(SQL)._jdf.queryExecution().analyzed() for _ in range(3)]
    warnings()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(optimizer.execute, plans[0])
        until = time.monotonic() + 30
        while not requested.exists() and time.monotonic() < until:
            time.sleep(0.02)
        session.conf.set("spark.pyjoinopt.timeout", "200ms")
        list(pool.map(optimizer.execute, plans[1:]))
        answer.touch()
        first.result(timeout=60)
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert "all workers (1) were busy for most of 200 ms" in warning and "spark.pyjoinopt.workers" in warning


def test_control_c_is_not_for_the_worker(session: SparkSession) -> None:
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    before = workers()
    for worker in before:
        os.kill(worker, signal.SIGINT)
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert workers() == before


def test_what_a_worker_gets_and_returns(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """It imports no modules from the working directory, and an endless line does not fill the driver's memory."""
    program = (
        "import os, sys\nfor _ in range(50): sys.stderr.write('x' * 1_000_000)\n"
        "sys.stderr.write('\\nsafe path: ' + os.environ['PYTHONSAFEPATH'])\nsys.exit(5)"
    )
    give(session, python=fake(tmp_path, program))
    warnings()
    rows(session.sql(SQL))
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert "ended with code 5; its last error output: safe path: 1" in warning


@pytest.mark.parametrize("key", ["timeout", "prestart"])
def test_a_wrong_setting_is_said_once(session: SparkSession, warnings: Callable[[], list[str]], key: str) -> None:
    wrong = f"wrong-{time.monotonic_ns()}"
    give(session, prestart=wrong) if key == "prestart" else session.conf.set(f"spark.pyjoinopt.{key}", wrong)
    warnings()
    for _ in range(3):
        rows(session.sql(SQL))
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert f"spark.pyjoinopt.{key} is wrong-" in warning and "must be" in warning
