"""Reorder barriers: the joins on each side are ordered separately, and the results stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from tests.support.compare import assert_same_rows, rows_of
from tests.support.shop import SLOW, optimised, slow, unharmed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

EVERYTHING = ["o_id", "l_order", "l_region", "l_qty", "l_price", "v_rank"]


def over_order() -> WindowSpec:
    """One order of all rows of an order; a window needs a running JVM, so it is made when it is used."""
    return Window.partitionBy("o_id").orderBy(*EVERYTHING)


WALLS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "limit": lambda df: df.orderBy(*EVERYTHING).limit(37),
    "offset": lambda df: df.orderBy(*EVERYTHING).offset(11).limit(20),
    "sort": lambda df: df.orderBy("o_id"),
    "sort within partitions": lambda df: df.sortWithinPartitions("o_id"),
    "window": lambda df: df.withColumn("n", F.sum("l_qty").over(over_order())),
    "rank filter": lambda df: df.withColumn("n", F.rank().over(over_order())).filter("n < 3"),
    "aggregate": lambda df: df.groupBy("o_id", "o_customer").agg(
        F.sum("l_qty").alias("l_qty"), F.max("v_rank").alias("m")
    ),
    "aggregate without keys": lambda df: df.agg(F.max("o_id").alias("o_id"), F.count("*").alias("l_qty")),
    "cube": lambda df: df.cube("o_id", "v_rank").agg(F.sum("l_qty").alias("l_qty")),
    "pivot": lambda df: df.groupBy("o_id").pivot("v_rank", [0, 1]).agg(F.sum("l_qty")).withColumnRenamed("0", "l_qty"),
    "distinct": lambda df: df.select("o_id", "l_qty").distinct(),
    "drop duplicates": lambda df: df.select("o_id", "l_qty", "v_rank").dropDuplicates(["o_id", "l_qty"]),
    "explode": lambda df: df.withColumn("e", F.explode(F.array("o_id", "l_qty"))),
    "explode outer": lambda df: df.withColumn("e", F.explode_outer(F.when(F.col("l_qty") > 2, F.array("o_id")))),
    "stack": lambda df: df.selectExpr("o_id", "l_qty", "stack(2, l_order, v_rank) AS e"),
    "union": lambda df: df.unionAll(df.filter("l_qty = 1")),
    "union by name": lambda df: df.unionByName(df.select(*reversed(df.columns))),
    "intersect": lambda df: df.select("o_id", "l_qty").intersect(df.select("l_order", "l_qty")),
    "intersect all": lambda df: df.select("o_id", "l_qty").intersectAll(df.select("l_order", "l_qty")),
    "except": lambda df: df.select("o_id", "l_qty").subtract(df.select("l_order", "l_qty")),
    "except all": lambda df: df.select("o_id", "l_qty").exceptAll(df.select("l_order", "l_qty")),
    "repartition": lambda df: df.repartition(3, "o_id"),
    "coalesce": lambda df: df.coalesce(1),
    "fill and drop nulls": lambda df: df.fillna(-1, ["l_qty"]).dropna(),
    "unpivot": lambda df: df.unpivot(["o_id", "l_qty"], ["l_order", "v_rank"], "name", "value"),
    "rollup": lambda df: df.rollup("o_id").agg(F.max("l_qty").alias("l_qty")),
    "describe by hand": lambda df: df.select(F.min("o_id").alias("o_id"), F.avg("l_qty").alias("l_qty")),
}


@pytest.mark.parametrize("wall", WALLS.values(), ids=WALLS)
def test_wall_above_a_group(db: SparkSession, wall: Callable[[DataFrame], DataFrame]) -> None:
    unharmed(wall(slow(db)), reordered=True)


@pytest.mark.parametrize("wall", WALLS.values(), ids=WALLS)
def test_wall_between_groups(db: SparkSession, wall: Callable[[DataFrame], DataFrame]) -> None:
    df = wall(slow(db)).alias("w")
    df = df.join(db.table("customers"), F.col("c_region") == F.col("w.l_qty"), "left")
    unharmed(df.join(db.table("regions"), F.col("r_id") == F.col("c_region")), reordered=True)


def test_condition_above_a_limit_stays_above(db: SparkSession) -> None:
    top = db.table("orders").orderBy("o_id").limit(20).filter("o_region = 2")
    df = db.table("lines").join(top, F.col("l_region") == F.col("o_region"))
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)


def test_condition_above_a_window_stays_above(db: SparkSession) -> None:
    ranked = db.table("orders").withColumn("n", F.row_number().over(Window.orderBy("o_id"))).filter("o_region = 2")
    df = db.table("lines").join(ranked, F.col("l_region") == F.col("o_region"))
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)


def test_sample_over_a_join_stays_over_it(db: SparkSession) -> None:
    """Which rows a sample takes depends on their order; that it is taken once, of the join, does not."""
    df = slow(db).sample(0.5, seed=3)
    fast, report = optimised(df)
    assert fast.columns == df.columns
    before, after = (f._jdf.queryExecution().optimizedPlan().toString() for f in (df, fast))
    assert before.count("Sample") == after.count("Sample") == 1
    assert after.index("Sample") < after.index("Join")
    assert set(rows_of(fast)) <= set(rows_of(slow(db)))


def test_sample_below_a_join_keeps_its_rows(db: SparkSession) -> None:
    orders = db.table("orders").sample(0.5, seed=3)
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)


def test_partitioned_map_functions(db: SparkSession) -> None:
    def same(batches):  # type: ignore[no-untyped-def]
        yield from batches

    columns = slow(db).select("o_id", "l_qty")
    unharmed(columns.mapInPandas(same, columns.schema), reordered=True)
    unharmed(columns.mapInArrow(same, columns.schema), reordered=True)


def test_order_of_the_result_is_kept(db: SparkSession) -> None:
    df = slow(db).orderBy(F.col("l_qty").desc_nulls_first(), "o_id", "l_order", "l_price", "v_rank", "l_region")
    fast = unharmed(df, reordered=True)
    assert [tuple(row) for row in fast.collect()] == [tuple(row) for row in df.collect()]
    text = f"SELECT o_id, l_order FROM {SLOW} ORDER BY l_order DESC, o_id DESC, l_qty, l_price, l_region LIMIT 25"
    frames = (optimised(db.sql(text))[0], db.sql(text))
    assert [tuple(row) for row in frames[0].collect()] == [tuple(row) for row in frames[1].collect()]


def test_limit_without_order_returns_as_many_rows_of_the_join(db: SparkSession) -> None:
    df = slow(db).limit(9)
    fast, _ = optimised(df)
    rows = fast.collect()
    assert len(rows) == 9
    assert set(rows_of(rows)) <= set(rows_of(slow(db)))


def test_projection_with_computed_columns_does_not_end_a_group(db: SparkSession) -> None:
    middle = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    middle = middle.withColumn("customer", F.col("o_customer")).withColumn("double", F.col("l_qty") * 2)
    df = middle.withColumnRenamed("o_id", "number").drop("o_day")
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("customer")), reordered=True)


def test_computed_column_of_a_null_padded_side(db: SparkSession) -> None:
    """`coalesce(x, 0)` is 0 on a padded row, so it may not be computed below the join that pads."""
    named = db.table("customers").withColumn("constant", F.lit("here"))
    named = named.withColumn("filled", F.coalesce("c_region", F.lit(0)))
    df = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    df = df.join(named.filter("c_id > 20"), F.col("c_id") == F.col("o_customer"), "left")
    df = df.withColumn("seen", F.coalesce("constant", F.lit("none")))
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)


def test_groups_on_both_sides_of_a_union_are_each_ordered(db: SparkSession) -> None:
    df = slow(db).select("o_id").unionAll(slow(db).select("l_order"))
    _, report = optimised(df)
    assert sum(group.changed for group in report.groups) == 2
    assert_same_rows(df, optimised(df)[0])
