"""Runs of DataFrames that calls have made: they are recorded, and a plan that took longer is not used again."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.feedback import call_runs
from pyjoinopt.feedback.query_store import AS_WRITTEN, Run
from tests.sessions.conftest import BAD_ORDER, BETTER, TABLES
from tests.sessions.test_feedback import heard
from tests.sessions.test_guard import pretend, stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SQL = BAD_ORDER.format(hint="")
#: A driver that runs one query and ends.
PROGRAM = """
import sys
import pyjoinopt
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
for name in ("fact", "mid", "dim"):
    spark.read.parquet(f"{sys.argv[1]}/{name}").createOrReplaceTempView(name)
print(spark.sql(sys.argv[2]).optimize_joins(feedback=True, store=sys.argv[3]).toPandas().shape)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def calling(new_session: Callable[[], SparkSession], path: Path) -> SparkSession:
    """A session without the extension's rule, whose calls record their runs."""
    session = new_session()
    for key, value in (("feedback", "true"), ("store", str(path)), ("strict", "true")):
        session.conf.set(f"spark.pyjoinopt.{key}", value)
    return session


def runs(path: Path) -> list[Run]:
    return [run for query in stored(path) for run in query.runs]


def recorded(session: SparkSession, path: Path, number: int) -> list[Run]:
    """So many runs, when Spark's listener has reported all and a call has stored them."""
    bridge_for(session.table("dim")).awaitListeners(60_000)
    pyjoinopt.join_report(session.table("dim"))
    assert len(runs(path)) == number
    return runs(path)


def call(session: SparkSession, **options: Any) -> DataFrame:
    return session.sql(SQL).optimize_joins(**options)


def test_the_dataframe_itself_is_recorded(calling: SparkSession, path: Path) -> None:
    fast = call(calling)
    assert fast._pyjoinopt_report.changed
    fast.count()
    fast.write.format("noop").mode("overwrite").save()
    fast.collect()
    fast.collect()  # finds the results of stages
    call(calling).toPandas()
    call(calling, strategy="none").collect()
    found = recorded(calling, path, 3)
    assert [run.plan == AS_WRITTEN for run in found] == [False, False, True]
    assert [run.warm for run in found] == [False, True, True] and len({run.plan for run in found}) == 2
    assert all(0 < run.planning < run.seconds < 120 for run in found)
    assert all(run.task_seconds > 0 and run.rows >= 2000 and run.bytes > 0 for run in found)
    assert found[0].changes.startswith(f"((fact ⋈ mid) ⋈ dim) -> {BETTER}") and not found[2].changes
    (query,) = stored(path)
    assert query.tables == ("dim", "fact", "mid")


def test_what_was_run_already_is_not_recorded(calling: SparkSession, path: Path) -> None:
    """It finds the results of stages. A call that changes nothing returns the DataFrame that it got."""
    df, other = calling.sql(SQL), calling.sql(SQL)
    for _ in range(3):
        assert df.optimize_joins(strategy="none") is df
        df.collect()
    other.collect()
    other.optimize_joins(strategy="none").collect()
    text = SQL.replace("fact_k,", "raise_error(CASE WHEN fact_v < 4 THEN 'no' END),")
    failing = calling.sql(text).optimize_joins()
    for _ in range(2):
        with pytest.raises(Exception, match="no"):
            failing.collect()
    call(calling).collect()
    assert [run.plan == AS_WRITTEN for run in recorded(calling, path, 2)] == [True, False]


def test_a_plan_that_took_longer_is_not_used_again(calling: SparkSession, path: Path) -> None:
    expected = sorted(call(calling).collect())
    call(calling).collect()
    for _ in range(2):
        call(calling, strategy="none").collect()
    recorded(calling, path, 4)
    pretend(path, {True: 9.0, False: 3.0})
    fast = call(calling)
    report = fast._pyjoinopt_report
    assert not report.changed and "this plan took 3.00 times as long" in report.to_text()
    assert not report.groups and "reordered" not in report.to_text() and not report.hints
    assert sorted(fast.collect()) == expected
    assert recorded(calling, path, 7)[-1].plan == AS_WRITTEN
    assert call(calling, guard="off")._pyjoinopt_report.changed
    assert pyjoinopt.compare(calling.sql(SQL), repeat=1).report.changed, "it measures our plan in any case"


def test_compare_records_both_plans(
    calling: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pyjoinopt.compare(calling.sql(SQL), repeat=2)
    stored_runs = recorded(calling, path, 4)
    assert all(run.warm for run in stored_runs)
    assert [run.seconds for run in stored_runs if run.plan == AS_WRITTEN] == list(found.before)
    for run, seconds in zip([run for run in stored_runs if run.plan != AS_WRITTEN], found.after, strict=True):
        assert seconds - 0.5 < run.seconds <= seconds, "the call goes on a little after it is known"
    monkeypatch.setattr("pyjoinopt.api.compare._RECORDED", 3)
    pyjoinopt.compare(calling.sql(SQL), repeat=2)
    assert len(recorded(calling, path, 4)) == 4, "runs that discard many rows are not compared with others"
    pretend(path, {True: 9.0, False: 3.0})
    assert not call(calling)._pyjoinopt_report.changed


def test_nothing_is_recorded_without_the_option(calling: SparkSession, path: Path) -> None:
    call(calling, feedback=False).collect()
    call(calling, store="off").collect()
    call(calling).collect()
    assert len(recorded(calling, path, 1)) == 1


def test_a_session_that_records_its_queries_records_them_once(
    session: SparkSession, new_session: Callable[[], SparkSession], path: Path
) -> None:
    made = new_session()
    pyjoinopt.enable(made, feedback=True, store=str(path))
    made.conf.set("spark.pyjoinopt.timeout", "60s")
    call(made).collect()
    heard(made)
    bridge_for(made.table("dim")).awaitListeners(60_000)
    for _ in range(3):  # calls store what is reported
        call(made)
    until = time.monotonic() + 90
    while not runs(path) and time.monotonic() < until:
        time.sleep(0.05)
    (run,) = runs(path)
    assert run.task_seconds > 0


def test_a_session_that_optimises_its_queries(session: SparkSession, path: Path) -> None:
    """Its rule may change what a call has returned, so that is no run of the call's plan."""
    options = {"feedback": True, "store": str(path)}
    call(session, **options).collect()
    call(session, strategy="none", **options).collect()
    bridge_for(session.table("dim")).awaitListeners(60_000)
    call(session, **options)
    assert not runs(path)


def test_a_store_that_fails_costs_no_query(calling: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sorted(calling.sql(SQL).collect())

    def broken(*_: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(call_runs.PlannedQuery, "with_plan", broken)
    assert call(calling)._pyjoinopt_report.changed
    monkeypatch.undo()
    monkeypatch.setattr(call_runs.PlannedQuery, "record", broken)
    fast = call(calling)
    assert sorted(fast.collect()) == expected
    until = time.monotonic() + 60
    number = max(call_runs._awaited)
    while number in call_runs._awaited and time.monotonic() < until:
        assert call(calling)._pyjoinopt_report.changed
        time.sleep(0.05)
    assert number not in call_runs._awaited
    bridge_for(fast).listen(fast._jdf, False)


@pytest.mark.ci
def test_what_ran_last_is_stored_when_python_ends(small_files: Path, path: Path) -> None:
    assert {name for name, _, _ in TABLES} >= {"fact", "mid", "dim"}
    command = [sys.executable, "-c", PROGRAM, str(small_files), SQL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip().startswith("(")
    (run,) = runs(path)
    assert run.plan != AS_WRITTEN and run.seconds > 0
