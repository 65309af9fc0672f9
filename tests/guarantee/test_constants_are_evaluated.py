"""Constant expressions are evaluated when a plan is exported: permitted uses of the values, and expressions to skip."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.decode import Export, decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.expressions import CONSTANT, CURRENT, SUBQUERY, Expression, describe
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import Filter
from tests.support.shop import SLOW, analysed, optimised, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(autouse=True)
def ansi(db: SparkSession) -> Iterator[None]:
    """Spark 3.5 has it off by default."""
    db.conf.set("spark.sql.ansi.enabled", "true")
    yield
    db.conf.unset("spark.sql.ansi.enabled")


def exported(df: DataFrame) -> Export:
    bridge = bridge_for(df)
    export = decode(bridge.export(df._jdf, "{}"))
    bridge.release(export.handle)
    return export


def condition(df: DataFrame) -> Expression:
    (found,) = [node for node in exported(df).nodes if isinstance(node, Filter)]
    return found.condition


def constants(df: DataFrame) -> dict[str, object]:
    return {describe(e): e.value for e in exported(df).expressions if e.flags & CONSTANT}


# -- expressions that cannot fail ----------------------------------------------------------------------------------

CHAIN = """SELECT c_id, o0.o_id FROM customers LEFT JOIN orders o0 ON o0.o_customer = c_id
    LEFT JOIN orders o1 ON o1.o_id = o0.o_id LEFT JOIN orders o2 ON o2.o_id = o1.o_id
    LEFT JOIN orders o3 ON o3.o_id = o2.o_id LEFT JOIN orders o4 ON o4.o_id = o3.o_id
    LEFT JOIN vip ON v_customer = o4.o_customer
    WHERE v_rank >= 0 AND o4.o_day >= {}"""


def test_a_chain_of_outer_joins_under_a_current_date(db: SparkSession) -> None:
    """It is planned as with a date literal."""
    months = db.sql("SELECT CAST(months_between(current_date, date'2024-03-01') AS INT) AS m").head()
    assert months is not None
    same = db.sql(f"SELECT current_date - interval '{months.m}' month AS d").head()
    assert same is not None
    orders = []
    for day in (f"date'{same.d}'", f"current_date - interval '{months.m}' month"):
        df = db.sql(CHAIN.format(day))
        _, report = optimised(df)
        assert len(report.eliminated_outer_joins) == 6, report.to_text()
        (group,) = report.groups
        assert group.changed, report.to_text()
        orders.append([join.relations for join in group.estimated_rows])
        unharmed(df, reordered=True)
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    ("predicate", "fallible"),
    [
        ("o_day >= current_date - interval '6' month", False),
        ("o_day >= date'2024-01-01' + interval 60 days", False),
        ("o_day >= to_date('01.02.2024', 'dd.MM.yyyy')", False),
        ("o_id / cast('2' as int) > 1", False),
        ("o_id / (cast('2' as int) - 2) > 1", True),
        ("if(o_id > 3, o_id > cast('5' as int), true)", False),
        ("if(o_id > 3, o_id > cast('x' as int), true)", True),
        ("if(o_id > 3, o_id > 1 / 0, true)", True),
        ("case when o_id > 3 then o_day > date'2024-01-01' + interval 1 month end", False),
        ("if(o_id > 3, o_id > 1 / (day(current_date) - 50), true)", True),  # it holds today only
        ("if(o_id > 3, o_day > current_date, true)", False),
        ("o_id / day(current_date) > 1", True),
        ("coalesce(o_id > 3, to_date('x') > o_day)", True),
        ("o_id > raise_error('no')", True),
        ("cast(cast(o_day as timestamp) as date) > o_day", False),
        ("to_date(cast(o_day as timestamp)) > o_day", False),
        ("to_date(cast(o_day as string)) > o_day", True),
    ],
)
def test_what_may_fail(db: SparkSession, predicate: str, fallible: bool) -> None:
    assert may_throw(condition(db.sql(f"SELECT * FROM orders WHERE {predicate}"))) is fallible


def test_what_fails_when_it_is_evaluated_breaks_nothing(db: SparkSession) -> None:
    never = "case when l_qty > 100 then 1 / 0 when l_qty > 200 then cast('x' as int) else 1 end = 1"
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {never}")
    assert df.count() > 0
    unharmed(df, reordered=True)
    fails = db.sql("SELECT * FROM orders WHERE o_id > 1 / 0")
    assert constants(fails) == {}


# -- expressions that depend on the current time -------------------------------------------------------------------


@pytest.mark.parametrize(
    "moment",
    [
        "current_date", "cast(now() as date)", "cast(localtimestamp() as date)", "date(current_timestamp)",
        "cast('today' as date)", "date_add(current_date, 3)",
        "cast(current_timezone() = 'UTC' as int) + date'2024-01-01'",
    ],
)  # fmt: skip
def test_the_plan_keeps_the_expression(db: SparkSession, moment: str) -> None:
    """A frame that is optimised today and collected tomorrow sees tomorrow's date."""
    df = db.sql(f"SELECT * FROM {SLOW} WHERE o_day <= {moment}")
    fast = unharmed(df, reordered=True)
    (value,) = (e for e in exported(df).expressions if e.flags & CURRENT)
    assert value.value is not None
    names = ("current_date", "now(", "localtimestamp", "current_timestamp", "today", "current_timezone")
    written = [part for part in names if part in analysed(df).lower()]
    assert written and all(part in analysed(fast).lower() for part in written), analysed(fast)


@pytest.mark.parametrize("day", ["current_date", "cast('today' as date)", "cast(now() as date)"])
def test_no_outer_join_is_eliminated_by_the_date_of_today(db: SparkSession, day: str) -> None:
    """Padded rows are not kept today, and will be."""
    df = db.sql(
        f"""SELECT * FROM lines LEFT JOIN orders ON l_region = o_region LEFT JOIN vip ON v_customer = o_customer
        WHERE coalesce(o_day, date'2999-01-01') < {day}"""
    )
    _, report = optimised(df)
    assert report.eliminated_outer_joins == []
    fixed = db.sql(
        """SELECT * FROM lines LEFT JOIN orders ON l_region = o_region LEFT JOIN vip ON v_customer = o_customer
        WHERE coalesce(o_day, date'2999-01-01') < date'2025-01-01'"""
    )
    assert len(optimised(fixed)[1].eliminated_outer_joins) == 1
    direct = db.sql(f"SELECT * FROM lines LEFT JOIN orders ON l_region = o_region WHERE o_day < {day}")
    assert len(optimised(direct)[1].eliminated_outer_joins) == 1


def test_not_ansi_today_is_no_null(db: SparkSession) -> None:
    """Without ANSI mode Spark reads the text 'today' before a cast makes NULL of it."""
    db.conf.set("spark.sql.ansi.enabled", "false")
    tomorrow = constants(db.sql("SELECT * FROM orders WHERE o_day < cast('tomorrow' as date)"))
    assert [isinstance(value, datetime.date) for value in tomorrow.values()] == [True]
    df = db.sql(
        """SELECT * FROM lines LEFT JOIN orders ON l_region = o_region LEFT JOIN vip ON v_customer = o_customer
        WHERE coalesce(o_id, 1) < year(cast('today' as date))"""
    )
    assert optimised(df)[1].eliminated_outer_joins == []
    unharmed(df, reordered=True)


# -- expressions that are never evaluated --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        "length(repeat('x', 1000000000))",
        "size(sequence(1, 1000000000))",
        "length(space(1000000000))",
        "length(lpad('x', 1000000000, 'y'))",
        "length(rpad('x', 1000000000))",
        "size(array_repeat(1, 1000000000))",
        "size(array_insert(array(1), 1000000000, 2))",
        "length(format_number(1.5D, 1000000000))",
        "length(format_string('%1000000000d', 1))",
        "cast(round(1.5D, 1000000000) as int)",
        "cast(cast('1e-1000000000' as decimal(10,2)) as int)",
        "cast(repeat('a', 28) || '!' rlike '(a+)+$' as int)",
        "aggregate(sequence(1, 1000000000), 0, (a, x) -> a + 1)",
        "length(java_method('java.lang.System', 'setProperty', 'pyjoinopt.test.touched', 'yes'))",
        "length(reflect('java.lang.System', 'setProperty', 'pyjoinopt.test.touched', 'yes'))",
        "(select max(v_rank) from vip)",
        "int(rand() * 3)",
    ],
)
def test_what_may_be_long_or_is_not_spark_s_is_not_evaluated(db: SparkSession, expression: str) -> None:
    df = db.sql(f"SELECT * FROM lines LEFT JOIN orders ON l_region = o_region WHERE o_id < {expression}")
    started = time.monotonic()
    (compared,) = (e.children[1] for e in exported(df).expressions if e.kind == "LessThan")
    assert time.monotonic() - started < 10
    assert compared.children or compared.flags & SUBQUERY  # as written, not folded before
    assert not compared.flags & CONSTANT and compared.value is None
    assert db.sparkContext._jvm.java.lang.System.getProperty("pyjoinopt.test.touched") is None
