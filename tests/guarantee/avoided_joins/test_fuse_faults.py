"""Regressions: queries on which fused aggregates once gave wrong rows or failed. Plain Spark runs each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins.tables import checked, outcome, setting
from tests.support import shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COUNTS = "select * from (select count(*) c from t where {}) a, (select count(*) e from t where {}) b"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x > 1 and x > 1", "x < 2"),
        ("x > 1 and 1 < x", "x < 2"),
        ("x > 1 and not (x <= 1)", "x < 2"),
        ("k > 1 and k > 1", "true"),
        ("x < 2", "x > 1 and 1 < x"),
    ],
)
def test_wrong_rows_a_repeated_filter(tiny: SparkSession, first: str, second: str) -> None:
    """Every predicate of the first aggregate alone must be removed from its input, not only the last one."""
    checked(tiny.sql(COUNTS.format(first, second)))


ESCAPES = "s like 'a!%' escape '!' and s like 'a!%' escape '/'"


@pytest.mark.parametrize(("first", "second"), [("s like 'a%'", ESCAPES), (ESCAPES, "s like 'a%'")])
def test_wrong_rows_filters_that_only_look_alike(tiny: SparkSession, first: str, second: str) -> None:
    """Two patterns with different escape characters have one value number, and both must be kept."""
    checked(tiny.sql(COUNTS.format(first, second)))


@pytest.mark.parametrize("newer_first", [False, True])
def test_wrong_rows_files_that_came_between(tiny: SparkSession, tmp_path: Path, newer_first: bool) -> None:
    """A frame reads the files that existed when it was created, so two frames of one folder may differ."""
    from pyspark.sql import functions as F

    folder = str(tmp_path / "grows")
    tiny.range(3).write.parquet(folder)
    older = tiny.read.parquet(folder)
    tiny.range(100, 105).write.mode("append").parquet(folder)
    newer = tiny.read.parquet(folder)
    one, other = (newer, older) if newer_first else (older, newer)
    counted = [df.where(f"id <> {i}").agg(F.count("*").alias(f"c{i}")) for i, df in enumerate((one, other))]
    checked(counted[0].crossJoin(counted[1]))


@pytest.mark.parametrize(
    "text",
    [
        "select * from (select count(y) c from (select y from t where x > 1)) a, "
        "(select sum(y) s from (select y from t where x < 1)) b",
        "select * from (select count(k) c from (select k from t)) a, (select sum(y) s from (select y from t)) b",
        "select * from (select count(t.y) c from t join (select k from d where z = 1) q on t.k = q.k) a, "
        "(select sum(t.y) s from t join (select k from d where z = 0) q on t.k = q.k) b",
    ],
)
def test_internal_error_columns_that_the_first_one_dropped(tiny: SparkSession, text: str) -> None:
    """The projections of the first aggregate must also output the columns that only the filters or the others read."""
    checked(tiny.sql(text))


@pytest.mark.parametrize(
    "text",
    [
        COUNTS.format("x <> 0 and 10 / x > 4", "x > 2 and 10 / x > 4"),
        COUNTS.format("s = '10' and cast(s as int) > 4", "s in ('10', '11') and cast(s as int) > 4"),
        "select * from (select count(*) - 60 x from t) a join (select count(*) - 60 y from t) b on a.x <> 0 "
        "join (select max(x) z from t) c on 10 / b.y > c.z",
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_fails_where_spark_does_not(tiny: SparkSession, text: str, ansi: str) -> None:
    """A filter that may fail is evaluated after the filters written before it; so are join conditions."""
    with setting(tiny, "spark.sql.ansi.enabled", ansi):
        df = tiny.sql(text)
        assert outcome(shop.optimised(df)[0]) == outcome(df) != "failed"


@pytest.mark.parametrize(
    "text",
    [
        "select * from (select sum(z) c from (select 10 / x z, x from t) where x <> 0) a, "
        "(select count(*) e from (select 10 / x z, x from t) where x = 0) b",
        "select * from (select sum(10 / x) c from t where x <> 0) a, (select count(*) e from t) b",
        "select * from (select count(*) c from t join d on t.k = d.k and 10 / t.x > d.z where t.x <> 0) a, "
        "(select count(*) e from t join d on t.k = d.k and 10 / t.x > d.z where t.x > 1) b",
        "select a.c, 100 / b.c from (select count(*) c from t where x = 1) a "
        "join (select count(*) c from t where x = 99) b on b.c <> 0",
    ],
)
def test_does_not_fail_where_spark_does_not(tiny: SparkSession, text: str) -> None:
    with setting(tiny, "spark.sql.ansi.enabled", "true"):
        df = tiny.sql(text)
        assert outcome(shop.optimised(df)[0]) == outcome(df) != "failed"
