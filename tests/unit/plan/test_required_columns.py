"""Which columns are read."""

from __future__ import annotations

from pyjoinopt.plan.expressions import Attribute, Expression, reference
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, relation
from pyjoinopt.plan.required_columns import needed_columns

A, B, COUNT = Attribute(0, 0, "a", "int"), Attribute(1, 1, "b", "int"), Attribute(2, 2, "n", "bigint")


def _counted(*grouping: Attribute) -> LogicalPlan:
    keys = tuple(map(reference, grouping))
    count = Expression("Alias", (Expression("Count", type="bigint"),), "bigint", attribute=COUNT)
    return Aggregate(keys, (*keys, count), relation("t", [A, B]), (*grouping, COUNT))


def test_a_count_of_rows_reads_no_column() -> None:
    plan = _counted()
    assert needed_columns(plan)[id(plan.children[0])] == 0


def test_a_grouping_reads_its_keys() -> None:
    plan = _counted(B)
    assert needed_columns(plan)[id(plan.children[0])] == B.mask


def test_new_identities_by_position_read_everything() -> None:
    view = LogicalPlan("View", (relation("t", [A, B]),), (COUNT,))
    assert needed_columns(view)[id(view.children[0])] == A.mask | B.mask
