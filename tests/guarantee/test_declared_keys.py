"""A declaration changes estimates only: even a wrong one changes no row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.statistics import declare, forget_declared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def nothing_declared() -> Iterator[None]:
    yield
    forget_declared()


def test_a_wrong_declaration_changes_no_row(spark: SparkSession, tmp_path: Path) -> None:
    for name, rows in (("many", 300), ("few", 30), ("odd", 50)):
        path = str(tmp_path / name)
        spark.range(rows).selectExpr("id % 7 AS k", f"id AS {name}").coalesce(1).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(name)
        declare(name, key="k")  # which it is not
    text = "SELECT many, few, odd FROM many LEFT JOIN few ON many.k = few.k JOIN odd ON odd.k = many.k WHERE odd < 20"
    unread = "SELECT DISTINCT many FROM many LEFT JOIN few ON many.k = few.k JOIN odd ON odd.k = many.k"
    for query in (text, unread, "SELECT many.many FROM many, few, odd WHERE many.k = few.k AND few.k = odd.k"):
        df = spark.sql(query)
        fast = df.optimize_joins(store="off", strict=True)
        assert sorted(map(tuple, fast.collect())) == sorted(map(tuple, df.collect()))
    assert pyjoinopt.statistics.show(spark.table("many"), store="off")["keys"][0] == [("k",)]
