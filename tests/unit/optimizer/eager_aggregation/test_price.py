"""When an early aggregate pays."""

from __future__ import annotations

import pytest

from pyjoinopt.optimizer.eager_aggregation.candidates import candidates
from pyjoinopt.optimizer.eager_aggregation.early_plan import may_be_early
from pyjoinopt.optimizer.eager_aggregation.price import Price, Pricing
from pyjoinopt.optimizer.prefilter.places import SharedPlans
from pyjoinopt.plan.nodes import Aggregate, Join
from pyjoinopt.plan.traversal import post_order
from tests.unit.optimizer.eager_aggregation.plans import (
    BROADCASTED,
    ID,
    MERGED,
    NAME,
    OTHER,
    K,
    early,
    estimates,
    facts,
    joined,
    names,
    summed,
)

ROWS = {"f": 1e7, "d": 1e5}


def price_of(plan: Aggregate, groups: float) -> Price:
    known = estimates(ROWS, {K: groups, ID: 1e5, NAME: 1e3, OTHER: 3.0})
    decides = early(known)
    (only,) = (c for c in candidates(plan, SharedPlans(plan)) if c.plan.output_set & K.mask)
    return Pricing(known, decides._operator, decides.work)(only)


@pytest.mark.parametrize(
    ("hint", "groups", "done"),
    [(MERGED, 1e5, True), (MERGED, 9e6, False), (BROADCASTED, 1e4, True), (BROADCASTED, 4e6, False)],
)
def test_fewer_groups_than_rows(hint: tuple[str | None, str | None], groups: float, done: bool) -> None:
    plan = summed(joined(facts(), names(), K, ID, hint), NAME)
    found = early(estimates(ROWS, {K: groups, ID: 1e5, NAME: 1e5})).apply(plan)
    assert bool(found.notes) is done and (found.plan is plan) is not done
    if done:
        assert [may_be_early(node) for node in post_order(found.plan) if isinstance(node, Aggregate)] == [True, False]


def test_few_groups_above_broadcasts() -> None:
    """Each task groups its rows by name, of which there are few, so that nothing is left to be saved."""
    plan = summed(joined(facts(), names(), K, ID, BROADCASTED), NAME)
    assert early(estimates(ROWS, {K: 1e5, ID: 1e5, NAME: 1e3})).apply(plan).plan is plan


def test_how_many_groups_there_are_must_be_known() -> None:
    plan = summed(joined(facts(), names(), K, ID, MERGED), NAME)
    assert early(estimates(ROWS, {ID: 1e5, NAME: 1e3})).apply(plan).plan is plan


def test_small_inputs_are_left_alone() -> None:
    plan = summed(joined(facts(), names(), K, ID, MERGED), NAME)
    assert early(estimates({"f": 1e4, "d": 1e3}, {K: 10.0, ID: 1e3, NAME: 10.0})).apply(plan).plan is plan


def test_a_shuffle_by_the_join_s_key_is_none_more() -> None:
    """By the join's key alone the groups are shuffled once; by another one besides they are once more."""
    alone = price_of(summed(joined(facts(), names(), K, ID, MERGED), NAME), 1e5)
    both = price_of(summed(joined(facts(), names(), K, ID, MERGED), NAME, OTHER), 1e5)
    assert both.before - alone.before < both.after - alone.after


def test_up_to_a_join_the_work_above_it_is_left_out() -> None:
    """Of the join itself, only what it reads is counted."""
    plan = summed(joined(facts(), names(), K, ID, MERGED), NAME)
    known = estimates(ROWS, {K: 1e5, ID: 1e5, NAME: 1e3, OTHER: 3.0})
    (candidate,) = (c for c in candidates(plan, SharedPlans(plan)) if c.early)
    (join,) = (step.node for step in candidate.path if isinstance(step.node, Join))
    pricing = Pricing(known, early(known)._operator, early(known).work)
    whole, lower = pricing(candidate), pricing(candidate, up_to=join)
    assert lower.groups == whole.groups and lower.shuffled
    assert lower.before <= whole.before - known(join).rows and lower.after < whole.after


def test_the_lower_of_two_joins() -> None:
    """Grouped below both joins, the facts have a group for each k; above the lower one, as many rows as before."""
    low = joined(facts(), names(), K, ID, MERGED)
    plan = summed(low, NAME)
    found = early(estimates(ROWS, {K: 1e5, ID: 1e5, NAME: 1e3})).apply(plan)
    assert found.notes == ("the aggregate by name reads f grouped by k: about 10,000,000 rows in 100,000 groups",)


def test_a_wide_plan_is_not_searched_to_the_end() -> None:
    plan = facts()
    for _ in range(300):
        plan = joined(plan, names(), K, ID)
    assert len(list(candidates(summed(plan, NAME), SharedPlans(summed(plan, NAME))))) < 60
