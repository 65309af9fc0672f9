"""The two rules on GROUP BY give the same plans as Catalyst's, and the rows stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.catalyst.rules.registry import RULES
from tests.oracles.catalyst.oracle import Oracle, Tally
from tests.oracles.catalyst.states import compare
from tests.support.compare import assert_same_rows
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LITERALS, REPETITION = "RemoveLiteralFromGroupExpressions", "RemoveRepetitionFromGroupExpressions"

CONSTANT = [
    "SELECT a, 'x' AS s, sum(b) FROM t GROUP BY a, 'x'",
    "SELECT a, 2, sum(b) FROM t GROUP BY 1, 2",  # ordinals: the second is a constant
    "SELECT 1, sum(b) FROM t GROUP BY 1",
    "SELECT sum(b) FROM t WHERE false GROUP BY 'x', 1 + 1",  # no row, not one row
    "SELECT 'a', 2, NULL, sum(b) FROM t GROUP BY 'a', 1 + 1, NULL",
    "SELECT a, sum(b) FROM t GROUP BY a, 1 + 1, concat('a', 'b'), CAST('1' AS INT), true, NULL",
    "SELECT a, current_date() = current_date() AS d, count(*) FROM t GROUP BY a, current_date()",
    "SELECT a, current_timestamp() IS NULL AS n FROM t GROUP BY a, current_timestamp()",
    "SELECT a, sum(b) FROM t GROUP BY a, DATE '2020-01-01', INTERVAL 1 DAY, 1.5, X'00'",
    "SELECT a, y, sum(b) FROM (SELECT a, b, 1 AS y FROM t) GROUP BY a, y",  # constant once projections are merged
    "SELECT count(*) FROM t GROUP BY 0L", "SELECT count(*) FROM t GROUP BY pi()", "SELECT a FROM t GROUP BY ALL",
    "SELECT a, 'k' AS k FROM t GROUP BY ALL", "SELECT DISTINCT a, 1, 'x' FROM t", "SELECT DISTINCT 1, 'x' FROM t",
    "SELECT a, 1 FROM t UNION SELECT b, 2 FROM t",
    "SELECT a, 'w', sum(b) FROM t GROUP BY GROUPING SETS ((a, 'w'), ('w'), ())",
    "SELECT a, sum(b) FROM t GROUP BY ROLLUP(a, 'w')",
    "SELECT max(s) FROM (SELECT a, 'c', sum(b) AS s FROM t GROUP BY a, 'c') GROUP BY 'd'",
    "SELECT a FROM t WHERE b IN (SELECT max(c) FROM t GROUP BY 1 + 1, a)",
    "SELECT count(*) FROM t GROUP BY array(1, 2), named_struct('f', 1), map(1, 2)[1]",
    "SELECT a FROM t GROUP BY a, 1 HAVING sum(b) > 1", "SELECT b + 1, count(*) FROM t GROUP BY b + 1, 'u'",
]  # fmt: skip
REPEATED = [
    "SELECT sum(c) FROM t GROUP BY a + 1, b + 2, 1 + A, 2 + B",
    "SELECT a, sum(b) FROM t GROUP BY a, A, t.a", "SELECT a, a AS n, sum(b) FROM t GROUP BY a, n",
    "SELECT a, sum(b) FROM t GROUP BY 1, a", "SELECT DISTINCT a, a, b FROM t", "SELECT DISTINCT a, a FROM t",
    "SELECT sum(c) FROM t GROUP BY a < b, b > a, NOT (a >= b)", "SELECT sum(c) FROM t GROUP BY a = b, b = a, a <=> b",
    "SELECT sum(c) FROM t GROUP BY a > 1 AND b > 1 AND c > 1, c > 1 AND a > 1 AND b > 1",
    "SELECT sum(c) FROM t GROUP BY a > 1 OR b > 1 OR c > 1, (c > 1 OR b > 1) OR a > 1",
    "SELECT sum(c) FROM t GROUP BY a + b + c, c + b + a, a + (b + c)", "SELECT sum(c) FROM t GROUP BY a * b, b * a",
    "SELECT sum(c) FROM t GROUP BY a IN (1, 2), a IN (2, 1)", "SELECT sum(c) FROM t GROUP BY a - b, b - a",
    "SELECT sum(c) FROM t GROUP BY upper(CAST(a AS STRING)), ucase(CAST(a AS STRING))",
    "SELECT sum(c) FROM t GROUP BY rand() > 2, rand() > 2", "SELECT sum(c) FROM t GROUP BY rand(1), rand(1), a, a",
    "SELECT sum(c) FROM t GROUP BY CAST(a AS BIGINT), CAST(a AS STRING), CAST(a AS BIGINT)",
    "SELECT sum(c) FROM t GROUP BY coalesce(a, b), coalesce(b, a), greatest(a, b), greatest(b, a)",
    "SELECT sum(c) FROM t GROUP BY (SELECT max(k) FROM n), (SELECT max(k) FROM n)",
    "SELECT p.a, sum(q.b) FROM t p JOIN t q ON p.a = q.a GROUP BY p.a, q.a, p.a", "SELECT a FROM t GROUP BY ALL",
    "SELECT sum(b) FROM t GROUP BY 1 + 1, 1 + 1, 'x', 'x'",
    "SELECT a, sum(b) FROM t GROUP BY GROUPING SETS ((a, A), (a))",
]  # fmt: skip
NEITHER = [
    "SELECT sum(a) FROM t", "SELECT a, sum(b) FROM t GROUP BY a", "SELECT count(*) FROM t GROUP BY rand() > 2",
    "SELECT sum(b) FROM t GROUP BY GROUPING SETS (())", "SELECT a, b FROM t GROUP BY b, a",
]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = session_for_tiny_tables(spark)
    rows = [(1, 1, 1), (1, 2, None), (None, 1, 3), (None, None, None), (2, None, 1), (2, 1, 1), (1, 1, 1), (1, 3, 2)]
    session.createDataFrame(rows, "a int, b int, c int").createOrReplaceTempView("t")
    session.sql("SELECT * FROM VALUES (1), (2) AS v(k)").createOrReplaceTempView("n")
    return session


@pytest.mark.parametrize(("rule", "least"), [(LITERALS, 20), (REPETITION, 20)])
def test_both_make_what_catalyst_makes(rule: str, least: int, session: SparkSession, oracle: Oracle) -> None:
    """On the plan as written, and once DISTINCT is a GROUP BY and the optimizer has merged projections."""
    tallies = {rule: Tally(rule)}
    for text in CONSTANT + REPEATED + NEITHER:
        written = oracle.finished(session.sql(text))
        merged = oracle.applied(
            written, ["ComputeCurrentTime", "ReplaceDistinctWithAggregate", "CollapseProject", "ConstantFolding"]
        )
        compare(oracle, text, [written, merged], {rule: RULES[rule]}, tallies)
        oracle.release()
    (tally,) = tallies.values()
    assert not tally.different, tally.different[0]
    assert tally.fired_in_python == tally.fired_in_catalyst >= least


@pytest.mark.parametrize("rule", [LITERALS, REPETITION])
def test_rows_stay(rule: str, session: SparkSession) -> None:
    changed = 0
    for text in CONSTANT + REPEATED:
        df = session.sql(text)
        after = pyjoinopt.rules.apply(df, rule)
        if after is not df and "rand" not in text and "current" not in text:
            changed += 1
            if changed % 6 == 1:
                assert_same_rows(df, after, label=(text, rule))
    assert changed > 8


def test_an_empty_table_has_no_group(session: SparkSession) -> None:
    df = session.sql("SELECT count(*) FROM t WHERE a > 100 GROUP BY 'x', 1 + 1")
    assert df.collect() == [] == pyjoinopt.rules.apply(df, LITERALS).collect()
