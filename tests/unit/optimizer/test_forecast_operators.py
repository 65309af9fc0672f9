"""Operators, sides and hints in a report; tests/oracles/feedback/test_true_counts.py compares them with Spark."""

from __future__ import annotations

from functools import partial

import pytest

from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.optimizer import forecast_operators as module
from pyjoinopt.optimizer.forecast_operators import Forecast
from pyjoinopt.plan.nodes import INNER, RIGHT, Join, LogicalPlan
from pyjoinopt.report.model import GroupReport, HintReport, JoinEstimate
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


def forecast(
    plan: LogicalPlan, relations: list[LogicalPlan], *joins: tuple[int, int], hints: tuple[HintReport, ...] = (),
    **conf: str,
) -> GroupReport:  # fmt: skip
    """The one group of a plan, completed."""
    made = tuple(JoinEstimate((), (), 1.0, left=left, right=right) for left, right in joins)
    group = GroupReport((), (), "", "", made, 1.0, 1.0, "exact", 0, 0.0, True, joins_before=made)
    (completed,) = Forecast(plan, plan, conf, SIZES, hints=hints).of([group], [relations])
    return completed


def test_operator_and_side() -> None:
    w = Letters()
    a, b, c = tables(w)
    plan = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("a2 = c1"))
    group = forecast(plan, [a, b, c], (0, 1), (3, 2))
    reported = [(j.operator, j.build) for j in group.estimated_rows]
    assert reported == [("BroadcastHashJoin", "right"), ("SortMergeJoin", "")]
    assert reported == [(j.operator, j.build) for j in group.joins_before]


def test_a_right_join_has_the_sides_of_the_report() -> None:
    w = Letters()
    a, b, _ = tables(w)
    plan = Join(b, a, RIGHT, w("a1 = b1"))  # the report has it as a left join of a and b
    (only,) = forecast(plan, [a, b], (0, 1)).estimated_rows
    assert (only.operator, only.build) == ("BroadcastHashJoin", "right")


def test_hints_with_their_reason() -> None:
    w = Letters()
    a, _, c = tables(w)
    plan = Join(a, c, INNER, w("a2 = c1"), (None, "BROADCAST"))
    given = HintReport("(a2 = c1)", "BROADCAST", "right", "at most 5 rows")
    (only,) = forecast(plan, [a, c], (0, 1), hints=(given,)).estimated_rows
    assert (only.hint, only.build) == ("BROADCAST right: at most 5 rows", "right")
    (only,) = forecast(plan, [a, c], (0, 1)).estimated_rows
    assert only.hint == "BROADCAST right: yours"


def test_nothing_is_shown_where_spark_counts_otherwise() -> None:
    w = Letters()
    a, b, _ = tables(w)
    plan = Join(a, b, INNER, w("a1 = b1"))
    assert forecast(plan, [a, b], (0, 1), **{"spark.sql.cbo.enabled": "true"}).estimated_rows[0].operator == ""


def test_a_forecast_that_fails_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no forecast")

    w = Letters()
    a, b, _ = tables(w)
    monkeypatch.setattr(module, "select", broken)
    group = forecast(Join(a, b, INNER, w("a1 = b1")), [a, b], (0, 1))
    assert group.estimated_rows[0].operator == "" and "no forecast" in caplog.text
