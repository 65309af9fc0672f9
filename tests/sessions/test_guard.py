"""Recurring queries of a session: their runs are recorded, and a plan that took longer is not used again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore, Run, StoredQuery
from tests.sessions import fakes
from tests.sessions.conftest import BAD_ORDER, planned, rows
from tests.sessions.test_feedback import heard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
WITH_SUBQUERY = f"""
    SELECT * FROM ({SQL}) WHERE mid_v >=
      (SELECT min(mid_v) FROM fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k WHERE dim_v = 1 AND fact_v < 4)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def learning(new_session: Callable[[], SparkSession], session: SparkSession, path: Path) -> SparkSession:
    made = new_session()
    pyjoinopt.enable(made, feedback=True, guard="observe", store=str(path), statistics="auto")
    made.conf.set("spark.pyjoinopt.timeout", "60s")
    made.conf.set("spark.pyjoinopt.test.store", str(path))
    return made


def run(session: SparkSession, text: str, times: int = 1) -> None:
    """Run a query, and wait until the worker has stored how long it took."""
    before = len(recorded(session))
    for _ in range(times):
        rows(session.sql(text))
    heard(session)
    until = time.monotonic() + 90  # a worker of another test that hangs is waited for first, for half a minute
    while time.monotonic() < until:
        if len(recorded(session)) >= before + times:
            return
        time.sleep(0.02)
    raise AssertionError(f"{len(recorded(session)) - before} of {times} runs were recorded: {recorded(session)}")


def recorded(session: SparkSession) -> list[Run]:
    """All runs in the store of a session."""
    return [each for query in stored(Path(session.conf.get("spark.pyjoinopt.test.store"))) for each in query.runs]


def stored(path: Path) -> list[StoredQuery]:
    return list(QueryStore(Store(path)).queries())


def pretend(path: Path, seconds: dict[bool, float]) -> None:
    """Change the recorded times: of plans that were changed (True), and of runs as written (False).

    The first run of a driver is not compared with others, so each plan gets one more.
    """
    store = Store(path)
    queries = QueryStore(store)
    known = queries.queries()
    store.write(lambda connection: connection.execute("DELETE FROM run"))
    for query in known:
        for run in (query.runs[0], *query.runs, query.runs[-1]):
            timed = replace(run, seconds=seconds[run.plan != AS_WRITTEN])
            queries.add(query.shape, query.conditions, query.tables, timed)
    store.close()


def as_written(session: SparkSession, text: str, times: int = 2) -> None:
    session.conf.set("spark.pyjoinopt.strategy", "none")
    run(session, text, times)
    session.conf.set("spark.pyjoinopt.strategy", "auto")


def changed(session: SparkSession, text: str) -> tuple[bool, str]:
    """Whether any plan of a query is changed, and the reasons to leave it."""
    _, reports = planned(session, lambda: rows(session.sql(text)))
    return any(r.changed for r in reports), " ".join(refusal.reason for r in reports for refusal in r.refusals)


def test_runs_are_recorded(learning: SparkSession, path: Path) -> None:
    run(learning, SQL, 2)
    run(learning, SQL.replace("fact_v < 4", "fact_v < 3"))
    as_written(learning, SQL, 1)
    (query,) = stored(path)
    assert query.tables == ("dim", "fact", "mid")
    assert [r.warm for r in query.runs] == [False, True, True, True]
    assert [r.plan == AS_WRITTEN for r in query.runs] == [False, False, False, True]
    assert len({r.instance for r in query.runs}) == 2 and len({r.plan for r in query.runs}) == 2
    for each in query.runs:
        assert 0 < each.planning < each.seconds < 120 and each.ended > 1.7e9
        assert 0 <= each.skew <= each.task_seconds < 240
        assert each.rows >= 2000 and each.bytes > 0 and each.cores == 2 and not each.failed
    assert query.runs[0].changes.startswith("((fact ⋈ mid) ⋈ dim) -> (fact ⋈ (mid ⋈ dim))")
    assert not query.runs[-1].changes


def test_the_table_of_queries(learning: SparkSession, path: Path) -> None:
    run(learning, SQL, 2)
    as_written(learning, SQL, 2)
    pretend(path, {True: 9.0, False: 3.0})
    shown = pyjoinopt.queries(str(path))
    assert list(shown["plan"] == "as written") == [False, True] and list(shown["runs"]) == [3, 3]
    assert [round(seconds, 6) for seconds in shown["seconds"]] == [9.0, 3.0]
    assert shown["state"][0].startswith("revoked: this plan took 3.00 times as long") and shown["state"][1] == "in use"
    each = pyjoinopt.queries(str(path), runs=True)
    assert len(each) == 6 and str(each["ended"].dtype).startswith("datetime64")


def test_a_plan_that_took_longer_is_not_used_again(
    learning: SparkSession, path: Path, warnings: Callable[[], list[str]]
) -> None:
    run(learning, SQL, 2)
    expected = sorted(map(tuple, rows(learning.sql(SQL))))
    assert changed(learning, SQL)[0]
    as_written(learning, SQL)
    pretend(path, {True: 9.0, False: 3.0})
    warnings()
    is_changed, reason = changed(learning, SQL)
    assert not is_changed and "this plan took 3.00 times as long" in reason
    assert sorted(map(tuple, rows(learning.sql(SQL)))) == expected
    (warned,) = (line for line in warnings() if "took longer with our plan" in line)
    assert "WARN" in warned and "pyjoinopt.queries()" in warned
    learning.conf.set("spark.pyjoinopt.guard", "off")
    assert changed(learning, SQL)[0]


def test_compare_records_runs_as_written(
    learning: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both plans run as they are, also in this session; only those as written are recorded, without our planning."""
    run(learning, SQL)
    found = pyjoinopt.compare(learning.sql(SQL), repeat=2)
    assert found.report.changed and found.same
    run(learning, SQL)
    (query,) = stored(path)
    assert [each.plan == AS_WRITTEN for each in query.runs] == [False, True, True, False]
    assert all(0 < each.planning < each.seconds for each in query.runs)
    assert [each.seconds for each in query.runs[1:3]] == pytest.approx(found.before, abs=0.5)
    assert len(stored(path)) == 1
    pretend(path, {True: 9.0, False: 3.0})
    is_changed, reason = changed(learning, SQL)
    assert not is_changed and "this plan took 3.00 times as long" in reason
    assert pyjoinopt.compare(learning.sql(SQL), repeat=1).report.changed, "it measures our plan in any case"
    many = len(recorded(learning))
    monkeypatch.setattr("pyjoinopt.api.compare._RECORDED", 3)
    pyjoinopt.compare(learning.sql(SQL), repeat=2)
    run(learning, SQL)
    assert len(recorded(learning)) == many + 1, "runs that discard many rows are not compared with others"


@pytest.mark.parametrize("slow", [False, True])
def test_our_planning_is_no_part_of_a_run_as_written(learning: SparkSession, path: Path, slow: bool) -> None:
    """A query whose planning costs more than its plan wins must become known as slower."""
    learning.conf.set("spark.pyjoinopt.strategy", "none")
    if slow:
        fakes.give(learning, python=fakes.fake(path.parent, fakes.SLOW))
    run(learning, SQL, 3)
    (query,) = stored(path)
    assert all(0 < each.planning < each.seconds < 1.8 for each in query.runs[1:])


def test_only_whole_first_runs_are_recorded(learning: SparkSession, path: Path) -> None:
    """Later ones reuse results of stages. A query that was planned before it ran has no time of planning."""
    explained = learning.sql(SQL)
    explained.explain()
    for _ in range(2):
        explained.collect()
    failed = learning.sql(SQL.replace("fact_k,", "IF(fact_v < 4, raise_error('no'), fact_k),"))
    for _ in range(2):
        with pytest.raises(Exception, match="no"):
            failed.collect()
    run(learning, SQL)
    assert [each.planning > 0 for each in recorded(learning)] == [False, True]


def test_our_planning_is_not_subtracted_where_it_is_no_part(learning: SparkSession, path: Path) -> None:
    learning.conf.set("spark.pyjoinopt.strategy", "none")
    fakes.give(learning, python=fakes.fake(path.parent, fakes.SLOW))
    df = learning.sql(SQL)
    df.explain()
    rows(df)
    heard(learning)
    until = time.monotonic() + 60
    while not recorded(learning) and time.monotonic() < until:
        time.sleep(0.02)
    (only,) = recorded(learning)
    assert only.seconds > 0 and only.planning == 0


def test_under_other_settings_it_is_tried_again(learning: SparkSession, path: Path) -> None:
    run(learning, SQL, 2)
    as_written(learning, SQL)
    pretend(path, {True: 9.0, False: 3.0})
    assert not changed(learning, SQL)[0]
    learning.conf.set("spark.sql.shuffle.partitions", "3")
    assert changed(learning, SQL)[0]


def test_a_query_with_subqueries_runs_as_a_whole(learning: SparkSession, path: Path) -> None:
    """Its parts are planned one by one, and all of them run as written, or none."""
    run(learning, WITH_SUBQUERY, 2)
    as_written(learning, WITH_SUBQUERY)
    query = stored(path)[-1]
    assert [r.plan == AS_WRITTEN for r in query.runs] == [False, False, True, True]
    pretend(path, {True: 9.0, False: 3.0})
    _, reports = planned(learning, lambda: rows(learning.sql(WITH_SUBQUERY)))
    assert len(reports) == 2 and not any(r.changed for r in reports)
    assert all("3.00 times as long" in refusal.reason for r in reports for refusal in r.refusals)


def test_exploring(learning: SparkSession, path: Path) -> None:
    learning.conf.set("spark.pyjoinopt.guard", "explore")
    for _ in range(4):
        run(learning, SQL)
    (query,) = stored(path)
    assert [r.plan == AS_WRITTEN for r in query.runs] == [False, False, True, False]


def test_no_constant_is_stored(learning: SparkSession, path: Path) -> None:
    secrets = "dim_v = 1 OR concat('secret', dim_v) IN ('secret1', 'hidden')"
    text = SQL.replace("dim_v = 1", f"({secrets}) AND dim_k < 424242")
    run(learning, text, 2)
    as_written(learning, text)
    content = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())
    assert b"fact" in content and not any(secret in content for secret in (b"secret", b"hidden", b"424242"))


def test_no_value_in_a_path_is_stored(learning: SparkSession, path: Path) -> None:
    """The statistics have the names of folders; what is recorded of queries has not."""
    folder = path.parent / "secret=123"
    learning.table("fact").write.parquet(str(folder / "part=hidden"))
    learning.read.parquet(str(folder / "part=hidden")).createOrReplaceTempView("fact")
    run(learning, SQL, 2)
    learning.table("fact").write.partitionBy("fact_v").parquet(str(path.parent / "parts"))
    learning.read.parquet(str(path.parent / "parts")).createOrReplaceTempView("fact")
    run(learning, SQL.replace("fact_v < 4", "fact_v = 3"), 1)
    names = {name for query in stored(path) for name in query.tables}
    assert names == {"mid", "dim", "parts", path.parent.name}
    assert not any(secret in str(stored(path)) for secret in ("secret", "hidden"))


def test_nothing_is_recorded_without_feedback(learning: SparkSession, path: Path) -> None:
    run(learning, SQL)
    learning.conf.set("spark.pyjoinopt.feedback", "false")
    rows(learning.sql(SQL))
    rows(learning.sql(SQL))
    learning.conf.set("spark.pyjoinopt.feedback", "true")
    run(learning, SQL)
    assert len(recorded(learning)) == 2


def test_the_second_action_on_a_dataframe_is_not_recorded(learning: SparkSession, path: Path) -> None:
    """It may find the results of the first one's stages."""
    frame = learning.sql(SQL)
    rows(frame)
    rows(frame)
    run(learning, SQL)
    assert len(recorded(learning)) == 2


def test_what_is_written_is_another_query(learning: SparkSession, path: Path) -> None:
    run(learning, SQL)
    folder = path.parent / "written"
    learning.sql(SQL).write.parquet(str(folder))
    heard(learning)
    run(learning, SQL)
    shapes = [query.shape for query in stored(path) for _ in query.runs]
    assert len(shapes) == 3 and len(set(shapes)) == 2


def test_partitions_with_other_values(learning: SparkSession, path: Path) -> None:
    """A report of one day is the same query every day, in files and in a table."""
    learning.table("fact").write.partitionBy("fact_v").parquet(str(path.parent / "parts"))
    learning.read.parquet(str(path.parent / "parts")).createOrReplaceTempView("fact")
    for day in (1, 2, 3):
        run(learning, SQL.replace("fact_v < 4", f"fact_v = {day}"))
    learning.sql(f"CREATE TABLE daily USING parquet PARTITIONED BY (fact_v) LOCATION '{path.parent}/t' AS TABLE fact")
    try:
        for day in (1, 2, 3):
            run(learning, SQL.replace("FROM fact", "FROM daily fact").replace("fact_v < 4", f"fact_v = {day}"))
    finally:
        learning.sql("DROP TABLE daily")
    assert [len(query.runs) for query in stored(path)] == [3, 3]
