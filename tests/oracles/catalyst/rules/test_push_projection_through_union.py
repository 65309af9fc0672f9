"""PushProjectionThroughUnion gives the same plans as Catalyst's, and the rows stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyjoinopt.catalyst.rules.registry import RULES
from tests.oracles.catalyst.oracle import Oracle, Tally
from tests.oracles.catalyst.states import compare, passages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "PushProjectionThroughUnion"

QUERIES = [
    "SELECT a FROM (SELECT a, b, c FROM t UNION ALL SELECT b, c, a FROM u)",
    "SELECT b, a + c AS x, 1 AS one FROM (SELECT * FROM t UNION ALL SELECT * FROM u UNION ALL SELECT * FROM v)",
    "SELECT x FROM (SELECT a AS x, b FROM t UNION ALL (SELECT b, c FROM u UNION ALL SELECT c, 1 FROM v))",
    "SELECT a, a AS again, a + 1 AS d FROM (SELECT a, b FROM t UNION ALL SELECT c, c FROM u)",
    "SELECT a, a FROM (SELECT a, b FROM t UNION ALL SELECT c, c FROM u)",
    "SELECT a, rand() FROM (SELECT a, b FROM t UNION ALL SELECT c, c FROM u)",
    "SELECT upper(s) FROM (SELECT 'x' AS s, 1 AS n UNION ALL SELECT CAST(a AS STRING), 2.5 FROM t)",
    "SELECT max(x) FROM (SELECT a + 1 AS x FROM (SELECT a, b FROM t UNION ALL SELECT b, c FROM u)) GROUP BY x",
    "SELECT n.b FROM (SELECT struct(a, b) AS n FROM t UNION ALL SELECT struct(c, a) FROM u)",
    "SELECT count(1) FROM (SELECT a FROM t UNION ALL SELECT b FROM u)",
    "SELECT a + 1 AS x FROM (SELECT a FROM t UNION SELECT b FROM u)",
    "SELECT x + 1 AS y FROM (SELECT a + b AS x FROM (SELECT a, b FROM t UNION ALL SELECT b, c FROM u)) WHERE x > 1",
    "SELECT a, (SELECT max(c) FROM v) AS m FROM (SELECT a FROM t UNION ALL SELECT b FROM u)",
]
#: Spark 4.3 fails on it ("key not found") if the union is not hidden from the subquery.
CORRELATED = (
    "SELECT a, (SELECT max(c) FROM v WHERE v.a = q.b) AS m FROM (SELECT a, b FROM t UNION ALL SELECT b, c FROM u) q"
)


def test_beside_catalyst(tables: SparkSession, oracle: Oracle) -> None:
    tallies = {NAME: Tally(NAME)}
    rules = {NAME: RULES[NAME]}
    for text in QUERIES:
        compare(oracle, text, [oracle.finished(tables.sql(text))], rules, tallies)
    for name, states in passages(oracle, {text: tables.sql(text) for text in (QUERIES[2], QUERIES[11])}):
        compare(oracle, name, states, rules, tallies)
    assert not tallies[NAME].different, "\n".join(tallies[NAME].different)
    assert tallies[NAME].fired_in_python > 8


def test_rows_stay(tables: SparkSession) -> None:
    from pyjoinopt import rules

    for text in (QUERIES[1], QUERIES[2], QUERIES[6], QUERIES[8], QUERIES[11]):
        df = tables.sql(text)
        assert sorted(rules.apply(df, NAME).collect(), key=repr) == sorted(df.collect(), key=repr), text
    correlated = tables.sql(CORRELATED)
    assert rules.apply(correlated, NAME) is correlated
