"""If plain Spark runs a query in ANSI mode, every legal order does: arithmetic over zeros, NULLs and extreme values.

Some of the predicates cannot fail and may be placed anywhere. Others fail on rows of the tables, and plain Spark
succeeds only if a join or a filter removed those rows before; queries on which it fails are left out.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.guarantee.drawn_orders import in_drawn_orders
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = "abcd"
SAFE = [
    "a_n * 1.3 < b_n + c_n",
    "case when b_z <> 0 then a_k / b_z else 1 end > 0",
    "case when c_n > 0 then abs(a_n - c_n) / c_n end > 0.1",
    "a_n / nullif(c_n, 0) < 1.5",
    "abs(b_n - d_n) > 0.5",
    "c_z % 3 = a_z % 3",
    "-d_n < a_n * a_n",
    "b_n between 0.9 * d_n and 1.1 * d_n",
]
RISKY = [
    "10 / b_z > a_k",
    "a_n / c_n < 1",
    "cast(b_n as tinyint) >= a_k",
    "b_z + 2147483646 > c_k",
    "10 / (c_k - d_k) > b_z",
    "100 % d_z < 50",
]
#: The number of queries that plain Spark runs, and the most to draw; fewer of the first chunk by default.
QUERIES, FEW, SEEDS = 12, 3, 60


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = session_for_tiny_tables(spark)
    own.conf.set("spark.sql.ansi.enabled", "true")
    own.conf.set("spark.sql.crossJoin.enabled", "true")
    return own


def _tables(session: SparkSession, rng: random.Random) -> None:
    """Tables whose rows of key 0 and 1 hold all that is dangerous; other keys are harmless."""
    dangerous = [Decimal(n) for n in ("99999.99", "-99999.99", "0")]
    for name in TABLES:
        rows = []
        for _ in range(8):
            key = rng.randrange(5)
            harmless = key > 1
            number = Decimal(rng.choice(["0.50", "1.25", "2.00"])) if harmless else rng.choice([*dangerous, None])
            rows.append((key, number, rng.choice([-1, 1]) if harmless else rng.choice([0, 2, None])))
        columns = f"{name}_k int, {name}_n decimal(7,2), {name}_z int"
        session.createDataFrame(rows, columns).createOrReplaceTempView(name)


def _query(rng: random.Random) -> str:
    """Four tables in some order, inner joins and left ones; one of them perhaps without its dangerous rows."""
    order = rng.sample(TABLES, len(TABLES))
    guarded = rng.choice([*order, None])
    items = {t: f"(select * from {t} where {t}_k > 1)" if t == guarded else t for t in order}
    text, joined = items[order[0]], [order[0]]
    for table in order[1:]:
        word = rng.choice(["join", "join", "left join"])
        text += f" {word} {items[table]} on {table}_k = {rng.choice(joined)}_k"
        joined.append(table)
    predicates = rng.sample(SAFE, rng.choice([0, 1, 2])) + rng.sample(RISKY, rng.choice([0, 1]))
    rng.shuffle(predicates)
    return f"select * from {text}" + (f" where {' and '.join(predicates)}" if predicates else "")


@pytest.mark.parametrize(
    ("chunk", "queries"),
    [
        (0, FEW),
        pytest.param(0, QUERIES, marks=pytest.mark.ci),
        *(pytest.param(chunk, QUERIES, marks=pytest.mark.slow) for chunk in range(1, 8)),
    ],
)
def test_no_order_fails_where_plain_spark_answers(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, chunk: int, queries: int
) -> None:
    answered = moved = 0
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        rng = random.Random(seed)
        _tables(session, rng)
        plain = session.sql(_query(rng))
        try:
            plain.collect()
        except (PySparkException, Py4JJavaError):
            continue
        answered += 1
        for shown in in_drawn_orders(plain, monkeypatch, str(seed), 2):
            moved += any(one != other for one, other in shown)
        if answered == queries:
            break
    assert answered == queries and moved > queries // 3
