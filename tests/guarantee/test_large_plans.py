"""Plans with a thousand joins or two thousand levels: no recursion error, and bounded planning time.

Spark itself needs a deep stack for such plans (the test session has one) and a long time to run them, so the largest
are only planned by us and compared by schema; smaller ones of the same shape are run. The default run stops at 30
joins and 200 levels, CI at 200 joins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import pyjoinopt
from tests.support.compare import assert_same_schema
from tests.support.shop import optimised, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def chain(db: SparkSession, length: int) -> DataFrame:
    """r0 ⋈ r1 ⋈ ... each with the one before, over ranges of different sizes."""
    relations = " ".join(f"JOIN range({2 + n % 5}) r{n} ON r{n}.id = r{n - 1}.id" for n in range(1, length))
    return db.sql(f"SELECT r0.id, r{length - 1}.id AS last FROM range(9) r0 {relations}")


def star(db: SparkSession, length: int) -> DataFrame:
    """One table in the middle of many small ones, written as a FROM list."""
    tables = ", ".join(f"range({2 + n % 7}) r{n}" for n in range(1, length))
    where = " AND ".join(f"r{n}.id = o_region" for n in range(1, length))
    return db.sql(f"SELECT o_id FROM orders, {tables} WHERE {where}")


@pytest.fixture
def lenient(db: SparkSession) -> Iterator[SparkSession]:
    """The same tables without Spark's own checks after every rule, which take longer than the plan itself."""
    db.conf.set("spark.sql.planChangeValidation", "false")
    yield db
    db.conf.set("spark.sql.planChangeValidation", "true")


@pytest.mark.parametrize("shape", [chain, star])
def test_thirty_joins_run(lenient: SparkSession, shape) -> None:  # type: ignore[no-untyped-def]
    unharmed(shape(lenient, 31), reordered=True)


@pytest.mark.ci
@pytest.mark.timeout(300)
def test_two_hundred_joins_run(lenient: SparkSession) -> None:
    """About as many as Spark runs in ten seconds; ranges of one part keep it from starting hundreds of tasks."""
    relations = " ".join(f"JOIN range(0, {2 + n % 5}, 1, 1) r{n} ON r{n}.id = r{n - 1}.id" for n in range(1, 201))
    unharmed(lenient.sql(f"SELECT r0.id, r200.id AS last FROM range(0, 9, 1, 1) r0 {relations}"), reordered=True)


@pytest.mark.ci
@pytest.mark.timeout(300)
def test_more_than_two_hundred_levels_run(lenient: SparkSession) -> None:
    """Each filter tests a column made of the one before: written out, the conditions would be 15,000 parts long."""
    lenient.conf.set("spark.sql.ansi.enabled", "false")  # sums that may overflow would keep the order
    try:
        text = "SELECT a.id AS k, a.id AS x FROM range(0, 20, 1, 1) a JOIN range(0, 15, 1, 1) b ON a.id = b.id"
        df = lenient.sql(text)
        df = df.join(lenient.range(0, 5, 1, 1).withColumnRenamed("id", "c"), F.expr("k = c"))
        for number in range(120):
            df = df.withColumn("x", F.col("x") + number).filter(F.col("x") > -1 - number)
        fast = unharmed(df, reordered=True)
        assert sorted(row.k for row in fast.collect()) == [0, 1, 2, 3, 4]
    finally:
        lenient.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "joins", [pytest.param(100, marks=pytest.mark.ci), *(pytest.param(n, marks=pytest.mark.slow) for n in (300, 1000))]
)
def test_many_joins(lenient: SparkSession, joins: int) -> None:
    df = chain(lenient, joins + 1)
    started = time.perf_counter()
    fast, report = optimised(df)
    assert time.perf_counter() - started < 60
    assert_same_schema(df, fast)
    assert sum(len(group.relations) for group in report.groups) >= joins + 1


@pytest.mark.timeout(300)
def test_two_thousand_conjuncts_and_terms(lenient: SparkSession) -> None:
    """Expressions nest as deep as plans do: `a + a + ...` is a tree of that height."""
    deep = F.expr(" + ".join(["l_qty"] * 2000) + " > 0")
    wide = F.expr(" AND ".join(f"o_id <> {1000 + n}" for n in range(2000)))
    for condition in (deep, wide):
        df = slow(lenient).filter(condition)
        fast, report = optimised(df)
        assert_same_schema(df, fast)
        assert any(group.changed for group in report.groups)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("levels", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_levels(lenient: SparkSession, levels: int) -> None:
    """Each step is a node of its own above the last; Spark's Python API analyses each of them."""
    df = slow(lenient)
    for number in range(levels):
        df = df.filter(df.o_id > -number)
    fast, _ = optimised(df)
    assert_same_schema(df, fast)
    assert pyjoinopt.join_report(df, strict=True).to_json()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("ansi", ["false", "true"])
def test_long_chain_of_with_column(lenient: SparkSession, ansi: str) -> None:
    """In ANSI mode the sums of several filters may overflow, and Spark's plan decides which filter comes first."""
    lenient.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        df = slow(lenient).select("o_id", "l_qty", "v_rank")
        for number in range(60):
            df = df.withColumn("l_qty", F.col("l_qty") + number).filter(F.col("l_qty") > -number)
        unharmed(df.select("o_id", "l_qty"), reordered=ansi == "false")
    finally:
        lenient.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.timeout(300)
def test_union_of_many(lenient: SparkSession) -> None:
    parts = [f"SELECT o_id + {n} AS x FROM orders JOIN vip ON o_id = v_rank" for n in range(200)]
    df = lenient.sql(" UNION ALL ".join(parts))
    fast, _ = optimised(df)
    assert_same_schema(df, fast)
