"""Enabling and disabling a running session, and its reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")


def test_a_session_that_has_run_queries_can_be_switched_on_and_off(new_session: Callable[[], SparkSession]) -> None:
    session = new_session()
    expected = rows(session.sql(SQL))
    assert not pyjoinopt.is_enabled(session)

    pyjoinopt.enable(session)
    assert pyjoinopt.is_enabled(session)
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert found == expected
    assert orders(reports) == [BETTER] and reports[0].changed and reports[0].error is None

    pyjoinopt.disable(session)
    assert not pyjoinopt.is_enabled(session)
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert (found, reports) == (expected, [])

    session.conf.set("spark.pyjoinopt.enabled", "true")
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]


def test_new_sessions_start_without(session: SparkSession, new_session: Callable[[], SparkSession]) -> None:
    other = new_session()
    assert pyjoinopt.is_enabled(session) and not pyjoinopt.is_enabled(other)
    rows(other.sql(SQL))
    assert pyjoinopt.last_reports(other) == []


def test_a_cloned_session_is_as_the_one_it_was_made_from(session: SparkSession) -> None:
    shim = bridge_of(session)
    clone = session._jsparkSession.cloneSession()
    assert shim.isEnabled(clone)
    clone.conf().set("spark.pyjoinopt.enabled", "false")
    assert not shim.isEnabled(clone) and pyjoinopt.is_enabled(session)


def test_a_clone_has_hints_and_reports_of_its_own(session: SparkSession) -> None:
    clone = type(session)(session.sparkContext, session._jsparkSession.cloneSession())
    found, reports = planned(clone, lambda: rows(clone.sql(SQL)))
    assert orders(reports) == [BETTER] and pyjoinopt.last_reports(session) == []
    clone.conf.set("spark.pyjoinopt.enabled", "false")
    assert planned(clone, lambda: rows(clone.sql(SQL))) == (found, [])
    _, reports = planned(clone, lambda: rows(clone.sql(BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS */"))))
    assert orders(reports) == [BETTER]
    _, reports = planned(session, lambda: rows(session.sql(BAD_ORDER.format(hint="/*+ KEEP_JOIN_ORDER */"))))
    assert [report.changed for report in reports] == [False]
    assert len(pyjoinopt.last_reports(clone)) == 2


def test_a_dataframe_made_before_is_optimised_too(new_session: Callable[[], SparkSession]) -> None:
    session = new_session()
    df = session.sql(SQL)
    pyjoinopt.enable(session)
    assert orders(planned(session, lambda: rows(df))[1]) == [BETTER]


def test_options_become_keys_of_the_session(session: SparkSession) -> None:
    pyjoinopt.enable(session, strategy="heuristic", hints=False, pair_budget=50)
    assert session.conf.get("spark.pyjoinopt.strategy") == "heuristic"
    assert session.conf.get("spark.pyjoinopt.hints") == "false"
    assert session.conf.get("spark.pyjoinopt.pairBudget") == "50"
    _, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert [r.strategy for r in reports] == ["heuristic"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"stratgy": "auto"}, ValueError, "did you mean 'strategy'"),
        ({"hints": "no"}, TypeError, "must be true or false"),
        ({"strict": True}, ValueError, "not of a session"),
        ({"workers": 0}, ValueError, "workers is 0, but must be at least 1"),
        ({"workers": "2"}, TypeError, "must be a whole number from 1"),
        ({"python": 3}, TypeError, "must be of type str"),
        ({"start_timeout": "soon"}, ValueError, "must be a time such as '20s'"),
        ({"prestart": "never"}, ValueError, "prestart is 'never', but must be 'off' or a time such as '20s'"),
    ],
)
def test_wrong_options_raise_and_change_nothing(
    new_session: Callable[[], SparkSession], options: dict[str, object], error: type[Exception], text: str
) -> None:
    session = new_session()
    with pytest.raises(error, match=text):
        pyjoinopt.enable(session, **options)
    assert not pyjoinopt.is_enabled(session)


def test_a_wrong_key_costs_the_order_not_the_query(session: SparkSession) -> None:
    expected = rows(session.sql(SQL))
    session.conf.set("spark.pyjoinopt.strategy", "clever")
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert found == expected
    assert reports[0].error is not None and "must be one of 'auto'" in reports[0].error
    session.conf.unset("spark.pyjoinopt.strategy")
    session.conf.set("spark.pyjoinopt.timeout", "soon")
    assert planned(session, lambda: rows(session.sql(SQL))) == (expected, [])
    session.conf.unset("spark.pyjoinopt.timeout")
    settings = '{"spark.pyjoinopt.workers": "soon"}'
    bridge_of(session).setApplicationSettings(session._jsparkSession, settings)
    assert planned(session, lambda: rows(session.sql(SQL))) == (expected, [])


def test_not_a_session() -> None:
    with pytest.raises(TypeError, match="SparkSession"):
        pyjoinopt.enable("spark")  # type: ignore[arg-type]


def test_explain_shows_the_new_order(session: SparkSession) -> None:
    def joins(text: str) -> str:
        optimized = text.split("== Optimized Logical Plan ==")[1].split("== Physical Plan ==")[0]
        return next(line for line in optimized.splitlines() if "Join" in line)

    (explained,) = session.sql("EXPLAIN EXTENDED" + SQL).first()
    assert "fact_f" in joins(explained) and "mid_k" in joins(explained)
    pyjoinopt.disable(session)
    (explained,) = session.sql("EXPLAIN EXTENDED" + SQL).first()
    assert "mid_f" in joins(explained) and "dim_k" in joins(explained)


def test_the_reports_in_sql(session: SparkSession) -> None:
    session.sql(SQL).collect()
    reported = session.sql("SELECT * FROM joinopt_report()").collect()
    assert [(r.changed, r.relations, r.order_before, r.order_after, r.strategy) for r in reported] == [
        (True, 3, "((fact ⋈ mid) ⋈ dim)", BETTER, "exact")
    ]
    assert json.loads(reported[0].report)["groups"][0]["order_after"] == BETTER and reported[0].number > 0
    assert reported[0].cost_after < reported[0].cost_before and 0 < reported[0].seconds < 60
    (version,) = session.sql("SELECT joinopt_version()").first()
    assert '"protocol"' in version


def test_a_live_session_gets_the_functions_too(new_session: Callable[[], SparkSession]) -> None:
    session = new_session()
    session.sql("SELECT 1").collect()
    pyjoinopt.enable(session)
    assert session.sql("SELECT count(*) FROM joinopt_report()").first()[0] == 0


def test_a_report_survives_the_way_through_the_jvm(session: SparkSession) -> None:
    session.sql(SQL).collect()
    (report,) = pyjoinopt.last_reports(session)
    assert report.to_dict() == pyjoinopt.JoinReport.from_dict(report.to_dict()).to_dict()
    assert f"after   {BETTER}" in report.to_text()


def test_only_the_last_hundred_reports_are_kept(session: SparkSession) -> None:
    jvm_session, shim = session._jsparkSession, bridge_of(session)
    df, handles = session.sql(SQL)._jdf, shim.openHandles()
    for _ in range(103):
        jvm_session.sessionState().optimizer().execute(df.queryExecution().analyzed())
    assert len(pyjoinopt.last_reports(session)) == 100
    assert shim.openHandles() <= handles


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM fact",
        "SELECT * FROM fact JOIN mid ON fact_f = mid_k",
        "SELECT * FROM fact LEFT SEMI JOIN mid ON fact_f = mid_k",
    ],
)
def test_a_query_with_little_to_order_does_not_reach_the_worker(session: SparkSession, text: str) -> None:
    pyjoinopt.enable(session, python="/there/is/no/python")  # a request to a worker would log a warning
    assert planned(session, lambda: session.sql(text).count())[1] == []
    rule = oracle_of(session).ruleNanos(session._jsparkSession, session.sql(text)._jdf, 2000)
    assert rule < 200_000, f"{rule / 1000} µs"


def test_outer_joins_of_two_relations_are_looked_at(session: SparkSession) -> None:
    text = "SELECT fact_k FROM (SELECT fact_k, mid_k FROM fact LEFT JOIN mid ON fact_f = mid_k)"
    assert len(planned(session, lambda: session.sql(text).count())[1]) == 1
