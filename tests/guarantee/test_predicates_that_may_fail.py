"""A predicate that fails on some values must not be evaluated on rows that another join removes first.

Placing it at the last join is not enough: Spark pushes a condition down to the lowest join that has all its columns. An
order that joins those columns early therefore makes a query fail that plain Spark runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from tests.support.compare import assert_same_rows
from tests.support.shop import optimised, unharmed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

#: The patterns that end in an escape belong to keys that `kept` does not have.
PATTERNS = r"select * from values (1, 'x%', 1), (7, 'a\\', 1), (8, 'a\\', 2), (9, 'y%', 3) as p(pk, p, pj)"
TEXTS = "select * from values ('xy', 1), ('ab', 2) as o(os, oj)"
KEPT = "select * from values (1, 10), (2, 20), (3, 5) as b(bp, bx)"


def written(spark: SparkSession, patterns: str, texts: str, rows: int = 29_000) -> tuple[DataFrame, DataFrame]:
    """The rows that are left before the failing predicate may be tested, and the table it is tested with."""
    many = spark.range(rows + 1_000).selectExpr(f"if(id < {rows}, 1, 2) as gp")
    left = many.join(spark.sql(KEPT), F.expr("bp = gp")).join(spark.sql(patterns), F.expr("pk = gp"))
    return left, spark.sql(texts)


@pytest.mark.ci
@pytest.mark.parametrize("cost", ["spark", "c_out"])
@pytest.mark.parametrize("predicate", ["os like p", "pj = oj and os like p"])
@pytest.mark.parametrize("in_filter", [False, True])
def test_malformed_patterns(db: SparkSession, cost: str, predicate: str, in_filter: bool) -> None:
    left, texts = written(db, PATTERNS, TEXTS)
    df = left.crossJoin(texts).where(predicate) if in_filter else left.join(texts, F.expr(predicate))
    assert df.count() == 29_000  # plain Spark answers
    unharmed(df, cost=cost, reordered=True)


def test_spark_s_own_order_is_not_used_if_it_would_fail(db: SparkSession) -> None:
    left, texts = written(db, PATTERNS, TEXTS)
    df = left.join(texts, F.expr("pj = oj and os like p"))
    # The cheapest order of each would fail, so the written order stays.
    unharmed(df, strategy="spark", reordered=False)
    unharmed(df, strategy="heuristic", reordered=False)


def is_fine(pattern: str, text: str) -> bool:
    if pattern.endswith("\\"):
        raise ValueError(pattern)
    return text != ""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT p, os FROM joined WHERE is_fine(p, os) IN (SELECT id > 0 FROM range(3))",
        """SELECT * FROM (SELECT p, os, count(*) n FROM joined GROUP BY p, os)
       WHERE is_fine(p, os) IN (SELECT id > 0 FROM range(3))""",
        "SELECT p, os FROM joined WHERE is_fine(p, os) NOT IN (SELECT id < 0 FROM range(3))",
    ],
)
def test_python_functions_that_a_subquery_compares(db: SparkSession, text: str) -> None:
    """Spark moves the semi join that it makes of IN down to the lowest join with all columns of the UDF."""
    left, texts = written(db, PATTERNS, TEXTS)
    left.join(texts, F.expr("pj = oj")).createOrReplaceTempView("joined")
    db.udf.register("is_fine", is_fine, "boolean")
    df = db.sql(text)
    assert df.count() > 0  # plain Spark answers
    fast, _ = optimised(df, cost="c_out")
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))


BETWEEN = [
    "aggregate", "distinct", "union", "sort", "aggregate with a division", "window", "intersect", "except",
    "common table",
]  # fmt: skip


def common_table(db: SparkSession, df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("joined")
    return db.sql("""WITH t AS (SELECT p, os, count(*) n, rand() r FROM joined GROUP BY p, os)
        SELECT a.p, b.os, a.n FROM t a JOIN t b ON a.p = b.p AND a.os = b.os""")


@pytest.mark.parametrize("cost", ["c_out", pytest.param("spark", marks=pytest.mark.ci)])
@pytest.mark.parametrize("between", BETWEEN)
def test_python_functions_above_other_operators(db: SparkSession, between: str, cost: str) -> None:
    """Spark moves a call of a Python UDF down through them, to the lowest join that has its columns."""
    left, texts = written(db, PATTERNS, TEXTS)
    df = left.join(texts, F.expr("pj = oj"))
    made = {
        "aggregate": lambda: df.groupBy("p", "os").count(),
        "distinct": lambda: df.select("p", "os").distinct(),
        "union": lambda: df.select("p", "os").union(df.select("p", F.upper("os"))),
        "sort": lambda: df.sort("gp"),
        "window": lambda: df.withColumn("n", F.count("*").over(Window.partitionBy("p", "os"))),
        "intersect": lambda: df.select("p", "os").intersect(df.select("p", "os")),
        "except": lambda: df.select("p", "os").exceptAll(df.select(F.upper("p"), "os")),
        "common table": lambda: common_table(db, df),
        "aggregate with a division": lambda: df.groupBy("p", "os").agg(F.sum("gp")),
    }[between]()
    made = made.where(F.udf(is_fine, "boolean")("p", "os"))
    if "division" in between:
        made = made.where("1 / (length(p) + length(os) - 3) < 2")
    assert made.count() > 0  # plain Spark answers
    fast, _ = optimised(made, cost=cost)
    assert_same_rows(made, fast, label=("plain Spark", "optimised"))


VARIANTS = """select pk, parse_json(j) as v, pj from values
    (1, '5', 1), (7, '"bad"', 1), (8, '"bad"', 2), (9, '5', 3) as t(pk, j, pj)"""
NUMBERS = "select * from values (5, 1), (6, 2) as n(n, oj)"


@pytest.mark.parametrize(
    "predicate", ["v::int = n", "pj = oj and v::int <= n", "pj = oj and variant_get(v, '$', 'int') <= n"]
)
@pytest.mark.parametrize("in_filter", [False, True])
def test_variants_of_another_kind(db: SparkSession, predicate: str, in_filter: bool) -> None:
    if db.version < "4":
        pytest.skip("Spark 3.5 has no VARIANT")
    left, numbers = written(db, VARIANTS, NUMBERS, 2_900)
    df = left.crossJoin(numbers).where(predicate) if in_filter else left.join(numbers, F.expr(predicate))
    # Plain Spark runs this, but not its count(). And values of this type are equal only to themselves.
    plain, fast = ([(r.gp, r.bx, r.pk, r.n) for r in frame.collect()] for frame in (df, optimised(df)[0]))
    assert len(plain) == 2_900
    assert_same_rows(plain, fast)


def test_other_predicates_join_them_early(db: SparkSession) -> None:
    """The same tables with a predicate that cannot fail: the order that the tests above must not choose is the best."""
    left, texts = written(db, PATTERNS, TEXTS)
    _, report = optimised(left.join(texts, F.expr("pj = oj and os <> p")))
    assert report.groups[0].estimated_rows[0].relations == ("p", "o")


def test_filters_of_other_relations_still_keep_rows_away(db: SparkSession, tmp_path: Path) -> None:
    """Spark derives `dk > 5` from `ek > 5` in the written order only."""
    db.range(30_000).selectExpr("id % 20 as ek").write.parquet(str(tmp_path / "e"))
    kept = db.read.parquet(str(tmp_path / "e")).where("ek > 5")
    few = db.sql("select * from values (6, 1), (7, 2), (1, 3) as b(bk, bx)")
    grouped = db.sql("select dk, max(dv) as dv from values (1, 0), (2, 0), (6, 3), (7, 4) as d(dk, dv) group by dk")
    df = kept.join(few, F.expr("bk = ek")).join(grouped, F.expr("dk = bk")).where("10 / dv > 1").select("ek")
    assert df.count() == 3_000  # plain Spark answers
    unharmed(df, reordered=True)
