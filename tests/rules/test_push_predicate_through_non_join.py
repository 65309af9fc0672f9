"""Which conjuncts pass which operators with one child, and what they are below; unions, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import ANSI, DETERMINISTIC, OUTER_REFERENCE, PYTHON_UDF, Expression, reference
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import LEFT, Aggregate, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import to_fixed_point
from tests.rules.oracle import Oracle, Tally
from tests.rules.states import compare, passages
from tests.support.letters import Letters, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "PushDownPredicates"


def lines(plan: LogicalPlan) -> list[str]:
    """The operators from the top, without indentation."""
    return [line.strip() for line in show(plan).splitlines()]


def window(w: Letters, child: LogicalPlan, partition: str, name: str = "n") -> LogicalPlan:
    """count(*) OVER (PARTITION BY the columns) AS name."""
    keys = tuple(w(c) for c in partition.split(", ") if c)
    function = w.alias(name, "row_number()")
    assert function.attribute is not None
    output = (*child.output, function.attribute)
    return LogicalPlan("Window", (child,), output, (function, *keys), info={"parts": [1, len(keys), 0]})


def opaque(kind: str, child: LogicalPlan, *expressions: Expression) -> LogicalPlan:
    return LogicalPlan(kind, (child,), child.output, expressions)


# -- aggregates -----------------------------------------------------------------------------------------------------


def total(w: Letters, name: str = "s", of: str = "b") -> Expression:
    return w.alias(name, constructors.aggregate_call("Sum", w(of)))


def test_only_conjuncts_over_grouping_columns_pass_an_aggregate() -> None:
    w = Letters()
    grouped = w.group("a", w.relation("x", "a b"), total(w))
    assert lines(push_down_predicates(Filter(w("s > 1 and a > 2 and a + s > 3"), grouped))) == [
        "Filter ((s > 1) AND ((a + s) > 3))",
        "Aggregate a, a, aggregateexpression(sum(b)) AS s",
        "Filter (a > 2)",
        "LocalRelation x",
    ]


def test_a_renamed_grouping_expression_is_written_out_below() -> None:
    w = Letters()
    key = w("a + b")
    name = w.alias("k", key)
    assert name.attribute is not None
    grouped = Aggregate((key,), (name,), w.relation("x", "a b"), (name.attribute,))
    assert lines(push_down_predicates(Filter(w("k = 7"), grouped)))[1:] == ["Filter ((a + b) = 7)", "LocalRelation x"]


def test_nothing_passes_a_global_aggregate_and_no_constant_passes_any() -> None:
    w = Letters()
    x = w.relation("x", "a b")
    one_row = Filter(w("s > 1"), w.group("", x, total(w)))
    assert push_down_predicates(one_row) is one_row
    never = Filter(w("false"), w.group("a", x, total(w, "t")))
    assert push_down_predicates(never) is never
    moody = Filter(w("a > 1"), w.group("a", x, w.alias("r", "rand()")))
    assert push_down_predicates(moody) is moody


# -- windows --------------------------------------------------------------------------------------------------------


def test_only_conjuncts_over_the_partition_pass_a_window() -> None:
    w = Letters()
    plan = Filter(w("n = 1 and a > 2 and a + b > 4 and c > 3"), window(w, w.relation("x", "a b c"), "a, b"))
    assert lines(push_down_predicates(plan)) == [
        "Filter ((n = 1) AND (c > 3))",
        "Window rownumber() AS n, a, b",
        "Filter ((a > 2) AND ((a + b) > 4))",
        "LocalRelation x",
    ]


def test_a_window_over_everything_or_over_an_expression_lets_no_column_pass() -> None:
    w = Letters()
    for partition in ("", "a + b"):
        plan = Filter(w("a > 2"), window(w, w.relation("x", "a b c"), partition))
        assert push_down_predicates(plan) is plan


# -- unions ---------------------------------------------------------------------------------------------------------


def test_a_filter_is_written_in_the_columns_of_each_branch() -> None:
    w = Letters()
    inner = constructors.union([w.relation("y", "c d"), w.relation("z", "e f")])
    plan = Filter(w("a > 1 and rand() > 2 and a + b > 3"), constructors.union([w.relation("x", "a b"), inner]))
    assert show(push_down_predicates(plan)).splitlines() == [
        "Filter (rand() > 2)",
        "  Union",
        "    Filter ((a > 1) AND ((a + b) > 3))",
        "      LocalRelation x",
        "    Union",
        "      Filter ((c > 1) AND ((c + d) > 3))",
        "        LocalRelation y",
        "      Filter ((e > 1) AND ((e + f) > 3))",
        "        LocalRelation z",
    ]


def test_a_cached_union_or_branch_is_not_entered() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "c d")
    cached = LogicalPlan("Union", (x, y), x.output, info={"cached": True})
    plan = Filter(w("a > 1"), cached)
    assert push_down_predicates(plan) is plan
    branch = Filter(w("d > 1"), y, info={"cached": True})
    pushed = push_down_predicates(Filter(w("a > 1"), constructors.union([x, branch])))
    assert pushed.children[1].children[0] is branch


# -- others ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Distinct", "Sort", "Repartition", "RepartitionByExpression", "Expand", "Generate"])
def test_operators_that_hand_on_rows_are_passed(kind: str) -> None:
    w = Letters()
    x = w.relation("x", "a b")
    made = LogicalPlan(kind, (x,), (*x.output, w.attribute("g")))
    plan = Filter(w("g = 1 and a > 1"), made)
    assert [line.split(" ", 1)[0] for line in lines(push_down_predicates(plan))] == [
        "Filter", kind, "Filter", "LocalRelation",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["LocalLimit", "GlobalLimit", "Offset", "Tail", "Sample", "Deduplicate"])
def test_operators_that_choose_rows_are_not_passed(kind: str) -> None:
    w = Letters()
    plan = Filter(w("a > 1"), opaque(kind, w.relation("x", "a b")))
    assert push_down_predicates(plan, as_catalyst=True) is plan


def test_an_operator_that_computes_something_random_is_a_wall() -> None:
    w = Letters()
    plan = Filter(w("a > 1"), opaque("RepartitionByExpression", w.relation("x", "a b"), w("rand()")))
    assert push_down_predicates(plan, as_catalyst=True) is plan


def test_a_watermark_keeps_what_reads_the_event_time() -> None:
    w = Letters()
    plan = Filter(w("a > 1 and b > 2"), opaque("EventTimeWatermark", w.relation("x", "a b"), w("b")))
    assert lines(push_down_predicates(plan)) == [
        "Filter (b > 2)", "EventTimeWatermark b", "Filter (a > 1)", "LocalRelation x",
    ]  # fmt: skip


# -- what may fail, what is not moved -------------------------------------------------------------------------------


def strict_cast(w: Letters, column: str) -> Expression:
    """CAST(column AS TINYINT) under ANSI: it fails on what is no number."""
    return Expression("Cast", (w(column),), "tinyint", DETERMINISTIC | ANSI)


def test_what_may_fail_does_not_meet_rows_that_a_join_or_an_explode_would_have_removed() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    test = Expression("IsNotNull", (strict_cast(w, "b"),))
    above = Filter(test, join(x, y, w("a = d"), LEFT))
    assert push_down_predicates(above) is above
    inner = push_down_predicates(Filter(test, join(x, y, w("a = d"))))
    assert isinstance(inner, Join) and inner.left is x  # in the condition
    assert lines(push_down_predicates(above, as_catalyst=True))[1].startswith("Filter")
    explode = Filter(test, opaque("Generate", x))
    assert push_down_predicates(explode) is explode
    distinct = push_down_predicates(Filter(test, constructors.distinct(x)))
    assert lines(distinct)[1].startswith("Filter")


def test_a_constant_that_may_fail_is_no_danger_for_single_rows() -> None:
    w = Letters()
    constant = Expression("Cast", (w("7"),), "int", DETERMINISTIC | ANSI | 4)
    test = Expression("EqualTo", (w("b"), constant))
    pushed = push_down_predicates(Filter(test, join(w.relation("x", "a b"), w.relation("y", "d e"), w("a = d"))))
    assert isinstance(pushed, Join) and isinstance(pushed.left, Filter)


def test_what_may_fail_does_not_overtake_its_guard() -> None:
    w = Letters()
    fails = Expression("IsNotNull", (strict_cast(w, "a"),))
    guard = w("s > 1")
    grouped = w.group("a", w.relation("x", "a b"), total(w))
    guarded = Filter(Expression("And", (guard, fails)), grouped)
    assert push_down_predicates(guarded) is guarded
    first = push_down_predicates(Filter(Expression("And", (fails, guard)), grouped))
    assert [line.split()[0] for line in lines(first)] == ["Filter", "Aggregate", "Filter", "LocalRelation"]
    assert lines(push_down_predicates(guarded, as_catalyst=True))[2].startswith("Filter")


def test_python_udfs_stay_above_unless_faithful() -> None:
    w = Letters()
    udf = Expression("PythonUDF", (reference(w.attribute("a")),), "boolean", DETERMINISTIC | PYTHON_UDF)
    x, y = w.relation("x", "a b"), w.relation("y", "c d")
    for node in (constructors.distinct(x), constructors.union([x, y]), w.group("a", x, total(w)), window(w, x, "a")):
        plan = Filter(udf, node)
        assert push_down_predicates(plan) is plan
        assert "pythonudf" in show(push_down_predicates(plan, as_catalyst=True).children[0])


def test_many_levels_of_everything() -> None:
    w = Letters()
    plan: LogicalPlan = w.relation("x", "a b")
    for i in range(500):
        plan = w.group("a b", constructors.distinct(opaque("Sort", Filter(w(f"a > {i}"), plan))))
    pushed = to_fixed_point(plan, push_down_predicates)
    assert show(pushed).count("Filter") == 1 and pushed.output == plan.output


# -- beside Catalyst ------------------------------------------------------------------------------------------------

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
