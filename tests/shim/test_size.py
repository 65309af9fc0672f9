"""Large plans, deep and wide: the time grows only with their size."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim, copy_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


def _chain(spark: SparkSession, joins: int) -> DataFrame:
    """A left-deep chain of joins."""
    df = spark.range(3).withColumnRenamed("id", "k0")
    for i in range(1, joins + 1):
        df = df.join(spark.range(3).withColumnRenamed("id", f"k{i}"), on=[df["k0"] == 1])
    return df


def _best(action: object, times: int = 5) -> float:
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        action()  # type: ignore[operator]
        best = min(best, time.perf_counter() - started)
    return best


def test_two_hundred_nodes_in_a_moment(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(_chain(spark, 50))
    assert len(export["nodes"]) >= 150
    import json

    df, edits = _chain(spark, 50), json.dumps(copy_all(export))
    handle = export["handle"]
    exporting = _best(lambda: shim.bridge.release(shim.export(df)["handle"]))
    rebuilding = _best(lambda: shim.bridge.rebuild(handle, edits))
    print(f"export {exporting * 1000:.1f} ms, rebuild {rebuilding * 1000:.1f} ms")
    assert exporting < 0.5 and rebuilding < 2


def test_a_deep_plan(spark: SparkSession, shim: Shim) -> None:
    """Built by edits, because Spark itself takes minutes to analyse two thousand steps one by one."""
    df = spark.range(3).where("id < 2")
    export = shim.export(df)
    [condition] = export["nodes"][export["root"]]["x"]
    nodes = [["Filter", export["root"], condition]] + [["Filter", -1 - i, condition] for i in range(1999)]
    deep = shim.rebuild(export, {"nodes": nodes, "root": -2000})
    reported = shim.export(deep)
    assert len(reported["nodes"]) == 2002
    assert len(reported["expressions"]) == len(export["expressions"])
    again = shim.rebuild(reported, copy_all(reported))
    assert len(shim.export(again)["nodes"]) == 2003


def test_a_long_condition(spark: SparkSession, shim: Shim) -> None:
    condition = " and ".join(f"id <> {i}" for i in range(1000))
    started = time.perf_counter()
    export = shim.export(
        spark.range(2000).join(spark.range(5).withColumnRenamed("id", "b"), how="left").where(condition)
    )
    assert len([row for row in export["expressions"] if row[0] == "And"]) == 999
    assert len(export["filtersNull"]) == 1000
    assert time.perf_counter() - started < 20
