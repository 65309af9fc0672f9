"""Results as multisets of rows: values are equal as in Spark, floats within a tolerance."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from pyjoinopt.util.same_rows import same_rows, unmatched_rows

NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ([(1, 0.3)], [(1, 0.1 + 0.2)], True),
        ([(1, None), (1, 2.0)], [(1, 2.0), (1, None)], True),
        ([(NAN,)], [(NAN,)], True),
        ([(NAN,)], [("nan",)], False),
        ([(NAN,)], [(None,)], False),
        ([(0.0, NAN)], [(-0.0, NAN)], True),
        ([(float("inf"),)], [(float("inf"),)], True),
        ([(float("inf"),)], [(float("-inf"),)], False),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False),
        ([(1, 0.3)], [(1, 0.300001)], False),
        ([(1.0,)], [(1.000001,)], False),
        ([(1, None)], [(1, 0.0)], False),
        ([("a", "b")], [("b", "a")], False),
        ([], [(1,)], False),
        ([(True,)], [(1,)], False),
        ([(Decimal("1.10"),)], [(Decimal("1.1"),)], True),
        ([(bytearray(b"x"),)], [(b"x",)], True),
        ([(datetime.date(2024, 1, 1),)], [(datetime.datetime(2024, 1, 1),)], False),
        ([({"a": [1.0, None]},), (NAN,)], [(NAN,), ({"a": [1.0, None]},)], True),
        ([({"b": 1.0, "a": 0.3},)], [({"a": 0.1 + 0.2, "b": 1.0},)], True),
        ([({"a": 0.3},)], [({"b": 0.3},)], False),
        ([([0.3, (1, 0.3)],)], [([0.1 + 0.2, (1, 0.1 + 0.2)],)], True),
        ([([1, 2],)], [([2, 1],)], False),
    ],
)
def test_rows_are_compared_as_multisets(left: list[Any], right: list[Any], equal: bool) -> None:
    assert same_rows(left, right) is equal
    assert same_rows(right, left) is equal


def test_what_has_no_partner_is_returned_in_order() -> None:
    assert unmatched_rows([(3, 1.0), (1, 1.0), (2, 1.0)], [(1, 2.0), (2, 1.0)]) == ([(3, 1.0), (1, 1.0)], [(1, 2.0)])


def test_tolerances_are_those_of_isclose() -> None:
    assert same_rows([(100.0,)], [(101.0,)], (0.01, 0.0)) and not same_rows([(100.0,)], [(101.0,)], (0.009, 0.0))
    assert same_rows([(0.0,)], [(0.5,)], (0.0, 0.5)) and not same_rows([(0.0,)], [(0.5,)], (0.0, 0.4))
    assert same_rows([(1.0,)], [(9.0,)], (0.9, 0.0)) and same_rows([(1.0,)], [(-5.0,)], (2.0, 0.0))
    assert not same_rows([(0.3,)], [(0.1 + 0.2,)], (0.0, 0.0))


def test_each_row_has_one_partner() -> None:
    assert unmatched_rows([(1.0,), (1.0 + 1e-12,)], [(1.0 - 1e-12,)]) == ([(1.0 + 1e-12,)], [])


def test_many_sums_in_another_order_are_the_same_rows() -> None:
    draw = random.Random(7)
    values = [(number % 10, [draw.uniform(-1, 1) for _ in range(20)]) for number in range(20_000)]
    left = [(key, sum(parts), parts[0]) for key, parts in values]
    right = [(key, sum(reversed(parts)), parts[0]) for key, parts in values]
    draw.shuffle(right)
    assert any(a != b for a, b in zip(sorted(left), sorted(right)))
    assert same_rows(left, right)
    key, total, part = right[17]
    right[17] = (key, total + 1e-3, part)
    only_left, only_right = unmatched_rows(left, right)
    assert (len(only_left), only_right) == (1, [right[17]])
