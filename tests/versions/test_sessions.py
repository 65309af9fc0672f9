"""Sessions, in the smaller suite for every supported Spark: entrances, hints, commands, cached data, faults."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions import doors
from tests.sessions.conftest import planned, pythons, rows
from tests.sessions.fakes import workers
from tests.sessions.test_configure import run as in_a_process_of_its_own
from tests.sessions.test_tpc_through_doors import through_connect, through_spark_sql
from tests.support import tpc
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
    SELECT {} c_name, n_name FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
    JOIN nation ON c_nationkey = n_nationkey WHERE n_name = 'FRANCE' AND l_quantity = 7
"""
SQL = TEXT.format("")


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """An enabled session that was created after the extension was loaded."""
    bridge_of(spark).enable(spark._jsparkSession, *pythons())
    made = spark.newSession()
    made.conf.set("spark.sql.codegen.wholeStage", "false")
    made.conf.set("spark.pyjoinopt.timeout", "30s")
    tpc.register(made, "tpch")
    pyjoinopt.enable(made)
    yield made


def changes(session: SparkSession, text: str) -> list[bool]:
    return [report.changed for report in planned(session, lambda: rows(session.sql(text)))[1]]


@pytest.mark.parametrize(
    "number", [n if n in tpc.REORDERED else pytest.param(n, marks=pytest.mark.slow) for n in range(1, 23)]
)
def test_tpch(session: SparkSession, number: int) -> None:
    text = tpc.spark_queries("tpch")[number]
    found, reports = planned(session, session.sql(text).collect)
    assert [report.error for report in reports if report.error] == []
    assert number not in tpc.REORDERED or any(report.changed for report in reports)
    pyjoinopt.disable(session)
    assert not pyjoinopt.is_enabled(session)
    assert_same_rows(session.sql(text).collect(), found, label=("off", "on"))
    assert bridge_of(session).openHandles() == 0


def test_hints(session: SparkSession) -> None:
    assert changes(session, SQL) == [True]
    assert changes(session, TEXT.format("/*+ KEEP_JOIN_ORDER */")) == [False]
    pyjoinopt.disable(session)
    assert changes(session, SQL) == []
    assert changes(session, TEXT.format("/*+ OPTIMIZE_JOINS(auto) */")) == [True]
    inner = f"SELECT {{}} 1 FROM ({TEXT.format('c_nationkey AS k,')}) x WHERE k = region.r_regionkey"
    exists = "SELECT * FROM region WHERE EXISTS (" + inner + ")"
    assert rows(session.sql(exists.format("/*+ OPTIMIZE_JOINS */"))) == rows(session.sql(exists.format("")))


@pytest.mark.jvm
def test_a_session_that_has_analysed_queries_learns_the_hints(tmp_path: Path) -> None:
    answer, said = in_a_process_of_its_own(
        tmp_path,
        """
spark = builder().getOrCreate()
older = spark.newSession()
plain = [order(one)[0] for one in (spark, older)]
def changed(session, hint):
    before = len(pyjoinopt.last_reports(session))
    count = session.sql(SQL.replace("SELECT", f"SELECT /*+ {hint} */", 1)).first()[0]
    return [count, [report.changed for report in pyjoinopt.last_reports(session)[before:]]]
for session in (spark, older):
    pyjoinopt.enable(session)
answer["kept"] = [changed(session, "KEEP_JOIN_ORDER") for session in (spark, older)]
for session in (spark, older):
    pyjoinopt.disable(session)
answer["asked"] = [changed(session, "OPTIMIZE_JOINS") for session in (spark, older)]
answer["not asked"] = changed(spark, "COALESCE(1)")
answer["plain"] = plain
spark.stop()
""",
    )
    count = answer["plain"][0]
    assert answer["kept"] == [[count, [False]]] * 2
    assert answer["asked"] == [[count, [True]]] * 2
    assert answer["not asked"] == [count, []]
    assert "are ignored in this session" not in said


def test_commands_and_cached_data(session: SparkSession) -> None:
    pyjoinopt.disable(session)
    expected = rows(session.sql(SQL))
    pyjoinopt.enable(session)
    session.sql("DROP TABLE IF EXISTS versions_target")
    try:
        _, reports = planned(session, lambda: session.sql(f"CREATE TABLE versions_target USING parquet AS {SQL}"))
        assert any(report.changed for report in reports)
        session.sql(f"INSERT OVERWRITE versions_target {SQL}")
        assert rows(session.table("versions_target")) == expected
    finally:
        session.sql("DROP TABLE IF EXISTS versions_target")
    df = session.sql(SQL).cache()
    try:
        df.count()
        assert "InMemoryTableScan" in session.sql(SQL)._jdf.queryExecution().executedPlan().toString()
    finally:
        df.unpersist()


def test_what_went_wrong_costs_the_order_only(session: SparkSession) -> None:
    expected = rows(session.sql(SQL))
    for worker in workers():
        os.kill(worker, signal.SIGKILL)
    assert rows(session.sql(SQL)) == expected
    pyjoinopt.enable(session, python="/there/is/no/python3")
    assert rows(session.sql(SQL)) == expected


def test_feedback(session: SparkSession, tmp_path: Path) -> None:
    pyjoinopt.enable(session, feedback=True, store=str(tmp_path / "store.sqlite"))
    rows(session.sql(SQL))
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    _, reports = planned(session, lambda: session.sql(f"EXPLAIN {SQL}").collect())
    assert "feedback" in {r.source for report in reports for g in report.groups for r in g.relations}


@pytest.mark.jvm
@pytest.mark.slow
def test_tpch_through_spark_sql(tmp_path: Path) -> None:
    through_spark_sql(tmp_path, "tpch")


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.skipif(not doors.has_jar("spark-connect_*.jar"), reason="this Spark comes without Connect")
def test_tpch_through_connect(tmp_path: Path) -> None:
    through_connect(tmp_path, "tpch")
