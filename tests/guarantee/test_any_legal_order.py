"""Random legal orders, not just the cheapest ones, built as plans and run by Spark.

The search picks one order of a query; here each query gets several, drawn from all that are legal, so that Spark's own
rules meet what is built: nullability above outer joins, filters on top of them, conditions that were peeled off.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from tests.groups.random_plans import Draw
from tests.groups.small_worlds import random_tables
from tests.guarantee.drawn_orders import drawn_orders
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORDS = {
    "Inner": "JOIN", "LeftOuter": "LEFT JOIN", "RightOuter": "RIGHT JOIN", "FullOuter": "FULL JOIN",
    "LeftSemi": "LEFT SEMI JOIN", "LeftAnti": "LEFT ANTI JOIN",
}  # fmt: skip


def sql(plan: LogicalPlan) -> str:
    """The FROM clause of a plan of joins and filters; column names are unique, so nothing is qualified."""
    if isinstance(plan, Join):
        on = f" ON {describe(plan.condition)}" if plan.condition is not None else ""
        return f"({sql(plan.left)} {_WORDS[plan.join_type]} {sql(plan.right)}{on})"
    if isinstance(plan, Filter):
        return f"(SELECT * FROM {sql(plan.child)} WHERE {describe(plan.condition)})"
    return str(plan.info["rel"]["name"])


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = session_for_tiny_tables(spark)
    own.conf.set("spark.sql.crossJoin.enabled", "true")
    own.conf.set("spark.sql.ansi.enabled", "false")
    return own


@pytest.mark.parametrize("chunk", [0, 1, *(pytest.param(c, marks=pytest.mark.slow) for c in (2, 3))])
def test_they_all_give_the_same_rows(session: SparkSession, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    forced = moved = 0
    for seed in range(chunk * 4, chunk * 4 + 4):
        rng = random.Random(seed)
        draw = Draw(seed, rng.choice((3, 4, 5)))
        for plan, rows in zip(draw.relations, random_tables(rng, draw.relations, 4), strict=True):
            # A column that is never NULL, so that nullability differs above and below outer joins.
            names = [a.name for a in plan.output]
            values = [(*row, i) for i, row in enumerate(rows)]
            schema = ", ".join([*(f"{n} int" for n in names), f"{names[0]}_id int not null"])
            session.createDataFrame(values, schema).createOrReplaceTempView(str(plan.info["rel"]["name"]))
        plain = session.sql(f"SELECT * FROM {sql(draw.plan)}")
        expected = plain.collect()
        for _ in range(3):
            with drawn_orders(monkeypatch, rng) as shown:
                fast = plain.optimize_joins(strict=True, hints=False)
            assert_same_schema(plain, fast)
            assert_same_rows(expected, fast.collect(), label=("as written", f"{seed}: {shown}"))
            forced += 1
            moved += any(one != other for one, other in shown)
    assert moved > forced // 4
