"""Our reimplementation of Spark's estimates of filters and joins gives Spark's numbers on the same statistics.

The tables are empty, and their statistics are set in the catalog. Catalyst estimates each plan after constant folding,
as the optimizer does before it requests statistics.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.injection import create_table
from pyjoinopt.bridge.decode import Export
from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics
from pyjoinopt.catalyst.statistics.filter_estimation import filter_statistics
from pyjoinopt.catalyst.statistics.join_estimation import join_statistics
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics
from pyjoinopt.plan.facts.constraints import PlanFacts
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from tests.oracles.catalyst.oracle import Oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

SETTINGS = {"spark.sql.cbo.enabled": "true"}
INTS: dict[str, dict[str, Any]] = {
    "key": {"type": "int", "distinct": 1000, "nulls": 0, "min": 1, "max": 1000},
    "ref": {"type": "int", "distinct": 90, "nulls": 100, "min": 1, "max": 120},
    "few": {"type": "int", "distinct": 4, "nulls": 0, "min": 1, "max": 9},
    "far": {"type": "bigint", "distinct": 50, "nulls": 7, "min": 2000, "max": 9000},
    "hgm": {
        "type": "int", "distinct": 400, "nulls": 20, "min": 0, "max": 900,
        "deciles": [0, 3, 3, 20, 50, 120, 121, 300, 301, 800, 900],
    },
    "one": {"type": "int", "distinct": 1, "nulls": 0, "min": 5, "max": 5},
    "vague": {"type": "int", "distinct": 30, "nulls": 2},
    "gone": {"type": "int", "distinct": 0, "nulls": 1000},
    "unknown": {"type": "int"},
}  # fmt: skip
OTHERS: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "distinct": 60, "nulls": 10},
    "flag": {"type": "boolean", "distinct": 2, "nulls": 5, "min": "false", "max": "true"},
    "day": {"type": "date", "distinct": 300, "nulls": 0, "min": "2017-01-01", "max": "2018-01-01"},
    "price": {"type": "decimal(9,2)", "distinct": 700, "nulls": 1, "min": 0.5, "max": 99.75},
    "ratio": {"type": "double", "distinct": 800, "nulls": 0, "min": -1.5, "max": 2.5},
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    own = spark.newSession()
    own.sql("CREATE DATABASE estimation")
    own.sql("USE estimation")
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    create_table(own, "t", {"rows": 1000, "columns": INTS | OTHERS})
    create_table(own, "u", {"rows": 170, "columns": INTS})
    yield own
    own.sql("DROP DATABASE estimation CASCADE")


@pytest.fixture(scope="module")
def oracle(session: SparkSession) -> Iterator[Oracle]:
    with Oracle(session) as opened:
        yield opened


def folded(session: SparkSession, oracle: Oracle, text: str) -> Export:
    return oracle.applied(oracle.finished(session.sql(text)), ["ConstantFolding", "NullPropagation"])


def theirs(oracle: Oracle, export: Export, node: LogicalPlan) -> CatalystStatistics:
    known = CatalystStatistics.from_json(oracle.statistics(export, node))
    assert known is not None
    return known


def numbers(known: CatalystStatistics) -> tuple[int, int, dict[int, Any]]:
    """The values to compare: bounds as numbers, because Spark keeps a literal's type and JSON does not."""
    columns = {}
    for bit, c in known.columns.items():
        bounds = tuple(None if b is None else float(b) for b in (c.min, c.max))
        columns[bit] = (c.ndv, *bounds, c.nulls, c.avg_len, c.max_len)
    return known.rows, known.bytes, columns


def first(export: Export, kind: type) -> Any:
    return next(node for node in post_order(export.root) if isinstance(node, kind))


def version(export: Export) -> tuple[int, int]:
    major, minor = export.spark.split(".")[:2]
    return int(major), int(minor)


def same_filter(session: SparkSession, oracle: Oracle, condition: str) -> None:
    export = folded(session, oracle, f"SELECT * FROM t WHERE {condition}")
    try:
        node = first(export, Filter)
        ours = filter_statistics(node, theirs(oracle, export, node.child), version(export))
        assert numbers(ours) == numbers(theirs(oracle, export, node)), condition
    finally:
        oracle.release()


FILTERS = (
    "true", "false", "cast(null as boolean)", "key < 3 and null", "key < 3 or null", "not (key < 3 and null)",
    "not (few = 3)",
    "key = 2", "key <=> 2", "key = 0", "key < 3", "3 > key", "key <= 1", "key < 1000", "key >= 1000", "key > 1000",
    "key is null", "ref is null", "ref is not null", "ref is null and few = 3", "key > 3 and key <= 6",
    "key = 3 or key = 6", "not (key > 3 and key <= 6)", "not (key <= 3 or key > 6)", "key in (3, 4, 5, 5000)",
    "few not in (3, 4, 5)", "few in (1, 2, 3, 4, 5)", "text in ('a', 'b')", "text = 'a'", "text < 'a'",
    "text like 'a%'", "not (few = 3 and text < 'a')", "not (few = 3 or text < 'a')", "flag", "flag = true",
    "flag > false", "flag in (true)", "day = date'2017-01-02'", "day < date'2017-01-03'",
    "day in (date'2017-01-03', date'2020-01-01')", "price = 12.25BD", "price < cast(60 as decimal(9,2))",
    "price >= cast(99.75 as decimal(9,2))", "ratio < 0.5D", "key = ref", "key > ref", "few < ref", "few <= far",
    "far < few", "far > key", "key <=> few", "one = one", "one < few", "hgm = 5", "hgm = 3", "hgm < 3", "hgm <= 3",
    "hgm > 120", "hgm >= 301", "hgm > 3 and hgm <= 800", "hgm < 1000", "hgm = 3 or hgm > 500", "not (hgm < 100)",
    "hgm in (3, 4)", "one < 5", "one <= 5", "one > 5", "one = 5", "vague = 3", "vague < 3", "vague in (1, 2)",
    "vague in (1) and few = 2", "gone = 3", "gone in (3)", "gone < 3", "gone is null", "unknown = 3", "unknown < 3",
    "unknown is null", "unknown in (1)", "abs(key) = 3", "key + 1 = 3",
    "key > 500 and hgm > 100 and few = 3 and ref > 100",
)  # fmt: skip


@pytest.mark.parametrize("condition", FILTERS)
def test_filters(session: SparkSession, oracle: Oracle, condition: str) -> None:
    same_filter(session, oracle, condition)


def random_condition(rng: random.Random, depth: int = 0) -> str:
    roll = rng.random()
    if depth < 3 and roll < 0.45:
        word = rng.choice(("and", "and", "or"))
        return f"({random_condition(rng, depth + 1)} {word} {random_condition(rng, depth + 1)})"
    if depth < 3 and roll < 0.55:
        return f"not ({random_condition(rng, depth + 1)})"
    column, other = rng.choice(list(INTS)), rng.choice(list(INTS))
    facts = INTS[column]
    low, high = facts.get("min", 0), facts.get("max", 100)
    value = rng.choice((low, high, rng.randint(low - 1, high + 1), rng.randint(low, high)))
    operator = rng.choice(("=", "<", "<=", ">", ">=", "<=>"))
    if roll < 0.65 and column != other and {column, other} & {"hgm"} == set():
        return f"{column} {operator} {other}"
    if roll < 0.75:
        return f"{column} in ({value}, {rng.randint(low, high)}, {rng.randint(low, high)})"
    if roll < 0.82:
        return f"{column} is {rng.choice(('', 'not '))}null"
    return f"{value} {operator} {column}" if roll < 0.88 else f"{column} {operator} {value}"


def test_generated_filters(session: SparkSession, oracle: Oracle) -> None:
    rng = random.Random(4)
    for _ in range(150):
        same_filter(session, oracle, random_condition(rng))


JOINS = (
    "t.key = u.key", "t.key = u.ref", "t.ref = u.few and t.few = u.one", "t.far = u.key", "t.hgm = u.hgm",
    "t.hgm = u.key", "t.vague = u.key", "t.gone = u.key", "t.unknown = u.key", "t.key < u.key", "t.key + 1 = u.key",
    "t.key <=> u.key", "t.ref = u.ref and t.key > 5",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER", "LEFT SEMI", "LEFT ANTI"])
def test_joins(session: SparkSession, oracle: Oracle, kind: str) -> None:
    for condition in (*JOINS, "true"):
        export = folded(session, oracle, f"SELECT 1 FROM t {kind} JOIN u ON {condition}")
        node = first(export, Join)
        left, right = (theirs(oracle, export, side) for side in node.children)
        ours = join_statistics(node, left, right, PlanFacts())
        assert ours is not None
        assert numbers(ours) == numbers(theirs(oracle, export, node)), condition
        oracle.release()


def test_a_join_with_its_own_groups(session: SparkSession, oracle: Oracle) -> None:
    """One side is unique on the keys, with any statistics of their values."""
    groups = "SELECT few, unknown FROM t GROUP BY few, unknown"
    export = folded(session, oracle, f"SELECT 1 FROM t JOIN ({groups}) g USING (few, unknown)")
    node = first(export, Join)
    assert not isinstance(node, Project)
    left = theirs(oracle, export, node.left)
    ours = join_statistics(node, left, CatalystStatistics(40, 640), PlanFacts())
    assert ours is not None and ours.rows == left.rows
    oracle.release()


WHOLE = (
    "SELECT t.key, u.few + 1 m FROM t JOIN u ON t.ref = u.key WHERE t.key > 100 AND u.few = 3 AND t.text IS NOT NULL",
    "SELECT t.key FROM t LEFT JOIN (SELECT * FROM u WHERE hgm < 100) v ON t.key = v.ref WHERE t.few IN (1, 2)",
    "SELECT * FROM t LEFT SEMI JOIN u ON t.key = u.key JOIN u AS w ON t.hgm = w.hgm AND t.few = w.few WHERE t.far < 9",
)


@pytest.mark.parametrize("text", WHOLE)
def test_whole_plans_without_asking(session: SparkSession, oracle: Oracle, text: str) -> None:
    """Only the tables' statistics are requested; filters, joins and projections are estimated here."""
    rules = ["PushDownPredicates", "ConstantFolding"]
    export = oracle.applied(oracle.finished(session.sql(text)), rules)
    tables = {id(n): theirs(oracle, export, n) for n in post_order(export.root) if not n.children}
    ours = SparkStatistics(lambda plan: tables.get(id(plan)), version(export))(export.root)
    assert ours is not None
    assert numbers(ours) == numbers(theirs(oracle, export, export.root))
    oracle.release()
