"""Which queries a rewrite changes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from benchmarks import rewrites as benchmark
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.ci
def test_a_query_is_changed_by_the_rewrites_that_apply_to_it(tpcds: SparkSession) -> None:
    df = tpcds.sql(tpc.spark_queries("tpcds")[90])  # joins two aggregates of the same rows
    options = {"store": "off", "statistics": "footers"}
    whole = benchmark._plan(df, **options)
    assert benchmark._plan(df, **options, rewrites_without="pivot_self_join") == whole
    assert benchmark._plan(df, **options, rewrites_without="fuse_aggregates") != whole


def test_names_are_those_of_rewrites() -> None:
    assert benchmark.rewrite_names("fuse_aggregates,prefilter_joins") == ("fuse_aggregates", "prefilter_joins")
    with pytest.raises(argparse.ArgumentTypeError, match="no such rewrite: fuse; there are fuse_scalar_subqueries, "):
        benchmark.rewrite_names("fuse")
