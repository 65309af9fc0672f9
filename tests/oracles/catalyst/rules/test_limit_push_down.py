"""LimitPushDown gives the same plans as Catalyst's, and no row is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.registry import RULES
from tests.oracles.catalyst.oracle import Oracle, Tally
from tests.oracles.catalyst.states import compare, passages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "LimitPushDown"

UNION = "(SELECT a, b FROM t UNION ALL SELECT b, c FROM u)"
JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
QUERIES = [
    f"SELECT * FROM {UNION} LIMIT 3",
    f"SELECT a + 1 AS x FROM {UNION} LIMIT 3",
    "SELECT * FROM (SELECT a FROM t UNION ALL SELECT 1 UNION ALL (SELECT a FROM u LIMIT 2)"
    " UNION ALL (SELECT a FROM v LIMIT 9)) LIMIT 3",
    *(f"SELECT * FROM t {join} JOIN u ON t.a = u.a LIMIT 3" for join in JOINS),
    *(f"SELECT * FROM t {join} JOIN u LIMIT 3" for join in JOINS),
    "SELECT t.b, u.c + 1 AS x FROM t LEFT JOIN u ON t.a = u.a LIMIT 3",
    "SELECT v.b FROM (SELECT t.a FROM t LEFT JOIN u ON t.a = u.a) AS x RIGHT JOIN v ON x.a = v.a LIMIT 3",
    "SELECT * FROM t LEFT JOIN (SELECT * FROM u LIMIT 2) ON true LIMIT 3",
    "SELECT * FROM (SELECT * FROM t LIMIT 9) LEFT JOIN (SELECT * FROM u LIMIT 2) ON true LIMIT 3",
    "SELECT * FROM t LEFT SEMI JOIN (SELECT max(a) FROM u) LIMIT 3",
    "SELECT * FROM t LEFT ANTI JOIN u",
    "SELECT DISTINCT a, b FROM t LIMIT 1",
    "SELECT a FROM t GROUP BY a, b LIMIT 1",
    "SELECT a + 1 AS x, 'k' AS k FROM t GROUP BY a + 1 LIMIT 1",
    "SELECT x + 1 AS y FROM (SELECT DISTINCT a AS x FROM t ORDER BY x) LIMIT 1",
    "SELECT DISTINCT a FROM (SELECT a FROM t ORDER BY b) LIMIT 1",
    "SELECT DISTINCT a FROM (SELECT t.a FROM t JOIN (SELECT * FROM u ORDER BY b) AS u ON t.a = u.a) LIMIT 1",
    "SELECT a, max(b) AS m FROM t GROUP BY a LIMIT 1",
    "SELECT DISTINCT a FROM t LIMIT 2",
    "SELECT * FROM t LIMIT 3 OFFSET 2",
    f"SELECT * FROM {UNION} LIMIT 3 OFFSET 2",
    "SELECT * FROM t OFFSET 2",
    "SELECT * FROM (SELECT * FROM range(0, 10, 1, 4) UNION ALL SELECT * FROM range(2)) LIMIT 2",
    "SELECT * FROM (SELECT * FROM range(0, 10, 1, 4) UNION ALL SELECT * FROM range(2)) LIMIT 3",
    "SELECT * FROM ((SELECT a FROM t SORT BY a) UNION ALL SELECT a FROM VALUES (1), (2), (3), (4) AS w(a)) LIMIT 3",
    "SELECT * FROM (SELECT a FROM t TABLESAMPLE (50 PERCENT) UNION ALL SELECT max(a) FROM u) LIMIT 3",
    "(SELECT a FROM t LIMIT 5) UNION ALL (SELECT e FROM (SELECT a FROM t LIMIT 2) LATERAL VIEW explode(array(a)) AS e)"
    " LIMIT 3",
    "SELECT * FROM t LIMIT ALL",
]  # fmt: skip


def test_beside_catalyst(tables: SparkSession, oracle: Oracle) -> None:
    tallies = {NAME: Tally(NAME)}
    rules = {NAME: RULES[NAME]}
    for text in QUERIES:
        df = tables.sql(text)
        compare(oracle, text, [oracle.applied(oracle.finished(df), ["ReplaceDistinctWithAggregate"])], rules, tallies)
    for name, states in passages(oracle, {text: tables.sql(text) for text in QUERIES[20:26:2]}):
        compare(oracle, name, states, rules, tallies)
    assert not tallies[NAME].different, "\n".join(tallies[NAME].different)
    assert tallies[NAME].fired_in_python > 15


@pytest.mark.slow
def test_as_many_rows_as_before(tables: SparkSession) -> None:
    from pyjoinopt import rules

    for text in (QUERIES[0], QUERIES[2], QUERIES[4], QUERIES[13], *QUERIES[22:25], "SELECT a FROM t LIMIT 3 OFFSET 39"):
        df = tables.sql(text)
        assert rules.apply(df, NAME).count() == df.count(), text
