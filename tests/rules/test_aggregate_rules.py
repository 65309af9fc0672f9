"""What GROUP BY does not need: constants and repetitions. By hand, beside Catalyst, and by the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.catalyst.rules.remove_literal_from_group_expressions import remove_literal_from_group_expressions
from pyjoinopt.catalyst.rules.remove_repetition_from_group_expressions import remove_repetition_from_group_expressions
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import Expression, literal
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan
from tests.rules.oracle import Oracle, Tally
from tests.rules.states import compare
from tests.support.compare import assert_same_rows
from tests.support.letters import Letters
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LITERALS, REPETITION = "RemoveLiteralFromGroupExpressions", "RemoveRepetitionFromGroupExpressions"


# -- without Spark ---------------------------------------------------------------------------------------------------


def grouped(w: Letters, *keys: Expression) -> Aggregate:
    """SELECT a, sum(b) GROUP BY the keys."""
    total = w.alias("total", Expression("Sum", (w("b"),), "bigint"))
    return constructors.aggregate(keys, [w("a"), total], w.relation("t", "a b c"))


def keys(plan: LogicalPlan) -> list[str]:
    assert isinstance(plan, Aggregate)
    return [str(e) for e in plan.grouping]


def test_literals_are_dropped(w: Letters) -> None:
    plan = grouped(w, w("a"), literal(1, "int"), w("b"), literal("x", "string"))
    after = remove_literal_from_group_expressions(plan)
    assert keys(after) == ["a", "b"]
    assert isinstance(after, Aggregate) and after.aggregates == plan.aggregates and after.output == plan.output


def test_all_literals_leave_one(w: Letters) -> None:
    after = remove_literal_from_group_expressions(grouped(w, literal(1, "int"), literal("x", "string")))
    assert keys(after) == ["0"]
    assert isinstance(after, Aggregate) and after.grouping[0].type == "int"
    assert remove_literal_from_group_expressions(after) is after


def test_a_zero_of_another_type_is_replaced(w: Letters) -> None:
    after = remove_literal_from_group_expressions(grouped(w, literal(0, "bigint")))
    assert isinstance(after, Aggregate) and after.grouping[0].type == "int"


def test_no_grouping_stays_no_grouping(w: Letters) -> None:
    plan = grouped(w)
    assert remove_literal_from_group_expressions(plan) is plan
    assert remove_repetition_from_group_expressions(plan) is plan


def test_repetitions_are_dropped_and_the_first_stays(w: Letters) -> None:
    plan = grouped(w, w("b"), w("a + 1"), w("b"), w("a + 1"), w("a"))
    assert keys(remove_repetition_from_group_expressions(plan)) == ["b", "(a + 1)", "a"]


def test_what_draws_anew_is_no_repetition(w: Letters) -> None:
    draw = w("rand()")
    plan = grouped(w, draw, w("rand()"), draw)
    assert remove_repetition_from_group_expressions(plan) is plan


def test_what_catalyst_calls_equal_is_a_repetition(w: Letters) -> None:
    one, other = w("a + 1"), w("b + 1")  # as if b + 1 were the same written otherwise
    for number, e in enumerate((one, other)):
        e.number, e.sem = number, 7
    assert keys(remove_repetition_from_group_expressions(grouped(w, one, other))) == ["(a + 1)"]


def test_nothing_to_do_gives_the_same_object(w: Letters) -> None:
    plan = grouped(w, w("a"), w("b"))
    assert remove_literal_from_group_expressions(plan) is plan
    assert remove_repetition_from_group_expressions(plan) is plan


def test_every_aggregate_of_a_tower_and_no_cached_one(w: Letters) -> None:
    plan: LogicalPlan = w.relation("t", "a")
    for _ in range(2000):
        plan = constructors.aggregate([w("a"), literal(1, "int"), w("a")], [w("a")], plan)
    for rule in (remove_literal_from_group_expressions, remove_repetition_from_group_expressions):
        plan = rule(plan)
    assert keys(plan) == ["a"] and keys(plan.children[0]) == ["a"]
    cached = constructors.aggregate([w("a"), literal(1, "int"), w("a")], [w("a")], plan)
    cached.cached = True
    assert remove_literal_from_group_expressions(cached) is cached
    assert remove_repetition_from_group_expressions(cached) is cached


# -- beside Catalyst, and the rows -----------------------------------------------------------------------------------

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
