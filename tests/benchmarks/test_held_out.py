"""Constants of the estimator with other values, and which queries are estimated again for them."""

from __future__ import annotations

import math

import pytest

from benchmarks import held_out
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS, Assumptions
from pyjoinopt.estimation.plans import like_patterns
from pyjoinopt.estimation.plans.composite_key_rows import key_rows


def test_another_value_reaches_every_module_and_is_undone() -> None:
    relations = [(30.0, [10.0]), (400.0, [100.0])]
    assert key_rows(relations) == 30.0
    with held_out.read_through("rows_per_composite_value", lambda: 3.5):
        assert ASSUMPTIONS.rows_per_composite_value == like_patterns.ASSUMPTIONS.rows_per_composite_value == 3.5
        assert key_rows(relations) == 400.0
    assert ASSUMPTIONS.rows_per_composite_value == Assumptions().rows_per_composite_value == 2.0
    assert key_rows(relations) == 30.0


def test_it_is_undone_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), held_out.read_through("equality", lambda: 0.5):
        raise ZeroDivisionError
    assert ASSUMPTIONS.equality == Assumptions().equality < 0.5


def test_only_what_depends_on_a_constant_is_graded_again() -> None:
    calls: list[str] = []

    def by_equality() -> list[float]:
        calls.append("equality")
        return [ASSUMPTIONS.equality]

    def by_ordering() -> list[float]:
        calls.append("ordering")
        return [ASSUMPTIONS.ordering]

    first, second = held_out.graded(by_equality), held_out.graded(by_ordering)
    assert first.depends_on == {"equality"}
    assert not second.depends_on  # no fitted constant
    with held_out.read_through("equality", lambda: 0.25):
        assert (first.again("equality"), second.again("equality")) == ([0.25], second.results)
        assert first.again("pattern_letter") == first.results
    assert calls == ["equality", "ordering", "equality"]


def test_grades() -> None:
    flights = [[1.0, 2.0, 3.0], [], [4.0]]
    results = {held_out.JOB: [[2.0], [8.0]], held_out.FLIGHTS: flights, held_out.TPCH: [[5.0]]}
    assert held_out.grades(results) == pytest.approx([4.0, 3.0, 4.0, 5.0, 5.0])
    assert len(held_out.GRADES) == 5


def test_differences() -> None:
    before = {held_out.JOB: [[2.0], [8.0]], held_out.FLIGHTS: [[1.0, 2.0, 3.0], []], held_out.TPCH: [[5.0]]}
    after = {held_out.JOB: [[1.0], [9.0]], held_out.FLIGHTS: [[1.0 + 1e-9, 4.0, 6.0], []], held_out.TPCH: [[5.0]]}
    assert held_out.differences(before, after) == ("1/0/0", "1/2/0")


def test_every_fitted_constant_exists() -> None:
    assert all(math.isfinite(getattr(ASSUMPTIONS, name)) for name in held_out.FITTED)
