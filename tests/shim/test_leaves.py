"""Every kind of leaf is exported without a failure, and every column type survives a round trip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim, copy_all, find, leaf, message
from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

TYPES = (
    "true as x_bool",
    "1Y as x_byte",
    "2S as x_short",
    "3 as x_int",
    "4L as x_long",
    "1.5F as x_float",
    "double('NaN') as x_nan",
    "cast(1.25 as decimal(38, 18)) as x_decimal",
    "'täxt' as x_text",
    "cast('c' as char(3)) as x_char",
    "x'00ff' as x_bytes",
    "date'1582-10-01' as x_date",
    "timestamp'2024-02-29 12:00:00' as x_at",
    "timestamp_ntz'2024-02-29 12:00:00' as x_local",
    "interval '1-2' year to month as x_months",
    "interval '3 04:05:06' day to second as x_seconds",
    "null as x_null",
    "array(1, null) as x_array",
    "map('k', array(1)) as x_map",
    "named_struct('a', 1, 'b', named_struct('c', null)) as x_struct",
)


def test_columns_of_every_type(spark: SparkSession, shim: Shim) -> None:
    left = spark.range(3).selectExpr("id as l", *TYPES)
    right = spark.range(3).selectExpr("id as r")
    df = left.join(right, left["l"] == right["r"], "left").where("x_int = 3 and x_text = 'täxt'")
    export = shim.export(df)
    rebuilt = shim.rebuild(export, copy_all(export))
    assert_same_schema(df, rebuilt)
    readable = [c for c in df.columns if c != "x_months"]  # Python has no value for a number of months
    assert_same_rows(df.select(readable), rebuilt.select(readable))


def test_collations(spark: SparkSession, shim: Shim) -> None:
    if int(spark.version.split(".")[0]) < 4:
        pytest.skip("collations came with Spark 4")
    df = spark.sql("select * from (select s collate utf8_lcase as s from values ('A'), ('b') as t(s)) where s = 'a'")
    export = shim.export(df)
    assert any("collate UTF8_LCASE" in name for name in export["types"])
    assert_same_rows(df, shim.rebuild(export, copy_all(export)))


def test_sources_of_the_second_kind(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    spark.range(20).write.parquet(str(tmp_path / "t"))
    before = spark.conf.get("spark.sql.sources.useV1SourceList")
    try:
        spark.conf.set("spark.sql.sources.useV1SourceList", "")
        df = spark.read.parquet(str(tmp_path / "t")).where("id > 3")
        export = shim.export(df)
        assert export["nodes"][leaf(export)]["rel"]["kind"] == "v2"
        reported = shim.statistics(export, nodes=[leaf(export)])["nodes"][str(leaf(export))]
        assert reported["source"] == "size" and reported["bytes"] > 0
        assert_same_rows(df, shim.rebuild(export, copy_all(export)))
    finally:
        spark.conf.set("spark.sql.sources.useV1SourceList", before)


def test_leaves_that_are_no_files(spark: SparkSession, shim: Shim) -> None:
    rows = shim.export(spark.createDataFrame([(1,), (2,)], "n int"))
    assert rows["nodes"][leaf(rows)]["rel"]["kind"] == "rdd"
    counted = shim.export(spark.range(7))
    assert counted["nodes"][leaf(counted)]["rows"] == 7
    local = shim.export(spark.sql("select * from values 1, 2, 3"))
    assert shim.statistics(local, nodes=[leaf(local)])["nodes"][str(leaf(local))]["rows"] == 3
    one = shim.export(spark.sql("select 1"))
    assert one["nodes"][leaf(one)]["c"] == "OneRowRelation"
    reported = shim.statistics(one, nodes=[leaf(one)])["nodes"][str(leaf(one))]
    assert (reported["rows"], reported["exact"]) == (1, True)


def test_commands(spark: SparkSession, shim: Shim) -> None:
    """The result of a command is an ordinary relation; the command is not run again."""
    from py4j.protocol import Py4JJavaError

    shown = spark.sql("show tables")
    export = shim.export(shown)
    assert export["command"]
    with pytest.raises(Py4JJavaError) as error:
        shim.rebuild(export, {"root": export["root"]})
    assert message(error) == "A command is not rebuilt: it would run again."
    derived = shown.where("tableName = 'x'")
    export = shim.export(derived)
    assert not export["command"] and export["nodes"][leaf(export)]["c"] == "CommandResult"
    assert_same_rows(derived, shim.rebuild(export, copy_all(export)))


def test_cached_data_in_an_optimised_plan(spark: SparkSession, shim: Shim) -> None:
    df = spark.range(8).where("id > 2").cache()
    try:
        df.count()
        export = shim.export(df.where("id < 100"), "optimized")
        reported = export["nodes"][find(export, "InMemoryRelation")]["rel"]
        assert (reported["kind"], reported["rows"]) == ("memory", 5)
    finally:
        df.unpersist()


def test_a_table_of_the_catalog_has_its_name(spark: SparkSession, shim: Shim) -> None:
    spark.sql("drop table if exists shim_named")
    spark.range(3).write.format("parquet").saveAsTable("shim_named")
    try:
        export = shim.export(spark.table("shim_named"))
        reported = export["nodes"][leaf(export)]["rel"]
        assert reported["name"].endswith("shim_named") and not reported["catalog"]
        spark.sql("analyze table shim_named compute statistics")
        export = shim.export(spark.table("shim_named"))
        assert export["nodes"][leaf(export)]["rel"]["catalog"]
    finally:
        spark.sql("drop table shim_named")


def test_derived_frames_are_told_apart(spark: SparkSession, shim: Shim) -> None:
    """Spark refuses a self-join with ambiguous columns; a rebuilt frame must not disable this check."""
    from pyspark.errors import AnalysisException

    df = spark.range(3).selectExpr("id as a", "id + 1 as b").where("a < 2")
    export = shim.export(df)
    rebuilt = shim.rebuild(export, copy_all(export))
    other = df.selectExpr("a as c")
    assert rebuilt.join(other, rebuilt["a"] == other["c"]).count() == 2
    with pytest.raises(AnalysisException, match="(?i)ambiguous"):
        rebuilt.join(df, rebuilt["a"] == df["b"]).collect()
