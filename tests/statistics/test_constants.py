"""Constant expressions have Catalyst's value, and a cast of a column preserves its range."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import IntegerType

import pyjoinopt
from pyjoinopt.api.sessions import disable, enable
from pyjoinopt.estimation.model.comparisons import comparisons
from pyjoinopt.estimation.model.literals import constant_value
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.selectivity import apply_filter, selectivity
from pyjoinopt.plan.expressions import CONSTANT, CURRENT, Attribute, Expression, call, literal, reference

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.ci

ROWS = 100_000
#: Half-hours from 2010 on, days of twenty years, years from 1990 to 2029.
EVENTS = """SELECT id, id % 1000 AS k, timestamp'2010-01-01 00:00:00' + make_dt_interval(0, 0, 0, id * 1800) AS ts,
    timestamp_ntz'2010-01-01 00:00:00' + make_dt_interval(0, 0, 0, id * 1800) AS ntz,
    date_add(date'1998-01-01', int(id % 7305)) AS d, 1262304000 + id * 1800 AS seconds, int(1990 + id % 40) AS d_year,
    date_add(current_date, int(id % 1000) - 500) AS near FROM range(100000)"""
JOINED = "SELECT events.id FROM events JOIN keys ON events.k = keys.k JOIN groups ON keys.g = groups.g WHERE "

CONDITIONS = [
    "ts <= cast('2014-09-12 12:56:22' as timestamp)",
    "ts between date'2010-07-19' and date'2010-12-31'",
    "ts between date'2010-07-19' and date'2010-07-19' + interval '2' month",
    "cast(ts as date) between '2010-07-19' and '2010-12-31'",
    "cast(ts as date) > date'2014-09-12'",
    "cast(ts as date) = date'2010-07-19'",
    "cast(ts as date) in (date'2010-07-19', date'2011-07-19')",
    "to_date(ts) < '2011-01-01'",
    "cast(ts as bigint) < 1330000000",
    "ts < date_trunc('year', timestamp'2013-05-06 07:08:09')",
    "ts < to_timestamp('06.05.2013', 'dd.MM.yyyy')",
    "cast(ts as timestamp_ntz) < timestamp_ntz'2012-01-01 00:00:00'",
    "ntz >= '2012-01-01'",
    "cast(ntz as date) <= date'2011-01-01'",
    "cast(seconds as timestamp) >= '2012-01-01'",
    "seconds >= unix_timestamp(timestamp'2012-01-01 00:00:00')",
    "id <= cast('80000' as int)",
    "id < 8 * 1000 + length('abc')",
    "d_year >= '2000'",
    "d_year = year(date'2000-02-01') + 1",
    "d_year in (1999, 1999 + 1, cast('2001' as int))",
    "d_year between 1999 and case when 1 = 1 then 2001 else 1 / 0 end",
    "d >= to_date('2004-01-01')",
    "d >= to_date('01.01.2004', 'dd.MM.yyyy')",
    "d >= timestamp'2004-01-01 12:00:00'",
    "d > add_months(date'2004-01-01', -6)",
    "d between cast('2000-02-01' as date) and cast('2000-02-01' as date) + interval 60 days",
    "near > current_date - interval '6' month",
    "near >= current_date and near < date_add(current_date, 60)",
    "near <= cast('today' as date)",
    "near < cast(now() as date) - interval 100 days",
    "near > cast(from_utc_timestamp(current_timestamp, current_timezone()) as date)",
    "d_year >= 2000 and current_date > date'2020-01-01'",
]


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    folder: Path = tmp_path_factory.mktemp("constants")
    tables = {
        "events": EVENTS,
        "keys": "SELECT id AS k, id % 10 AS g FROM range(1000)",
        "groups": "SELECT id AS g FROM range(10)",
    }
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # INT96 has no bounds
    for name, text in tables.items():
        session.sql(text).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


def planned(df: DataFrame) -> pyjoinopt.JoinReport:
    """The report of a call that counts nothing over samples."""
    return df.optimize_joins(strict=True, store="off", statistics_without="samples")._pyjoinopt_report


def estimate(report: pyjoinopt.JoinReport) -> float:
    (group,) = report.groups
    return next(relation.rows for relation in group.relations if relation.name == "events")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_estimates_are_near_the_truth(events: SparkSession, condition: str) -> None:
    true = events.table("events").where(condition).count()
    estimated = estimate(planned(events.sql(JOINED + condition)))
    assert true / 1.25 - 50 <= estimated <= true * 1.25 + 50, (condition, true, estimated)


@pytest.mark.parametrize("condition", [c for c in CONDITIONS if "ts" in c])
def test_timestamps_without_bounds_are_counted_over_a_sample(
    events: SparkSession, int96: SparkSession, condition: str
) -> None:
    true = int96.table("events").where(condition).count()
    report = int96.sql(JOINED + condition).optimize_joins(strict=True, store="off", statistics="full")._pyjoinopt_report
    assert true / 1.25 - 100 <= estimate(report) <= true * 1.25 + 100, (condition, true)


@pytest.fixture(scope="module")
def int96(events: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The same tables, where Spark writes timestamps as it does by default."""
    path = str(tmp_path_factory.mktemp("int96") / "events")
    session = events.newSession()
    for name in ("keys", "groups"):
        session.read.parquet(events.table(name).inputFiles()[0]).createOrReplaceTempView(name)
    session.sql(EVENTS).coalesce(1).write.parquet(path)
    session.read.parquet(path).createOrReplaceTempView("events")
    return session


@pytest.fixture(scope="module")
def enabled(events: SparkSession) -> Iterator[SparkSession]:
    enable(events)
    events.conf.set("spark.pyjoinopt.timeout", "60s")
    events.conf.set("spark.pyjoinopt.statisticsWithout", "samples")
    events.conf.set("spark.pyjoinopt.store", "off")
    yield events
    disable(events)


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.ci)])
def test_both_entrances_estimate_alike(enabled: SparkSession, step: int) -> None:
    """There Spark has folded constants and unwrapped casts before; here the exporter and the estimates do."""
    for condition in CONDITIONS[::step]:
        df = enabled.sql(JOINED + condition)
        called = estimate(planned(df))
        df.collect()
        through_the_session = estimate(pyjoinopt.last_reports(enabled)[-1])
        assert called == pytest.approx(through_the_session, rel=0.05, abs=20), condition


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "+05:30"])
def test_the_session_s_time_zone_counts(events: SparkSession, zone: str) -> None:
    before = events.conf.get("spark.sql.session.timeZone")
    events.conf.set("spark.sql.session.timeZone", zone)
    try:
        for condition in (
            "cast(ts as date) = date'2010-07-19'", "ts < '2010-01-11 00:00:00'", "cast(ts as date) < '2010-01-04'"
        ):  # fmt: skip
            true = events.table("events").where(condition).count()
            estimated = estimate(planned(events.sql(JOINED + condition)))
            assert abs(estimated - true) <= 5, (zone, condition, true, estimated)
    finally:
        events.conf.set("spark.sql.session.timeZone", before)


def test_functions_of_users_run_only_with_the_query(events: SparkSession, stand_in_classes: Any) -> None:
    """Neither to learn their value nor to learn whether they reject NULLs."""
    touching = stand_in_classes.delta.standin.Touching
    events.udf.registerJavaFunction("touching", "org.apache.spark.sql.delta.standin.Touching", IntegerType())
    df = events.sql(
        """SELECT events.id FROM events LEFT JOIN keys ON events.k = keys.k JOIN groups ON keys.g = groups.g
        WHERE touching(int(keys.g)) > 3 AND d_year > touching(2000)"""
    )
    before = touching.count()
    planned(df)
    assert touching.count() == before
    assert df.limit(1).count() == 1 and touching.count() > before


# -- in plans made by hand ----------------------------------------------------------------------------------------

DAY = 86_400e6
TS = reference(Attribute(0, 1, "ts", "timestamp"))
D = reference(Attribute(1, 2, "d", "date"))
T = RelationStatistics(
    1000.0,
    16000.0,
    columns={
        0: ColumnStatistics(min=0.0, max=1000 * DAY, nulls=0.0),
        1: ColumnStatistics(min=0.0, max=999.0, nulls=0.5),
    },
)


def cast(e: Expression, to: str, offset: int = 0) -> Expression:
    return Expression("Cast", (e,), to, info={"offset": offset})


def day(number: int) -> Expression:
    return literal(datetime.date(1970, 1, 1) + datetime.timedelta(days=number), "date")


def test_casts_that_cut_off_keep_whole_days() -> None:
    cut = cast(TS, "date")
    shares = {"LessThan": 0.1, "LessThanOrEqual": 0.101, "GreaterThan": 0.899, "GreaterThanOrEqual": 0.9}
    for kind, share in {**shares, "EqualTo": 0.001}.items():
        assert selectivity(call(kind, cut, day(100)), T) == pytest.approx(share), kind
        mirrored = kind.replace("Less", "?").replace("Greater", "Less").replace("?", "Greater")
        assert selectivity(call(mirrored, day(100), cut), T) == pytest.approx(share), mirrored
    left = apply_filter(T, call("EqualTo", cut, day(100)))
    assert (left.rows, left.column(0).min, left.column(0).max) == (pytest.approx(1.0), 100 * DAY, 101 * DAY)
    assert selectivity(call("Not", call("EqualTo", cut, day(100))), T) == pytest.approx(0.999)


def test_the_zone_moves_the_day() -> None:
    (column, kind, constant) = comparisons(call("LessThan", cast(TS, "date", 3600), day(100)))[0]
    assert (column, kind, constant_value(constant)) == (TS.attribute, "LessThan", 100 * DAY - 3600e6)
    midnight = literal(100 * 86_400_000_000, "timestamp")
    (_, _, back) = comparisons(call("LessThan", cast(D, "timestamp", 3600), midnight))[0]
    assert constant_value(back) == pytest.approx(100 + 1 / 24)


def test_casts_within_casts() -> None:
    twice = cast(cast(TS, "date"), "timestamp")
    assert selectivity(call("LessThan", twice, literal(100 * 86_400_000_000, "timestamp")), T) == pytest.approx(0.1)
    assert comparisons(call("LessThan", cast(cast(TS, "string"), "date"), day(3))) == []


def test_null_and_unknown_constants() -> None:
    assert selectivity(call("EqualTo", cast(TS, "date"), literal(None, "date")), T) == 0
    nothing = Expression("CurrentDate", (), "date")
    assert selectivity(call("LessThan", cast(TS, "date"), nothing), T) == pytest.approx(1 / 3)
    evaluated = Expression("CurrentDate", (), "date", 5 | CONSTANT | CURRENT, value=datetime.date(1970, 1, 11))
    assert selectivity(call("LessThan", cast(TS, "date"), evaluated), T) == pytest.approx(0.01)
    assert selectivity(call("LessThan", D, evaluated), T) == pytest.approx(0.005)
