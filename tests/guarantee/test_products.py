"""Cross products of three relations and more, through Spark: what nothing ties is put together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sessions.conftest import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"a": 40, "b": 2, "c": 3, "d": 5, "e": 1}
QUERIES = {
    "a predicate over four": ("a, b, c, d", "a.x + b.x + c.x = d.x + 30"),
    "nothing at all": ("a, b, c", "true"),
    "products of blocks": ("a, b, c, d, e", "a.x % 7 = d.x AND b.y = c.y"),
    "a product below an outer join": ("a CROSS JOIN b CROSS JOIN c LEFT JOIN d ON a.x + b.x + c.x = d.x, e", "a.y = 1"),
    "a product in what is looked into": (
        "a, b, c", "EXISTS (SELECT 1 FROM d, e, b AS f WHERE d.x + e.x + f.x = a.x + b.x)",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    for name, count in TABLES.items():
        frame = made.range(count).selectExpr("CASE WHEN id % 5 <> 4 THEN id END AS x", "id % 2 AS y")
        frame.createOrReplaceTempView(name)
    return made


@pytest.mark.parametrize("cost", ["spark", "c_out"])
@pytest.mark.parametrize(("tables", "where"), QUERIES.values(), ids=QUERIES)
def test_they_are_put_together_again(session: SparkSession, tables: str, where: str, cost: str) -> None:
    df = session.sql(f"SELECT * FROM {tables} WHERE {where}")
    fast = df.optimize_joins(strict=True, cost=cost, store="off")
    assert fast.schema == df.schema and rows(fast) == rows(df)
    assert rows(fast)


def test_the_small_ones_are_multiplied_first(session: SparkSession) -> None:
    fast = session.sql("SELECT * FROM a, b, c").optimize_joins(strict=True, cost="c_out", store="off")
    (group,) = fast._pyjoinopt_report.groups
    assert group.changed and "a" in (group.order_after[1], group.order_after[-2])
    optimized = fast._jdf.queryExecution().optimizedPlan().toString()
    assert optimized.count("Join") == 2
