"""`explain_joins(analyze=...)`: actual row counts next to the estimates."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.feedback import listener
from pyjoinopt.report.executed_run import OperatorReport, RunReport
from pyjoinopt.report.render.number_format import quantity
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjoinopt import JoinReport


def analyzed(session: SparkSession, text: str, **options: str) -> JoinReport:
    df = session.sql(text)
    fast = df.optimize_joins(strict=True, **options)
    listener.analyze(fast._pyjoinopt_report, df, fast, True)
    return fast._pyjoinopt_report


def found(run: RunReport) -> dict[frozenset[str], float]:
    return {frozenset(o.relations): o.rows for o in run.operators if o.relations and o.rows is not None}


@pytest.mark.parametrize("number", [pytest.param(5, marks=pytest.mark.ci), pytest.param(21, marks=pytest.mark.slow)])
def test_both_orders_and_both_ways_to_run_agree(tpch: SparkSession, number: int) -> None:
    """Sets of relations that two plans both make have the same rows in both: with and without adaptive execution."""
    text = tpc.spark_queries("tpch")[number]
    seen: dict[frozenset[str], float] = {}
    compared = 0
    for adaptive, threshold in (("true", "-1"), ("false", "10485760"), ("true", "10485760")):
        session = tpch.newSession()
        tpc.register(session, "tpch")
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        for run in analyzed(session, text).runs:
            for relations, rows in found(run).items():
                compared += relations in seen
                assert seen.setdefault(relations, rows) == rows, relations
    assert compared >= 6


@pytest.mark.ci
def test_counts_are_those_of_count_queries(tpch: SparkSession) -> None:
    report = analyzed(tpch, tpc.spark_queries("tpch")[5])
    rows = found(report.runs[0])
    orders = "o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'"
    truth = {
        ("orders",): f"SELECT count(*) FROM orders WHERE {orders}",
        ("region",): "SELECT count(*) FROM region WHERE r_name = 'ASIA'",
        ("customer", "orders"): f"SELECT count(*) FROM customer, orders WHERE c_custkey = o_custkey AND {orders}",
        ("customer", "orders", "lineitem"): f"""SELECT count(*) FROM customer, orders, lineitem
            WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND {orders}""",
    }
    checked = 0
    for names, text in truth.items():
        if frozenset(names) in rows:
            checked += 1
            assert rows[frozenset(names)] == tpch.sql(text).collect()[0][0]
    assert checked >= 3


def test_an_empty_relation_and_a_limit(tpch: SparkSession) -> None:
    empty = """SELECT * FROM orders, customer, nation WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey
        AND n_name = 'ATLANTIS'"""
    for run in analyzed(tpch, empty).runs:
        assert all(o.rows == 0 for o in run.operators if "nation" in o.relations)
    some = "SELECT * FROM orders, customer, nation WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey LIMIT 3"
    for run in analyzed(tpch, some).runs:
        assert any(o.note for o in run.operators)
        assert not [o for o in run.operators if o.note and o.relations]


def test_explain_shows_it_and_analyzes_one_on_request(
    tpch: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    df = tpch.sql(tpc.spark_queries("tpch")[5])
    df.explain_joins(analyze=True)
    text = capsys.readouterr().out
    assert "Run as written:" in text and "Run optimised:" in text and "s as written," in text
    assert "lineitem" in text and "estimate" in text
    df.explain_joins(analyze="after", mode="tree")
    text = capsys.readouterr().out
    assert "Run optimised:" in text and "Run as written:" not in text
    df.explain_joins(analyze=True, strategy="none")
    text = capsys.readouterr().out
    assert "Run as written:" in text and "Run optimised:" not in text


def test_what_is_not_allowed_says_so(tpch: SparkSession) -> None:
    df = tpch.table("nation")
    with pytest.raises(ValueError, match="analyze is 'both', but must be True, False, 'before' or 'after'"):
        df.explain_joins(analyze="both")
    with pytest.raises(ValueError, match="did you mean 'tree'"):
        df.explain_joins(mode="trees")
    assert pyjoinopt.join_report(df).runs == []


def test_the_estimate_that_misled_most() -> None:
    operators = (
        OperatorReport("Scan", "a", (), 100, 1.0, ("a",), 100),
        OperatorReport("Scan", "b", (), 4000, 1.0, ("b",), 100),  # 40 times too low
        OperatorReport("Join", "", (0, 1), 8000, None, ("a", "b"), 100),  # 80 times, of which 40 are its input's
    )
    worst = RunReport("as written", 1.0, 0.1, operators).misled()
    assert worst is not None and worst[0].detail == "b" and worst[1] == pytest.approx(40)
    text = RunReport("x", 1.0, 0.1, operators).to_text()
    assert "Largest own error: b, 100 rows estimated, 4.00k" in text and "40.0x" in text


def test_two_relations_have_estimates_too(tpch: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """There are no joins to order, but `analyze` is useful without them."""
    df = tpch.sql("SELECT * FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_acctbal > 0")
    df.explain_joins(analyze=True, strategy="none", ascii_only=True)
    text = capsys.readouterr().out
    assert text.isascii() and "Run as written:" in text and "Run optimised:" not in text
    joined = df.count()
    rows = [line.split() for line in text.splitlines() if "Join " in line]
    assert any(quantity(joined) in row for row in rows), "the join's true rows"
    assert re.search(r"\d of 3 estimates have an error factor", text)
    assert df.optimize_joins() is df


def test_a_query_without_joins_is_shown_without_estimates(
    tpch: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    tpch.table("nation").where("n_regionkey = 1").explain_joins(analyze=True)
    text = capsys.readouterr().out
    assert "No estimates to compare" in text and "nothing changed" in text


def test_an_estimate_that_is_right_by_chance_is_not_flagged() -> None:
    operators = (
        OperatorReport("Scan", "a", (), 1000, 1.0, ("a",), 10),  # 100 times too low
        OperatorReport("Scan", "b", (), 50, 1.0, ("b",), 50),
        OperatorReport("Join", "", (0, 1), 100, None, ("a", "b"), 100),  # errors cancel out
    )
    worst = RunReport("as written", 1.0, 0.1, operators).misled()
    assert worst is not None and worst[0].detail == "a"
    assert "0 of" in RunReport("as written", 1.0, 0.1, operators[1:2]).to_text()


def test_where_no_three_relations_meet_it_says_what_is_between(tpch: SparkSession) -> None:
    text = """SELECT c_name, n FROM customer JOIN (SELECT o_custkey, count(*) AS n FROM orders JOIN lineitem
        ON o_orderkey = l_orderkey GROUP BY o_custkey) ON c_custkey = o_custkey"""
    (refusal,) = pyjoinopt.join_report(tpch.sql(text)).refusals
    assert refusal.reason.startswith("no three relations of it are joined without Aggregate between them")
    assert refusal.advice
    assert pyjoinopt.join_report(tpch.sql(tpc.spark_queries("tpch")[5])).refusals == []


def test_what_is_between_two_groups_is_shown_beside_them(tpch: SparkSession) -> None:
    text = """SELECT n_name, n FROM nation JOIN customer ON n_nationkey = c_nationkey JOIN
        (SELECT o_custkey, count(*) AS n FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_custkey)
        ON c_custkey = o_custkey"""
    report = pyjoinopt.join_report(tpch.sql(text))
    assert [len(group.relations) for group in report.groups] == [3]
    (refusal,) = report.refusals
    assert refusal.where == "Aggregate" and refusal.advice
    assert refusal.reason.startswith("joins are not moved across it")


def test_every_mode_is_printed(tpch: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    df = tpch.sql(tpc.spark_queries("tpch")[5])

    def printed(mode: str) -> str:
        df.explain_joins(mode=mode)
        return capsys.readouterr().out

    assert json.loads(printed("json"))["groups"][0]["strategy"] == "exact"
    assert printed("mermaid").startswith("flowchart") and printed("dot").startswith("digraph")
    assert "<svg" in printed("html")
