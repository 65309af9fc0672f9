"""Distinct counts of text columns from the dictionaries of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim
from tests.shim.test_file_statistics import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")


def test_one_row_group_is_counted(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(1000).selectExpr(
        "id", "'n' || (id % 7) as few", "'v' || (id % 500) as half", "cast(null as string) as nothing",
        "case when id % 2 = 0 then 'x' end as one",
    ).coalesce(1).write.parquet(path)  # fmt: skip
    known = told(shim, spark.read.parquet(path), "footers")["columns"]
    assert (known["few"]["ndv"], known["half"]["ndv"], known["one"]["ndv"]) == (7, 500, 1)
    assert "ndv" not in known["id"] and not known["nothing"].get("ndv")


def test_several_row_groups(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 6000, 1, 6).selectExpr(
        "'n' || (id % 7) as repeated", "format_string('s%04d', id div 100) as sorted", "'u' || id as own"
    )
    rows.write.option("parquet.dictionary.page.size", 1 << 20).parquet(path)
    known = told(shim, spark.read.parquet(path), "footers")["columns"]
    assert known["repeated"]["ndv"] == 7, "every row group has all of them"
    assert known["sorted"]["ndv"] == 60, "4 row groups of 6 have 10 each, and none of another's"
    assert known["own"].get("ndv", 6000) == pytest.approx(6000, rel=0.01)


def test_without_dictionaries_nothing_is_told(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    writer = spark.range(1000).selectExpr("'n' || (id % 7) as few").coalesce(1).write
    writer.option("parquet.enable.dictionary", "false").parquet(path)
    known = told(shim, spark.read.parquet(path), "footers")
    assert known["rows"] == 1000 and "ndv" not in known["columns"]["few"]


def test_a_dictionary_that_was_given_up(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    writer = spark.range(50_000).selectExpr("'a longer value ' || id as many").coalesce(1).write
    writer.option("parquet.dictionary.page.size", 1024).parquet(path)
    assert "ndv" not in told(shim, spark.read.parquet(path), "footers")["columns"]["many"]
