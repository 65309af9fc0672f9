"""Which sets of relations have the least certain estimates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.cost.size import BROADCAST_HASH
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.hints.buildable_sides import BuildableSides
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Partner, Synopsis
from pyjoinopt.joins.cardinality.weakest_estimates import Assumptions, weakest_sets
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from tests.support.graphs import Builder

A, B, C, D = 1, 2, 4, 8


def chain() -> tuple[JoinGraph, list[RelationStatistics]]:
    """A - B by two columns, B - C by one of unknown values, C - D by a proven key of D."""
    builder = Builder([1000.0, 1000.0, 1000.0, 1000.0])
    for _ in range(2):
        builder.equal(0, 1, builder.column(0, None, 50.0), builder.column(1, None, 50.0))
    builder.equal(1, 2)
    key = builder.column(3, "id", 1000.0)
    builder.equal(2, 3, builder.column(2, None, 50.0), key)
    statistics = builder.statistics()
    assert key.attribute is not None
    statistics[3] = replace(statistics[3], keys=frozenset({key.attribute.mask}))
    return builder.graph(), statistics


def test_assumptions_are_counted() -> None:
    graph, statistics = chain()
    count = Assumptions(graph, statistics)
    assert count(A | B) == 3, "two counts of distinct values, and that they are independent"
    assert count(B | C) == 2, "a default selectivity"
    assert count(C | D) == 0, "a proven key"
    assert count(A | B | C) == 6
    assert count(B | C | D) == 3


@pytest.mark.parametrize(("source", "more"), [("size", 1), ("default", 2), ("footers", 0), ("feedback", 0)])
def test_rows_of_unknown_relations_are_assumed(source: str, more: int) -> None:
    graph, statistics = chain()
    count = Assumptions(graph, [replace(statistics[0], source=source), *statistics[1:]])
    assert count(A | B) == 3 + more


def test_what_was_counted_needs_no_assumption() -> None:
    graph, statistics = chain()
    statistics[0] = replace(statistics[0], source="default")
    count = Assumptions(graph, statistics, frozenset({A | B}))
    assert count(A | B) == 0
    assert count(A | B | C) == 3, "of the join with C, and that it is independent of A ⋈ B"
    assert count(B | C) == 2


def test_a_sample_of_a_join_needs_none() -> None:
    graph, statistics = chain()
    sample = Synopsis(B, 100, False, 0, (), (Partner(C, B, 0),))
    count = Assumptions(graph, statistics, synopses=[sample])
    assert count(B | C) == 0 and count(A | B) == 3


def test_implied_equalities_are_not_counted_twice() -> None:
    builder = Builder([10.0, 10.0, 10.0])
    columns = [builder.column(v, "k", 5.0) for v in range(3)]
    for i, j in ((0, 1), (1, 2), (0, 2)):
        builder.equal(i, j, columns[i], columns[j])
    builder.edges = [replace(edge, equality_class=0, implied=n == 2) for n, edge in enumerate(builder.edges)]
    count = Assumptions(builder.graph(), builder.statistics())
    assert count(A | C) == 1 and count(A | B | C) == 3


def test_the_weakest_sets() -> None:
    graph, statistics = chain()
    found = weakest_sets(graph, GraphEstimates(graph, statistics))
    assert list(found) == [(A | B, 3), (B | C, 2), (A | B | C, 6), (B | C | D, 3)]
    counted = GraphEstimates(graph, statistics, true_rows={A | B: 10.0, A | B | C: 5.0})
    assert list(weakest_sets(graph, counted)) == [(B | C, 2), (B | C | D, 3)]
    assert list(weakest_sets(graph, GraphEstimates(graph, statistics), most=2)) == [(A | B, 3), (B | C, 2)]


def test_sets_are_excluded_while_they_are_read() -> None:
    graph, statistics = chain()
    excluded: list[int] = []
    found = []
    for relations, _ in weakest_sets(graph, GraphEstimates(graph, statistics), (), excluded.__contains__):
        found.append(relations)
        excluded += [A | B | C] if relations == A | B else []
    assert found == [A | B, B | C, B | C | D]


def test_only_sets_that_an_order_may_make() -> None:
    graph, statistics = chain()
    graph.co_required = ((A, A | B | C),)
    found = weakest_sets(graph, GraphEstimates(graph, statistics))
    assert [relations for relations, _ in found] == [B | C, A | B | C, B | C | D]


class TestAssuming:
    def test_larger_sets_inherit_it(self) -> None:
        graph, statistics = chain()
        known = GraphEstimates(graph, statistics)
        other = known.assuming(B | C, 0.1)
        for relations, factor in ((B | C, 0.1), (A | B | C, 0.1), (graph.everything, 0.1), (A | B, 1.0), (C | D, 1.0)):
            assert other.size(relations).rows == pytest.approx(factor * known.size(relations).rows, rel=1e-6)

    def test_what_was_counted_stays(self) -> None:
        graph, statistics = chain()
        other = GraphEstimates(graph, statistics, true_rows={A | B | C: 77.0}).assuming(B | C, 100.0)
        assert other.size(A | B | C).rows == pytest.approx(77.0)
        again = GraphEstimates(graph, statistics, true_rows={B | C: 5.0}).assuming(B | C, 100.0)
        assert again.size(B | C).rows == pytest.approx(5.0)

    def test_bounds_and_what_may_be_built_stay(self) -> None:
        """A side that may be large is not built, however few rows are assumed of it."""
        graph, statistics = chain()
        statistics = [replace(known, upper_bound=known.rows) for known in statistics]
        conf = {"spark.sql.autoBroadcastJoinThreshold": "100000", "spark.sql.adaptive.enabled": "false"}
        rule = BuildableSides([1e12] * 4, JoinConf.of(conf), MemoryAllowance(8.0, 8.0))
        known = GraphEstimates(graph, statistics, buildable=rule)
        other = known.assuming(B | C, 1e-6)
        for relations in range(1, graph.everything + 1):
            assert other.upper_bound(relations) == known.upper_bound(relations)
            assert other.likely_bound(relations) == known.likely_bound(relations)
        assert other.size(B | C).bytes < 100_000 and other.size(B | C).build < BROADCAST_HASH
