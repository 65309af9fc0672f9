"""Redundant left joins, and semi joins that may become inner joins."""

from __future__ import annotations

import pytest

from pyjoinopt.cost import COut
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.feedback.learned_rows import LearnedRows
from pyjoinopt.joins.groups.eliminate_joins import drop_unused_left_joins, semi_to_inner_joins
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.optimizer.order_group import OrderingContext
from pyjoinopt.optimizer.reorder import reorder
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from tests.support.letters import Letters
from tests.support.regions import region_of


@pytest.fixture
def unique(w: Letters) -> LogicalPlan:
    """u has one row for each u1."""
    return w.group("u1", w.relation("u", "u1 u2"), names="u1")


def left(w: Letters, region: JoinGroup, read: str) -> set[str]:
    """The items that are left when only some columns are read."""
    mask = 0
    for name in read.split():
        mask |= w.attribute(name).mask
    smaller, _ = drop_unused_left_joins(region, mask, DistinctKeys())
    return {item.plan.kind if item.plan.children else item.plan.info["rel"]["name"] for item in smaller.items.values()}


def test_a_left_join_below_other_joins_goes(w, abc, unique):
    a, b, _ = abc
    region = region_of(Join(Join(a, unique, LEFT, w("a1 = u1")), b, INNER, w("a2 = b1")))
    assert left(w, region, "a1 b2") == {"a", "b"}
    assert left(w, region, "a1 u1") == {"a", "b", "Aggregate"}


def test_a_right_join_goes_too(w, abc, unique):
    a, b, _ = abc
    region = region_of(Join(Join(unique, a, RIGHT, w("a1 = u1")), b, INNER, w("a2 = b1")))
    assert left(w, region, "a1") == {"a", "b"}


@pytest.mark.parametrize(
    ("join_type", "on"),
    [
        (LEFT, "a1 <=> u1"), (LEFT, "a1 < u1"), (LEFT, "a1 = u1 + 1"), (LEFT, "ansi_cast(a1) = u1"),
        (INNER, "a1 = u1"), (FULL, "a1 = u1"),
    ],
)  # fmt: skip
def test_what_does_not_prove_one_partner_at_most_stays(w, abc, unique, join_type, on):
    a, b, _ = abc
    region = region_of(Join(Join(a, unique, join_type, w(on)), b, INNER, w("a2 = b1")))
    assert "Aggregate" in left(w, region, "a1")


def test_what_is_not_unique_stays(w, abc):
    a, b, c = abc
    region = region_of(Join(Join(a, c, LEFT, w("a1 = c1")), b, INNER, w("a2 = b1")))
    assert left(w, region, "a1") == {"a", "b", "c"}


@pytest.mark.parametrize("above", ["u1 is null", "a2 = coalesce(u1, 0)"])
def test_what_a_predicate_reads_stays(w, abc, unique, above):
    a, b, _ = abc
    region = region_of(Filter(w(above), Join(Join(a, unique, LEFT, w("a1 = u1")), b, INNER, w("a2 = b1"))))
    assert "Aggregate" in left(w, region, "a1")


def test_a_filter_on_what_goes_does_not_keep_it(w, abc, unique):
    a, b, _ = abc
    region = region_of(Join(Join(a, Filter(w("u1 = 1"), unique), LEFT, w("a1 = u1")), b, INNER, w("a2 = b1")))
    smaller, gone = drop_unused_left_joins(region, w.attribute("a1").mask, DistinctKeys())
    assert len(gone) == 1 and [describe(c.predicate) for c in smaller.conjuncts] == ["(a2 = b1)"]


def test_one_goes_after_the_other(w, abc, unique):
    a, b, _ = abc
    second = w.group("v1", w.relation("v", "v1 v2"), names="v1")
    chain = Join(Join(a, unique, LEFT, w("a1 = u1")), second, LEFT, w("u1 = v1"))
    region = region_of(Join(chain, b, INNER, w("a2 = b1")))
    assert left(w, region, "a1") == {"a", "b"}
    assert len(region.items) == 4  # the region itself is as it was


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_a_semi_join_with_one_partner_at_most_is_an_inner_one(w, abc, unique, kind):
    a, b, _ = abc
    region = region_of(Join(Join(a, unique, kind, w("a1 = u1 and a2 < u1")), b, INNER, w("a2 = b1")))
    freed = semi_to_inner_joins(region, DistinctKeys())
    if kind == ANTI:
        assert freed is region
    else:
        kinds = [(c.join_type, describe(c.predicate)) for c in freed.conjuncts]
        assert kinds == [(INNER, "(a1 = u1)"), (INNER, "(a2 < u1)"), (INNER, "(a2 = b1)")]
        assert not freed.semi_right and freed.attributes & unique.output_set == unique.output_set


def test_a_semi_join_on_part_of_a_key_stays(w, abc):
    a, b, _ = abc
    pairs = w.group("u1 u2", w.relation("u", "u1 u2"), names="u1 u2")
    region = region_of(Join(Join(a, pairs, SEMI, w("a1 = u1")), b, INNER, w("a2 = b1")))
    assert semi_to_inner_joins(region, DistinctKeys()) is region
    whole = region_of(Join(Join(a, pairs, SEMI, w("a1 = u1 and a2 = u2")), b, INNER, w("a2 = b1")))
    assert semi_to_inner_joins(whole, DistinctKeys()) is not whole


def test_the_whole_way(w, abc, unique):
    """A projection above reads a and b only: u goes, and the projection still finds its columns."""
    a, b, c = abc
    joined = Join(Join(Join(a, unique, LEFT, w("a1 = u1")), b, INNER, w("a2 = b1")), c, LEFT, w("b2 = c1"))
    plan = w.project("a1 b2 c2", joined)
    known = PlanEstimates(lambda _: RelationStatistics(100.0, 4000.0))
    found = reorder(plan, OrderingContext(known, COut(), 1000, LearnedRows(lambda _: None, None)))
    result = found.plan
    assert not any(node.kind == "Aggregate" for node in post_order(result)), show(result)
    assert result.output == plan.output and not result.references & ~result.children[0].output_set
    assert found.dropped == [
        "left join of a and aggregate dropped: no column of aggregate is read, and it has one row per join key"
    ]
    assert found.groups[0].changed
