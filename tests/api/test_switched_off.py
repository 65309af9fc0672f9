"""Rewrites that are disabled by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt import config
from pyjoinopt.optimizer import distinct_build_sides
from pyjoinopt.optimizer.eager_aggregation import eager_aggregation
from pyjoinopt.optimizer.prefilter.prefilter import AGGREGATES, JOINS
from pyjoinopt.rewrites import (
    aggregate_to_window,
    fuse_joined_aggregates,
    fuse_scalar_subqueries,
    inner_to_semi_joins,
    share_common_tables,
    top_k_through_joins,
)
from pyjoinopt.rewrites.normalise import REWRITES
from tests.support import tpc
from tests.support.rewritten_plans import is_changed_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rewrite -> a TPC-DS query that it changes.
CHANGED = {
    "set_operations_to_joins": 14, "extract_common_factors": 48, "simplify_outer_joins": 93, "fuse_aggregates": 90,
    "pivot_self_join": 31, "filter_common_tables": 11, "push_extra_predicate": 48, "left_join_to_anti_join": 78,
}  # fmt: skip


def test_options_name_all_rewrites() -> None:
    named = [rewrite.name for rewrite in REWRITES if rewrite.name]
    searched = [fuse_joined_aggregates.NAME, inner_to_semi_joins.NAME, top_k_through_joins.NAME]
    later = [*searched, distinct_build_sides.NAME, eager_aggregation.NAME, AGGREGATES, JOINS, share_common_tables.NAME]
    later = [aggregate_to_window.NAME, *later]
    assert [fuse_scalar_subqueries.NAME, *named, *later] == list(config.REWRITES)


@pytest.mark.parametrize(("name", "number"), CHANGED.items())
def test_one_that_is_switched_off_does_nothing(tpcds: SparkSession, name: str, number: int) -> None:
    assert is_changed_by(tpcds.sql(tpc.spark_queries("tpcds")[number]), name)


def test_scalar_subqueries_are_switched_off(tpcds: SparkSession) -> None:
    df = tpcds.sql(tpc.spark_queries("tpcds")[9])
    fast = df.optimize_joins(strict=True, store="off")
    assert fast.join_report().spared_joins == ["15 scalar subqueries over store_sales.parquet are computed in one pass"]
    assert df.optimize_joins(strict=True, store="off", rewrites_without="fuse_scalar_subqueries") is df
    assert fast.collect() == df.collect()


def test_aggregates_that_differ_by_a_join_are_switched_off(tpcds: SparkSession) -> None:
    df = tpcds.sql(tpc.spark_queries("tpcds")[61])
    fast = df.optimize_joins(strict=True, store="off")
    note = "promotions and total are computed together: only the former are joined with promotion"
    assert fast.join_report().spared_joins == [note]
    without = df.optimize_joins(strict=True, store="off", rewrites_without="fuse_joined_aggregates")
    assert without.join_report().spared_joins == []
    assert fast.collect() == df.collect()


def test_a_session_s_key_counts_too(tpcds: SparkSession) -> None:
    session = tpcds.newSession()
    tpc.register(session, "tpcds")
    df = session.sql(tpc.spark_queries("tpcds")[95])
    assert pyjoinopt.join_report(df, statistics="footers", store="off").spared_joins
    session.conf.set("spark.pyjoinopt.rewritesWithout", "fuse_aggregates, self_join_to_semi_join")
    assert not pyjoinopt.join_report(df, statistics="footers", store="off").spared_joins
    assert sorted(df.optimize_joins(strict=True).collect()) == sorted(df.collect())


def test_a_wrong_name_says_which_there_are(tpcds: SparkSession) -> None:
    with pytest.raises(ValueError, match="fuse_aggregates"):
        tpcds.range(1).optimize_joins(rewrites_without="fuse")
