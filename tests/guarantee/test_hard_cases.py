"""Queries that optimizers easily get wrong: nullability above unions and outer joins, errors that a join hides, names
that a projection changes, columns that USING hides."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import col, expr

from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.shop import executed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Tables a to e as Parquet views pa … pe, NULL-rich and full of duplicates; columns are prefixed by the letter."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    folder = tmp_path_factory.mktemp("hard")
    rng = random.Random(3)

    def some(value: object) -> object:
        return None if rng.random() < 0.2 else value

    for name, count in (("a", 80), ("b", 60), ("c", 6), ("d", 4), ("e", 30)):
        rows = [
            (i, some(rng.randint(0, 4)), some(rng.randint(0, 3)), some(rng.randint(-3, 6)), some(rng.choice("xyZ")))
            for i in range(count)
        ]
        columns = ", ".join(f"{name}{c}" for c in ("id int", "k int", "j int", "v int", "s string"))
        session.createDataFrame(rows, columns).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(f"p{name}")
    return session


def check(df: DataFrame, reordered: bool | None = True) -> DataFrame:
    fast = df.optimize_joins(strict=True, cost="c_out")
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    if reordered is not None:
        assert any(g.changed for g in fast._pyjoinopt_report.groups) is reordered, fast._pyjoinopt_report.to_text()
    return fast


def tables(data: SparkSession) -> list[DataFrame]:
    return [data.table(f"p{name}") for name in "abcde"]


@pytest.mark.ci
def test_a_constant_padded_by_a_full_join_stays_nullable(data: SparkSession) -> None:
    a, b, c, _, e = tables(data)
    padded = a.selectExpr("ak uk", "1 as one").join(b.selectExpr("bj bx", "2 as two"), expr("uk = bx + 2"), "full")
    group = e.join(padded, expr("ek = uk or ek = bx")).join(c, expr("cid = eid"))
    fast = check(group)
    for condition in ("one is null", "two is null or one is null", "coalesce(two, 0) = 0"):
        assert_same_rows(group.where(condition), fast.where(condition), label=("plain Spark", "optimised"))
    check(group.union(group).where("two is null or one is null"), reordered=None)


@pytest.mark.parametrize(
    "value", ["array(1, 2) / array(cast(null as int), av)", "named_struct('z', 1) / named_struct('z', av)"]
)
def test_nested_nulls_of_a_union(data: SparkSession, value: str) -> None:
    a, _, c, _, e = tables(data)
    certain, nullable = value.split(" / ")
    union = a.selectExpr("ak uk", f"{certain} x").union(a.selectExpr("ak", f"{nullable} x"))
    df = e.join(union, expr("ek = uk")).join(c, expr("cid = eid"))
    fast = check(df)
    inner = F.explode("x") if certain.startswith("array") else col("x.z")
    assert_same_rows(df.select(inner), fast.select(inner), label=("plain Spark", "optimised"))


@pytest.mark.parametrize("condition", ["~isin", "isin = false"])
def test_not_in_an_empty_list(data: SparkSession, condition: str) -> None:
    a, b, *_ = tables(data)
    empty = col("bv").isin([])
    padded = a.join(b, col("aj") == col("bj"), "left").where(~empty if condition == "~isin" else empty == F.lit(False))
    check(padded, reordered=None)


def test_a_division_that_an_outer_join_guards(data: SparkSession) -> None:
    left = data.range(8).selectExpr("id as lk", "id % 3 as lg")
    right = data.range(4, 30).selectExpr("id as rk", "if(id < 8, id, 0) as rz", "id % 3 as rx")
    other = data.range(3).selectExpr("id as cx", "id as cy")
    data.conf.set("spark.sql.ansi.enabled", "true")
    try:
        df = left.join(right, expr("lk = rk"), "left").where("coalesce(10 / rz, 1) > 0")
        check(df.join(other, expr("rx = cx or rx = cy")), reordered=None)
        df = right.join(left, expr("lk = rk and 10 / rz > -1"), "left").where("rz > 0")
        check(df.join(other, expr("lg = cx or lg = cy")), reordered=None)
        # The rows with rz = 0 have no match, so nothing is divided by zero.
        df = right.join(left, expr("lk = rk and 10 / rz > -1"), "left")
        check(df.join(other, expr("lg = cx or lg = cy")), reordered=None)
    finally:
        data.conf.unset("spark.sql.ansi.enabled")


def test_columns_that_double_and_double(data: SparkSession) -> None:
    a, b, c, *_ = tables(data)
    df = a.join(b, expr("ak = bk")).withColumn("x", expr("av + bv"))
    for _ in range(40):
        df = df.withColumn("x", expr("x - x"))
    report = df.join(c, expr("x = cid")).optimize_joins(strict=True)._pyjoinopt_report
    assert report.seconds < 10


def test_names_in_another_case(data: SparkSession) -> None:
    a, b, c, *_ = tables(data)
    df = a.select("AJ", "av").join(b, expr("aj = bj")).join(c, expr("ck = bk"))
    assert check(df).columns[0] == "AJ"


def test_columns_hidden_by_using_below_another_join(data: SparkSession) -> None:
    a, b, c, *_ = tables(data)
    a, b = a.withColumnRenamed("aj", "j").alias("a"), b.withColumnRenamed("bj", "j").alias("b")
    df = a.join(b, "j").join(c, b["bk"] == c["ck"])
    for frame in (df, df.orderBy("aid"), df.where("av > 0")):
        fast = check(frame)
        assert_same_rows(frame.select(b["j"]), fast.select(b["j"]), label=("plain Spark", "optimised"))
        assert_same_rows(frame.select("b.*"), fast.select("b.*"), label=("plain Spark", "optimised"))
        assert_same_rows(frame.where(b["j"] > 1), fast.where(b["j"] > 1), label=("plain Spark", "optimised"))


def test_a_cached_frame_with_a_subquery_stays_cached(data: SparkSession) -> None:
    inner = "select bk from pb left join pc on bj = cj join pd on cid = did"
    cached = data.sql(f"select * from pa where av in ({inner})").cache()
    try:
        cached.count()
        df = cached.join(data.table("pb"), expr("ak = bk")).join(data.table("pc"), expr("bk = ck"))
        fast = check(df, reordered=None)
        assert executed(df).count("InMemoryTableScan") == executed(fast).count("InMemoryTableScan") > 0
    finally:
        cached.unpersist()


def test_a_refused_cross_product_is_refused_still(data: SparkSession) -> None:
    data.conf.set("spark.sql.crossJoin.enabled", "false")
    try:
        text = "select * from pa, pb, pc where av + bv = cv"
        for df in (data.sql(text), data.sql(text).optimize_joins(strict=True)):
            with pytest.raises(Exception, match="(?i)cartesian|cross"):
                df.collect()
    finally:
        data.conf.unset("spark.sql.crossJoin.enabled")


def test_a_cross_product_of_ours_is_not_refused(data: SparkSession) -> None:
    data.conf.set("spark.sql.crossJoin.enabled", "false")
    try:
        check(data.sql("""select * from (values (1)) x(xk) join pa on ak = xk join (values (1)) y(yk) on aj = yk"""))
    finally:
        data.conf.unset("spark.sql.crossJoin.enabled")


def test_rows_that_a_join_takes_away_before_others_are_compared(data: SparkSession) -> None:
    """An ANSI cast as key of a later join, a division in a left join's condition: both need joined rows only."""
    left = "(select * from values (1, 2, '1'), (2, 0, 'bad'), (2, 3, 'bad') as a(ak, az, at))"
    few = "(values (1, 5), (1, 6)) c(ck, cj) on ak = ck join (values (1), (2)) d(dk) on dk = ck"
    right = "(select * from values (1, 5), (2, 5), (1, 6) as b(bk, bj))"
    data.conf.set("spark.sql.ansi.enabled", "true")
    try:
        for text in (
            f"select * from {left} join {few} join {right} on cj = bj and int(at) = bk",
            f"select ak from {left} join {few} left join {right} on ak = bk and 10 / az > 9 where bk is null",
        ):
            assert data.sql(text).collect()
            check(data.sql(text), reordered=None)
    finally:
        data.conf.unset("spark.sql.ansi.enabled")
