"""Hints on the joins of a finished plan."""

from __future__ import annotations

from functools import partial

import pytest

from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.hints.apply_hints import HintGiver
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, NO_HINT, Join, LogicalPlan
from pyjoinopt.report.join_report import JoinReport
from tests.support.letters import Letters

MB = 1 << 20
BIG = 1000 * MB


def table(w: Letters, name: str, columns: str, size: int) -> LogicalPlan:
    leaf = w.relation(name, columns)
    leaf.info["rel"]["bytes"] = size
    return leaf


def give(plan: LogicalPlan, rows: dict[str, float], exact: bool = True) -> tuple[Join, JoinReport]:
    def leaf(node: LogicalPlan) -> RelationStatistics:
        n = rows[node.info["rel"]["name"]]
        return RelationStatistics(n, n * 20, "footers", exact, {}, n if exact else float("inf"), n)

    report = JoinReport()
    result = HintGiver(PlanEstimates(leaf), {}, report, partial(SparkSizes, {})).apply(plan)
    assert isinstance(result, Join)
    return result, report


def test_few_rows_behind_a_large_file(w):
    plan = Join(table(w, "a", "a1", BIG), table(w, "b", "b1", BIG), INNER, w("a1 = b1"))
    join, report = give(plan, {"a": 1e8, "b": 1000})
    assert join.hint == (None, "BROADCAST")
    assert report.hints[0].reason.startswith("at most 1,000 rows")


def test_a_full_join_is_never_hinted(w):
    plan = Join(table(w, "a", "a1", BIG), table(w, "b", "b1", BIG), FULL, w("a1 = b1"))
    assert give(plan, {"a": 1e8, "b": 10})[0] is plan


@pytest.mark.parametrize("join_type", [LEFT, ANTI])
def test_only_the_side_that_may_be_built(w, join_type):
    a, b = table(w, "a", "a1", BIG), table(w, "b", "b1", BIG)
    assert give(Join(a, b, join_type, w("a1 = b1")), {"a": 10, "b": 1e8})[0].hint == NO_HINT
    assert give(Join(a, b, join_type, w("a1 = b1")), {"a": 1e8, "b": 10})[0].hint == (None, "BROADCAST")


def test_not_where_spark_does_it_by_itself(w):
    plan = Join(table(w, "a", "a1", BIG), table(w, "b", "b1", 2 * MB), INNER, w("a1 = b1"))
    assert give(plan, {"a": 1e8, "b": 1000})[0] is plan


def test_not_on_a_guess(w):
    plan = Join(table(w, "a", "a1", BIG), table(w, "b", "b1", BIG), INNER, w("a1 = b1"))
    assert give(plan, {"a": 1e8, "b": 1000}, exact=False)[0] is plan


def test_not_where_the_bound_is_too_large(w):
    plan = Join(table(w, "a", "a1", BIG), table(w, "b", "b1", BIG), INNER, w("a1 = b1"))
    assert give(plan, {"a": 1e8, "b": 1e7})[0] is plan


@pytest.mark.parametrize("side", [0, 1])
def test_not_where_you_hinted(w, side):
    sides = [table(w, "a", "a1", BIG), table(w, "b", "b1", BIG)]
    sides[side] = LogicalPlan("ResolvedHint", (sides[side],), sides[side].output, info={"hint": "SHUFFLE_MERGE"})
    plan = Join(sides[0], sides[1], INNER, w("a1 = b1"))
    assert give(plan, {"a": 1e8, "b": 10})[0] is plan


def test_a_join_inside_a_cache_is_not_touched(w):
    inner = Join(table(w, "a", "a1", BIG), table(w, "b", "b1", BIG), INNER, w("a1 = b1"), info={"cached": True})
    inner.info["rel"] = {"name": "cached"}
    plan = Join(inner, table(w, "c", "c1", BIG), INNER, w("a1 = c1"))
    join, _ = give(plan, {"c": 10, "cached": 1e8})
    assert join.left is inner and join.hint == (None, "BROADCAST")


def test_pruned_columns_do_not_count(w):
    wide = " ".join(f"b{i}" for i in range(1, 400))
    plan = Join(table(w, "a", "a1", BIG), table(w, "b", wide, 100 * BIG), INNER, w("a1 = b1"))
    projected = w.project("a1", plan)
    report = JoinReport()

    def leaf(node: LogicalPlan) -> RelationStatistics:
        n = 1e5 if node.info["rel"]["name"] == "b" else 1e8
        return RelationStatistics(n, n * 1600, "footers", True, {}, n, n)

    HintGiver(PlanEstimates(leaf), {}, report, partial(SparkSizes, {})).apply(projected)
    assert [h.reason.split(",", 1)[0] for h in report.hints] == ["at most 100"]  # 100,000 rows of 12 bytes
