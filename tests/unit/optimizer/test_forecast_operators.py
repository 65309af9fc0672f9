"""What a report has of operators, sides and hints; tests/oracles/feedback/test_true_counts.py compares with Spark."""

from __future__ import annotations

from functools import partial

import pytest

from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.optimizer import forecast_operators as module
from pyjoinopt.optimizer.forecast_operators import forecast
from pyjoinopt.plan.nodes import INNER, RIGHT, Join, LogicalPlan
from pyjoinopt.report.join_report import GroupReport, HintReport, JoinEstimate, JoinReport
from tests.support.letters import Letters

MB = 1 << 20
SIZES = partial(SparkSizes, {})


def tables(w: Letters) -> list[LogicalPlan]:
    made = []
    for name, columns, size in (("a", "a1 a2", 1000 * MB), ("b", "b1", MB), ("c", "c1", 2000 * MB)):
        leaf = w.relation(name, columns)
        leaf.info["rel"]["bytes"] = size
        made.append(leaf)
    return made


def reported(relations: list[LogicalPlan], *joins: tuple[int, int]) -> JoinReport:
    made = tuple(JoinEstimate((), (), 1.0, left=left, right=right) for left, right in joins)
    report = JoinReport(groups=[GroupReport((), (), "", "", made, 1.0, 1.0, "exact", 0, 0.0, True, joins_before=made)])
    report.ordered(relations)
    return report


def test_operator_and_side() -> None:
    w = Letters()
    a, b, c = tables(w)
    plan = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("a2 = c1"))
    report = reported([a, b, c], (0, 1), (3, 2))
    forecast(report, plan, plan, {}, SIZES)
    told = [(j.operator, j.build) for j in report.groups[0].estimated_rows]
    assert told == [("BroadcastHashJoin", "right"), ("SortMergeJoin", "")]
    assert told == [(j.operator, j.build) for j in report.groups[0].joins_before]


def test_a_right_join_is_told_with_the_sides_of_the_report() -> None:
    w = Letters()
    a, b, _ = tables(w)
    plan = Join(b, a, RIGHT, w("a1 = b1"))  # the report has it as a left join of a and b
    report = reported([a, b], (0, 1))
    forecast(report, plan, plan, {}, SIZES)
    assert (report.groups[0].estimated_rows[0].operator, report.groups[0].estimated_rows[0].build) == (
        "BroadcastHashJoin",
        "right",
    )


def test_hints_with_their_reason() -> None:
    w = Letters()
    a, _, c = tables(w)
    plan = Join(a, c, INNER, w("a2 = c1"), (None, "BROADCAST"))
    report = reported([a, c], (0, 1))
    report.hints.append(HintReport("(a2 = c1)", "BROADCAST", "right", "at most 5 rows"))
    forecast(report, plan, plan, {}, SIZES)
    assert report.groups[0].estimated_rows[0].hint == "BROADCAST right: at most 5 rows"
    assert report.groups[0].estimated_rows[0].build == "right"
    report.hints.clear()
    report.ordered([a, c])
    forecast(report, plan, plan, {}, SIZES)
    assert report.groups[0].estimated_rows[0].hint == "BROADCAST right: yours"


def test_nothing_is_said_where_spark_counts_otherwise() -> None:
    w = Letters()
    a, b, _ = tables(w)
    report = reported([a, b], (0, 1))
    forecast(report, *[Join(a, b, INNER, w("a1 = b1"))] * 2, {"spark.sql.cbo.enabled": "true"}, SIZES)
    assert report.groups[0].estimated_rows[0].operator == ""


def test_a_forecast_that_fails_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no forecast")

    w = Letters()
    a, b, _ = tables(w)
    report = reported([a, b], (0, 1))
    monkeypatch.setattr(module, "select", broken)
    forecast(report, *[Join(a, b, INNER, w("a1 = b1"))] * 2, {}, SIZES)
    assert report.groups[0].estimated_rows[0].operator == "" and "no forecast" in caplog.text
