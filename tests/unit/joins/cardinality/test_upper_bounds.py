"""Proven upper bounds: keys that plans prove, and upper bounds for joins on them."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import pytest

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, FrequencyBound, RelationStatistics
from pyjoinopt.estimation.plans.operators import estimate_plan
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Join, LogicalPlan
from tests.support.estimated_tables import TABLES, eq, leaf
from tests.support.graphs import Builder
from tests.unit.estimation.plans.test_operators import group, node


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


@pytest.mark.parametrize("parts", [0, 1])
def test_bounds_do_not_depend_on_how_relations_are_numbered(parts: int) -> None:
    """Offers are unique by part and supplier, so parts help to determine them, and offers determine parts."""
    rows = {parts: 200.0, 1 - parts: 800.0, 2: 6000.0, 3: 10.0}
    builder = Builder([rows[v] for v in range(4)])
    offers = 1 - parts
    part, supplier = builder.column(parts, "part"), builder.column(3, "supplier")
    offered, offering = builder.column(offers, "part"), builder.column(offers, "supplier")
    builder.equal(2, parts, builder.column(2, "part"), part)
    builder.equal(2, offers, builder.column(2, "part"), offered)
    builder.equal(2, offers, builder.column(2, "supplier"), offering)
    builder.equal(parts, offers, part, offered)
    builder.equal(3, offers, supplier, offering)
    known = [replace(s, upper_bound=s.rows) for s in builder.statistics()]
    known[parts] = replace(known[parts], keys=frozenset({part.references}))
    known[offers] = replace(known[offers], keys=frozenset({offered.references | offering.references}))
    known[3] = replace(known[3], keys=frozenset({supplier.references}))
    estimates = GraphEstimates(builder.graph(), known)
    assert estimates.upper_bound(0b0011) == 800
    assert estimates.upper_bound(0b1011) == 800
    assert estimates.upper_bound(0b1111) == 6000


def test_no_row_meets_an_empty_relation_though_others_determine_it() -> None:
    """No shop passes the filter; each sale has one shop at most, and the addresses are compared with shops only."""
    builder = Builder([1000.0, 0.0, 50.0])
    shop = builder.column(1, "shop")
    builder.equal(0, 1, builder.column(0, "shop"), shop)
    builder.equal(1, 2, builder.column(1, "town"), builder.column(2, "town"))
    known = [replace(s, upper_bound=s.rows) for s in builder.statistics()]
    known[1] = replace(known[1], keys=frozenset({shop.references}))
    estimates = GraphEstimates(builder.graph(), known)
    assert estimates.upper_bound(0b011) == estimates.upper_bound(0b111) == 0.0
    assert estimates.upper_bound(0b101) == 50_000
    assert estimates.rows(0b111) == 1.0


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


def test_no_row_meets_more_rows_than_share_a_value() -> None:
    """1,000 orders, of which at most 3 share a customer, and 20 customers: 60 rows, not 20,000."""
    builder = Builder([1000.0, 20.0, 50.0])
    one, other = builder.column(0, "customer"), builder.column(1, "customer")
    builder.equal(0, 1, one, other)
    builder.equal(1, 2, builder.column(1, "city"), builder.column(2, "city"))
    known = [replace(s, upper_bound=s.rows) for s in builder.statistics()]
    assert one.attribute is not None
    known[0] = replace(known[0], max_rows_per_value={one.attribute.bit: 3.0})
    estimates = GraphEstimates(builder.graph(), known)
    assert estimates.upper_bound(0b011) == estimates.rows(0b011) == 60, "by the counts of values alone it were 1,000"
    assert estimates.upper_bound(0b111) == 60 * 50
    assert estimates.upper_bound(0b101) == 50_000  # the column is not compared here


@pytest.mark.parametrize(("kind", "bound"), [(INNER, 200.0), (LEFT, 200.0), (FULL, math.inf), (SEMI, 100.0)])
def test_joins_of_a_plan_count_shared_values_too(kind: str, bound: float) -> None:
    """Of 100 rows each meets 2 at most; a full join also keeps those of the other side."""
    orders, customers = TABLES["orders"], TABLES["customers"]
    column = bits(orders, "o_cust").bit_length() - 1

    def reported(plan: LogicalPlan) -> RelationStatistics:
        known = replace(leaf(plan), keys=frozenset(), upper_bound=math.inf)
        return replace(known, max_rows_per_value={column: 2.0}) if plan is orders else replace(known, upper_bound=100.0)

    join = Join(customers, orders, kind, eq("c_key", "o_cust"))
    assert estimate_plan(join, reported).upper_bound == bound
    assert not estimate_plan(join, reported).max_rows_per_value  # a join may repeat rows
    assert not estimate_plan(node("Generate", orders), reported).max_rows_per_value


def chain_of(sizes: list[int]) -> tuple[Builder, list[Expression], list[Expression]]:
    """A chain of relations, and for each the columns that the one before and the one after it are compared with."""
    builder = Builder([float(size) for size in sizes])
    left = [builder.column(v, "key") for v in range(len(sizes))]
    right = [builder.column(v, "next") for v in range(len(sizes))]
    for v in range(1, len(sizes)):
        builder.equal(v - 1, v, right[v - 1], left[v])
    return builder, left, right


def test_counts_of_shared_values_hold_on_random_rows() -> None:
    for seed in range(80):
        rng = random.Random(seed)
        n = rng.randint(2, 4)
        tables = [[(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randint(0, 7))] for _ in range(n)]
        builder, left, right = chain_of([len(rows) for rows in tables])
        known = []
        for v, s in enumerate(builder.statistics()):
            most = {}
            for place, e in ((0, left[v]), (1, right[v])):
                if rng.random() < 0.7 and e.attribute is not None:
                    counts = Counter(row[place] for row in tables[v])
                    most[e.attribute.bit] = float(max(counts.values(), default=0))
            known.append(replace(s, upper_bound=s.rows, max_rows_per_value=most))
        estimates = GraphEstimates(builder.graph(), known)
        rows = list(tables[0])
        for v in range(1, n):
            rows = [(0, there) for _, refers in rows for key, there in tables[v] if refers == key]
            assert len(rows) <= estimates.upper_bound((2 << v) - 1), seed


def test_norms_of_frequencies_hold_on_random_rows() -> None:
    """Of filtered relations, too: norms are those of all rows. What is proved does not rest on them."""
    below_products = 0
    for seed in range(150):
        rng = random.Random(seed)
        n = rng.randint(2, 4)
        whole = [[(rng.randrange(5), rng.randrange(5)) for _ in range(rng.randint(1, 12))] for _ in range(n)]
        tables = [[row for row in rows if rng.random() < 0.7] for rows in whole]
        builder, left, right = chain_of([len(rows) for rows in tables])
        known = []
        for v, s in enumerate(builder.statistics()):
            norms, most, keys = {}, {}, set()
            for place, e in ((0, left[v]), (1, right[v])):
                assert e.attribute is not None
                counts = Counter(row[place] for row in whole[v])
                if rng.random() < 0.7:
                    norm = math.sqrt(sum(c * c for c in counts.values()))
                    most_here = rng.choice([norm, float(max(counts.values()))])
                    norms[e.attribute.bit] = FrequencyBound(most_here, rng.choice([norm, math.inf]), 9, True)
                if rng.random() < 0.3:
                    most[e.attribute.bit] = float(max(counts.values()))
                if max(counts.values()) == 1:
                    keys.add(e.references)
            bound = replace(s, upper_bound=s.rows, max_rows_per_value=most, keys=frozenset(keys))
            known.append(replace(bound, frequency_bounds=norms))
        estimates = GraphEstimates(builder.graph(), known)
        without = GraphEstimates(builder.graph(), [replace(s, frequency_bounds={}) for s in known])
        rows = list(tables[0])
        for v in range(1, n):
            rows = [(0, there) for _, refers in rows for key, there in tables[v] if refers == key]
            relations = (2 << v) - 1
            assert len(rows) <= math.ceil(estimates.likely_bound(relations)), seed
            assert estimates.upper_bound(relations) == without.upper_bound(relations)
            assert estimates.likely_bound(relations) <= without.likely_bound(relations)
            below_products += estimates.likely_bound(relations) < without.likely_bound(relations)
    assert below_products > 50


def test_the_norms_of_two_relations_bound_their_join() -> None:
    """40 of a key's rows meet 5,000 rows at most of which 10 share a value; the norm of all of these is 1,000."""
    builder = Builder([40.0, 100_000.0])
    one, other = builder.column(0, "id"), builder.column(1, "ref")
    builder.equal(0, 1, one, other)
    assert one.attribute is not None and other.attribute is not None
    keyed, facts = (replace(s, upper_bound=s.rows) for s in builder.statistics())
    keyed = replace(keyed, keys=frozenset({one.references}))
    facts = replace(facts, frequency_bounds={other.attribute.bit: FrequencyBound(1000.0, 1000.0, 100_000, True)})
    estimates = GraphEstimates(builder.graph(), [keyed, facts])
    assert estimates.upper_bound(0b11) == 100_000, "of a unique key, each row of facts meets one row"
    # A value has 1,000 rows at most, so 40 have 40,000; by the norms it is sqrt(40) * 1,000.
    assert estimates.likely_bound(0b11) == pytest.approx(6325, abs=1)
    bound = estimates.likely(0b11)
    assert bound is not None and (bound.sampled, bound.sketched) == (100_000, True)


def test_a_key_of_several_columns_is_one_key() -> None:
    """Two columns of 1,000 values each, and a relation of 5,000 rows whose key they are: 5,000 keys, not the rows of
    the other one, which is smaller."""
    builder = Builder([2000.0, 5000.0])
    columns = [(builder.column(0, name), builder.column(1, name)) for name in ("part", "supplier")]
    for one, other in columns:
        builder.equal(0, 1, one, other)
    known = []
    for v, s in enumerate(builder.statistics()):
        counted = {e.attribute.bit: ColumnStatistics(ndv=900.0) for pair in columns if (e := pair[v]).attribute}
        known.append(replace(s, upper_bound=s.rows, columns=counted))
    plain = GraphEstimates(builder.graph(), known)
    key = columns[0][1].references | columns[1][1].references
    sure = GraphEstimates(builder.graph(), [known[0], replace(known[1], keys=frozenset({key}))])
    assert (sure.upper_bound(0b11), plain.upper_bound(0b11)) == (2000, 2000 * 5000)
    # 2,000 * 5,000 rows over 5,000 keys; without knowing whose key it is, over the 2,000 rows of the smaller one.
    assert sure.rows(0b11) == pytest.approx(2000) and plain.rows(0b11) == pytest.approx(5000)
