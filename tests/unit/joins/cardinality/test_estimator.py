"""Row estimates of sets of relations."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import pytest

from pyjoinopt.estimation.model.histogram import Bin, repeat_share
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.operators import estimate_plan
from pyjoinopt.estimation.plans.selectivity import apply_filter
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.plan.expressions import Expression, call, conjunction, literal
from pyjoinopt.plan.facts.or_extraction import extract_predicate_within
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.util.bitset import members
from tests.support.estimated_tables import KNOWN, ROWS, TABLES, col, eq, leaf, lit
from tests.support.graphs import Builder, random_builder


def group_of(
    plan: LogicalPlan, true_rows: dict[int, float] | None = None
) -> tuple[JoinGraph, GraphEstimates]:
    (region,) = find_groups(plan).groups.values()
    graph, _ = build_graph(region, {})
    return graph, GraphEstimates(graph, [estimate_plan(p, leaf) for p in graph.relations], true_rows=true_rows)


def subsets(mask: int) -> Iterator[int]:
    part = mask
    while part:
        yield part
        part = (part - 1) & mask


def test_foreign_keys_along_a_chain() -> None:
    plan = Join(TABLES["lines"], TABLES["orders"], "Inner", eq("l_order", "o_key"))
    plan = Join(plan, TABLES["customers"], "Inner", eq("o_cust", "c_key"))
    plan = Join(plan, Filter(eq("n_name", lit("GERMANY")), TABLES["nations"]), "Inner", eq("c_nation", "n_key"))
    _, estimates = group_of(plan)
    assert estimates.rows(0b0011) == pytest.approx(ROWS["lines"])
    assert estimates.rows(0b0111) == pytest.approx(ROWS["lines"])
    assert estimates.rows(0b0110) == pytest.approx(ROWS["orders"])
    assert estimates.rows(0b1111) == pytest.approx(ROWS["lines"] / 25)  # one of 25 nations
    assert estimates.rows(0b0101) == pytest.approx(ROWS["lines"] * ROWS["customers"])  # no predicate connects these


def test_true_counts_are_met_and_inherited() -> None:
    plan = Join(TABLES["lines"], TABLES["orders"], "Inner", eq("l_order", "o_key"))
    plan = Join(plan, TABLES["customers"], "Inner", eq("o_cust", "c_key"))
    _, before = group_of(plan)
    # Observed: half of the lines' orders, and for all three a fifth of the estimate for all lines.
    rows = {0b111: ROWS["lines"] / 5, 0b011: ROWS["lines"] / 2}
    _, estimates = group_of(plan, rows)
    assert estimates.rows(0b011) == pytest.approx(ROWS["lines"] / 2)
    assert estimates.rows(0b111) == pytest.approx(ROWS["lines"] / 5)
    assert estimates.rows(0b110) == pytest.approx(before.rows(0b110))
    part = estimates.joined(estimates.joined(estimates.part(0), estimates.part(1)), estimates.part(2))
    assert math.exp(part.log_rows) == pytest.approx(ROWS["lines"] / 5)


def test_filter_on_another_column_leaves_the_key_domain() -> None:
    """A tenth of the orders and a thousandth of the customers: a thousandth of the tenth match."""
    orders = Filter(call("LessThan", col("o_total"), lit(56_720.0)), TABLES["orders"])
    customers = Filter(eq("c_nation", lit(3)), TABLES["customers"])
    plan = Join(
        Join(orders, customers, "Inner", eq("o_cust", "c_key")), TABLES["nations"], "Inner", eq("c_nation", "n_key")
    )
    _, estimates = group_of(plan)
    assert estimates.rows(0b001) == pytest.approx(150_000, rel=0.01)
    assert estimates.rows(0b010) == pytest.approx(6_000)
    assert estimates.rows(0b011) == pytest.approx(6_000, rel=0.01)


def test_composite_key_is_capped() -> None:
    both = conjunction([eq("l_part", "s_part"), eq("l_supp", "s_supp")])
    plan = Join(TABLES["lines"], TABLES["supplies"], "Inner", both)
    plan = Join(plan, TABLES["orders"], "Inner", eq("l_order", "o_key"))
    _, estimates = group_of(plan)
    assert estimates.rows(0b011) == pytest.approx(ROWS["lines"])
    assert estimates.rows(0b111) == pytest.approx(ROWS["lines"])


def test_composite_key_of_three_relations_is_capped_twice() -> None:
    builder = Builder([1e6, 1e5, 2e5])
    for i, j in ((0, 1), (1, 2)):
        for name in ("x", "y"):
            builder.equal(i, j, builder.column(i, name, 1e4), builder.column(j, name, 1e4))
    graph = builder.graph()
    estimates = GraphEstimates(graph, builder.statistics())
    assert estimates.rows(0b011) == pytest.approx(1e6)
    assert estimates.rows(0b111) == pytest.approx(2e6)


def test_keys_that_share_columns_count_alike_in_every_written_order() -> None:
    """A row, the one before it and the one after it: each pair has the columns of the group and its own number.

    A pair is as many rows as there are, and so are all three.
    """
    found = set()
    for order in permutations(["row", "before", "after"]):
        builder = Builder([12_000.0] * 3, order)
        row, before, after = (order.index(name) for name in ("row", "before", "after"))
        for i, j, number in ((row, before, "up"), (row, after, "down")):
            for name, ndv in (("group", 900.0), ("shop", 12.0), (number, 14.0)):
                builder.equal(i, j, builder.column(i, name, ndv), builder.column(j, name, ndv))
        estimates = GraphEstimates(builder.graph(), builder.statistics())
        sets = (1 << row | 1 << before, 1 << row | 1 << after, 0b111)
        found.add(tuple(round(estimates.rows(relations), 3) for relations in sets))
    assert found == {(12_000.0, 12_000.0, 12_000.0)}


def test_equality_class_counts_once() -> None:
    """A.k = B.k, B.k = C.k and A.k = C.k are equivalent to any two of them."""
    for pairs in ([(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]):
        builder = Builder([1000.0, 1000.0, 1000.0])
        for i, j in pairs:
            builder.equal(i, j, builder.column(i, "k", 100.0), builder.column(j, "k", 100.0))
        estimates = GraphEstimates(builder.graph(), builder.statistics())
        assert estimates.rows(0b111) == pytest.approx(1e9 / 1e4)
        assert estimates.rows(0b101) == pytest.approx(1e4)


def test_class_divides_by_the_largest_domains() -> None:
    builder = Builder([1000.0, 1000.0, 1000.0])
    for i, j in [(0, 1), (1, 2)]:
        builder.equal(i, j, *(builder.column(v, "k", (10.0, 200.0, 50.0)[v]) for v in (i, j)))
    estimates = GraphEstimates(builder.graph(), builder.statistics())
    assert estimates.rows(0b011) == pytest.approx(1e6 / 200)
    assert estimates.rows(0b101) == pytest.approx(1e6 / 50)
    assert estimates.rows(0b111) == pytest.approx(1e9 / 200 / 50)


def keyed(column: Expression, rows: float, base: float, **known: object) -> RelationStatistics:
    """A relation of which a filter has left some rows; only one column is known."""
    assert column.attribute is not None
    columns = {column.attribute.bit: ColumnStatistics(**known)}  # type: ignore[arg-type]
    return RelationStatistics(rows, rows * 40, "catalog", False, columns, unfiltered=base)


def test_values_left_after_filters_meet() -> None:
    """A hundred rows refer to a hundred keys at most; these are taken to be among those that the others refer to."""
    builder = Builder([100.0, 1000.0])
    a, b = builder.column(0, "a"), builder.column(1, "b")
    builder.equal(0, 1, a, b)
    known = [keyed(a, 100.0, 1e6, ndv=1e5), keyed(b, 1000.0, 1000.0, ndv=500.0)]
    assert GraphEstimates(builder.graph(), known).rows(0b11) == pytest.approx(100 * 1000 / 500)


def test_filtered_key_keeps_its_share_of_references() -> None:
    """Three of 100 kinds: 3 % of the things, unless many are of one kind that the filter names, or all of ten kinds."""
    builder = Builder([3.0, 1e6])
    kind, of_kind = builder.column(0, "kind"), builder.column(1, "of_kind")
    builder.equal(0, 1, kind, of_kind)

    def rows(named: bool = False, **things: object) -> float:
        known = [
            replace(keyed(kind, 3.0, 100.0, ndv=100.0, key_values=100.0, min=1.0, max=100.0), filtered_by_text=named),
            keyed(of_kind, 1e6, 1e6, **{"min": 1.0, "max": 100.0, **things}),
        ]
        return GraphEstimates(builder.graph(), known).rows(0b11)

    assert rows(ndv=100.0) == pytest.approx(30_000)
    skewed = (Bin(1, 1, 1), Bin(1, 1, 1), Bin(2, 50, 49), Bin(51, 100, 50))
    assert rows(ndv=100.0, bins=skewed) == pytest.approx(30_000)
    evenness = math.log(repeat_share(skewed)) / math.log(1 / 100)  # 0.29: half of the things are of one kind
    assert rows(named=True, ndv=100.0, bins=skewed) == pytest.approx(1e6 * 0.03 ** ((1 + evenness) / 2))
    assert rows(ndv=9.0, min=50.0, max=59.0) == pytest.approx(300_000)  # the ten kinds in use are meant
    assert rows(ndv=3.0, min=10.0, max=59.0) == pytest.approx(30_000)  # the range is useless: it is sparse


def test_values_that_are_frequent_on_both_sides_meet_each_other() -> None:
    """Half of 1,000 rows and a fifth of 2,000 are under 'unknown', 101 values in all: every tenth pair is of these."""
    builder = Builder([1000.0, 2000.0, 101.0])
    a, b, key = (builder.column(v, "k") for v in range(3))
    builder.equal(0, 1, a, b)
    builder.equal(1, 2, b, key)
    known = [
        keyed(a, 1000.0, 1000.0, ndv=101.0, heavy=(("unknown", 0.5), ("x", 0.1))),
        keyed(b, 2000.0, 2000.0, ndv=101.0, heavy=(("unknown", 0.2),)),
        keyed(key, 101.0, 101.0, ndv=101.0, key_values=101.0),
    ]
    # Of the other pairs, 0.5 * 0.8, every hundredth: 0.104 of two million.
    assert GraphEstimates(builder.graph(), known).rows(0b011) == pytest.approx(2e6 * (0.5 * 0.2 + 0.5 * 0.8 / 100))
    assert GraphEstimates(builder.graph(), known).rows(0b111) == pytest.approx(208_000), "each meets one of the key"
    assert GraphEstimates(builder.graph(), known).rows(0b110) == pytest.approx(2000)
    assert a.attribute is not None
    without = apply_filter(known[0], call("Not", call("EqualTo", a, literal("unknown", "string"))))
    assert known[0].columns[a.attribute.bit].heavy and not without.columns[a.attribute.bit].heavy


def test_less_than_one_row_is_still_a_cost() -> None:
    """Both results are almost surely empty, the one more surely than the other."""
    builder = Builder([1.0, 10.0, 100.0])
    key, one, other = builder.column(0, "k"), builder.column(1, "x"), builder.column(2, "y")
    builder.equal(0, 1, key, one)
    builder.equal(0, 2, key, other)
    known = [
        keyed(key, 1.0, 1e4, ndv=1e4, key_values=1e4), keyed(one, 10.0, 1e4, ndv=5e3), keyed(other, 100.0, 1e4, ndv=5e3)
    ]  # fmt: skip
    estimates = GraphEstimates(builder.graph(), known)
    assert estimates.size(0b011).rows == pytest.approx(10 / 1e4)
    assert estimates.size(0b101).rows == pytest.approx(100 / 1e4)
    assert estimates.rows(0b011) == estimates.rows(0b101) == 1


def test_unknown_keys_are_keys_of_the_smaller_side() -> None:
    builder = Builder([1e6, 1000.0])
    builder.equal(0, 1)
    assert GraphEstimates(builder.graph(), builder.statistics()).rows(0b11) == pytest.approx(1e6)


def test_waiting_predicate_takes_nothing_away_before_its_time() -> None:
    builder = Builder([100.0, 100.0, 100.0])
    builder.equal(0, 1, tes=0b111)
    builder.equal(1, 2)
    estimates = GraphEstimates(builder.graph(), builder.statistics())
    assert estimates.rows(0b011) == pytest.approx(10_000)
    assert estimates.rows(0b111) == pytest.approx(100)


def test_null_keys_find_no_partner() -> None:
    builder = Builder([1000.0, 100.0])
    a, b = builder.column(0, "a", 100.0), builder.column(1, "b", 100.0)
    builder.equal(0, 1, a, b)
    known = builder.statistics()
    assert a.attribute is not None
    column = replace(known[0].column(a.attribute.bit), nulls=0.4)
    known[0] = replace(known[0], columns={a.attribute.bit: column})
    assert GraphEstimates(builder.graph(), known).rows(0b11) == pytest.approx(600)


def test_parts_give_the_same_rows_as_sets() -> None:
    """Put together in any order, from any halves: the estimate belongs to the set."""
    for seed in range(200):
        rng = random.Random(seed)
        builder = random_builder(seed)
        graph = builder.graph()
        estimates = GraphEstimates(graph, builder.statistics())
        parts = [estimates.part(v) for v in range(len(graph))]
        while len(parts) > 1:
            a, b = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
            parts.append(estimates.joined(a, b))
            both = parts[-1]
            assert both.relations == a.relations | b.relations
            whole = estimates._sums(both.relations).log_rows
            assert max(0.0, both.log_rows) == pytest.approx(max(0.0, whole), abs=1e-6), seed


def test_a_set_that_grows_is_a_set_all_the_same() -> None:
    """Sums that extend those of a smaller set equal the sums of the set computed directly."""
    for seed in range(200):
        rng = random.Random(seed)
        builder = random_builder(seed)
        graph = builder.graph()
        growing = GraphEstimates(graph, builder.statistics())
        relations = 0
        for vertex in rng.sample(range(len(graph)), len(graph)):
            relations |= 1 << vertex
            alone = GraphEstimates(graph, builder.statistics()).size(relations)
            assert growing.size(relations, 1 << vertex) == pytest.approx(alone, rel=1e-8), seed


def test_rows_are_at_least_one_and_at_most_the_product() -> None:
    for seed in range(100):
        builder = random_builder(seed)
        graph = builder.graph()
        estimates = GraphEstimates(graph, builder.statistics())
        for relations in subsets(graph.everything):
            product = 1.0
            for v in members(relations):
                product *= max(1.0, builder.rows[v])
            assert 1 <= estimates.rows(relations) <= product * (1 + 1e-6), seed
            assert estimates.bytes(relations) == pytest.approx(estimates.rows(relations) * estimates.width(relations))


def test_a_thousand_relations_do_not_overflow() -> None:
    builder = Builder([1e9] * 1000, [f"t{i}" for i in range(1000)])
    estimates = GraphEstimates(builder.graph(), builder.statistics())
    assert 1e290 < estimates.rows(estimates_all := (1 << 1000) - 1) < float("inf")
    assert estimates.statistics(estimates_all).upper_bound == float("inf")


def test_widths_count_needed_columns() -> None:
    plan = Join(TABLES["lines"], TABLES["orders"], "Inner", eq("l_order", "o_key"))
    (region,) = find_groups(plan).groups.values()
    graph, _ = build_graph(region, {})
    known = [KNOWN["lines"], KNOWN["orders"]]
    assert GraphEstimates(graph, known, needed=0).width(0b11) == 8 + 8 + 8  # the keys alone
    assert GraphEstimates(graph, known).width(0b11) > 60


def test_statistics_of_a_set_for_hints() -> None:
    plan = Join(TABLES["customers"], TABLES["nations"], "Inner", eq("c_nation", "n_key"))
    _, estimates = group_of(plan)
    known = estimates.statistics(0b11)
    assert known.rows == pytest.approx(ROWS["customers"])
    assert known.upper_bound == ROWS["customers"] * 25
    assert known.source == "footers" and not known.exact


def test_a_predicate_over_two_relations_is_held_against_the_columns_of_both() -> None:
    """(a = 1 AND b = 2) OR (a = 2 AND b = 1), of 25 values each: twice 1/625 less both at once, of 625 pairs two."""
    builder = Builder([25.0, 25.0])
    a, b = builder.column(0, "a", 25.0), builder.column(1, "b", 25.0)
    either = call("Or", call("And", eq(a, lit(1)), eq(b, lit(2))), call("And", eq(a, lit(2)), eq(b, lit(1))))
    graph = JoinGraph(builder.graph().relations, ("x", "y"), (Edge(either, 0b11, 0b11),), ((), ()))
    assert GraphEstimates(graph, builder.statistics()).rows(0b11) == pytest.approx(2 - 1 / 625)


def test_what_relations_have_passed_of_a_predicate_over_both_counts_once() -> None:
    """The same, with two of 25 values left on either side: still two pairs, within a factor of two."""
    builder = Builder([25.0, 25.0])
    a, b = builder.column(0, "a", 25.0), builder.column(1, "b", 25.0)
    either = call("Or", call("And", eq(a, lit(1)), eq(b, lit(2))), call("And", eq(a, lit(2)), eq(b, lit(1))))
    said = [extract_predicate_within(either, plan.output_set) for plan in builder.graph().relations]
    relations = tuple(Filter(e, plan) for e, plan in zip(said, builder.graph().relations) if e is not None)
    known = [apply_filter(s, plan.condition) for s, plan in zip(builder.statistics(), relations)]
    assert [s.rows for s in known] == pytest.approx([1.96, 1.96])
    graph = JoinGraph(relations, ("x", "y"), (Edge(either, 0b11, 0b11),), ((), ()))
    assert 1.0 < GraphEstimates(graph, known).size(0b11).rows < 4.0
    many = [replace(s, rows=1e4 * s.rows, unfiltered=25e4) for s in known]  # as many values as before
    assert GraphEstimates(graph, many).size(0b11).rows == pytest.approx(2e8, rel=0.01), "not 8 % of it"


def test_the_composite_key_is_not_that_of_a_relation_one_of_whose_columns_would_do() -> None:
    """Returned goods, 1.2 rows an order, refer to sold ones, 12 an order: each to one of them."""
    builder = Builder([28_800.0, 288_000.0])
    for name, ndv in (("order", 24_000.0), ("item", 1800.0)):
        builder.equal(0, 1, builder.column(0, name, ndv), builder.column(1, name, ndv))
    assert GraphEstimates(builder.graph(), builder.statistics()).rows(0b11) == pytest.approx(28_800)


def test_a_numbered_key_is_the_key_even_if_a_smaller_relation_has_no_value_twice() -> None:
    """9,660 customers refer to 192,080 kinds of households, numbered from 1: all find theirs."""
    builder = Builder([9660.0, 192_080.0])
    a, b = builder.column(0, "kind", 9660.0), builder.column(1, "key", 192_080.0)
    builder.equal(0, 1, a, b)
    known = builder.statistics()
    assert a.attribute is not None and b.attribute is not None
    for v, attribute, low, high in ((0, a.attribute, 7, 192_051), (1, b.attribute, 1, 192_080)):
        column = replace(known[v].column(attribute.bit), guessed=True, min=low, max=high)
        known[v] = replace(known[v], columns={attribute.bit: column})
    assert GraphEstimates(builder.graph(), known).rows(0b11) == pytest.approx(9660)
