"""The estimated cost of an aggregate."""

from __future__ import annotations

import pytest

from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.optimizer.operator_work import OperatorWork, Rows

WORK = OperatorWork(DEFAULT)
ROWS = Rows(1e7, 12.0, ())


def grouped(groups: float, rows: Rows = ROWS, run: float = 1.0, sorts: bool = False) -> float:
    return WORK.grouping(rows, 0b1, groups, 12.0, run, sorts)


def test_a_row_costs_more_the_more_groups_there_are() -> None:
    costs = [grouped(groups) for groups in (1, 100, 10_000, 1e6, 1e7)]
    assert costs == sorted(costs) and costs[-1] > 10 * costs[0]


def test_rows_that_are_partitioned_by_some_of_the_keys_are_not_shuffled() -> None:
    partitioned = Rows(ROWS.number, ROWS.width, (0b1,))
    assert grouped(1e6, partitioned) < grouped(1e6) - WORK.shuffle(1e6, 12.0)


def test_rows_of_a_group_that_are_stored_together_are_shuffled_as_one() -> None:
    assert WORK.groups_of_tasks(ROWS, 1e6, 10.0) == pytest.approx(1e6, rel=0.05)
    assert WORK.groups_of_tasks(ROWS, 1e6, 1.0) > 5e6
    assert grouped(1e6, run=10.0) < grouped(1e6) / 2


def test_the_tasks_of_a_small_machine_share_more_groups() -> None:
    few = OperatorWork(DEFAULT, 2.0)
    assert few.groups_of_tasks(ROWS, 1e6, 1.0) < WORK.groups_of_tasks(ROWS, 1e6, 1.0) / 2
    large = Rows(1e10, 12.0, ())
    assert few.groups_of_tasks(large, 1e6, 1.0) == WORK.groups_of_tasks(large, 1e6, 1.0)


def test_what_cannot_be_hashed_is_sorted() -> None:
    assert grouped(100, sorts=True) == pytest.approx(grouped(100) + ROWS.number * DEFAULT.sorted_row, rel=1e-3)


def test_the_work_grows_with_the_rows() -> None:
    for groups in (1.0, 1e4, 1e6):
        costs = [grouped(groups, Rows(rows, 12.0, ())) for rows in (0.0, 1e3, 1e6, 1e9)]
        assert costs == sorted(costs) and costs[0] >= 0
