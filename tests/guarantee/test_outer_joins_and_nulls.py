"""Outer, semi, anti and existence joins over NULLs and duplicates, next to a group that is reordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support.compare import assert_same_rows
from tests.support.shop import SLOW, optimised, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTER = ("left", "right", "full")
ALL_KINDS = ("inner", "left", "right", "full", "semi", "anti", "cross")
#: Type of a first join -> types of a second join that is executed before it. No other pair is legal and cheaper. A left
#: join costs the same before a semi join as after it here, and goes last because it keeps each row.
DONE_FIRST = {
    "inner": "inner left semi anti", "left": "inner left semi", "right": "inner left right full semi anti",
    "full": "inner left right full semi", "semi": "inner semi anti", "anti": "",
    "cross": "inner left semi anti cross",
}  # fmt: skip
#: The filter rejects NULLs, so that the full join becomes one of another type.
FULL_IF_FILTERED = ("inner", "left", "cross")


@pytest.mark.parametrize("second", ALL_KINDS)
@pytest.mark.parametrize("first", ALL_KINDS)
def test_pairs_of_join_types_over_null_keys(db: SparkSession, first: str, second: str) -> None:
    a = db.table("customers").filter("c_id < 12").alias("a")
    b = db.table("orders").filter("o_id < 14").alias("b")
    c = db.table("regions").filter("r_id <> 2").alias("c")
    left = a.crossJoin(b) if first == "cross" else a.join(b, F.col("a.c_region") == F.col("b.o_region"), first)
    key = "a.c_region" if first in ("semi", "anti") else "b.o_region"
    df = left.crossJoin(c) if second == "cross" else left.join(c, F.col("c.r_id") == F.col(key), second)
    reordered = second in DONE_FIRST[first].split()
    unharmed(df, reordered=reordered)
    filtered = df.filter(F.col("a.c_name").isNotNull()) if second != "right" else df.filter("r_name LIKE '%1'")
    unharmed(filtered, reordered=reordered or second == "full" and first in FULL_IF_FILTERED)


@pytest.mark.parametrize("kind", OUTER)
def test_filter_that_rejects_nulls_makes_an_outer_join_needless(db: SparkSession, kind: str) -> None:
    df = db.sql(f"""SELECT * FROM orders {kind.upper()} JOIN customers ON o_customer = c_id
        WHERE c_region > 1 AND o_id > 3""")
    fast, report = optimised(df)
    assert report.eliminated_outer_joins
    assert_same_rows(df, fast)
    unharmed(df, reordered=False)  # two relations


@pytest.mark.parametrize(
    "condition",
    [
        "c_region IS NULL",
        "coalesce(c_region, 1) = 1",
        "c_region <=> o_region",
        "c_region > 1 OR o_id < 50",
        "NOT c_id <=> 1",
    ],
)
@pytest.mark.parametrize("kind", OUTER)
def test_filter_that_keeps_nulls_keeps_the_outer_join(db: SparkSession, kind: str, condition: str) -> None:
    df = db.sql(f"SELECT * FROM customers {kind.upper()} JOIN orders ON o_customer = c_id WHERE {condition}")
    right_padded = kind == "right" and "o_id" not in condition
    unharmed(df, reordered=False)  # two relations
    if right_padded:
        assert not optimised(df)[1].eliminated_outer_joins


def test_filter_on_an_enclosing_inner_join_rejects_nulls(db: SparkSession) -> None:
    df = db.sql("""SELECT * FROM orders LEFT JOIN customers ON o_customer = c_id JOIN regions ON c_region = r_id
        WHERE r_name <> 'region 1'""")
    unharmed(df, reordered=True)


@pytest.mark.parametrize("kind", OUTER)
def test_outer_join_above_and_below_a_group(db: SparkSession, kind: str) -> None:
    customers = db.table("customers")
    above = slow(db).join(customers, (F.col("c_id") == F.col("v_customer")) & (F.col("l_qty") > 2), kind)
    unharmed(above, reordered=True)
    orders = db.table("orders").join(customers, F.col("c_id") == F.col("o_customer"), kind)
    below = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    unharmed(below.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI"])
def test_semi_and_anti_join_with_null_keys_and_duplicates(db: SparkSession, kind: str) -> None:
    for extra in ("true", "o_id > 20", "c_name IS NULL"):
        text = f"SELECT * FROM {SLOW} {kind} JOIN customers ON c_region = l_qty AND {extra}"
        unharmed(db.sql(text), reordered=True)


def test_existence_joins(db: SparkSession) -> None:
    text = f"""SELECT * FROM {SLOW} WHERE l_qty > 6 OR EXISTS (SELECT 1 FROM customers WHERE c_region = l_qty)
        OR o_id IN (SELECT c_id FROM customers WHERE c_name IS NULL)"""
    unharmed(db.sql(text), reordered=True)


def test_null_safe_equality(db: SparkSession) -> None:
    text = "lines JOIN orders ON l_qty <=> o_region JOIN vip ON v_customer <=> o_customer"
    df = db.sql(f"SELECT * FROM {text}")
    unharmed(df, reordered=True)
    unharmed(
        db.sql("""SELECT a.c_id x, b.c_id y, o_id FROM customers a JOIN customers b ON a.c_name <=> b.c_name
        LEFT JOIN orders ON o_customer <=> b.c_region"""),
        reordered=False,  # the order as written is the best
    )
    unharmed(
        db.sql("""SELECT * FROM customers LEFT JOIN orders ON o_customer = c_id AND o_region <=> c_region
        WHERE o_region <=> NULL"""),
        reordered=False,  # two relations
    )


def test_null_safe_class_is_not_mixed_with_plain_equality(db: SparkSession) -> None:
    df = db.sql("""SELECT * FROM lines JOIN orders ON l_qty <=> o_region
        JOIN customers ON c_region = o_region JOIN regions ON r_id <=> c_region""")
    unharmed(df, reordered=True)


def test_whole_rows_that_occur_more_than_once(db: SparkSession) -> None:
    twice = db.table("orders").unionAll(db.table("orders"))
    df = db.table("lines").join(twice, F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("vip").unionAll(db.table("vip")), F.col("v_customer") == F.col("o_customer"))
    unharmed(df, reordered=True)


#: Joins that are done before the large one, but for some conjuncts.
KEPT = {
    "JOIN": ("1 = 0", "NULL"),
    "LEFT JOIN": ("l_qty > 3", "l_qty + o_id > v_rank"),
    "LEFT SEMI JOIN": ("1 = 0", "NULL", "l_qty + o_id > v_rank"),
    "LEFT ANTI JOIN": ("l_qty > 3", "l_qty + o_id > v_rank"),
}


@pytest.mark.parametrize(
    "extra",
    [
        "1 = 1",
        "1 = 0",
        "NULL",
        "l_qty > 3",
        "o_id > 10",
        "v_rank = 1",
        "l_qty + o_id > v_rank",
        "o_id = 8 OR v_rank = 0",
    ],
)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
def test_conjunct_on_one_side_or_none(db: SparkSession, kind: str, extra: str) -> None:
    text = SLOW.replace("JOIN vip ON", f"{kind} (SELECT * FROM vip) v ON {extra} AND")
    reordered = kind in KEPT and extra not in KEPT[kind]
    unharmed(db.sql(f"SELECT count(*), sum(o_id), sum(l_qty), max(l_price) FROM {text}"), reordered=reordered)


def test_join_without_any_condition(db: SparkSession) -> None:
    df = db.sql("""SELECT r_id, v_rank, c_id, o_id FROM regions, vip, customers, orders
        WHERE c_id = o_customer AND v_customer = c_id""")
    unharmed(df, reordered=True)
    unharmed(db.sql(f"SELECT r_id, l_qty, o_id FROM {SLOW}, regions"), reordered=True)
    unharmed(db.sql("SELECT * FROM regions CROSS JOIN vip CROSS JOIN (SELECT 1 AS one)"), reordered=True)


def test_conjunct_that_no_side_alone_can_answer_is_applied_once(db: SparkSession) -> None:
    text = f"""SELECT count(*), sum(o_id) FROM {
        SLOW.replace("l_region = o_region", "l_region = o_region AND size(sequence(1L, l_qty + 1, 1L)) > 4")
    }"""
    unharmed(db.sql(text), reordered=True)


def test_join_with_an_empty_table(db: SparkSession) -> None:
    for kind in ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN"):
        empty = "(SELECT * FROM customers WHERE c_id < 0) e"
        unharmed(db.sql(f"SELECT * FROM {SLOW} {kind} {empty} ON e.c_id = o_customer"), reordered=True)
