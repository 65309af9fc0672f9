"""Both rules in an enabled session, in which Spark has already pruned the columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.guarantee.avoided_joins import tables
from tests.guarantee.avoided_joins.tables import relations, semi_joins
from tests.sessions.conftest import planned, pythons
from tests.support.compare import assert_same_rows
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PAIRS = "t a join t b on a.k = b.k and a.x <> b.x"


@pytest.fixture
def enabled(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    """A session that optimises every query."""
    bridge_of(spark).enable(spark._jsparkSession, *pythons())
    session = session_for_tiny_tables(spark)
    tables.register(session, folder)
    pyjoinopt.enable(session)
    session.conf.set("spark.pyjoinopt.timeout", "30s")
    yield session
    pyjoinopt.disable(session)


@pytest.mark.parametrize(
    "text",
    [
        f"select distinct a.k from {PAIRS} join d on d.k = a.k",
        f"select d.k, z from d left semi join (select a.k from {PAIRS}) q on q.k = d.k",
    ],
)
def test_self_joins(tiny: SparkSession, enabled: SparkSession, text: str) -> None:
    df = enabled.sql(text)
    rows, reports = planned(enabled, df.collect)
    assert [len(report.spared_joins) for report in reports] == [1] and not reports[0].error
    assert semi_joins(df) == semi_joins(tiny.sql(text)) + 1
    assert_same_rows(tiny.sql(text), rows)


@pytest.mark.parametrize(
    "text",
    [
        "select * from (select count(*) c from t where x = 1) a, (select max(y) e from t where x = 2) b, d",
        "select * from (select count(*) c from t join d on t.k = d.k where x = 1) a, "
        "(select count(*) e from t join d on t.k = d.k where x = 2) b",
    ],
)
def test_internal_error_aggregates_over_pruned_columns(tiny: SparkSession, enabled: SparkSession, text: str) -> None:
    """The query must be changed as reported, not left as written because the new plan is refused."""
    df = enabled.sql(text)
    rows, reports = planned(enabled, df.collect)
    assert [len(report.spared_joins) for report in reports] == [1]
    assert not reports[0].error
    assert relations(df) < relations(tiny.sql(text))
    assert_same_rows(tiny.sql(text), rows)
