"""PushPredicateThroughNonJoin gives the same plans as Catalyst's, and the rows stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.plan.expressions import OUTER_REFERENCE
from tests.oracles.catalyst.oracle import Oracle, Tally
from tests.oracles.catalyst.states import compare, passages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "PushDownPredicates"

WHERE = "SELECT * FROM ({}) WHERE {}"
QUERIES = [
    WHERE.format("SELECT a, b, sum(c) AS s FROM t GROUP BY a, b", "a > 1 AND s > 2 AND a + b > 3 AND rand() < 2"),
    WHERE.format("SELECT a + 1 AS x, count(1) AS n FROM t GROUP BY a + 1", "x = 2 OR x IS NULL"),
    WHERE.format("SELECT max(a) AS m FROM t", "m > 1 OR m IS NULL"),
    WHERE.format("SELECT max(a) AS m FROM t", "1 = 0"),
    WHERE.format("SELECT a, max(b) AS m FROM t GROUP BY a", "1 = 0 AND a IS NULL"),
    WHERE.format("SELECT 1 AS one, a, count(1) AS n FROM t GROUP BY a", "one = 1 AND n > 1"),
    WHERE.format("SELECT a, rand() > 2 AS r, max(b) AS m FROM t GROUP BY a", "a = 1"),
    WHERE.format("SELECT a, b, c, count(1) OVER (PARTITION BY a, b) AS n FROM t", "a > 1 AND a = b AND c = n"),
    WHERE.format("SELECT a, c, sum(c) OVER (PARTITION BY a + 1 ORDER BY b) AS n FROM t", "a > 1 AND c = 2"),
    WHERE.format("SELECT a, c, count(1) OVER () AS n FROM t", "a > 1 AND 1 = 1"),
    WHERE.format("SELECT a, count(1) OVER (PARTITION BY a) AS n, max(c) OVER (PARTITION BY a, b) AS m FROM t", "a = 1"),
    WHERE.format("SELECT a, b FROM t UNION ALL SELECT b, c FROM u UNION ALL SELECT 1, c FROM v", "a = 1 AND b > a"),
    WHERE.format("SELECT a, b FROM t UNION SELECT b, c FROM u", "a IS NULL AND b > 0 AND rand() < 2"),
    WHERE.format("SELECT a, a AS b FROM t UNION ALL SELECT b, c FROM u", "a = b"),
    WHERE.format("SELECT DISTINCT a, b + 1 AS d FROM t", "d > 1 AND a = d"),
    WHERE.format("SELECT a, b, e FROM t LATERAL VIEW explode(array(a, b)) x AS e", "a > 1 AND e = a AND b IS NULL"),
    WHERE.format("SELECT a, p, e FROM t LATERAL VIEW OUTER posexplode(array(a, c)) x AS p, e", "a > 1 AND p = 1"),
    WHERE.format("SELECT a, b FROM t SORT BY a", "a > 1"),
    WHERE.format("SELECT a, b FROM t DISTRIBUTE BY b", "a > 1"),
    WHERE.format("SELECT /*+ REPARTITION(3) */ a, b FROM t", "a > 1"),
    WHERE.format("SELECT /*+ REBALANCE */ a, b FROM t", "a > 1"),
    WHERE.format("SELECT a, b, sum(c) AS s FROM t GROUP BY ROLLUP (a, b)", "a > 1 AND b IS NULL"),
    WHERE.format("SELECT a, b, sum(c) AS s FROM t GROUP BY a, CUBE (b, c)", "a > 1 AND s > 1"),
    WHERE.format("SELECT TRANSFORM (a, b) USING 'cat' AS (x BIGINT, y BIGINT) FROM t", "x > 1 AND 1 = 1"),
    WHERE.format("SELECT * FROM t PIVOT (max(c) FOR b IN (2 AS two, 3 AS three))", "a > 1 AND two > 1"),
    WHERE.format("SELECT a, b FROM t LIMIT 5", "a > 1"),
    WHERE.format("SELECT a, b FROM t ORDER BY a LIMIT 5 OFFSET 2", "a > 1"),
    WHERE.format("SELECT a, b FROM t TABLESAMPLE (50 PERCENT)", "a > 1"),
    WHERE.format("SELECT a, b LIKE '1%' AS l FROM t", "l AND a > 1"),
    WHERE.format("SELECT a, b IN (1, 2) AS l, a + b AS d FROM t", "l AND d > 1 AND d < 5"),
    WHERE.format("SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a", "a > 1 AND if(a > 0, true, raise_error('no'))"),
    "SELECT * FROM t, u WHERE t.a = u.a AND t.b + u.b > raise_error('no') AND t.c > 1",
    "SELECT * FROM t, u WHERE t.a = u.a AND assert_true(t.a = u.b) IS NULL",
]
#: Correlated ones: their conjuncts move in several forms, as the optimizer takes the subquery apart.
CORRELATED = [
    WHERE.format("SELECT a, b, max(c) AS m FROM t GROUP BY a, b", "EXISTS (SELECT 1 FROM u WHERE u.a = b) AND a > 1"),
    WHERE.format("SELECT a, b FROM t UNION ALL SELECT a, c FROM v", "EXISTS (SELECT 1 FROM u WHERE u.a = b)"),
    WHERE.format("SELECT a, b FROM t UNION ALL SELECT c, a FROM v", "b > (SELECT max(c) FROM u WHERE u.a = b)"),
    WHERE.format("SELECT DISTINCT a, b FROM t", "b IN (SELECT c FROM u WHERE u.a = b) AND a NOT IN (SELECT b FROM v)"),
    WHERE.format("SELECT a, b + 1 AS d FROM t", "d > (SELECT count(1) FROM u WHERE u.a = d) OR a IN (SELECT 1)"),
    WHERE.format("SELECT a, count(1) OVER (PARTITION BY a) AS n FROM t", "a IN (SELECT b FROM u WHERE n > u.a)"),
    "SELECT * FROM t JOIN u ON t.a = u.a WHERE t.b > (SELECT avg(c) FROM v WHERE v.a = t.a)",
    "SELECT * FROM t JOIN u ON t.a = u.a WHERE t.b > (SELECT avg(c) FROM v WHERE v.a = t.a AND v.b = u.b)",
    "SELECT t.* FROM t LEFT JOIN u USING (a) WHERE u.b IN (SELECT b FROM v) AND EXISTS (SELECT 1 FROM v WHERE c = t.c)",
    "SELECT * FROM (SELECT a, b FROM t) WHERE EXISTS (SELECT a FROM t AS i WHERE i.b > 2)",
]  # fmt: skip


def test_beside_catalyst(tables: SparkSession, oracle: Oracle) -> None:
    tallies = {NAME: Tally(NAME)}
    rules = {NAME: RULES[NAME]}
    for text in QUERIES:
        compare(oracle, text, [oracle.finished(tables.sql(text))], rules, tallies)
    for name, states in passages(oracle, {text: tables.sql(text) for text in CORRELATED}):
        apart = [s for s in states if not any(e.flags & OUTER_REFERENCE for e in s.expressions)]
        assert apart  # Spark takes correlated subqueries apart before it runs the rule
        compare(oracle, name, apart, rules, tallies)
    assert not tallies[NAME].different, "\n".join(tallies[NAME].different)
    assert tallies[NAME].fired_in_python > 30


@pytest.mark.slow
def test_rows_stay(tables: SparkSession) -> None:
    from pyjoinopt import rules

    for text in (*QUERIES[:8:3], QUERIES[11], QUERIES[15], *CORRELATED[:5]):
        df = tables.sql(text)
        assert sorted(rules.apply(df, NAME).collect(), key=repr) == sorted(df.collect(), key=repr), text
