"""`joinopt_queries()` and `joinopt_baselines()`: what the store has, in SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas
import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore, Run
from tests.sessions.conftest import BAD_ORDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store in which one query has three runs of two plans, and one that did not end."""
    path = tmp_path / "it's a store.sqlite"
    queries = QueryStore(Store(path))
    for number, (plan, seconds) in enumerate(((AS_WRITTEN, 2.0), ("e1f2a3b4c5d6", 8.0), ("e1f2a3b4c5d6", 2.0))):
        run = Run("x", plan, "(a ⋈ b)" * bool(plan), "one", False, 2.0, 100.0, 1.7e9 + number, seconds, 0.25, 7.0)
        queries.add("0123456789", "local", ("b", "a"), run)
    failed = Run("y", AS_WRITTEN, "", "one", False, 2.0, 100.0, 1.7e9, 1.0, failed="memory")
    queries.add("9876543210", "local", (), failed)
    return str(path)


@pytest.fixture
def enabled(new_session: Callable[[], SparkSession], store: str) -> SparkSession:
    made = new_session()
    pyjoinopt.enable(made, store=store)
    return made


def same(in_sql: Any, expected: pandas.DataFrame) -> None:
    found = in_sql.toPandas()
    assert list(found.columns) == list(expected.columns)
    zone = str(in_sql.sparkSession.conf.get("spark.sql.session.timeZone"))
    moments = [name for name in expected.columns if isinstance(expected[name].dtype, pandas.DatetimeTZDtype)]
    assert moments
    for name in moments:
        in_utc = found[name].dt.tz_localize(zone).dt.tz_convert("UTC")
        assert ((in_utc - expected[name]).abs() < pandas.Timedelta("1ms")).all()
    found, expected = found.drop(columns=moments), expected.drop(columns=moments)
    pandas.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_queries_are_those_of_the_python_function(enabled: SparkSession, store: str) -> None:
    expected = pyjoinopt.queries(store)
    same(enabled.sql("SELECT * FROM joinopt_queries()"), expected)
    assert sorted(expected["runs"]) == [1, 1, 2]
    slow = enabled.sql("SELECT plan, seconds, tables FROM joinopt_queries() WHERE slowest > 3 ORDER BY seconds")
    assert [tuple(row) for row in slow.collect()] == [("e1f2a3b4", pytest.approx(4.0), "a, b")]
    unended = enabled.sql("SELECT failed FROM joinopt_queries() WHERE seconds IS NULL")
    assert [tuple(row) for row in unended.collect()] == [(1,)]


def test_baselines_are_those_of_the_python_function(enabled: SparkSession, store: str) -> None:
    assert enabled.sql("SELECT * FROM joinopt_baselines()").collect() == []
    pyjoinopt.baselines.pin(enabled.sql(SQL), "daily", store=store, cost="c_out")
    expected = pyjoinopt.baselines.show(store=store)
    expected["options"] = ['{"cost": "c_out"}']
    same(enabled.sql("SELECT * FROM joinopt_baselines()"), expected)


def test_a_store_that_is_off_or_not_there_has_no_rows(new_session: Callable[[], SparkSession], tmp_path: Path) -> None:
    for path in ("off", str(tmp_path / "none.sqlite")):
        made = new_session()
        pyjoinopt.enable(made, store=path)
        assert made.sql("SELECT * FROM joinopt_queries()").collect() == []
        assert made.sql("SELECT * FROM joinopt_baselines()").collect() == []
    assert not (tmp_path / "none.sqlite").exists()


def test_a_session_that_the_driver_has_not_enabled(enabled: SparkSession, spark: SparkSession) -> None:
    other = enabled.newSession()
    other.conf.set("spark.pyjoinopt.storeFunctions", "true")
    for name in ("joinopt_queries", "joinopt_baselines"):
        with pytest.raises(Exception, match=rf"{name}\(\) shows names.*--conf spark.pyjoinopt.storeFunctions"):
            other.sql(f"SELECT * FROM {name}()").collect()
    allowed = '{"spark.pyjoinopt.storeFunctions": "true"}'
    bridge_of(other).setApplicationSettings(other._jsparkSession, allowed)
    assert other.sql("SELECT * FROM joinopt_baselines()").collect() == []
    refused = '{"spark.pyjoinopt.storeFunctions": "false"}'
    bridge_of(other).setApplicationSettings(enabled._jsparkSession, refused)
    with pytest.raises(Exception, match="the application must allow it"):
        enabled.sql("SELECT * FROM joinopt_queries()").collect()


def test_wrong_arguments_and_no_worker(new_session: Callable[[], SparkSession], enabled: SparkSession) -> None:
    with pytest.raises(Exception, match=r"joinopt_queries\(\) takes no arguments"):
        enabled.sql("SELECT * FROM joinopt_queries('x')").collect()
    made = new_session()
    pyjoinopt.enable(made, python="/there/is/no/python3")
    with pytest.raises(Exception, match=r"joinopt_queries\(\) cannot read the store: no worker could read it"):
        made.sql("SELECT * FROM joinopt_queries()").collect()
