"""By which columns the rows of a plan are partitioned."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.planner.join_selection import BROADCAST_HASH, NESTED_LOOP, SORT_MERGE, JoinOperator
from pyjoinopt.optimizer.partitioning import join_keys, partitioning_of, satisfies
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project, relation
from tests.unit.optimizer.eager_aggregation.plans import ID, OTHER, K, X, Z, facts, joined, names, summed

OTHERS = relation("e", [Z])


def merged(join: Join) -> JoinOperator:
    return JoinOperator(SORT_MERGE)


@pytest.mark.parametrize(
    ("join_type", "by"),
    [
        ("Inner", (K.mask, ID.mask)),
        ("LeftOuter", (K.mask,)),
        ("RightOuter", (ID.mask,)),
        ("FullOuter", ()),
        ("LeftSemi", (K.mask,)),
    ],
)
def test_a_shuffled_join_leaves_its_keys(join_type: str, by: tuple[int, ...]) -> None:
    join = Join(facts(), names(), join_type, call("EqualTo", reference(K), reference(ID)))
    kept = Filter(call("IsNotNull", reference(K)), join)
    assert partitioning_of(Project((reference(K),), kept), merged) == by


def test_a_broadcast_leaves_what_it_streams() -> None:
    low = joined(facts(), names(), K, ID)
    high = joined(low, OTHERS, OTHER, Z)

    def operator(join: Join) -> JoinOperator:
        return JoinOperator(SORT_MERGE) if join is low else JoinOperator(BROADCAST_HASH, "right")

    assert partitioning_of(high, operator) == (K.mask, ID.mask)
    assert partitioning_of(high, lambda join: JoinOperator(BROADCAST_HASH, "left")) == ()
    assert partitioning_of(high, lambda join: JoinOperator(NESTED_LOOP)) == ()


def test_an_aggregate_leaves_its_groups() -> None:
    assert partitioning_of(summed(facts(), K), merged) == (K.mask,)
    assert partitioning_of(summed(facts()), merged) == ()


def test_what_else_is_not_known() -> None:
    cached = relation("f", [K], cached=True)
    assert partitioning_of(facts(), merged) == partitioning_of(cached, merged) == ()


def test_keys_that_are_computed_are_no_columns() -> None:
    sum_ = Expression("Add", (reference(K), reference(X)), "int")
    join = Join(facts(), names(), "Inner", call("EqualTo", sum_, reference(ID)))
    assert join_keys(join) == (0, ID.mask) and join_keys(Join(facts(), names())) == (0, 0)


def test_rows_by_fewer_columns_are_together() -> None:
    assert satisfies((K.mask, ID.mask), K.mask | X.mask) and not satisfies((K.mask | X.mask,), K.mask)
    assert not satisfies((), K.mask) and not satisfies((K.mask,), 0)


def test_a_chain_of_broadcasts_is_no_recursion() -> None:
    plan: LogicalPlan = facts()
    for bit in range(100, 3100):
        other = Attribute(bit, bit, "y", "int")
        plan = joined(plan, relation("g", [other]), K, other)
    assert partitioning_of(plan, lambda join: JoinOperator(BROADCAST_HASH, "right")) == ()
