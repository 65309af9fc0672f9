"""An unchanged round trip gives the same query: rows, columns, ids; `df["a"]` still finds its column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim, copy_all
from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


def _left(spark: SparkSession) -> DataFrame:
    return spark.sql("select * from values (1, 'x'), (2, null), (2, 'y'), (null, 'z') as t (a, s)")


def _right(spark: SparkSession) -> DataFrame:
    return spark.sql("select * from values (1, 1.5d), (2, null), (3, 2.5d), (null, 0d) as t (b, v)")


def _sql(text: str) -> Callable[[SparkSession], DataFrame]:
    def make(spark: SparkSession) -> DataFrame:
        _left(spark).createOrReplaceTempView("shim_l")
        _right(spark).createOrReplaceTempView("shim_r")
        return spark.sql(text)

    return make


def _udf(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as f

    twice = f.udf(lambda n: None if n is None else n * 2, "int")
    return _left(spark).join(_right(spark), twice("a") == twice("b")).withColumn("c", twice("a"))


def _observed(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as f

    return _left(spark).observe("shim", f.count(f.lit(1)).alias("n")).join(_right(spark), on=f.col("a") == f.col("b"))


def _window(spark: SparkSession) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    return _left(spark).withColumn("n", f.row_number().over(Window.partitionBy("a").orderBy("s")))


QUERIES: dict[str, Callable[[SparkSession], DataFrame]] = {
    "filter": lambda spark: _left(spark).where("a > 1").select("s"),
    "rows of Python": lambda spark: spark.createDataFrame([(1, "x"), (None, "z")], "a int, s string").where("a > 0"),
    "using": lambda spark: _left(spark).join(_right(spark).withColumnRenamed("b", "a"), "a", "full"),
    "self join": lambda spark: _left(spark).alias("p").join(_left(spark).alias("q"), "s", "left"),
    "udf": _udf,
    "window": _window,
    "union": lambda spark: _left(spark).unionByName(_left(spark).where("a = 2")).distinct(),
    "inner": _sql("select * from shim_l join shim_r on a = b where v is null or v > 1"),
    "outer": _sql("select * from shim_l full join shim_r on a = b and v > 1"),
    "right": _sql("select s, v, a from shim_l right join shim_r on a <=> b"),
    "semi": _sql("select * from shim_l left semi join shim_r on a = b"),
    "anti": _sql("select * from shim_l left anti join shim_r on a = b"),
    "cross": _sql("select * from shim_l cross join shim_r"),
    "exists": _sql("select * from shim_l where exists (select 1 from shim_r where a = b and v > 1)"),
    "in": _sql("select * from shim_l where a in (select b from shim_r) or s = 'z'"),
    "not in": _sql("select * from shim_l where a not in (select b from shim_r where b is not null)"),
    "scalar": _sql("select a, (select max(v) from shim_r where b = a) m from shim_l"),
    "lateral": _sql("select * from shim_l, lateral (select v from shim_r where b = a) t"),
    "cte": _sql("with t as (select a, count(*) n from shim_l group by a) select * from t x join t y on x.n = y.n"),
    "aggregate": _sql("select a % 2 k, count(distinct s), sum(a) from shim_l group by 1 having count(*) > 0"),
    "grouping sets": _sql("select a, s, count(*) from shim_l group by cube (a, s)"),
    "set operations": _sql("select a from shim_l intersect all select b from shim_r except select 2"),
    "generate": _sql("select a, e from shim_l lateral view explode(array(a, 7)) t as e"),
    "pivot": _sql("select * from shim_l pivot (count(*) for a in (1, 2))"),
    "values": _sql("select * from values (1, 'p'), (2, null) as t(i, j) join shim_l on i = a"),
    "sort limit": _sql("select * from shim_l order by a nulls last, s limit 3"),
    "natural": _sql("select * from shim_l natural join (select b as a, v from shim_r)"),
    "drop duplicates": lambda spark: _left(spark).dropDuplicates(["a"]).select("a"),
    "sample": lambda spark: (
        spark.range(100).sample(0.3, seed=7).join(_right(spark).selectExpr("b as id"), "id", "left")
    ),
    "repartition": lambda spark: (
        _left(spark).repartition(2, "a").join(_right(spark)).sortWithinPartitions("a").coalesce(1)
    ),
    "offset": _sql("select * from shim_l order by s offset 2"),
    "observe": _observed,
    "table function": _sql("select * from shim_l, stack(2, 1, 'p', 2, 'q') as t(n, c) where n = a"),
    "nested subqueries": _sql(
        "select * from shim_l where a = "
        "(select max(b) from shim_r where v in (select v from shim_r where b = 1) and b = a)"
    ),
    "rows of lists": _sql("select inline(array(struct(a, s), struct(0 as a, 'new' as s))) from shim_l"),
    "higher order": _sql("select transform(array(a, b), n -> n + a) t from shim_l join shim_r on a = b"),
    "broadcast": _sql("select /*+ broadcast(shim_r) */ * from shim_l join shim_r on a = b"),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("copied", [False, True], ids=["untouched", "copied"])
def test_identity(spark: SparkSession, shim: Shim, name: str, copied: bool) -> None:
    df = QUERIES[name](spark)
    export = shim.export(df)
    rebuilt = shim.rebuild(export, copy_all(export) if copied else {"root": export["root"]})
    assert_same_schema(df, rebuilt)
    assert_same_rows(df, rebuilt)


def test_columns_taken_from_the_original_resolve(spark: SparkSession, shim: Shim) -> None:
    left, right = _left(spark), _right(spark)
    df = left.join(right, left["a"] == right["b"], "left")
    export = shim.export(df)
    rebuilt = shim.rebuild(export, copy_all(export))
    assert_same_rows(df.select(df["a"], right["v"]), rebuilt.select(df["a"], right["v"]))
    assert_same_rows(df.where(left["s"].isNull()), rebuilt.where(left["s"].isNull()))


def test_qualified_columns_resolve(spark: SparkSession, shim: Shim) -> None:
    df = _left(spark).alias("p").join(_left(spark).alias("q"), on=None, how="cross").where("p.a = q.a")
    export = shim.export(df)
    rebuilt = shim.rebuild(export, copy_all(export))
    assert_same_rows(df.select("q.s", "p.s"), rebuilt.select("q.s", "p.s"))


def test_a_view_survives(spark: SparkSession, shim: Shim) -> None:
    _left(spark).where("a is not null").createOrReplaceTempView("shim_view")
    df = spark.sql("select * from shim_view v join shim_view w on v.a = w.a")
    export = shim.export(df)
    assert [node["name"] for node in export["nodes"] if node["c"] == "View"] == ["shim_view", "shim_view"]
    rebuilt = shim.rebuild(export, copy_all(export))
    assert_same_schema(df, rebuilt)
    assert_same_rows(df, rebuilt)
