"""Bounds of shares against exact arithmetic, and against many simulated samples of many orders of rows."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.estimation.model.sample_bounds import chernoff, clopper_pearson, share_bound
from pyjoinopt.estimation.sources.sampled_distinct import most_frequent

CHANCE = st.sampled_from([0.2, 0.05, 1e-3, 1e-6])


def chance_of_at_most(hits: int, rows: int, share: float) -> Fraction:
    p = Fraction(share)
    return sum((comb(rows, i) * p**i * (1 - p) ** (rows - i) for i in range(hits + 1)), Fraction(0))


@given(st.integers(1, 60), st.data(), CHANCE)
def test_clopper_pearson_is_where_so_few_hits_are_as_rare(rows: int, data: st.DataObject, failure: float) -> None:
    hits = data.draw(st.integers(0, rows // 2))
    bound = clopper_pearson(hits, rows, failure)
    assert hits / rows < bound <= 1
    assert float(chance_of_at_most(hits, rows, bound)) == pytest.approx(failure, rel=1e-6)


@given(st.integers(0, 4096), CHANCE, st.integers(0, 400), st.floats(1, 3))
def test_a_bound_is_a_share_above_the_sample(hits: int, failure: float, draws: int, stretch: float) -> None:
    bound = share_bound(hits, 4096, draws, stretch, failure)
    assert min(1, hits / 4096) <= bound <= 1
    assert bound <= share_bound(hits, 4096, draws, stretch, failure / 10), "surer, so larger"
    assert bound <= share_bound(min(4096, hits + 1), 4096, draws, stretch, failure)
    if draws:
        assert bound >= share_bound(hits, 4096, draws + 1, stretch, failure), "with more draws it is smaller"


def test_few_draws_bound_nothing_worth_it() -> None:
    assert share_bound(0, 4096, 16, 1.0, 1e-6) > 0.5
    assert share_bound(0, 0, 16, 1.0, 1e-6) == share_bound(9, 9, 0, 1.0, 1e-6) == 1.0


def shares(order: str, places: int) -> list[float]:
    """The share of hits in each place; 6 % on average."""
    few = places * 6 // 100
    return {
        "everywhere": [0.06] * places,
        "in a few": [float(i % (places // few) == 3 and i < few * (places // few)) for i in range(places)],
        "at the end": [float(i >= places - few) for i in range(places)],
        "half of some": [0.5 * (i % (places // (2 * few)) == 3 and i < places) for i in range(places)],
    }[order]


def sampled_hits(places: list[float], draws: int, rows: int, lots: random.Random) -> int:
    """Hits among the rows of places that hold one random row of each of so many equal parts of the table."""
    chosen = (places[int((i + lots.random()) * len(places) / draws)] for i in range(draws))
    return sum(lots.random() < share for share in chosen for _ in range(rows))


@pytest.mark.parametrize("order", ["everywhere", "in a few", "at the end", "half of some"])
def test_a_bound_is_broken_as_seldom_as_it_claims(order: str) -> None:
    places, lots, times = shares(order, 200), random.Random(7), 2000
    true = sum(places) / len(places)
    found = [sampled_hits(places, 48, 8, lots) for _ in range(times)]
    broken = {failure: sum(share_bound(n, 48 * 8, 48, 1.0, failure) < true for n in found) for failure in (0.1, 1e-6)}
    assert broken[1e-6] == 0
    assert broken[0.1] <= 0.1 * times + 40, "three standard deviations"
    if order == "in a few":
        assert broken[0.1] >= 0.01 * times, "it is not absurdly loose"
    if order == "everywhere":  # a bound that takes rows for independent would be right here, and wrong elsewhere
        assert sum(clopper_pearson(n, 48 * 8, 0.1) < true for n in found) <= 0.1 * times + 40


def test_rows_of_one_place_are_not_independent() -> None:
    """The bound for independent rows is broken where hits are in few places, so it must not be used there."""
    places, lots = shares("in a few", 200), random.Random(7)
    found = [sampled_hits(places, 48, 8, lots) for _ in range(500)]
    assert sum(clopper_pearson(n, 48 * 8, 1e-6) < 0.06 for n in found)
    assert not sum(chernoff(n / (48 * 8), 48, 1e-6) < 0.06 for n in found)


#: How many rows each value has.
FREQUENCIES = {
    "a key": [1] * 20_000,
    "all alike": [8] * 2500,
    "one frequent value": [300] + [1] * 19_700,
    "a few": [400] * 50,
    "Zipf": [4000 // (i + 1) + 1 for i in range(3000)],
}


@pytest.mark.parametrize("shape", FREQUENCIES)
def test_the_most_frequent_value_of_a_sample_bounds_that_of_the_table(shape: str) -> None:
    """Uniform samples of 500 rows: a bound at one in five is broken in no more of them, and one in a million never."""
    lots = random.Random(shape)
    table = [value for value, count in enumerate(FREQUENCIES[shape]) for _ in range(count)]
    largest, times = max(FREQUENCIES[shape]), 300
    loose = 0
    for _ in range(times):
        sample = [value + 1 for value in lots.sample(table, 500)]
        hits = most_frequent(sample, (1 << 500) - 1)
        assert len(table) * share_bound(hits, 500, 0, 1.0, 1e-6) >= largest
        loose += len(table) * share_bound(hits, 500, 0, 1.0, 0.2) < largest
    assert loose <= 0.2 * times + 3 * (0.2 * 0.8 * times) ** 0.5


def test_a_sample_without_duplicates() -> None:
    assert share_bound(1, 10_000, 0, 1.0, 1e-6) * 10_000 == pytest.approx(16.7, abs=0.1)
