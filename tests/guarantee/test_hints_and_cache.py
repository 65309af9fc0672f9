"""User decisions are respected: hints keep their place and meaning, cached joins are read from the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import pyjoinopt
from tests.support.compare import assert_same_rows
from tests.support.shop import SLOW, executed, joined_tables, optimised, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STRATEGIES = {
    "broadcast": "BroadcastHashJoin",
    "merge": "SortMergeJoin",
    "shuffle_hash": "ShuffledHashJoin",
    "shuffle_replicate_nl": "CartesianProduct",
}


@pytest.mark.parametrize(("hint", "operator"), STRATEGIES.items())
def test_hint_on_a_frame_is_obeyed(db: SparkSession, hint: str, operator: str) -> None:
    df = slow(db).join(db.table("customers").hint(hint), F.col("c_id") == F.col("o_customer"))
    fast = unharmed(df, reordered=True)
    assert executed(fast).count(operator) >= 1
    hinted = [line for line in joined_tables(fast) if f"strategy={hint}" in line]
    assert len([line for line in hinted if "c_id" in line]) == 1


@pytest.mark.parametrize(("hint", "operator"), STRATEGIES.items())
def test_hint_in_sql_is_obeyed(db: SparkSession, hint: str, operator: str) -> None:
    df = db.sql(f"SELECT /*+ {hint.upper()}(customers) */ * FROM {SLOW} JOIN customers ON c_id = o_customer")
    fast = unharmed(df, reordered=True)
    assert operator in executed(fast)
    assert any(f"strategy={hint}" in line and "c_id" in line for line in joined_tables(fast))


def test_hinted_join_keeps_its_place(db: SparkSession) -> None:
    """The two relations that the user joined with a hint are still joined first, so the order stays."""
    orders = db.table("orders").hint("merge")
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    fast = unharmed(df, reordered=False)
    assert [line for line in joined_tables(fast) if "l_region" in line and "strategy=merge" in line]


def test_group_below_a_hinted_join_is_still_ordered(db: SparkSession) -> None:
    df = slow(db).join(db.table("customers").hint("merge"), F.col("c_id") == F.col("o_customer"))
    unharmed(df, reordered=True)


def test_hint_on_a_whole_join(db: SparkSession) -> None:
    df = db.table("customers").join(slow(db).hint("shuffle_hash"), F.col("c_id") == F.col("o_customer"))
    fast = unharmed(df, reordered=True)
    assert any("strategy=shuffle_hash" in line and "c_id" in line for line in joined_tables(fast))


def test_repartition_hints_stay(db: SparkSession) -> None:
    df = db.sql(f"SELECT /*+ REPARTITION(3, o_id) */ o_id, l_qty FROM {SLOW}")
    fast = unharmed(df, reordered=True)
    assert fast.rdd.getNumPartitions() == df.rdd.getNumPartitions()
    unharmed(db.sql(f"SELECT /*+ COALESCE(1) */ o_id, l_qty FROM {SLOW}"), reordered=True)


def test_no_hint_is_given_when_hints_are_off(db: SparkSession) -> None:
    fast = unharmed(slow(db), reordered=True, hints=False)
    assert not any("strategy=" in line for line in joined_tables(fast))
    assert not fast._pyjoinopt_report.hints


def cached_reads(df: DataFrame) -> int:
    return executed(df).count("InMemoryRelation")


def test_cached_table_below_a_group(db: SparkSession) -> None:
    orders = db.table("orders").filter("o_id < 150").cache()
    try:
        df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
        df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
        fast = unharmed(df, reordered=True)
        assert cached_reads(fast) == cached_reads(df) >= 1
    finally:
        orders.unpersist(True)


def test_cached_join_stays_a_leaf(db: SparkSession) -> None:
    cached = slow(db).cache()
    try:
        df = cached.join(db.table("customers"), F.col("c_id") == F.col("o_customer"))
        df = df.join(db.table("regions"), F.col("r_id") == F.col("c_region")).filter("r_name = 'region 2'")
        fast = unharmed(df, reordered=True)
        assert cached_reads(fast) == cached_reads(df) >= 1
        assert "l_region" not in "".join(joined_tables(fast))
    finally:
        cached.unpersist(True)


def test_cached_join_in_the_middle_of_a_longer_group(db: SparkSession) -> None:
    first = db.table("lines").join(db.table("orders"), F.col("l_region") == F.col("o_region"))
    cached = first.cache()
    try:
        df = first.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
        df = df.join(db.table("customers"), F.col("c_id") == F.col("v_customer"))
        fast = unharmed(df, reordered=True)
        assert cached_reads(fast) == cached_reads(df) >= 1
    finally:
        cached.unpersist(True)


def test_cached_join_inside_a_subquery(db: SparkSession) -> None:
    cached = slow(db).select("o_id").cache()
    try:
        cached.createOrReplaceTempView("cached_ids")
        df = db.sql("SELECT * FROM customers, regions WHERE c_region = r_id AND c_id IN (SELECT o_id FROM cached_ids)")
        fast = unharmed(df, reordered=False)  # of a subquery that reads a cache no join is made
        assert cached_reads(fast) == cached_reads(df) >= 1
    finally:
        cached.unpersist(True)


def test_result_that_is_itself_cached_is_left_alone(db: SparkSession) -> None:
    df = slow(db).cache()
    try:
        fast = df.optimize_joins()
        assert cached_reads(fast) == cached_reads(df) >= 1
        assert_same_rows(df, fast)
        assert any("cache" in refusal.reason for refusal in pyjoinopt.join_report(df).refusals)
    finally:
        df.unpersist(True)


def test_optimised_frame_can_be_cached(db: SparkSession) -> None:
    fast, _ = optimised(slow(db))
    fast.cache()
    try:
        assert_same_rows(slow(db), fast)
        assert cached_reads(fast.filter("o_id > 5")) >= 1
    finally:
        fast.unpersist(True)


def test_checkpointed_join(db: SparkSession) -> None:
    done = slow(db).localCheckpoint()
    # A checkpoint is one relation.
    unharmed(done.join(db.table("customers"), F.col("c_id") == F.col("o_customer")), reordered=False)
