"""Cross products of three or more relations, run by Spark: relations that no predicate connects."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(("tables", "where"), QUERIES.values(), ids=QUERIES)
def test_they_are_put_together_again(session: SparkSession, tables: str, where: str) -> None:
    """By one of the models, at the least, in another order than the written one."""
    df = session.sql(f"SELECT * FROM {tables} WHERE {where}")
    expected, changed = rows(df), False
    for cost in ("spark", "c_out"):
        fast = df.optimize_joins(strict=True, cost=cost, store="off")
        changed |= fast._pyjoinopt_report.changed
        assert fast.schema == df.schema and rows(fast) == expected
    assert expected and changed


def test_the_small_ones_are_multiplied_first(session: SparkSession) -> None:
    fast = session.sql("SELECT * FROM a, b, c").optimize_joins(strict=True, cost="c_out", store="off")
    (group,) = fast._pyjoinopt_report.groups
    assert group.changed and "a" in (group.order_after[1], group.order_after[-2])
    optimized = fast._jdf.queryExecution().optimizedPlan().toString()
    assert optimized.count("Join") == 2


def test_what_only_follows_is_tested_where_the_written_order_needs_it(session: SparkSession) -> None:
    """Each is compared with d alone, and the best order joins b and c first: by an equality, also if so written."""
    session.range(500).selectExpr("id % 50 AS k").createOrReplaceTempView("many")
    text = "SELECT b.x, m.k FROM {} WHERE b.x = d.k AND c.x = d.k AND m.k = d.k"
    df = session.sql(text.format("many AS m, many AS d, b, c"))
    options = {"strict": True, "cost": "c_out", "store": "off"}
    (group,) = df.optimize_joins(**options)._pyjoinopt_report.groups
    best = group.order_after
    assert "(b ⋈ c)" in best or "(c ⋈ b)" in best
    written = re.sub(r"\b([md])\b", r"many AS \1", best).replace("⋈", "CROSS JOIN")
    fast = session.sql(text.format(written)).optimize_joins(**options)
    (again,) = fast._pyjoinopt_report.groups
    assert again.changed and again.order_before.replace("c ⋈ b", "b ⋈ c") == best.replace("c ⋈ b", "b ⋈ c")
    assert all(join.predicates and join.predicates != ("(cross product)",) for join in again.estimated_rows)
    joins = [line for line in fast._jdf.queryExecution().analyzed().toString().splitlines() if "Join Inner" in line]
    assert len(joins) == 3 and all("=" in line for line in joins)
    assert rows(fast) == rows(df)
