"""Outer joins that an operator above makes redundant."""

from __future__ import annotations

import pytest

from pyjoinopt.plan.nodes import ANTI, CROSS, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join


@pytest.fixture
def outer(w):
    """a (a1 a2) and b (b1 b2), outer joined."""
    a, b = w.relation("a", "a1 a2"), w.relation("b", "b1 b2")
    return lambda join_type: Join(a, b, join_type, w("a1 = b1"))


def lowest_type(plan: LogicalPlan) -> str:
    return next(node.join_type for node in post_order(plan) if isinstance(node, Join))


def test_an_inner_join_on_a_padded_column(w, outer):
    plan = Join(outer(LEFT), w.relation("c", "c1"), INNER, w("b2 = c1"))
    changed, notes = demote_outer_join(plan)
    assert lowest_type(changed) == INNER
    assert notes == ("left join of a and b became inner: (b2 = c1) rejects NULLs",)


@pytest.mark.parametrize(
    ("condition", "upper", "expected"),
    [
        ("a2 = c1", INNER, LEFT),  # the kept side
        ("b2 <=> c1", INNER, LEFT),  # NULL = NULL may be kept
        ("b2 = c1 or a2 = c1", INNER, LEFT),
        ("coalesce(b2, 0) = c1", INNER, LEFT),
        ("b2 + 1 = c1", INNER, INNER),
        ("b2 = c1", SEMI, INNER),
        ("b2 = c1", ANTI, LEFT),
        ("b2 = c1", LEFT, LEFT),  # keeps all rows of its left side
        ("b2 = c1", RIGHT, INNER),  # drops left rows without a match
        ("b2 = c1", FULL, LEFT),
    ],
)
def test_what_the_join_above_rejects(w, outer, condition, upper, expected):
    plan = Join(outer(LEFT), w.relation("c", "c1"), upper, w(condition))
    assert lowest_type(demote_outer_join(plan).plan) == expected


@pytest.mark.parametrize("kind", ["Distinct", "RebalancePartitions", "HintScope", "Sort", "View"])
def test_through_what_a_filter_passes(w, outer, kind):
    """Catalyst pushes the filter through these (PushPredicateThroughNonJoin), and then makes the join an inner one."""
    join = outer(LEFT)
    plan = Filter(w("b2 > 1"), LogicalPlan(kind, (join,), join.output))
    assert lowest_type(demote_outer_join(plan).plan) == INNER


@pytest.mark.parametrize("kind", ["GlobalLimit", "Window", "CollectMetrics", "Deduplicate", "CTERelationDef"])
def test_not_through_what_sees_the_dropped_rows(w, outer, kind):
    join = outer(LEFT)
    plan = Filter(w("b2 > 1"), LogicalPlan(kind, (join,), join.output))
    assert lowest_type(demote_outer_join(plan).plan) == LEFT


@pytest.mark.parametrize(
    ("lower", "predicate", "expected"),
    [
        (FULL, "a2 > 1 and b2 > 1", INNER), (FULL, "a2 > 1", LEFT), (FULL, "b2 > 1", RIGHT), (FULL, "a2 is null", FULL),
        (RIGHT, "a2 > 1", INNER), (RIGHT, "b2 > 1", RIGHT), (LEFT, "b2 is not null", INNER), (LEFT, "b2 is null", LEFT),
    ],
)  # fmt: skip
def test_filters_through_projections_and_joins(w, outer, lower, predicate, expected):
    names = w.project("a1 a2 b1 b2", outer(lower))
    crossed = Join(names, w.relation("c", "c1"), CROSS)
    assert lowest_type(demote_outer_join(Filter(w(predicate), crossed)).plan) == expected


def test_a_computed_column(w, outer):
    plan = w.project("a1", outer(LEFT), w.alias("x", "b2 + 1"))
    assert lowest_type(demote_outer_join(Filter(w("x > 3"), plan)).plan) == INNER
    plan = w.project("a1", outer(LEFT), w.alias("y", "coalesce(b2, 1)"))
    assert lowest_type(demote_outer_join(Filter(w("y > 3"), plan)).plan) == LEFT


def test_a_grouping_column(w, outer):
    grouped = w.group("b2", outer(LEFT))
    assert lowest_type(demote_outer_join(Filter(w("b2 > 3"), grouped)).plan) == INNER


def test_not_through_a_limit(w, outer):
    below = outer(LEFT)
    limit = LogicalPlan("GlobalLimit", (below,), below.output, info={"limit": 3})
    plan = Filter(w("b2 > 3"), limit)
    assert demote_outer_join(plan).plan is plan


def test_a_shared_plan_needs_both_parents_to_agree(w, outer):
    shared = outer(LEFT)
    union = LogicalPlan("Union", (Filter(w("b2 > 3"), shared), shared), shared.output)
    assert demote_outer_join(union).plan is union
    both = LogicalPlan("Union", (Filter(w("b2 > 3"), shared), Filter(w("b2 > 5"), shared)), shared.output)
    assert lowest_type(demote_outer_join(both).plan) == INNER


def test_a_demoted_join_makes_its_own_condition_strict(w, outer):
    """b2 = c1 makes the upper left join inner, whose condition then rejects the padding of the lower one."""
    upper = Join(outer(LEFT), w.relation("c", "c1 c2"), LEFT, w("b2 = c1"))
    plan = demote_outer_join(Filter(w("c2 > 0"), upper)).plan
    assert [node.join_type for node in post_order(plan) if isinstance(node, Join)] == [INNER, INNER]


def test_a_cached_join_stays(w, outer):
    plan = outer(LEFT)
    plan.cached = True
    above = Filter(w("b2 > 3"), plan)
    assert demote_outer_join(above).plan is above


def test_a_predicate_that_may_fail_keeps_the_join(w, outer):
    """10 / b2 > 1 was tested on matched rows only; below an inner join it would be evaluated for every b2."""
    plan = Join(Filter(w("coalesce(risky(b2), 1) > 0"), outer(LEFT)), w.relation("c", "c1"), INNER, w("b2 = c1"))
    assert demote_outer_join(plan).plan is plan
    computed = w.project("b2", outer(LEFT), w.alias("x", "risky(b2)"))
    tested = Join(Filter(w("x > 0"), computed), w.relation("d", "d1"), INNER, w("b2 = d1"))
    assert demote_outer_join(tested).plan is tested


@pytest.mark.parametrize("join_type", [LEFT, RIGHT])
def test_a_condition_that_may_fail_keeps_the_join(w, join_type):
    """10 / a2 > 1 is tested on pairs whose keys are equal; below an inner join it would be evaluated for every a2."""
    kept, padded = (("a", "b") if join_type == LEFT else ("b", "a"))
    condition = w(f"a1 = b1 and coalesce(risky({kept}2), 1) > 0")
    lower = Join(w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), join_type, condition)
    plan = Join(lower, w.relation("c", "c1"), INNER, w(f"{padded}2 = c1"))
    assert demote_outer_join(plan).plan is plan


def test_a_computed_column_that_nothing_tests_does_not_matter(w, outer):
    plan = Join(outer(LEFT), w.relation("c", "c1"), INNER, w("b2 = c1"))
    top = w.project("a1", plan, w.alias("x", "risky(b2)"))
    assert lowest_type(demote_outer_join(top).plan) == INNER


def test_what_a_random_filter_meets_stays_the_same(w, outer):
    """The same seed over fewer rows keeps other ones."""
    plan = Join(Filter(w("rand() < 1"), outer(LEFT)), w.relation("c", "c1"), INNER, w("b2 = c1"))
    assert demote_outer_join(plan).plan is plan
