"""The test of running times: how often it errs, by simulation."""

from __future__ import annotations

import math
import random

import pytest

from pyjoinopt.feedback.compare_runs import is_slower

#: Simulated histories, and runs of both plans in each.
HISTORIES, RUNS, KEPT = 200, 24, 16


def drawn(generator: random.Random, ratio: float, spread: float, outliers: float) -> float:
    """Seconds of a run; an outlier takes 1.5 to 4 times as long."""
    late = generator.uniform(1.5, 4.0) if generator.random() < outliers else 1.0
    return ratio * late * math.exp(generator.gauss(0.0, spread))


def called_slower(ratio: float, spread: float, outliers: float, runs: int = RUNS, least: int = 2) -> float:
    """The share of histories in which a plan that takes `ratio` times as long is called slower at any time."""
    generator, found = random.Random(7), 0
    for _ in range(HISTORIES):
        ours: list[float] = []
        written: list[float] = []
        for number in range(runs):
            ours = [*ours, drawn(generator, ratio, spread, outliers)][-KEPT:]
            written = [*written, drawn(generator, 1.0, spread, outliers)][-KEPT:]
            if number + 1 >= least and is_slower(ours, written):
                found += 1
                break
    return found / HISTORIES


@pytest.mark.parametrize(("spread", "outliers"), [(0.05, 0.0), (0.1, 0.05), (0.2, 0.0), (0.2, 0.05)])
def test_a_faster_plan_is_not_called_slower(spread: float, outliers: float) -> None:
    """At most 1 % of all histories, though the test is repeated after every run."""
    assert called_slower(0.9, spread, outliers) <= 0.01


@pytest.mark.parametrize(("ratio", "runs", "least"), [(2.0, 2, 0.6), (2.0, 6, 0.9), (1.5, 10, 0.8), (3.0, 2, 0.9)])
def test_a_slower_plan_is_found(ratio: float, runs: int, least: float) -> None:
    assert called_slower(ratio, 0.15, 0.03, runs) >= least


def test_it_needs_two_runs_of_each() -> None:
    assert not is_slower([100.0], [1.0, 1.0]) and not is_slower([100.0, 100.0], [1.0])
    assert is_slower([100.0, 100.0], [1.0, 1.0])


def test_what_is_tolerated() -> None:
    """However certain it is, a twelfth more is not slower, and a fifth is."""
    assert not is_slower([1.08] * 16, [1.0] * 16) and is_slower([1.3] * 16, [1.0] * 16)


def test_clocks_that_jump() -> None:
    assert not is_slower([-5.0, 0.0], [1.0, 1.0])
