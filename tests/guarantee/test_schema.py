"""Names, types, order, nullability and metadata are those of the plain frame, for every data type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType
from pyspark.testing.objects import ExamplePoint, ExamplePointUDT

from tests.support.compare import assert_same_schema
from tests.support.shop import SLOW, optimised, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "byte": "CAST(o_id % 100 AS TINYINT)",
    "short": "CAST(o_id AS SMALLINT)",
    "long": "CAST(o_id AS BIGINT)",
    "float": "CAST(o_id AS FLOAT) / 4",
    "double": "CAST(o_id AS DOUBLE) / 8",
    "not a number": "IF(o_id % 3 = 0, double('NaN'), double('-0.0'))",
    "decimal": "CAST(o_id AS DECIMAL(38, 18))",
    "small decimal": "CAST(o_id AS DECIMAL(5, 1))",
    "string": "CAST(o_id AS STRING)",
    "binary": "CAST(CAST(o_id AS STRING) AS BINARY)",
    "boolean": "o_id % 2 = 0",
    "date": "o_day",
    "timestamp": "CAST(o_day AS TIMESTAMP)",
    "timestamp without zone": "CAST(o_day AS TIMESTAMP_NTZ)",
    "day-time interval": "make_dt_interval(o_id, 1, 2, 3)",
    "array": "array(o_id, NULL, 3)",
    "array of arrays": "array(array(o_id), NULL)",
    "struct": "named_struct('a', o_id, 'b', named_struct('c d', o_day))",
    "map": "map('k', o_id, 'n', NULL)",
    "map of structs": "map(o_id, array(named_struct('x', map(1, o_id))))",
    "null": "NULL",
    "collated string": "CAST(o_id AS STRING) COLLATE UTF8_LCASE",
}
NOT_COLLECTABLE = {
    "year-month interval": "make_ym_interval(o_id, 2)",
    "calendar interval": "make_interval(1, 2, 0, o_id)",
    "variant": "parse_json(concat('{\"a\": [', o_id, ', null]}'))",
    "char": "CAST(o_id AS CHAR(5))",
    "varchar": "CAST(o_id AS VARCHAR(9))",
}


@pytest.mark.parametrize("expression", VALUES.values(), ids=VALUES)
def test_data_type_below_and_above_joins(db: SparkSession, expression: str) -> None:
    orders = f"(SELECT *, {expression} AS odd FROM orders) AS orders"
    df = db.sql(f"SELECT *, {expression} AS odd2 FROM {SLOW.replace('orders ON', f'{orders} ON')}")
    unharmed(df, reordered=True)


@pytest.mark.parametrize("expression", NOT_COLLECTABLE.values(), ids=NOT_COLLECTABLE)
def test_data_type_that_python_cannot_hold(db: SparkSession, expression: str) -> None:
    orders = f"(SELECT *, {expression} AS odd FROM orders) AS orders"
    df = db.sql(f"SELECT * FROM {SLOW.replace('orders ON', f'{orders} ON')}")
    fast, report = optimised(df)
    assert any(group.changed for group in report.groups)
    assert_same_schema(df, fast)
    unharmed(df.select(F.col("odd").cast("string"), "o_id", "l_qty"), reordered=True)


def test_join_keys_of_odd_types(db: SparkSession) -> None:
    keys = ["CAST({} AS DECIMAL(9, 2))", "CAST(CAST({} AS STRING) AS BINARY)", "named_struct('k', {})", "array({})"]
    for key in keys:
        text = SLOW.replace("l_region = o_region", f"{key.format('l_region')} = {key.format('o_region')}")
        unharmed(db.sql(f"SELECT o_id, v_rank, l_qty FROM {text}"), reordered=True)


def test_keys_with_a_collation(db: SparkSession) -> None:
    df = db.sql("""SELECT * FROM (SELECT 'Ab' COLLATE UTF8_LCASE AS x, l_region FROM lines) l
        JOIN (SELECT 'aB' COLLATE UTF8_LCASE AS y, o_region, o_customer FROM orders) o ON x = y AND l_region = o_region
        JOIN vip ON v_customer = o_customer""")
    assert df.count() > 0
    unharmed(df, reordered=True)


def test_user_defined_type(db: SparkSession) -> None:
    schema = StructType([StructField("p_customer", IntegerType()), StructField("point", ExamplePointUDT(), False)])
    points = db.createDataFrame([(n, ExamplePoint(float(n), 2.0)) for n in range(9)], schema)
    df = slow(db).join(points, F.col("p_customer") == F.col("v_customer"))
    fast, report = optimised(df)
    assert_same_schema(df, fast)
    rows = [sorted((row.o_id, row.l_order, row.point.x, row.point.y) for row in f.collect()) for f in (df, fast)]
    assert rows[0] == rows[1] != []


def test_column_order_follows_the_writing(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {SLOW}")
    fast = unharmed(df, reordered=True)
    written = [name for table in ("lines", "orders", "vip") for name in db.table(table).columns]
    assert fast.columns == df.columns == written


def test_nullability_of_outer_joins(db: SparkSession) -> None:
    literal = db.sql("SELECT 1 AS one, 8 AS k")
    for kind in ("left", "right", "full"):
        unharmed(slow(db).join(literal, F.col("k") == F.col("o_id"), kind), reordered=True)


def test_metadata_stays(db: SparkSession) -> None:
    orders = db.table("orders").withMetadata("o_id", {"unit": "piece", "nested": {"a": [1, 2]}})
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    fast = unharmed(df, reordered=True)
    assert fast.schema["o_id"].metadata["unit"] == "piece"


def test_hidden_file_metadata_column(db: SparkSession, shop_folder: str) -> None:
    orders = db.read.parquet(f"{shop_folder}/orders.parquet").select("*", "_metadata.file_name")
    df = db.table("lines").join(orders, F.col("l_region") == F.col("o_region"))
    unharmed(df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer")), reordered=True)
