"""`pyjoinopt.rules`: one rule on a DataFrame, all rules step by step, and the errors for bad input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.catalyst.rules.registry import RULES
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: For each rule a query that it changes, and filters over it.
WORK = {
    "ReplaceIntersectWithSemiJoin": "SELECT a, b FROM t INTERSECT SELECT b, c FROM u",
    "ReplaceExceptWithFilter": "SELECT * FROM t WHERE a > 1 EXCEPT SELECT * FROM t WHERE b = 2",
    "ReplaceExceptWithAntiJoin": "SELECT a, b FROM t EXCEPT SELECT b, c FROM u",
    "ReplaceDistinctWithAggregate": "SELECT DISTINCT a, b FROM t",
    "RewriteExceptAll": "SELECT a, b FROM t EXCEPT ALL SELECT b, c FROM u",
    "RewriteIntersectAll": "SELECT a, b FROM t INTERSECT ALL SELECT b, c FROM u",
    "RemoveLiteralFromGroupExpressions": "SELECT a, count(*) AS n FROM t GROUP BY a, 'x'",
    "RemoveRepetitionFromGroupExpressions": "SELECT a, b, count(*) AS n FROM t GROUP BY a, b, a",
    "PushProjectionThroughUnion": "SELECT a + 1 AS x FROM (SELECT * FROM t UNION ALL SELECT * FROM u)",
    "ReorderJoin": "SELECT t.a FROM t JOIN v JOIN u WHERE t.a = u.a AND u.b = v.b",
    "EliminateOuterJoin": "SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.b > 1",
    "PushDownPredicates": "SELECT * FROM (SELECT a, max(b) AS m FROM t GROUP BY a) WHERE a > 2",
    "CombineFilters": "SELECT * FROM t; b < 9; a > 2",
    "PushPredicateThroughNonJoin": "SELECT * FROM (SELECT a, max(b) AS m FROM t GROUP BY a) WHERE a > 2",
    "PushPredicateThroughJoin": "SELECT t.a FROM t JOIN u ON t.a = u.a AND t.b > 1 WHERE u.b > 1",
    "LimitPushDown": "SELECT a, b, c FROM t UNION ALL SELECT a, b, c FROM u LIMIT 100",
    "ColumnPruning": "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a",
    "InferFiltersFromConstraints": "SELECT * FROM t JOIN u ON t.a = u.a WHERE t.a > 1",
}


def test_every_rule_has_a_name_and_a_sentence() -> None:
    assert pyjoinopt.rules.names() == tuple(RULES) and set(WORK) | {"CostBasedJoinReorder"} == set(RULES)
    assert all(rule.about and rule.name == name for name, rule in RULES.items())


@pytest.mark.parametrize("name", WORK)
def test_a_rule_changes_the_plan_and_no_row(tables: SparkSession, name: str) -> None:
    text, *filters = WORK[name].split("; ")
    df = tables.sql(text)
    for condition in filters:
        df = df.filter(condition)
    once = pyjoinopt.rules.apply(df, name)
    assert once is not df and once.columns == df.columns
    assert_same_rows(df, once, label=("plain Spark", name))
    trace = pyjoinopt.rules.trace(df, name)
    assert [step.rule for step in trace.steps] == [name] * len(trace.steps) and trace.steps


def test_each_part_of_push_down_does_its_own_work(tables: SparkSession) -> None:
    df = tables.sql("SELECT * FROM (SELECT a, b + 1 AS s FROM (SELECT * FROM t WHERE c < 9)) WHERE s > 2")

    def steps(*rules: str) -> list[str]:
        return [step.rule for step in pyjoinopt.rules.trace(df, *rules).steps]

    assert steps("CombineFilters") == steps("PushPredicateThroughJoin") == []
    assert set(steps("PushPredicateThroughNonJoin", "CombineFilters")) == {
        "PushPredicateThroughNonJoin", "CombineFilters",
    }
    assert not {"CombineFilters", "PushPredicateThroughNonJoin"} & {s.rule for s in pyjoinopt.rules.trace(df).steps}


def test_what_a_rule_does_not_change_is_handed_back(tables: SparkSession) -> None:
    df = tables.sql("SELECT a FROM t")
    assert all(pyjoinopt.rules.apply(df, name) is df for name in RULES)


def test_columns_still_resolve(tables: SparkSession) -> None:
    df = tables.table("t").alias("x").join(tables.table("u").alias("y"), on="a").filter("y.b > 1")
    once = pyjoinopt.rules.apply(df, "PushDownPredicates")
    assert_same_rows(df.select("x.b", "y.c"), once.select("x.b", "y.c"))


def test_subqueries_are_rewritten_too(tables: SparkSession) -> None:
    df = tables.sql("SELECT a FROM t WHERE b IN (SELECT a FROM t INTERSECT SELECT b FROM u)")
    once = pyjoinopt.rules.apply(df, "ReplaceIntersectWithSemiJoin")
    assert "LeftSemi" in once._jdf.queryExecution().analyzed().toString() and once is not df
    assert_same_rows(df, once)


def test_a_trace_shows_each_step(tables: SparkSession) -> None:
    df = tables.sql(
        "SELECT t.a, count(*) AS n FROM t LEFT JOIN u ON t.a = u.a WHERE u.b > 1 AND t.c < 3 GROUP BY t.a, 'x'"
    )
    trace = pyjoinopt.rules.trace(df)
    rules = [step.rule for step in trace.steps]
    assert rules[0] == "FinishAnalysis" and rules.index("EliminateOuterJoin") < rules.index("PushDownPredicates")
    assert len(rules) < 20, "a rule that undoes what another does would run for ever"
    for before, after in zip(trace.steps, trace.steps[1:]):
        assert before.after is after.before
    text = trace.to_text()
    assert "-     Join LeftOuter (a = a)" in text and "+     Join Inner (a = a)" in text
    assert f"{len(rules)} of {trace.runs} rule runs changed the plan." in text and str(trace) == text


def test_a_trace_as_html(tables: SparkSession) -> None:
    html = pyjoinopt.rules.trace(tables.sql("SELECT * FROM t LEFT JOIN u ON t.a < u.a WHERE u.b > 1"))._repr_html_()
    assert "<script" not in html and "(a &lt; a)" in html and "(a < a)" not in html
    assert "<span style='background" in html and "- " in html and "+ " in html
    assert html.count("<table") == html.count("</table>") == html.count("<details") - 1


def test_a_trace_of_nothing(tables: SparkSession) -> None:
    trace = pyjoinopt.rules.trace(tables.sql("SELECT a FROM t"), "ReorderJoin")
    assert not trace.steps and trace.end is trace.start and "0 of " in trace.to_text()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("EliminateOuterJoins", ValueError, "did you mean 'EliminateOuterJoin'"),
        ("pushdownpredicate", ValueError, "did you mean 'PushDownPredicates'"),
        ("", ValueError, "there is no rule ''"),
        (3, TypeError, "a rule's name is a string, not int"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_unknown_names(tables: SparkSession, name: object, error: type[Exception], message: str) -> None:
    for function in (pyjoinopt.rules.apply, pyjoinopt.rules.trace):
        with pytest.raises(error, match=message):
            function(tables.table("t"), name)  # type: ignore[operator]


def test_what_no_rule_is_applied_to(tables: SparkSession) -> None:
    stream = tables.readStream.format("rate").load()
    for function in (lambda df: pyjoinopt.rules.apply(df, "ColumnPruning"), pyjoinopt.rules.trace):
        with pytest.raises(pyjoinopt.RefusedError, match="streaming"):
            function(stream)
        with pytest.raises(pyjoinopt.RefusedError, match="command"):
            function(tables.sql("CREATE OR REPLACE TEMP VIEW made AS SELECT 1"))
        with pytest.raises(TypeError, match=r"expected a pyspark\.sql\.DataFrame or SparkSession, got str"):
            function("no frame")
