"""The rules that replace set operations give the same plans as Catalyst's, and the rows stay the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.decode import Export
from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.catalyst.rules.rule_context import RuleContext
from pyjoinopt.catalyst.rules.spark_batches import SPARK_BATCHES
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import run_batch, without_notes
from tests.oracles.catalyst.oracle import Canon, Oracle, Tally
from tests.oracles.catalyst.states import compare, context_of
from tests.support.compare import assert_same_rows
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Spark's order.
FAMILY = (
    "RewriteExceptAll", "RewriteIntersectAll", "ReplaceIntersectWithSemiJoin", "ReplaceExceptWithFilter",
    "ReplaceExceptWithAntiJoin", "ReplaceDistinctWithAggregate",
)  # fmt: skip
OPERATIONS = ("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")

CASES = [
    *(f"SELECT a, b FROM x {o} SELECT c, d FROM y" for o in OPERATIONS),
    *(f"SELECT a, a FROM x {o} SELECT c, d FROM y" for o in OPERATIONS[:2]),
    *(f"SELECT a, b FROM x {o} SELECT d, d FROM y" for o in OPERATIONS[:2]),
    *(f"SELECT s FROM x {o} SELECT t FROM y" for o in OPERATIONS),
    *(f"SELECT k FROM n {o} SELECT a FROM x" for o in OPERATIONS),  # never NULL on the left, NULLs on the right
    *(f"SELECT a FROM x {o} SELECT k FROM n" for o in OPERATIONS),
    *(f"SELECT a FROM x {o} SELECT CAST(k AS BIGINT) FROM n" for o in OPERATIONS),
    *(f"SELECT a, NULL AS b FROM x {o} SELECT c, 'v' FROM y" for o in OPERATIONS),
    *(f"SELECT array(a), struct(b) AS r FROM x {o} SELECT array(c), struct(d AS b) FROM y" for o in OPERATIONS),
    *(f"SELECT * FROM x {o} SELECT * FROM x" for o in OPERATIONS),
    *(f"SELECT a FROM x {o} SELECT c FROM y WHERE c > 1 {o} SELECT k FROM n" for o in OPERATIONS),
    *(f"SELECT a FROM x {o} (SELECT c FROM y {p} SELECT k FROM n)" for o in OPERATIONS for p in OPERATIONS),
    *(f"SELECT a FROM x {o} SELECT c FROM y WHERE EXISTS (SELECT 1 FROM n WHERE k = c)" for o in OPERATIONS),
    *(f"SELECT a FROM x WHERE a IN (SELECT c FROM y {o} SELECT k FROM n)" for o in OPERATIONS),
    *(f"SELECT a FROM x {o} SELECT c FROM y ORDER BY a LIMIT 2" for o in OPERATIONS),
    *(f"SELECT a, b FROM x {o} (SELECT c, d FROM y UNION ALL SELECT k, k FROM n)" for o in OPERATIONS),
    *(f"SELECT a, count(*) FROM x GROUP BY a {o} SELECT c, count(*) FROM y GROUP BY c" for o in OPERATIONS),
    *(f"SELECT a FROM x {o} SELECT c FROM y WHERE false" for o in OPERATIONS),
    "SELECT DISTINCT a FROM x", "SELECT DISTINCT a, a, b + 1 FROM x",
    "SELECT DISTINCT a FROM (SELECT DISTINCT a, b FROM x)",
    "SELECT DISTINCT * FROM x JOIN y ON a = c", "SELECT a FROM x UNION SELECT c FROM y", "SELECT DISTINCT 1 FROM x",
    "SELECT count(DISTINCT a) FROM (SELECT DISTINCT a, s FROM x)",
    "SELECT DISTINCT a FROM x WHERE a IN (SELECT DISTINCT c FROM y)",
    "SELECT a FROM x WHERE a IN (SELECT a FROM x EXCEPT SELECT a FROM x WHERE a = 1)",
]  # fmt: skip
#: EXCEPT over one table. Those with bars are chains of filters: table | filter | filter.
FILTERED = [
    "SELECT a, b FROM x WHERE b = 2 EXCEPT SELECT a, b FROM x WHERE a = 1",
    "SELECT a, b FROM x EXCEPT SELECT a, b FROM x WHERE a = 1",
    "SELECT * FROM x EXCEPT SELECT * FROM x WHERE a = 1 AND s LIKE 'v%'",
    "SELECT * FROM x WHERE b > 0 EXCEPT SELECT * FROM x WHERE a IS NULL",
    "SELECT * FROM x EXCEPT SELECT * FROM x WHERE a <=> b OR s = 'v1'",
    "x EXCEPT x | b > 0 | a = 1 AND b > 0",
    "x EXCEPT x | a = 1 | b = 2 AND s IS NULL | a = 1 AND b > 0",
    "x | a > 0 | b = 2 EXCEPT x | a = 1",
    "x | rand() >= 0 EXCEPT x | a = 1",
    "SELECT a, b, a + 1 AS f FROM x EXCEPT SELECT a, b, a + 1 AS g FROM x WHERE b = 2",
    "SELECT p.a, q.b FROM x p JOIN x q ON p.a = q.a EXCEPT "
    "SELECT r.a, s.b FROM x r JOIN x s ON r.a = s.a WHERE r.a = 1",
    "SELECT * FROM n EXCEPT SELECT * FROM n WHERE k > 1",
    "(SELECT a, b FROM x EXCEPT SELECT a, b FROM x WHERE a = 1) EXCEPT SELECT a, b FROM x WHERE b = 2",
    "SELECT * FROM (SELECT a, b FROM x LIMIT 100) EXCEPT SELECT * FROM (SELECT a, b FROM x LIMIT 100) WHERE a = 1",
    "SELECT * FROM (SELECT a, max(b) AS m FROM x GROUP BY a) EXCEPT "
    "SELECT * FROM (SELECT a, max(b) AS m FROM x GROUP BY a) WHERE m > 1",
    "SELECT * FROM (SELECT a, b FROM x INTERSECT SELECT c, d FROM y) EXCEPT "
    "SELECT * FROM (SELECT a, b FROM x INTERSECT SELECT c, d FROM y) WHERE a = 1",
]  # fmt: skip
ANTI_JOINED = [
    "SELECT a, b FROM x EXCEPT SELECT c, d FROM y WHERE c = 1",  # another table
    "SELECT a FROM x EXCEPT SELECT a FROM x WHERE b = 2",  # b is not put out
    "SELECT a, b FROM x EXCEPT SELECT b, a FROM x WHERE a = 1",  # other columns
    "SELECT a AS f FROM x EXCEPT SELECT a AS f FROM x WHERE a = 1",  # not found by its name
    "SELECT a, a FROM x EXCEPT SELECT a, a FROM x WHERE a = 1",  # a name twice
    "SELECT a, b FROM x EXCEPT SELECT a, b FROM x WHERE rand() > 2",
    "SELECT a, b FROM x EXCEPT SELECT a, b FROM x WHERE a = 1 AND rand() > 2",
    "SELECT a, b FROM x EXCEPT SELECT a, b FROM x",  # no filter
    "SELECT a, b FROM x WHERE a = 1 EXCEPT SELECT a, b FROM x",
    "SELECT a, b FROM x EXCEPT ALL SELECT a, b FROM x WHERE a = 1",
    "SELECT a, b FROM x EXCEPT SELECT a, b FROM x WHERE a IN (SELECT c FROM y)",
    "SELECT a, b FROM x WHERE a = (SELECT max(c) FROM y) EXCEPT SELECT a, b FROM x WHERE a = 1",
    "SELECT * FROM (SELECT a, b FROM x LIMIT 100) EXCEPT SELECT * FROM (SELECT a, b FROM x LIMIT 99) WHERE a = 1",
]
#: Here Catalyst uses a wrong column, or drops a filter, and gives rows that EXCEPT should not give.
SAFER = {
    "SELECT b AS a FROM x EXCEPT SELECT b AS a FROM x WHERE a = 1": [],
    "SELECT b AS a, a AS b FROM x EXCEPT SELECT b AS a, a AS b FROM x WHERE a = 1": [
        (2, None), (None, None), (2, 2), (1, 3),
    ],
    "n EXCEPT n | rand() > 2 | k > 1": [(1,), (2,), (5,)],
}  # fmt: skip
#: A column twice: Catalyst makes a plan that Spark itself refuses. With the rows of the left side that remain.
TWICE = {
    "SELECT a, a FROM x INTERSECT ALL SELECT c, d FROM y": [(1, 1), (2, 2), (2, 2), (None, None), (None, None)],
    "SELECT a, a FROM x EXCEPT ALL SELECT c, d FROM y": [(1, 1)] * 4 + [(3, 3), (None, None)],
    "SELECT a, b FROM x INTERSECT ALL SELECT d, d FROM y": [(1, 1), (2, 2), (2, 2), (None, None), (None, None)],
    "SELECT a, b FROM x EXCEPT ALL SELECT d, d FROM y":
        [(1, 1), (1, None), (None, 2), (1, 2), (1, 2), (3, 1)],
    "SELECT a, a FROM x EXCEPT ALL SELECT d, d FROM y": [(1, 1)] * 4 + [(3, 3)],
}  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = session_for_tiny_tables(spark)
    rows = [(1, 1, "v1"), (1, 1, "v1"), (1, None, None), (None, 2, "v2"), (None, None, None), (None, None, None)]
    rows += [(2, 2, "v1"), (2, 2, None), (1, 2, ""), (3, 1, "v3"), (1, 2, "V1")]
    others = [(1, 1, "v1"), (None, None, None), (2, 2, "v2"), (1, None, "v1"), (None, 2, None), (4, 4, "v4")] * 2
    session.createDataFrame(rows, "a int, b int, s string").createOrReplaceTempView("x")
    session.createDataFrame(others[1:], "c int, d int, t string").createOrReplaceTempView("y")
    session.sql("SELECT * FROM VALUES (1), (2), (2), (5) AS v(k)").createOrReplaceTempView("n")
    return session


def frame(session: SparkSession, text: str) -> DataFrame:
    """The query; `x | f | g` is table x, filtered by f, filtered by g."""
    if text.startswith(("SELECT", "(")):
        return session.sql(text)
    sides = []
    for side in text.split(" EXCEPT "):
        table, *filters = side.split(" | ")
        df = session.table(table)
        for condition in filters:
            df = df.where(condition)
        sides.append(df)
    return sides[0].subtract(sides[1])


def tallied(
    session: SparkSession, oracle: Oracle, texts: list[str], names: tuple[str, ...] = FAMILY
) -> dict[str, Tally]:
    """Each rule compared with Catalyst's own on each query."""
    tallies = {name: Tally(name) for name in names}
    for text in texts:
        compare(oracle, text, [oracle.finished(frame(session, text))], {name: RULES[name] for name in names}, tallies)
        oracle.release()
    return tallies


def test_every_rule_makes_what_catalyst_makes(session: SparkSession, oracle: Oracle) -> None:
    tallies = tallied(session, oracle, CASES + FILTERED + ANTI_JOINED)
    for tally in tallies.values():
        assert not tally.different, tally.different[0]
    fired = {name: tally.fired_in_python for name, tally in tallies.items()}
    assert fired["ReplaceExceptWithFilter"] == len(FILTERED)
    assert min(fired.values()) >= 8


def test_except_with_filter_is_safer_than_catalyst(session: SparkSession, oracle: Oracle) -> None:
    tally = tallied(session, oracle, list(SAFER), ("ReplaceExceptWithFilter",))["ReplaceExceptWithFilter"]
    assert tally.fired_in_catalyst == len(SAFER) and tally.fired_in_python == 0
    for text, rows in SAFER.items():
        df = frame(session, text)
        assert pyjoinopt.rules.apply(df, "ReplaceExceptWithFilter") is df
        assert_same_rows(rows, pyjoinopt.rules.apply(df, "ReplaceExceptWithAntiJoin"))


def test_the_whole_batch_makes_what_catalyst_makes(session: SparkSession, oracle: Oracle) -> None:
    """Rule after rule in Python, on nodes that earlier rules made, and in Spark.

    The last filtered EXCEPT is an exception: once another rule has rewritten the sides, Spark's statement about them
    no longer applies, and an anti join is used.
    """
    (batch,) = (b for b in SPARK_BATCHES if b.name == "Replace Operators")
    for text in CASES + FILTERED[:-1] + ANTI_JOINED:
        start = oracle.finished(frame(session, text))
        context = context_of(oracle, start)
        plan = run_batch(start.root, tuple(without_notes(partial(_run, run, context)) for _, run in batch.rules)).plan
        theirs = oracle.applied(start, FAMILY)
        canon = Canon(a.id for a in start.attributes)
        ours = oracle.built(start, plan)
        assert canon.plan(theirs.root) == canon.plan(ours.root), f"{text}\n{show(theirs.root)}\n{show(ours.root)}"
        assert [(a.name, a.type) for a in theirs.root.output] == [(a.name, a.type) for a in ours.root.output]
        oracle.release()


def _run(rule: Callable[[LogicalPlan, RuleContext], LogicalPlan], context: RuleContext, p: LogicalPlan) -> LogicalPlan:
    return rule(p, context)


@pytest.mark.slow
def test_rows_stay(session: SparkSession) -> None:
    """Spark's own optimizer is kept from the operators, so the rows are those of our rewriting."""
    texts = [t for t in CASES if "LIMIT 2" not in t]  # Spark may return any two rows
    for text in texts[::9] + FILTERED[::3] + ANTI_JOINED[::5]:
        expected = frame(session, text)
        df = expected
        for name in FAMILY:
            df = pyjoinopt.rules.apply(df, name)
        assert_same_rows(expected, df, label=(text, "rewritten"))


def test_views_and_aliases_hide_nothing(session: SparkSession) -> None:
    """As users write it, each side is under names, which are gone when the rule runs."""
    for text in FILTERED:
        df = frame(session, text)
        assert pyjoinopt.rules.apply(df, "ReplaceExceptWithFilter") is not df, text


def test_a_column_twice(session: SparkSession) -> None:
    for text, rows in TWICE.items():
        df = session.sql(text)
        for name in FAMILY:
            df = pyjoinopt.rules.apply(df, name)
        assert_same_rows(rows, df, label=(text, "rewritten"))


def test_nullability_is_that_of_the_union(session: SparkSession, oracle: Oracle) -> None:
    """`k` is never NULL on the left but may be on the right: above the union it is nullable, as in Spark's own plan."""
    for text in ("SELECT k FROM n EXCEPT ALL SELECT a FROM x", "SELECT k FROM n INTERSECT ALL SELECT a FROM x"):
        start = oracle.finished(session.sql(text))
        built = oracle.applied(start, [], once=True, plan=context_rewritten(oracle, start))
        refreshed = oracle.applied(built, ["UpdateAttributeNullability"])
        canon = Canon(a.id for a in start.attributes)
        assert canon.plan(refreshed.root) == canon.plan(built.root)
        flags = [[a.nullable for n in post_order(e.root) for a in n.output] for e in (built, refreshed)]
        assert flags[0] == flags[1]


def context_rewritten(oracle: Oracle, start: Export) -> LogicalPlan:
    plan, context = start.root, context_of(oracle, start)
    for name in FAMILY[:2]:
        plan = RULES[name].run(plan, context)
    assert plan is not start.root
    return plan
