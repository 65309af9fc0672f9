"""Spark's statistics of whole plans compared with ours: all nodes of the TPC queries, on tables with column statistics.

Only the statistics of relations are requested; `pytest -s` on this file prints how many nodes were compared.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.decode import Export
from pyjoinopt.catalyst.statistics.column_stat import PlanSize
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics, reported_by_spark
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from tests.oracles.catalyst.oracle import Oracle
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGES: list[list[str]] = [
    [],
    ["EliminateOuterJoin", "PushDownPredicates", "ReorderJoin", "ColumnPruning", "CollapseProject"],
]
#: Larger numbers from Spark have fewer digits in JSON.
EXACT = 1 << 53


def numbers(known: PlanSize, node: LogicalPlan) -> dict[str, Any]:
    """The values to compare: without bounds of texts, and with large sizes rounded."""
    columns = {}
    for a in node.output:
        c = known.columns.get(a.bit)
        if c is not None:
            text = a.type.startswith(("string", "binary"))
            bounds = tuple(None if b is None or text else float(b) for b in (c.min, c.max))
            columns[a.name, a.bit] = (_close(c.ndv), *bounds, _close(c.nulls), c.avg_len, c.max_len)
    return {"rows": _close(known.rows), "bytes": _close(known.bytes), "columns": columns}


def _close(count: int | None) -> int | str | None:
    return count if count is None or count < EXACT else f"{count:.10e}"


def compared(oracle: Oracle, export: Export) -> tuple[Counter[str], list[str]]:
    """The number of nodes of each kind, and the differences."""
    ours = SparkStatistics(reported_by_spark(partial(oracle.relations, export), export.nodes), export.version)
    nodes = list(post_order(export.root))
    theirs = oracle.relations(export, nodes, "catalyst")
    kinds: Counter[str] = Counter()
    different = []
    for node in nodes:
        kinds[node.kind] += 1
        assert node.number is not None
        expected, found = (numbers(k, node) for k in (PlanSize.from_json(theirs[node.number]), ours.size(node)))
        if found != expected:
            different.append(f"{node.kind}: {_difference(expected, found)}")
    return kinds, different


def _difference(expected: dict[str, Any], found: dict[str, Any]) -> str:
    parts = [f"{key} {expected[key]}, not {found[key]}" for key in ("rows", "bytes") if expected[key] != found[key]]
    one, other = expected["columns"], found["columns"]
    parts += [f"{c} {one.get(c)}, not {other.get(c)}" for c in {**one, **other} if one.get(c) != other.get(c)][:3]
    return "; ".join(parts)


@pytest.mark.ci
def test_every_node_of_the_tpc_queries(analysed: tuple[str, SparkSession], oracle: Oracle) -> None:
    benchmark, session = analysed
    kinds: Counter[str] = Counter()
    different: list[str] = []
    for number, text in tpc.spark_queries(benchmark).items():
        start = oracle.finished(session.sql(text))
        for rules in STAGES:
            found, wrong = compared(oracle, oracle.applied(start, rules) if rules else start)
            kinds += found
            different += [f"{benchmark} {number}, {one}" for one in wrong]
        oracle.release()
    print(f"\n{benchmark}: {kinds.total()} nodes, {len(different)} different; {dict(kinds)}")
    assert kinds.total() > 300 and not different, "\n".join(different[:20])


OPERATORS = (
    "SELECT k, count(*) n, 1 one, null nothing, k AS again FROM t GROUP BY k",
    "SELECT few, ref, max(key) FROM t GROUP BY few, ref",
    "SELECT count(*) FROM t",
    "SELECT count(*) FROM range(7)",
    "SELECT DISTINCT few, ref FROM t",
    "SELECT key, ref, text FROM t UNION ALL SELECT few, key, text FROM u",
    "SELECT key FROM t UNION SELECT id FROM range(9)",
    "SELECT few FROM t INTERSECT SELECT key FROM u",
    "SELECT few FROM t EXCEPT SELECT key FROM u",
    "SELECT * FROM t LIMIT 7",
    "SELECT * FROM t LIMIT 0",
    "SELECT * FROM t LIMIT 7 OFFSET 3",
    "SELECT * FROM t ORDER BY key",
    "SELECT *, rank() OVER (PARTITION BY few ORDER BY key) r FROM t",
    "SELECT few, ref, count(*) FROM t GROUP BY ROLLUP (few, ref)",
    "SELECT key, e FROM t LATERAL VIEW explode(array(1, 2)) x AS e",
    "SELECT * FROM t TABLESAMPLE (13 PERCENT)",
    "SELECT /*+ REPARTITION(3) */ * FROM t WHERE few = 3",
    "SELECT * FROM t JOIN s ON t.key = s.a",
    "SELECT * FROM s LEFT JOIN (SELECT DISTINCT a FROM s) d ON s.a = d.a",
    "SELECT * FROM s CROSS JOIN t",
    "SELECT * FROM s LEFT SEMI JOIN t ON s.a = t.key",
    "SELECT * FROM t LEFT ANTI JOIN s ON s.a = t.key",
    "SELECT * FROM s WHERE a > 3 AND EXISTS (SELECT 1 FROM t WHERE key = a)",
    "WITH c AS (SELECT few, count(*) n FROM t GROUP BY few) SELECT * FROM c x JOIN c y ON x.n = y.n",
    "SELECT * FROM VALUES (1, 'a'), (2, null) AS v(x, y) WHERE x > 1",
    "SELECT count(DISTINCT few), sum(DISTINCT ref) FROM t",
    "SELECT * FROM (SELECT key, few FROM t) PIVOT (count(key) FOR few IN (1, 2))",
)


@pytest.fixture(scope="module")
def few_tables(spark: SparkSession) -> SparkSession:
    """`t` and `u` are analysed; `s` has only a size."""
    session = spark.newSession()
    session.sql("CREATE DATABASE IF NOT EXISTS whole_plans")
    session.sql("USE whole_plans")
    columns = "id AS key, nullif(id % 7, 3) AS ref, id % 5 AS few, id % 3 AS k, string(id) AS text"
    session.sql(f"CREATE TABLE IF NOT EXISTS t USING parquet AS SELECT {columns} FROM range(100)")
    session.sql("CREATE TABLE IF NOT EXISTS u USING parquet AS SELECT key, few, text FROM t WHERE key < 20")
    session.sql("CREATE TABLE IF NOT EXISTS s USING parquet AS SELECT id AS a, string(id) AS b FROM range(30)")
    for table in ("t", "u"):
        session.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    return session


@pytest.mark.parametrize("text", OPERATORS)
def test_operators(few_tables: SparkSession, oracle: Oracle, text: str) -> None:
    start = oracle.finished(few_tables.sql(text))
    for export in (start, oracle.applied(start, ["ReplaceDistinctWithAggregate", "PushDownPredicates"])):
        kinds, different = compared(oracle, export)
        assert kinds.total() and not different, "\n".join(different)
