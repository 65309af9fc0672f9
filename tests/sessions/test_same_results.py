"""TPC-H and TPC-DS give the same rows with an enabled and a disabled session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions.conftest import planned
from tests.support import tpc
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_of(spark: SparkSession, benchmark: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.pyjoinopt.timeout", "60s")
    tpc.register(session, benchmark)
    return session


@pytest.fixture(scope="module")
def tpch_session(spark: SparkSession) -> SparkSession:
    return session_of(spark, "tpch")


@pytest.fixture(scope="module")
def tpcds_session(spark: SparkSession) -> SparkSession:
    return session_of(spark, "tpcds")


def check(session: SparkSession, text: str) -> list[pyjoinopt.JoinReport]:
    """Runs the query with the session disabled and enabled; returns the reports of the second run."""
    pyjoinopt.disable(session)
    before = bridge_of(session).openHandles()
    plain = session.sql(text)
    expected = plain.collect()
    pyjoinopt.enable(session)
    df = session.sql(text)
    found, reports = planned(session, df.collect)
    assert plain.schema == df.schema
    assert_same_rows(expected, found, label=("off", "on"))
    assert [report.error for report in reports if report.error] == []
    assert bridge_of(session).openHandles() <= before
    return reports


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=() if n in tpc.REORDERED else pytest.mark.slow) for n in range(1, 23)]
)
def test_tpch(tpch_session: SparkSession, number: int) -> None:
    reports = check(tpch_session, tpc.spark_queries("tpch")[number])
    if number in tpc.REORDERED:
        assert any(report.changed for report in reports)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 100))
def test_tpcds(tpcds_session: SparkSession, number: int) -> None:
    check(tpcds_session, tpc.spark_queries("tpcds")[number])


@pytest.mark.slow
def test_tpcds_is_not_left_alone(tpcds_session: SparkSession) -> None:
    """EXPLAIN plans without running: most queries of three tables or more get another order."""
    pyjoinopt.enable(tpcds_session)
    changed = 0
    for text in tpc.spark_queries("tpcds").values():
        _, reports = planned(tpcds_session, lambda text=text: tpcds_session.sql(f"EXPLAIN {text}").collect())
        assert [report.error for report in reports if report.error] == []
        changed += any(report.changed for report in reports)
    assert changed >= 50
