"""ColumnPruning gives the same plans as Catalyst's, and the rows stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.registry import RULES
from tests.oracles.catalyst.oracle import HEADER, Oracle, Tally
from tests.oracles.catalyst.states import compare, finished
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = """
SELECT z FROM (SELECT a, b + 1 AS z FROM (SELECT a, b, c FROM x WHERE b > 1) WHERE a > 1)
SELECT a AS a1, a AS a2 FROM (SELECT a, count(b) AS n, max(c) AS m FROM x GROUP BY a)
SELECT k FROM n LATERAL VIEW explode(xs) AS v
SELECT v FROM n LATERAL VIEW OUTER explode(xs) AS v WHERE w > 2
SELECT p, v, xs FROM n LATERAL VIEW posexplode(xs) AS p, v
SELECT mk, w FROM n LATERAL VIEW explode(m) AS mk, mv
SELECT v2 FROM n LATERAL VIEW explode(xs) AS v LATERAL VIEW explode(array(v, w)) AS v2
SELECT a, sum(b) FROM x GROUP BY CUBE(a, c)
SELECT c, n FROM (SELECT a, c, grouping_id() AS g, count(*) AS n, sum(b) AS z FROM x GROUP BY ROLLUP(a, c))
SELECT count(DISTINCT a), count(DISTINCT b), sum(a) FROM x
SELECT count(*) FROM x JOIN y ON a = d
SELECT a, t FROM (SELECT *, row_number() OVER (PARTITION BY b ORDER BY c) AS r, sum(b) OVER (ORDER BY a) AS t FROM x)
SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) AS r FROM x)
SELECT c FROM (SELECT * FROM x UNION ALL SELECT * FROM x UNION ALL SELECT a, a, c FROM x)
SELECT a FROM (SELECT * FROM x UNION SELECT d, e, CAST(f AS STRING) FROM y)
SELECT a FROM (SELECT a, b FROM x INTERSECT ALL SELECT d, e FROM y)
SELECT a FROM (SELECT a, b FROM x EXCEPT SELECT d, e FROM y)
SELECT b FROM x WHERE a IN (SELECT d FROM y) OR c > '1'
SELECT b FROM x WHERE a NOT IN (SELECT d FROM y WHERE f > 2)
SELECT b, (SELECT max(e) FROM y WHERE d = a) FROM x
SELECT b FROM (SELECT * FROM x ORDER BY c LIMIT 5)
SELECT b FROM (SELECT * FROM x DISTRIBUTE BY c SORT BY a)
SELECT x1.a, x2.c FROM x x1 LEFT JOIN x x2 ON x1.a = x2.b WHERE x1.b > 1
WITH t AS (SELECT *, rand() AS r FROM x) SELECT q.a FROM (SELECT t1.a, t2.b FROM t t1 JOIN t t2 ON t1.r = t2.r) q
WITH RECURSIVE t(i, j) AS (SELECT 1, 2 UNION ALL SELECT i + 1, j FROM t WHERE i < 4) SELECT i FROM t
SELECT z.v FROM x, LATERAL (SELECT d + a AS v FROM y WHERE e = b) z
SELECT * FROM (SELECT a, b FROM x) PIVOT (sum(b) FOR a IN (1, 2))
SELECT k FROM (SELECT * FROM (SELECT k, w, k * 2 AS h FROM n) UNPIVOT (val FOR nam IN (w, h)))
SELECT c FROM (SELECT c, a FROM x WHERE a > (SELECT avg(d) FROM y))
""".strip().splitlines()

VIEWS = (
    "CREATE TEMP VIEW x AS SELECT if(id % 4 = 0, null, id % 5) AS a, nullif(id % 3, 1) AS b, CAST(id AS STRING) AS c "
    "FROM range(20)",
    "CREATE TEMP VIEW y AS SELECT if(id % 3 = 0, null, id % 5) AS d, nullif(id % 4, 2) AS e, CAST(id AS INT) AS f "
    "FROM range(20)",
    "CREATE TEMP VIEW n AS SELECT array(id, id + 1) AS xs, map('k', id) AS m, id AS k, id + 1 AS w FROM range(10)",
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    made = session_for_tiny_tables(spark)
    for view in VIEWS:
        made.sql(view)
    return made


def test_beside_catalyst(session: SparkSession, oracle: Oracle) -> None:
    tally = Tally("ColumnPruning on edge cases")
    for text in QUERIES:
        states = [state for state in oracle.intermediate_plans(session.sql(text)) if finished(state)]
        compare(oracle, text, states, {"ColumnPruning": RULES["ColumnPruning"]}, {"ColumnPruning": tally})
        oracle.release()
    print("", HEADER, tally.row(), sep="\n")
    assert not tally.different, tally.different[0]
    assert tally.fired_in_python > 60


def test_the_rows_stay_the_same(session: SparkSession) -> None:
    from pyjoinopt.rules import apply

    changed = 0
    for text in QUERIES[1:10:2] + QUERIES[11:15]:
        df = session.sql(text)
        after = apply(df, "ColumnPruning")
        changed += after is not df
        assert sorted(map(repr, after.collect())) == sorted(map(repr, df.collect())), text
    assert changed >= 5
