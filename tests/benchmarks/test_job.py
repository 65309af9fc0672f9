"""The grading of join orders, on three tables small enough to count by hand."""

from __future__ import annotations

import pytest

from benchmarks import grading, injection, job
from pyjoinopt.cost import SparkCost
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, Size
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.join_tree import join, leaf
from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import relation

ENTRY = {
    "name": "toy",
    "sql": "SELECT MIN(c.x) AS from_c\nFROM big AS b,\n     some AS s,\n     few AS c\nWHERE b.k = s.k AND s.j = c.j;",
    "cards": {"b": 500_000, "s": 40_000, "c": 10, "b,s": 2_000_000, "c,s": 5_000, "b,c,s": 20_000},
    "pg_est": {"b": 500_000, "s": 40_000, "c": 10, "b,s": 900, "c,s": 1_000, "b,c,s": 20_000},
}
BIG, SOME, FEW = 0b001, 0b010, 0b100


@pytest.fixture
def planned() -> job.Planned:
    """big - some - few, with column statistics that are correct for `some` and `few`, and wrong for `big`."""
    columns = [Attribute(i, i, name, "int") for i, name in enumerate(("k", "k", "j", "j"))]
    k, k2, j2, j = map(reference, columns)
    edges = (
        Edge(call("EqualTo", k, k2), BIG | SOME, BIG | SOME, ((BIG, k), (SOME, k2))),
        Edge(call("EqualTo", j2, j), SOME | FEW, SOME | FEW, ((SOME, j2), (FEW, j))),
    )
    relations = (relation("big", columns[:1]), relation("some", columns[1:3]), relation("few", columns[3:]))
    statistics = [
        RelationStatistics(10.0, 80.0, "catalog", columns={0: ColumnStatistics(ndv=10.0)}, unfiltered=500_000.0),
        RelationStatistics(
            40_000.0, 480_000.0, "catalog", unfiltered=40_000.0,
            columns={1: ColumnStatistics(ndv=10_000.0), 2: ColumnStatistics(ndv=80.0)},
        ),
        RelationStatistics(10.0, 80.0, "catalog", columns={3: ColumnStatistics(ndv=10.0)}, unfiltered=10.0),
    ]  # fmt: skip
    return job.Planned(job.query(ENTRY), JoinGraph(relations, ("b", "s", "c"), edges, ((), (), ())), statistics)


def test_tables_are_numbered_as_from_has_them() -> None:
    toy = job.query(ENTRY)
    assert toy.aliases == ("b", "s", "c")
    assert toy.cards == {
        BIG: 500_000, SOME: 40_000, FEW: 10, BIG | SOME: 2_000_000, SOME | FEW: 5_000, BIG | SOME | FEW: 20_000
    }  # fmt: skip


def test_c_out_and_the_cheapest_order() -> None:
    cards = job.query(ENTRY).cards
    as_written = join(join(leaf(0), leaf(1)), leaf(2))
    better = join(leaf(0), join(leaf(1), leaf(2)))
    assert grading.c_out(as_written, cards.__getitem__) == 2_020_000
    assert grading.c_out(better, cards.__getitem__) == grading.cheapest(cards) == 25_000


def test_cheapest_order_may_be_bushy() -> None:
    """A chain a - b - c - d whose ends are selective and whose middle is not."""
    cards = {0b0001: 10, 0b0010: 10, 0b0100: 10, 0b1000: 10}
    cards |= {0b0011: 7, 0b0110: 1_000, 0b1100: 5, 0b0111: 900, 0b1110: 800, 0b1111: 3}
    assert grading.cheapest({tables: float(rows) for tables, rows in cards.items()}) == 7 + 5 + 3


def test_orders_are_graded_by_what_they_cost_in_truth(planned: job.Planned) -> None:
    assert job.grade_written(planned) == pytest.approx(2_020_000 / 25_000)
    # By the statistics b ⋈ s has 10 * 40,000 / 10,000 = 40 rows and s ⋈ c has 40,000 * 10 / 80 = 5,000.
    assert job.grade(planned, planned.statistics) == pytest.approx(2_020_000 / 25_000)
    # With 500,000 rows of b it has 500,000 * 40,000 / 10,000 = 2,000,000.
    assert job.grade(planned, planned.known_counts()) == 1
    # 900 + 20,000 looks better than 1,000 + 20,000.
    assert job.grade_given(planned, planned.query.estimated) == pytest.approx(2_020_000 / 25_000)


def test_orders_are_graded_by_the_default_model_too(planned: job.Planned) -> None:
    rows = {**planned.query.cards}
    width = GraphEstimates(planned.graph, planned.statistics).width

    def size(tables: int) -> Size:
        bytes = rows[tables] * width(tables)
        return Size(rows[tables], bytes, BROADCAST_HASH if bytes <= job.THRESHOLD else NO_BUILD)

    def cost(first: int, then: int) -> float:
        left, right = (part for part in (BIG, SOME, FEW) if part & first)
        lower = SparkCost().join(size(left), size(right), size(first))
        return lower + SparkCost().join(size(first), size(then), size(first | then))

    written, best = cost(BIG | SOME, FEW), cost(SOME | FEW, BIG)
    assert job.grade_written_by_model(planned) == pytest.approx(written / best)
    assert written / best > 1.5
    assert job.grade_by_model(planned, planned.known_counts()) == 1
    assert job.grade_model(planned) == 1  # the estimates of its statistics prefer the written order
    assert job.grade_by_default(planned, SparkCost(), planned.statistics) > 1
    assert grading.share_of_best([1, 1, written / best]) == pytest.approx(2 / 3)


def test_q_errors(planned: job.Planned) -> None:
    errors = dict(zip(planned.query.cards, job.q_errors(planned, planned.statistics)))
    assert errors[BIG] == pytest.approx(50_000) and errors[SOME] == pytest.approx(1)
    assert errors[SOME | FEW] == pytest.approx(1)
    assert errors[BIG | SOME] == pytest.approx(2_000_000 / 40)
    assert grading.q_error(0.001, 0) == 1


def test_true_rows_of_sets_without_a_count() -> None:
    """Two tables that refer to one film, of which a fourth is left; and a table that nothing connects with them."""
    a, film, b, x = (reference(Attribute(i, i, name, "int")) for i, name in enumerate(("a", "film", "b", "x")))
    tables = [relation(e.attribute.name, [e.attribute]) for e in (a, film, b, x)]
    edges = [
        Edge(call("EqualTo", one, other), sides, sides, ((left, one), (right, other)), implied=implied)
        for one, other, left, right, implied in ((a, film, 1, 2, False), (film, b, 2, 4, False), (a, b, 1, 4, True))
        for sides in [left | right]
    ]
    statistics = [RelationStatistics(1.0, 8.0, unfiltered=rows) for rows in (100.0, 40.0, 200.0, 5.0)]
    cards = {1: 100.0, 2: 10.0, 4: 200.0, 8: 5.0, 3: 30.0, 6: 50.0, 7: 120.0}
    graph = JoinGraph(tuple(tables), tuple("afbx"), tuple(edges), ((),) * 4)
    found = job.Planned(job.Query("films", "", tuple("afbx"), cards, {}), graph, statistics)
    true = job.TrueRows(found, cards)
    assert true(0b011) == 30
    assert true(0b101) == 120 * 4
    assert true(0b1101) == 120 * 4 * 5
    assert true(0b1111) == 120 * 5


def test_floor_and_summary() -> None:
    assert grading.times_worse(900, 1) == 1
    assert grading.times_worse(5_000, 1) == 5
    assert grading.times_worse(5_000, 2_500) == 2
    figures = grading.summary([1.0] * 8 + [10.0, 100.0])
    assert figures == pytest.approx((10 ** (3 / 10), 1.0, 100.0, 100.0))


def test_deciles_become_bins_with_as_many_values_as_there_are() -> None:
    bins = [(90.0, 1000.0), (1.0, 1.0), (1.0, 2.0), (2.0, 90.0)]
    assert injection.spread(203, bins) == [111, 1, 2, 89]  # the narrow bins are full, the wide one has the rest
    assert injection.spread(103, bins) == [50, 1, 2, 50]  # evenly, where there is room
