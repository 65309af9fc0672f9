"""Corrections by samples of joins: exact for whole relations, and never far from what the sample shows."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from pyjoinopt.joins.cardinality.join_synopses import Partner, Synopsis, SynopsisCorrection
from pyjoinopt.joins.cardinality.log_cardinality import LogCardinality

FACTS, ITEMS, SHOPS, REGIONS = 1, 2, 4, 8


def bits(rows: list[bool]) -> int:
    return sum(1 << i for i, one in enumerate(rows) if one)


def star(seed: int, rows: int, complete: bool = True, places: int = 0) -> Synopsis:
    """Facts that refer to items and shops, and shops that refer to regions; what is kept depends on each other."""
    rng = random.Random(seed)
    mood = [rng.random() for _ in range(rows)]
    items, shops, regions, kept = (
        [m < rng.choice((0.1, 0.4, 0.9)) or rng.random() < 0.05 for m in mood] for _ in range(4)
    )
    shops_with_region = [s and r for s, r in zip(shops, regions)]
    partners = (
        Partner(ITEMS, FACTS, bits(items)),
        Partner(SHOPS, FACTS, bits(shops)),
        Partner(REGIONS, SHOPS, bits(shops_with_region)),
    )
    starts = tuple(i * rows // places for i in range(places)) if places else ()
    return Synopsis(FACTS, rows, complete, bits(kept), starts, partners)


def true_rows(synopsis: Synopsis, relations: int) -> int:
    together = synopsis.kept
    for p in synopsis.partners:
        if relations & p.vertex:
            together &= p.matches
    return together.bit_count()


def connected() -> list[int]:
    vertices = (ITEMS, SHOPS, REGIONS)
    sets = [FACTS + sum(some) for n in (1, 2, 3) for some in combinations(vertices, n)]
    return [s for s in sets if not s & REGIONS or s & SHOPS]


@pytest.mark.parametrize("seed", range(20))
def test_a_whole_relation_is_counted(seed: int) -> None:
    synopsis = star(seed, 500)
    log_center, shares = math.log(synopsis.kept.bit_count()), (-1.0, -2.5, -0.25)
    correction = SynopsisCorrection(synopsis, shares)
    model = dict(zip((ITEMS, SHOPS, REGIONS), shares))
    for relations in connected():
        log_rows = log_center + sum(log for v, log in model.items() if relations & v) + correction(relations)
        # Twice, for the result is remembered.
        assert correction(relations) == correction(relations)
        assert math.exp(log_rows) == pytest.approx(max(0.5, true_rows(synopsis, relations)))


def test_what_is_not_connected_with_the_centre_is_left_to_the_model() -> None:
    correction = SynopsisCorrection(star(1, 500), (-1.0, -2.5, -0.25))
    assert correction(ITEMS | SHOPS) == correction(FACTS) == correction(FACTS | REGIONS) == 0.0
    assert correction(FACTS | ITEMS | REGIONS) == correction(FACTS | ITEMS) != 0.0
    assert correction(FACTS | ITEMS | 64) == correction(FACTS | ITEMS), "a relation that is no dimension"


@pytest.mark.parametrize("seed", range(10))
def test_sums_are_the_same_whichever_relation_comes_last(seed: int) -> None:
    plain = LogCardinality([5.0, 4.0, 3.0, 2.0], [], [8.0] * 4)
    sums = plain.with_correction(SynopsisCorrection(star(seed, 300), (-1.0, -2.5, -0.25)))
    for relations in connected():
        for added in (FACTS, ITEMS, SHOPS, REGIONS):
            if relations & added and relations != added:
                fresh = plain.with_correction(sums.corrections[0])
                fresh(relations ^ added)
                assert fresh(relations, added).log_rows == pytest.approx(sums(relations).log_rows)


@pytest.mark.parametrize("seed", range(10))
def test_many_hits_outweigh_the_model(seed: int) -> None:
    synopsis = star(seed, 4000, complete=False, places=16)
    far_off = (-8.0, -8.0, -8.0)
    correction = SynopsisCorrection(synopsis, far_off)
    for relations in connected():
        hits, kept = true_rows(synopsis, relations), synopsis.kept.bit_count()
        if hits >= 200:
            model = sum(log for p, log in zip(synopsis.partners, far_off) if relations & p.vertex)
            share = math.exp(model + correction(relations))
            assert share == pytest.approx(hits / kept, rel=0.3)


def test_a_dimension_of_a_dimension_counts_once() -> None:
    """A tenth of the facts has a shop, and of these a tenth has a region, as the model says: nothing is corrected."""
    rows = 10_000
    shops = sum(1 << i for i in range(0, rows, 10))
    regions = sum(1 << i for i in range(0, rows, 100))
    partners = Partner(SHOPS, FACTS, shops), Partner(REGIONS, SHOPS, regions)
    synopsis = Synopsis(FACTS, rows, False, (1 << rows) - 1, (), partners)
    tenth = math.log(0.1)
    correction = SynopsisCorrection(synopsis, (tenth, tenth))
    assert correction(FACTS | SHOPS) == pytest.approx(0.0)
    assert correction(FACTS | SHOPS | REGIONS) == pytest.approx(0.0)


@pytest.mark.parametrize(("complete", "seen"), [(False, 3 / 1001), (True, 0.5 / 1000)])
def test_no_hit_contradicts_only_what_is_larger(complete: bool, seen: float) -> None:
    none = Partner(ITEMS, FACTS, 0)
    for model, expected in ((math.log(0.5), math.log(seen)), (-12.0, -12.0)):
        synopsis = Synopsis(FACTS, 1000, complete, (1 << 1000) - 1, (), (none,))
        assert model + SynopsisCorrection(synopsis, (model,))(FACTS | ITEMS) == pytest.approx(expected)


@pytest.mark.parametrize(("clustered", "expected"), [(False, 3 / 4097), (True, 3 / 17)])
def test_no_hit_in_few_places_contradicts_little_if_references_are_stored_together(
    clustered: bool, expected: float
) -> None:
    partner = Partner(ITEMS, FACTS, 0, None, clustered)
    synopsis = Synopsis(FACTS, 4096, False, (1 << 4096) - 1, tuple(range(0, 4096, 256)), (partner,))
    log = math.log(0.4)
    assert math.exp(log + SynopsisCorrection(synopsis, (log,))(FACTS | ITEMS)) == pytest.approx(expected)


def test_hits_in_one_place_count_as_one() -> None:
    """All rows of one place out of sixteen match: as sure as a single hit, so the model counts for half."""
    rows, model = 4096, math.log(1 / 1024)
    scattered, dense = sum(1 << i for i in range(0, rows, 16)), (1 << 256) - 1
    shares = {}
    for name, matches in (("scattered", scattered), ("dense", dense)):
        partner = Partner(ITEMS, FACTS, matches)
        synopsis = Synopsis(FACTS, rows, False, (1 << rows) - 1, tuple(range(0, rows, 256)), (partner,))
        shares[name] = math.exp(model + SynopsisCorrection(synopsis, (model,))(FACTS | ITEMS))
    assert shares["scattered"] == pytest.approx(1 / 16, rel=0.05)
    assert 1 / 250 < shares["dense"] < 1 / 64


def test_the_centres_own_filter_is_seen_to_decide() -> None:
    """Of the rows that it keeps all match, of all rows one in ten."""
    rows = 2000
    kept = sum(1 << i for i in range(0, rows, 10))
    synopsis = Synopsis(FACTS, rows, False, kept, (), (Partner(ITEMS, FACTS, kept),))
    correction = SynopsisCorrection(synopsis, (math.log(0.1),))
    assert math.exp(math.log(0.1) + correction(FACTS | ITEMS)) == pytest.approx(1.0, rel=0.05)


def test_rows_that_refer_to_nothing_are_left_out_as_by_the_model() -> None:
    """Half of the facts name no item. The model's facts are the other half, so all of its rows have a partner."""
    rows = 1000
    half = sum(1 << i for i in range(0, rows, 2))
    synopsis = Synopsis(FACTS, rows, True, (1 << rows) - 1, (), (Partner(ITEMS, FACTS, half, half),))
    assert SynopsisCorrection(synopsis, (0.0,))(FACTS | ITEMS) == pytest.approx(0.0)
