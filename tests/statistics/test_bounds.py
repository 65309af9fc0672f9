"""Proved upper bounds: keys that plans prove, and what joins on them cannot exceed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Join
from pyjoinopt.statistics.cardinality import estimate_plan
from pyjoinopt.statistics.graph import GraphEstimates
from pyjoinopt.statistics.relation import RelationStatistics
from tests.joins.graphs import Builder
from tests.statistics.tables import TABLES, eq, leaf
from tests.statistics.test_cardinality import group, node


def bits(plan, *names: str) -> int:
    return sum(a.mask for a in plan.output if a.name in names)


def test_groups_are_unique_on_what_they_are_grouped_by() -> None:
    grouped = group(TABLES["orders"], "o_cust")
    known = estimate_plan(grouped, leaf)
    assert known.is_unique(bits(grouped, "o_cust")) and not estimate_plan(TABLES["orders"], leaf).keys


@pytest.mark.parametrize(("kind", "bounded"), [(INNER, True), (LEFT, True), (RIGHT, False), (FULL, False)])
def test_a_join_on_a_key_repeats_no_row(kind: str, bounded: bool) -> None:
    customers, per_customer = TABLES["customers"], group(TABLES["orders"], "o_cust")
    known = estimate_plan(Join(customers, per_customer, kind, eq("c_key", "o_cust")), leaf)
    rows = estimate_plan(customers, leaf).upper_bound
    assert (known.upper_bound == rows) is bounded
    assert known.upper_bound >= rows


@pytest.mark.parametrize("kind", ["Sample", "Generate"])
def test_what_repeats_rows_has_no_keys(kind: str) -> None:
    per_customer = group(TABLES["orders"], "o_cust")
    assert estimate_plan(per_customer, leaf).keys
    assert not estimate_plan(node(kind, per_customer), leaf).keys


def test_semi_joins_keep_the_keys_of_the_left() -> None:
    per_customer = group(TABLES["orders"], "o_cust")
    for kind in (SEMI, ANTI):
        known = estimate_plan(Join(per_customer, TABLES["customers"], kind, eq("o_cust", "c_key")), leaf)
        assert known.is_unique(bits(per_customer, "o_cust"))


def star(unique: tuple[int, ...]) -> tuple[Builder, list[RelationStatistics]]:
    """A fact table (0) of a million rows with three dimensions, some of them unique on their keys."""
    builder = Builder([1e6, 1000, 365, 50])
    for v in (1, 2, 3):
        builder.equal(0, v)
    known = [replace(s, upper_bound=s.rows) for s in builder.statistics()]
    for v in unique:
        known[v] = replace(known[v], keys=frozenset({known_column(builder, v)}))
    return builder, known


def test_a_star_with_keys_is_no_larger_than_its_facts() -> None:
    builder, known = star((1, 2, 3))
    estimates = GraphEstimates(builder.graph(), known)
    assert estimates.upper_bound(0b1111) == 1e6
    assert estimates.upper_bound(0b0110) == 365_000  # the dimensions alone are a product
    builder, known = star((1, 2))
    assert GraphEstimates(builder.graph(), known).upper_bound(0b1111) == 5e7


def test_a_chain_of_keys_is_determined_from_its_end() -> None:
    """Sales, customers, cities, countries: the larger customers must not go before what they determine."""
    builder = Builder([1e6, 2000, 300, 10])
    masks = {v: builder.column(v, "key").references for v in (1, 2, 3)}
    for v in (1, 2, 3):
        builder.equal(v - 1, v, builder.column(v - 1, "next"), builder.column(v, "key"))
    known = [replace(s, upper_bound=s.rows, keys=frozenset({masks[v]}) if v else frozenset())
             for v, s in enumerate(builder.statistics())]
    estimates = GraphEstimates(builder.graph(), known)
    assert estimates.upper_bound(0b1111) == 1e6
    assert estimates.upper_bound(0b1110) == 2000
    assert estimates.upper_bound(0b1010) == 20_000


def test_of_two_keys_that_meet_one_stays() -> None:
    builder = Builder([1000.0, 10.0])
    builder.equal(0, 1)
    known = [replace(s, upper_bound=s.rows) for s in builder.statistics()]
    for v in (0, 1):
        known[v] = replace(known[v], keys=frozenset({known_column(builder, v)}))
    assert GraphEstimates(builder.graph(), known).upper_bound(0b11) == 10


def known_column(builder: Builder, vertex: int) -> int:
    return next(iter(builder.columns[vertex].values())).mask


def test_bounds_hold_on_random_rows() -> None:
    """Rows of chains over relations that are unique on a column, counted by joining them."""
    for seed in range(60):
        rng = random.Random(seed)
        n = rng.randint(2, 4)
        tables = []
        for _ in range(n):
            unique, count = rng.random() < 0.5, rng.randint(0, 6)
            keys = rng.sample(range(8), count) if unique else [rng.randrange(4) for _ in range(count)]
            tables.append((unique, [(key, rng.randrange(4)) for key in keys]))  # (key, what refers to the next)
        builder = Builder([float(len(rows)) for _, rows in tables])
        left = [builder.column(v, "key") for v in range(n)]
        right = [builder.column(v, "next") for v in range(n)]
        for v in range(1, n):
            builder.equal(v - 1, v, right[v - 1], left[v])
        masks = [e.references for e in left]
        known = [
            replace(s, upper_bound=s.rows, keys=frozenset({masks[v]}) if tables[v][0] else frozenset())
            for v, s in enumerate(builder.statistics())
        ]
        estimates = GraphEstimates(builder.graph(), known)
        rows = list(tables[0][1])
        for v in range(1, n):
            rows = [(0, there) for _, refers in rows for key, there in tables[v][1] if refers == key]
            assert len(rows) <= estimates.upper_bound((2 << v) - 1), seed
