"""Random legal orders, not only the cheapest ones, built as plans and run by Spark.

The search picks one order of a query; here each query gets several, so that Spark's own rules process many plans:
nullability above outer joins, filters on top of them, detached conditions. One test draws from all legal orders, the
other lets the search choose by random costs.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from tests.guarantee.drawn_orders import drawn_orders
from tests.oracles.joins.random_plans import Draw
from tests.oracles.joins.small_worlds import random_tables
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.random_cost import RandomCost
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def written(session: SparkSession, rng: random.Random, seed: int, relations: int) -> DataFrame:
    """A random query with this many relations over its own tables."""
    draw = Draw(seed, relations)
    for plan, rows in zip(draw.relations, random_tables(rng, draw.relations, 4), strict=True):
        # A column that is never NULL, so that nullability differs above and below outer joins.
        names = [a.name for a in plan.output]
        values = [(*row, i) for i, row in enumerate(rows)]
        schema = ", ".join([*(f"{n} int" for n in names), f"{names[0]}_id int not null"])
        session.createDataFrame(values, schema).createOrReplaceTempView(str(plan.info["rel"]["name"]))
    return session.sql(f"SELECT * FROM {sql(draw.plan)}")


@pytest.mark.parametrize("chunk", [0, *(pytest.param(c, marks=pytest.mark.slow) for c in (1, 2, 3))])
def test_they_all_give_the_same_rows(session: SparkSession, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    forced = moved = 0
    for seed in range(chunk * 4, chunk * 4 + 4):
        rng = random.Random(seed)
        plain = written(session, rng, seed, rng.choice((3, 4, 5)))
        expected = plain.collect()
        for _ in range(3):
            with drawn_orders(monkeypatch, rng) as shown:
                fast = plain.optimize_joins(strict=True, hints=False)
            assert_same_schema(plain, fast)
            assert_same_rows(expected, fast.collect(), label=("as written", f"{seed}: {shown}"))
            forced += 1
            moved += any(one != other for one, other in shown)
    assert moved > forced // 4


@pytest.mark.parametrize(
    "chunk",
    [pytest.param(0, marks=pytest.mark.ci), *(pytest.param(c, marks=pytest.mark.slow) for c in (1, 2, 3, 4))],
)
def test_those_that_random_costs_prefer_give_the_same_rows(session: SparkSession, chunk: int) -> None:
    several = 0
    for seed in range(100 + chunk * 6, 106 + chunk * 6):
        rng = random.Random(seed)
        plain = written(session, rng, seed, rng.choice((4, 5)))
        expected, orders = plain.collect(), set()
        for number in range(4):
            fast = plain.optimize_joins(strict=True, hints=False, cost=RandomCost(number))
            order = str([group.order_after for group in fast._pyjoinopt_report.groups])
            if fast is not plain and order not in orders:
                assert_same_schema(plain, fast)
                assert_same_rows(expected, fast.collect(), label=("as written", f"{seed}: {order}"))
            orders.add(order)
        several += len(orders) > 1
    assert several >= 3


def test_random_costs_prefer_every_order(session: SparkSession) -> None:
    """Four relations in a row have five orders without products, and each of them wins."""
    for number, name in enumerate("pqrs"):
        session.range(3 + 7 * number).selectExpr(f"id as {name}1", f"id % {2 + number} as {name}2") \
            .createOrReplaceTempView(name)  # fmt: skip
    df = session.sql("SELECT * FROM p JOIN q ON p2 = q1 JOIN r ON q2 = r1 JOIN s ON r2 = s1")
    found = {
        df.optimize_joins(strict=True, hints=False, cost=RandomCost(n))._pyjoinopt_report.groups[0].order_after
        for n in range(60)
    }
    in_a_row = ["pq pqr", "qr pqr", "qr qrs", "rs qrs", "pq rs"]
    expected = {frozenset(frozenset(one) for one in [*text.split(), "pqrs"]) for text in in_a_row}
    assert expected <= {_sets(order) for order in found}, found


def _sets(order: str) -> frozenset[frozenset[str]]:
    """The sets of relations that an order joins, whichever side is written first."""
    sets, begun = set(), []
    for position, letter in enumerate(order):
        if letter == "(":
            begun.append(position)
        elif letter == ")":
            sets.add(frozenset(order[begun.pop() : position]) & frozenset("pqrs"))
    return frozenset(sets)
