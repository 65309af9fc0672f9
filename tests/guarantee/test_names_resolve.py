"""Every way to reference a column of the plain frame also works on the optimised frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from tests.support.compare import assert_same_rows, assert_same_schema, attributes
from tests.support.shop import SLOW, optimised, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_reference_through_the_plain_frame(db: SparkSession) -> None:
    df = slow(db)
    fast = unharmed(df, reordered=True)
    assert_same_rows(df.select(df["o_id"], df.l_qty), fast.select(df["o_id"], df.l_qty))
    assert_same_rows(df.filter(df["l_qty"] > 3), fast.filter(df["l_qty"] > 3))


def test_reference_through_the_joined_tables(db: SparkSession) -> None:
    lines, orders, vip = db.table("lines"), db.table("orders"), db.table("vip")
    df = lines.join(orders, lines.l_region == orders.o_region).join(vip, vip.v_customer == orders.o_customer)
    fast = unharmed(df, reordered=True)
    assert_same_rows(df.select(orders.o_id, vip["v_rank"]), fast.select(orders.o_id, vip["v_rank"]))


def test_alias_of_a_joined_table(db: SparkSession) -> None:
    df = (
        db.table("lines").alias("l")
        .join(db.table("orders").alias("o"), F.col("l.l_region") == F.col("o.o_region"))
        .join(db.table("vip").alias("v"), F.col("v.v_customer") == F.col("o.o_customer"))
    )  # fmt: skip
    fast = unharmed(df, reordered=True)
    assert_same_rows(df.select("o.o_id", "v.*"), fast.select("o.o_id", "v.*"))
    assert_same_rows(df.select("l.*"), fast.select(F.expr("l.*")))


def test_alias_of_the_result(db: SparkSession) -> None:
    df = slow(db).alias("t")
    fast = unharmed(df, reordered=True)
    assert_same_rows(df.select(F.col("t.o_id")), fast.select(F.col("t.o_id")))
    assert_same_rows(df.select("t.v_rank"), slow(db).optimize_joins(strict=True).alias("t").select("t.v_rank"))


def test_qualifiers_that_an_alias_hid_stay_hidden(db: SparkSession) -> None:
    df = slow(db).alias("t")
    fast = unharmed(df, reordered=True)
    for frame in (df, fast):
        with pytest.raises(AnalysisException):
            frame.select("orders.o_id")


def test_view_names_as_qualifiers(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {SLOW}")
    fast = unharmed(df, reordered=True)
    assert_same_rows(df.select("lines.l_qty"), fast.select("lines.l_qty"))


def test_later_join_with_an_original(db: SparkSession) -> None:
    orders = db.table("orders")
    df = slow(db).select("o_id", "l_qty", "v_rank")
    fast = unharmed(df, reordered=True)
    on = F.col("a.o_id") == F.col("b.o_id")
    assert_same_rows(
        df.alias("a").join(orders.alias("b"), on).select("a.l_qty", "b.o_day"),
        fast.alias("a").join(orders.alias("b"), on).select("a.l_qty", "b.o_day"),
    )
    assert_same_rows(df.join(orders, "o_id").select("o_day"), fast.join(orders, "o_id").select("o_day"))


def test_plain_frame_joined_with_its_optimised_self(db: SparkSession) -> None:
    df = slow(db).groupBy("o_id").count()
    fast = unharmed(df, reordered=True)
    assert_same_rows(df.join(df, "o_id"), df.join(fast, "o_id"))
    assert_same_rows(df, fast.unionAll(df).distinct())


def test_using_join_keeps_its_hidden_keys(db: SparkSession) -> None:
    orders = db.table("orders").withColumnRenamed("o_region", "region").alias("o")
    lines = db.table("lines").withColumnRenamed("l_region", "region").alias("l")
    vip = db.table("vip").withColumnRenamed("v_customer", "o_customer").alias("v")
    df = lines.join(orders, "region").join(vip, ["o_customer"])
    fast = unharmed(df, reordered=True)
    hidden = ["l.region", "o.region", "o.o_customer", "v.o_customer"]
    assert_same_rows(df.select(*hidden), fast.select(*hidden))
    assert_same_rows(df.select("region", "o_customer"), fast.select("region", "o_customer"))


@pytest.mark.parametrize("kind", ["left", "right", "full"])
def test_outer_using_join_keeps_its_hidden_keys(db: SparkSession, kind: str) -> None:
    orders = db.table("orders").withColumnRenamed("o_customer", "customer").alias("o")
    customers = db.table("customers").withColumnRenamed("c_id", "customer").alias("c")
    vip = db.table("vip").withColumnRenamed("v_customer", "customer").alias("v")
    df = orders.join(customers, ["customer"], kind).join(vip, "customer", kind)
    # The right join is turned around; the left one is best as written, and the full one is no part of a group.
    fast = unharmed(df, reordered=kind == "right")
    assert_same_rows(df.select("o.customer", "v.customer"), fast.select("o.customer", "v.customer"))


def test_natural_join(db: SparkSession) -> None:
    df = db.sql("""SELECT o.customer, l.region, x.* FROM (SELECT l_region AS region, l_qty FROM lines) l
        NATURAL JOIN (SELECT o_region AS region, o_customer AS customer, o_id FROM orders) o
        NATURAL JOIN (SELECT v_customer AS customer FROM vip) x""")
    unharmed(df, reordered=True)


def test_duplicate_columns_after_a_join(db: SparkSession) -> None:
    a, b = db.table("orders").alias("a"), db.table("orders").alias("b")
    df = (
        a.join(b, F.col("a.o_region") == F.col("b.o_region"))
        .join(db.table("vip").alias("v"), F.col("v.v_customer") == F.col("a.o_customer"))
    )  # fmt: skip
    fast = unharmed(df, reordered=True)
    assert fast.columns.count("o_id") == 2
    assert_same_rows(df.select("b.o_id", "a.o_id"), fast.select("b.o_id", "a.o_id"))
    for frame in (df, fast):
        with pytest.raises(AnalysisException):
            frame.select("o_id")


def test_self_join_of_one_frame(db: SparkSession) -> None:
    orders = db.table("orders")
    df = (
        orders.alias("a").join(orders.alias("b"), F.col("a.o_region") == F.col("b.o_region"))
        .join(orders.alias("c"), (F.col("a.o_id") == F.col("c.o_id")) & (F.col("c.o_customer") == 8))
    )  # fmt: skip
    fast = unharmed(df, reordered=True)
    assert len(set(attributes(fast))) == len(fast.columns)
    assert_same_rows(df.select("a.o_id", "b.o_id", "c.o_id"), fast.select("a.o_id", "b.o_id", "c.o_id"))


ODD_NAMES = [
    "a.b",
    "with blank",
    "tick`tock",
    "größe",
    "列",
    "",
    "a",
    "A b.c`d",
    "select",
    "⋈",
    "'quoted'",
    '"q"',
    "x\ny",
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=[ascii(name) for name in ODD_NAMES])
def test_odd_column_names(db: SparkSession, name: str) -> None:
    orders = db.table("orders").toDF("o_id", name, "o_region", "o_day").alias("o")
    df = (
        db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
        .join(db.table("vip"), orders[f"`{name.replace('`', '``')}`"] == F.col("v_customer"))
    )  # fmt: skip
    fast = unharmed(df, reordered=True)
    assert name in fast.columns
    assert fast._pyjoinopt_report.to_text()


def test_odd_table_aliases(db: SparkSession) -> None:
    df = db.sql("""SELECT `l.1`.*, `ö ⋈ "x"`.o_id FROM lines `l.1` JOIN orders `ö ⋈ "x"` ON l_region = o_region
        JOIN vip `v``v` ON `v``v`.v_customer = `ö ⋈ "x"`.o_customer""")
    fast = unharmed(df, reordered=True)
    assert fast._pyjoinopt_report.to_json()


def test_names_that_differ_in_case_only(db: SparkSession) -> None:
    db.conf.set("spark.sql.caseSensitive", "true")
    try:
        orders = db.table("orders").toDF("O", "o", "R", "r")
        df = db.table("lines").join(orders, F.col("l_region") == F.col("R"))
        df = df.join(db.table("vip"), F.col("v_customer") == F.col("o"))
        unharmed(df, reordered=True)
    finally:
        db.conf.unset("spark.sql.caseSensitive")


def test_optimising_twice_changes_nothing_more(db: SparkSession) -> None:
    df = slow(db)
    fast = unharmed(df, reordered=True)
    again, report = optimised(fast)
    assert not any(group.changed for group in report.groups)
    assert_same_schema(df, again)
    assert_same_rows(df, again)


def test_transform_method_and_function_agree(db: SparkSession) -> None:
    import pyjoinopt

    df = slow(db)
    orders = [
        made.join_report().groups[0].order_after
        for made in (df.optimize_joins(), df.transform(pyjoinopt.optimize_joins), pyjoinopt.optimize_joins(df))
    ]
    assert len(set(orders)) == 1
