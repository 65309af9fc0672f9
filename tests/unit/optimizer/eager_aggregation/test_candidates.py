"""Below which joins an aggregate may be computed in part."""

from __future__ import annotations

from typing import Any

import pytest

from pyjoinopt.optimizer.eager_aggregation.candidates import Candidate, candidates
from pyjoinopt.optimizer.prefilter.places import SharedPlans
from pyjoinopt.plan.expressions import call, reference
from pyjoinopt.plan.nodes import SEMI, Join, LogicalPlan, relation
from tests.unit.optimizer.eager_aggregation.plans import ID, NAME, OTHER, K, Z, facts, joined, names, summed


def found(child: LogicalPlan) -> list[Candidate]:
    """Those of whose rows the sum is computed."""
    plan = summed(child, NAME)
    return [candidate for candidate in candidates(plan, SharedPlans(plan)) if candidate.early]


def with_partner(child: LogicalPlan, **info: Any) -> Join:
    """The rows of a plan with a partner in another relation."""
    condition = call("EqualTo", reference(OTHER), reference(Z))
    return Join(child, relation("e", [Z]), SEMI, condition, info=info or None)


def test_keys_are_what_is_read_above() -> None:
    (only,) = found(with_partner(joined(facts(), names(), K, ID)))
    assert only.keys == (K, OTHER) and len(only.path) == 2


@pytest.mark.parametrize("info", [{"held": True}, {"subquery": 3}, {"cached": True}])
def test_some_joins_stay_as_they_are(info: dict[str, Any]) -> None:
    """One that is pinned, one that is built as the predicate that it was, one whose result is cached."""
    assert found(with_partner(joined(facts(), names(), K, ID), **info)) == []


def test_nothing_is_put_right_below_a_semi_join() -> None:
    (only,) = found(joined(with_partner(facts()), names(), K, ID))
    assert isinstance(only.plan, Join) and only.keys == (K,)
