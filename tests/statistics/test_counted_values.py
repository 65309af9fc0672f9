"""Maximum rows per value: the columns for which it is counted, and its correctness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")
FRACTION = "if(id < 30, 1.5D, double('NaN')) AS fraction"
COLUMNS = ("id", "id % 7 AS seven", FRACTION, "nullif(id % 3, 1) AS some", "'x' AS text")


def most(df: DataFrame, store: Path) -> dict[str, float]:
    """Column -> rows that share a value at most, of the only leaf of a plan."""
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        (leaf,) = [node for node in gateway.export.nodes if not node.children]
        known = LeafStatistics(gateway.statistics, [leaf], "auto", store=Store(store))(leaf)
        return {a.name: known.max_rows_per_value[a.bit] for a in leaf.output if a.bit in known.max_rows_per_value}


def test_a_table_that_was_counted_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    path, store = str(tmp_path / "t"), tmp_path / "store"
    spark.range(100).selectExpr(*COLUMNS).write.parquet(path)
    df = spark.read.parquet(path)
    assert most(df, store) == {}, "footers prove nothing"
    pyjoinopt.analyze(spark, df, columns=df.columns, progress=False, store=str(store))
    # Of 100 numbers 15 leave 0 and 1 over 7; 34 leave 0 over 3, 33 leave 2, and those that leave 1 are NULL here.
    assert most(df, store) == {"id": 1, "seven": 15, "some": 34, "text": 100}


def test_a_sample_of_a_larger_table_proves_less_than_sketches(spark: SparkSession, tmp_path: Path) -> None:
    """Values that share a counter of a sketch count together, so the bound may be too large, but never too small."""
    path, store = str(tmp_path / "t"), tmp_path / "store"
    spark.range(500).selectExpr(*COLUMNS).write.parquet(path)
    df = spark.read.parquet(path)
    pyjoinopt.analyze(spark, df, columns=df.columns, progress=False, store=str(store), sample_rows=100)
    found = most(df, store)
    assert found.keys() == {"id", "seven", "some", "text"}, "fractions have no sketch"
    for name, truth in {"id": 1, "seven": 72, "some": 167, "text": 500}.items():
        assert truth <= found[name] <= truth + 20


def test_rows_of_the_plan_itself(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'b'), (1, null), (2, null) AS t(n, s) WHERE n > 0 AND s > ''")
    assert most(df, tmp_path / "store") == {"n": 3, "s": 1}
