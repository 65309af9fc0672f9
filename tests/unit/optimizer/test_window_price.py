"""When a window over joined rows is cheaper than an aggregate that they are joined with."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.optimizer.window_price import WindowPrice
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import Attribute, reference
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, relation
from pyjoinopt.rewrites.aggregate_to_window import WindowCandidate

K, V = Attribute(0, 0, "k", "int"), Attribute(1, 1, "v", "int")
READ, WINDOWED = relation("read", [K, V]), relation("windowed", [K, V])
GROUPS = aggregate([reference(K)], [reference(K)], READ)


def pays(read: float, groups: float, windowed: float, keys: float, frequent: float | None = None) -> bool:
    """Whether a window over some rows pays.

    Args:
        read, groups: rows that the aggregate reads and has.
        windowed, keys: rows that the window reads, and their different keys.
        frequent: the share of the most frequent key; None if it is not known.
    """
    rows: Mapping[int, float] = {id(READ): read, id(GROUPS): groups, id(WINDOWED): windowed}

    def estimate(plan: LogicalPlan) -> RelationStatistics:
        found = rows.get(id(plan), keys if isinstance(plan, Aggregate) else 0.0)
        column = ColumnStatistics(heavy=((7, frequent),) if frequent is not None else ())
        return RelationStatistics(found, found * 8, columns={K.bit: column})

    candidate = WindowCandidate(WINDOWED, (K,), K.mask | V.mask, GROUPS, (READ,))
    return WindowPrice(estimate, DEFAULT)(candidate)


@pytest.mark.parametrize(
    ("read", "groups", "windowed", "keys", "cheaper"),
    [
        (60e6, 2e6, 60e3, 2e3, True),
        (1e4, 1e2, 1e4, 1e2, True),  # an exchange and a broadcast less
        (60e6, 2e6, 60e6, 2e6, False),  # sorting is dearer than hashing
        (1e9, 1e4, 10e6, 1e4, True),
        (1e9, 10, 10e6, 10, False),  # ten tasks would sort a million rows each
        (1e9, 1, 150e3, 1, True),
    ],
)
def test_price(read: float, groups: float, windowed: float, keys: float, cheaper: bool) -> None:
    assert pays(read, groups, windowed, keys) is cheaper


def test_a_frequent_key() -> None:
    assert pays(1e9, 1e4, 10e6, 1e4, frequent=0.01)
    assert not pays(1e9, 1e4, 10e6, 1e4, frequent=0.1), "one task would sort a million rows"
