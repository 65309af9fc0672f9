"""Expressions that must not move freely: nondeterministic ones, user functions, and those that can throw."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.shop import SLOW, optimised, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def occurrences(df: DataFrame, word: str) -> int:
    """The number of occurrences of a word in the optimised logical plan."""
    return len(re.findall(re.escape(word), str(df._jdf.queryExecution().optimizedPlan().toString())))


def test_random_column_is_computed_once(db: SparkSession) -> None:
    orders = db.table("orders").withColumn("dice", F.rand(7))
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    fast, _ = optimised(df)
    assert_same_schema(df, fast)
    assert occurrences(fast, "rand(") == occurrences(df, "rand(") == 1
    plain = df.drop("dice")
    assert_same_rows(plain, fast.drop("dice"))


def test_seeded_random_column_keeps_its_values(db: SparkSession) -> None:
    """The column is computed right above a scan, so its values cannot depend on any join."""
    orders = db.table("orders").withColumn("dice", F.rand(7))
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)


def test_random_column_between_joins_is_a_wall(db: SparkSession) -> None:
    middle = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    df = middle.withColumn("number", F.monotonically_increasing_id())
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    fast = unharmed(df, reordered=False)
    assert occurrences(fast, "monotonically_increasing_id") == 1


@pytest.mark.parametrize("condition", ["l_qty > rand(3) - 100", "o_id + rand(1) > -1"])
def test_random_condition_stays_where_it_is(db: SparkSession, condition: str) -> None:
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {condition}")
    fast = unharmed(df, reordered=True)
    assert occurrences(fast, "rand(") == occurrences(df, "rand(") == 1


def test_python_function_is_called_from_one_place(db: SparkSession) -> None:
    half = F.udf(lambda x: None if x is None else x // 2, IntegerType())
    orders = db.table("orders").withColumn("half", half("o_id"))
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")).filter(half("half") > 3)
    fast = unharmed(df, reordered=True)
    assert occurrences(fast, "<lambda>(") == occurrences(df, "<lambda>(")


def test_python_function_between_joins(db: SparkSession) -> None:
    shout = F.udf(lambda x: f"{x}!")
    middle = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    df = middle.withColumn("loud", shout(F.col("o_id"))).join(
        db.table("vip"), F.col("v_customer") == F.col("o_customer")
    )
    fast = unharmed(df, reordered=False)
    assert occurrences(fast, "<lambda>(") == occurrences(df, "<lambda>(")


def test_nondeterministic_python_function_does_not_move(db: SparkSession) -> None:
    same = F.udf(lambda x: x, IntegerType()).asNondeterministic()
    middle = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    df = middle.withColumn("same", same("o_customer")).join(db.table("vip"), F.col("v_customer") == F.col("same"))
    fast = unharmed(df, reordered=False)
    assert occurrences(fast, "<lambda>(") == 1


def test_python_function_as_join_key(db: SparkSession) -> None:
    same = F.udf(lambda x: x, IntegerType())
    df = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    both = same(F.col("v_customer") + F.col("o_customer")) == 2 * F.col("v_customer")
    for condition in (F.col("v_customer") == same("o_customer"), both):
        # A join on a Python function is no part of a group, which leaves two relations.
        unharmed(df.join(db.table("vip"), condition), reordered=False)


def test_pandas_function(db: SparkSession) -> None:
    twice = F.pandas_udf(lambda series: series * 2, "int")
    unharmed(slow(db).withColumn("twice", twice("o_id")).filter(F.col("twice") > 5), reordered=True)


THROWING = {
    "division": "1000 / (o_id - 5) > 0",
    "cast": "CAST(IF(o_id = 5, 'x', '1') AS INT) = 1",
    "raise_error": "IF(o_id = 5, raise_error('moved'), true)",
    "array index": "array(1, 2)[IF(o_id = 5, 7, 1)] = 2",
}


@pytest.mark.parametrize("predicate", THROWING.values(), ids=THROWING)
def test_throwing_predicate_that_a_join_guards(db: SparkSession, predicate: str) -> None:
    """The join removes the row that would throw; if the expression were evaluated earlier, the query would fail.

    A `rand()` in the same filter keeps Spark itself from moving it, so plain Spark runs without an error.
    """
    guard = "(SELECT o_id AS g_id FROM orders WHERE o_id <> 5) g"
    df = db.sql(f"""SELECT * FROM (SELECT *, rand(1) AS r FROM {SLOW} JOIN {guard} ON g_id = o_id)
        WHERE r >= 0 AND {predicate}""").drop("r")
    expected = df.collect()
    fast, _ = optimised(df)
    assert_same_rows(expected, fast)


def test_throwing_conjunct_of_a_join_condition(db: SparkSession) -> None:
    """The query raises an error if and only if plain Spark does."""
    guard = "(SELECT o_id AS g_id FROM orders WHERE o_id <> 5) g"
    text = SLOW.replace("l_region = o_region", "l_region = o_region AND 1000 / (o_id + l_order + 1) > 0")
    unharmed(db.sql(f"SELECT o_id, l_order, v_rank FROM {text} JOIN {guard} ON g_id = o_id"), reordered=True)


def test_throwing_computed_column_between_joins(db: SparkSession) -> None:
    """`1 / (o_id - v_rank ...)` succeeds only on the rows that are left after the first join."""
    few = db.table("orders").join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    few = few.filter("o_id <> 5").withColumn("ratio", F.expr("100 div (o_customer - 5)"))
    df = few.join(db.table("lines"), F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("regions"), F.col("r_id") == F.col("l_region"))
    expected = df.collect()
    assert expected
    assert_same_rows(expected, optimised(df)[0])


def test_throwing_computed_column_survives_when_its_join_moves(db: SparkSession) -> None:
    lines = db.table("lines").join(db.table("orders").filter("o_id <> 5"), F.col("l_region") == F.col("o_region"))
    ratio = lines.withColumn("ratio", F.expr("100 div (o_id - 5)"))
    df = ratio.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    unharmed(df, reordered=True)
