"""Types that Spark accepts as join keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyjoinopt.catalyst.planner.key_types import is_binary_stable, is_orderable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = (
    "int|string|binary|boolean|date|timestamp|timestamp_ntz|void|decimal(38,2)|char(5)|varchar(7)|interval|"
    "interval year to month|interval day to second|interval hour to minute|map<int,int>|array<int>|array<map<int,int>>|"
    "array<struct<a:int,b:map<int,string>>>|array<struct<map:int,`b:c,<`:string>>|array<struct<a:struct<b:interval>>>"
).split("|")
RECENT_TYPES = (
    "variant|array<variant>|string collate UTF8_LCASE|string collate UNICODE|string collate UTF8_BINARY|"
    "string collate UTF8_BINARY_RTRIM|array<string collate UNICODE_CI>|map<string collate UTF8_LCASE,int>|"
    "array<struct<a:int,b:map<int,array<string collate UTF8_LCASE>>>>|array<struct<variant:int,collate:string>>"
).split("|")


def test_the_same_as_spark(spark: SparkSession) -> None:
    jvm = spark._jvm
    catalyst = "org.apache.spark.sql.catalyst"
    ordering = getattr(getattr(jvm, f"{catalyst}.expressions.RowOrdering$"), "MODULE$")
    rows = getattr(getattr(jvm, f"{catalyst}.util.UnsafeRowUtils$"), "MODULE$")
    recent = spark.version >= "4"
    different = []
    for text in TYPES + (RECENT_TYPES if recent else []):
        data_type = jvm.org.apache.spark.sql.types.DataType.fromDDL(text)
        name = data_type.catalogString()
        theirs = ordering.isOrderable(data_type), rows.isBinaryStable(data_type) if recent else True
        if theirs != (is_orderable(name), is_binary_stable(name)):
            different.append((name, theirs))
    assert different == []
