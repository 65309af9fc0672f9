"""INTERSECT and EXCEPT over joins become semi and anti joins; tests/guarantee checks the rows."""

from __future__ import annotations

import pytest

from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import INNER, Join, LogicalPlan, relation
from pyjoinopt.rewrites.set_operations_to_joins import set_operations_as_joins


@pytest.mark.parametrize("operation", ["Intersect", "Except"])
@pytest.mark.parametrize(
    ("type", "may_be_compared"),
    [
        ("int", True), ("interval day to second", True), ("struct<i:interval year to month>", True),
        ("interval", False), ("array<interval>", False), ("struct<a:int,i:interval>", False),
    ],
)  # fmt: skip
def test_only_what_can_be_compared_is_joined(operation: str, type: str, may_be_compared: bool) -> None:
    """Spark's `<=>` does not support intervals with months, days and microseconds, which have no order."""
    columns = [Attribute(bit, bit + 1, name, type) for bit, name in enumerate("abc")]
    a, b, c = (relation(column.name, [column]) for column in columns)
    plan = LogicalPlan(operation, (Join(a, b, INNER), Join(c, c, INNER)), (columns[0], columns[1]), info={"all": False})
    assert (set_operations_as_joins(plan) is not plan) is may_be_compared
