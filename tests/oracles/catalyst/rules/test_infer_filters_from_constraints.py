"""InferFiltersFromConstraints gives the same plans as Catalyst's, and the rows stay the same."""

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
SELECT * FROM x WHERE a = 1 AND b > a AND b = a + 1 AND a <=> b
SELECT * FROM x WHERE 1 = a AND b IN (a, 2)
SELECT * FROM x WHERE c LIKE '1%2' AND a = b AND upper(c) = 'A'
SELECT * FROM x WHERE a > (SELECT max(d) FROM y) AND a = b
SELECT * FROM x WHERE CASE WHEN a > 1 THEN b ELSE 0 END = 1
SELECT * FROM x JOIN y ON a = d AND a > 1 AND e < 2
SELECT * FROM x JOIN y ON a = f WHERE f > 3
SELECT * FROM x JOIN y ON CAST(a AS INT) = f AND f > 3 AND a < 5
SELECT * FROM x JOIN y ON a = d AND b = e AND a = b
SELECT * FROM x LEFT JOIN y ON a = d AND a > 1 AND e > 2
SELECT * FROM x RIGHT JOIN y ON a = d WHERE d IN (1, 2)
SELECT * FROM x FULL JOIN y ON a = d WHERE a > 1
SELECT * FROM x LEFT ANTI JOIN y ON a = d AND b > e WHERE a > 2
SELECT * FROM x WHERE a NOT IN (SELECT d FROM y WHERE e > 1)
SELECT * FROM x WHERE EXISTS (SELECT 1 FROM y WHERE d = a AND e > 1)
SELECT * FROM x WHERE b > (SELECT max(e) FROM y WHERE d = a)
SELECT * FROM (SELECT a, a AS a2, a + 1 AS a3 FROM x WHERE a + 1 > 2) JOIN y ON a3 = d AND a2 = e
SELECT * FROM (SELECT 1 AS one, a FROM x) JOIN y ON one = d AND a = e
SELECT * FROM (SELECT a, sum(b) AS t FROM x WHERE a > 1 GROUP BY a) JOIN y ON a = d AND t > 3
SELECT * FROM (SELECT a, b FROM x WHERE a > 1 UNION ALL SELECT d, e FROM y WHERE d > 1 AND e = 2) u JOIN y ON u.a = d
SELECT * FROM (SELECT a, b FROM x WHERE a > 1 INTERSECT SELECT d, e FROM y WHERE e > 3) u JOIN y ON u.a = y.d
SELECT * FROM (SELECT a, b FROM x WHERE a > 1 EXCEPT SELECT d, e FROM y WHERE e > 3) u JOIN y ON u.a = y.d
SELECT * FROM (SELECT k, v FROM n LATERAL VIEW explode(xs) AS v WHERE k > 2) JOIN y ON k = d AND v = e
SELECT * FROM (SELECT a, c, sum(b) t FROM x WHERE a > 1 GROUP BY CUBE(a, c)) JOIN y ON a = d AND t = e
SELECT * FROM n JOIN y ON s.p = d AND n.s.r.u = e
SELECT * FROM (SELECT n.k, i FROM n LEFT JOIN (SELECT id AS i FROM range(5)) ON k = i) JOIN y ON i = d AND k = e
SELECT * FROM (SELECT c COLLATE UTF8_LCASE l FROM x) JOIN (SELECT c COLLATE UTF8_LCASE k FROM x) ON l = k AND l > 'a'
SELECT * FROM x WHERE try_cast(c AS INT) = a AND a = b
""".strip().splitlines()

VIEWS = (
    "CREATE TEMP VIEW x AS SELECT if(id % 4 = 0, null, id % 5) AS a, nullif(id % 3, 1) AS b, CAST(id AS STRING) AS c "
    "FROM range(20)",
    "CREATE TEMP VIEW y AS SELECT if(id % 3 = 0, null, id % 5) AS d, nullif(id % 4, 2) AS e, CAST(id AS INT) AS f "
    "FROM range(20)",
    "CREATE TEMP VIEW n AS SELECT named_struct('p', id, 'r', named_struct('u', nullif(id, 3))) AS s, "
    "array(id, id + 1) AS xs, id AS k FROM range(10)",
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    made = session_for_tiny_tables(spark)
    for view in VIEWS:
        made.sql(view)
    return made


@pytest.mark.ci
def test_beside_catalyst(session: SparkSession, oracle: Oracle) -> None:
    name = "InferFiltersFromConstraints"
    tally = Tally(f"{name} on edge cases")
    for text in QUERIES:
        states = [state for state in oracle.intermediate_plans(session.sql(text)) if finished(state)]
        compare(oracle, text, states, {name: RULES[name]}, {name: tally})
        oracle.release()
    print("", HEADER, tally.row(), sep="\n")
    assert not tally.different, tally.different[0]
    assert tally.fired_in_python > 100


def test_the_rows_stay_the_same(session: SparkSession) -> None:
    from pyjoinopt.rules import apply

    for text in QUERIES[0:6:5] + QUERIES[9:13:3] + QUERIES[19:21]:
        df = session.sql(text)
        after = apply(df, "InferFiltersFromConstraints")
        assert after is not df
        assert sorted(map(repr, after.collect())) == sorted(map(repr, df.collect())), text
