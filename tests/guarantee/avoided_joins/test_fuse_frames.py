"""Fused aggregates of frames: columns are found as before, caches are used, other strategies change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins.tables import checked, relations
from tests.support import shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def count(df: DataFrame, where: str, name: str = "c") -> DataFrame:
    from pyspark.sql import functions as F

    return df.where(where).agg(F.count("*").alias(name))


def test_columns_are_found(tiny: SparkSession) -> None:
    t = tiny.table("t")
    a, b = count(t, "x = 2"), count(t, "y = 1")
    joined = a.crossJoin(b)
    fast, spared = checked(joined)
    assert len(spared) == 1 and fast.columns == ["c", "c"]
    assert fast.select(b["c"], a["c"]).collect() == joined.select(b["c"], a["c"]).collect()
    unequal = a.join(b, a["c"] != b["c"]).select(b["c"], (a["c"] + b["c"]).alias("both"))
    assert len(checked(unequal)[1]) == 1
    assert len(checked(a.crossJoin(a))[1]) == 1
    named = tiny.sql("select * from (select count(*) c from t) a, (select count(*) c from t where x = 1) b")
    fast, spared = checked(named)
    assert len(spared) == 1
    assert fast.select("b.c", "a.c").collect() == named.select("b.c", "a.c").collect()


def test_hints_and_functions_in_python(tiny: SparkSession) -> None:
    from pyspark.sql import functions as F

    t = tiny.table("t")
    assert checked(F.broadcast(count(t, "x = 2")).crossJoin(count(t, "x = 1")))[1] == []
    odd = F.udf(lambda value: value is not None and value % 2 == 1, "boolean")
    for first in (t.where(odd("x")).agg(F.sum("y")), t.where("x = 1").agg(F.count(odd("x")))):
        assert checked(first.crossJoin(count(t, "x = 1")))[1] == []


@pytest.mark.parametrize("what", ["table", "one", "product"])
def test_caches_are_used(tiny: SparkSession, what: str) -> None:
    t = tiny.table("t").where("y > 0")
    cached = {"table": t, "one": count(t, "x = 1"), "product": count(t, "x = 1").crossJoin(count(t, "x = 2"))}[what]
    cached.cache()
    try:
        fast, spared = checked(count(t, "x = 1").crossJoin(count(t, "x = 2")).crossJoin(tiny.table("d")))
        assert "InMemoryRelation" in str(fast._jdf.queryExecution().optimizedPlan().toString())
        assert spared == []
    finally:
        cached.unpersist(blocking=True)


def test_other_readings_of_one_file(tiny: SparkSession, folder: Path) -> None:
    """Two separately created frames have separate file listings, and may also have different options."""
    t = tiny.table("t")
    assert relations(checked(count(t, "x = 1").crossJoin(count(tiny.table("t"), "x = 2")))[0]) == 1
    for reader in (tiny.read, tiny.read.option("mergeSchema", "true")):
        again = reader.parquet(str(folder / "t.parquet"))
        assert checked(count(again, "x = 1").crossJoin(count(t, "x = 2")))[1] == []


@pytest.mark.parametrize("strategy", ["spark", "heuristic"])
def test_other_strategies_spare_nothing(tiny: SparkSession, strategy: str) -> None:
    products = tiny.sql("select * from (select count(*) c from t) a, (select sum(x) s from t) b, d")
    looks = tiny.sql("select distinct a.k from t a join t b on a.k = b.k and a.x <> b.x")
    for df in (products, looks):
        fast, report = shop.optimised(df, strategy=strategy)
        assert report.spared_joins == [] and relations(fast) == relations(df)
        assert shop.optimised(df)[1].spared_joins
