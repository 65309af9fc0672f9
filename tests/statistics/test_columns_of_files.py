"""Columns that the reader does not look up by name, or converts: bounds are correct or absent."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.shim import bridge_for
from tests.statistics.test_delta_log import known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def bounds(df: DataFrame) -> dict[str, tuple[Any, Any]]:
    bridge_for(df)
    facts = known(df)[1]
    assert facts.exact and facts.rows == df.count()
    return {name: (column.min, column.max) for name, column in facts.columns.items() if column.min is not None}


def test_columns_by_field_ids(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    def schema(**ids: int) -> StructType:
        return StructType([StructField(name, LongType(), True, {"parquet.field.id": n}) for name, n in ids.items()])

    data = spark.range(100).selectExpr("id a", "id + 1000 b").collect()
    spark.createDataFrame(data, schema(a=1, b=2)).coalesce(1).write.parquet(str(tmp_path / "t"))
    df = spark.read.schema(schema(b=1, a=2)).parquet(str(tmp_path / "t"))
    assert bounds(df) == {"a": (0, 99), "b": (1000, 1099)}
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    try:
        assert df.agg({"b": "max"}).collect() == [(99,)]
        assert bounds(df) == {}
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def test_columns_by_position(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100).selectExpr("id a", "id + 1000 b").coalesce(1).write.orc(str(tmp_path / "t"))
    schema = "b BIGINT, a BIGINT"
    assert bounds(spark.read.schema(schema).orc(str(tmp_path / "t"))) == {"a": (0, 99), "b": (1000, 1099)}
    df = spark.read.schema(schema).option("orc.force.positional.evolution", "true").orc(str(tmp_path / "t"))
    assert df.agg({"b": "max"}).collect() == [(99,)]
    assert bounds(df) == {}


def test_days_read_as_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    days = spark.sql("SELECT date_add(date'2020-01-01', int(id)) d FROM range(10)")
    days.coalesce(1).write.parquet(str(tmp_path / "t"))
    assert bounds(spark.read.parquet(str(tmp_path / "t"))) == {"d": (18262, 18271)}
    df = spark.read.schema("d TIMESTAMP_NTZ").parquet(str(tmp_path / "t"))
    if spark.version < "4":
        pytest.skip("Spark 3.5 does not read dates as timestamps")
    assert df.agg({"d": "max"}).collect() == [(datetime.datetime(2020, 1, 10),)]
    assert bounds(df) == {}
