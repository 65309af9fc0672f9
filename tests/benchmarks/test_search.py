"""The graphs of the search benchmark, the other columns of its table, and Spark's rule in its own process."""

from __future__ import annotations

import pytest

from benchmarks.graphs import SHAPES, catalog, make, pairs_of, sql
from benchmarks.search import peak_memory
from benchmarks.search_quality import ratios
from benchmarks.spark_search import SparkSearch
from pyjoinopt.cost import COut
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.search.choose_order import connected_components

EDGES = {"chain": 15, "cycle": 16, "star": 15, "snowflake": 15, "clique": 120, "grid": 24}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_hangs_together_and_has_its_edges(shape: str) -> None:
    graph, statistics = make(shape, 16)
    estimates = GraphEstimates(graph, statistics)
    assert connected_components(graph, canonical_order(graph, estimates)) == [graph.everything]
    assert len(graph.edges) == EDGES.get(shape, len(graph.edges)) >= 15
    assert all(0 < s.columns[a.bit].ndv <= s.rows for r, s in zip(graph.relations, statistics) for a in r.output)


def test_a_seed_draws_the_same_graph_again_and_another_one_another() -> None:
    assert make("chain", 9, 3)[1] == make("chain", 9, 3)[1] != make("chain", 9, 4)[1]
    assert list(pairs_of("random", 12, 1)) == list(pairs_of("random", 12, 1)) != list(pairs_of("random", 12, 2))


def test_as_sql() -> None:
    graph, statistics = make("chain", 3)
    assert sql(graph) == "SELECT * FROM t0, t1, t2 WHERE t0.k1 = t1.k0 AND t1.k2 = t2.k1"
    tables = catalog(graph, statistics)
    assert list(tables) == ["t0", "t1", "t2"] and tables["t0"]["rows"] == 1000
    assert tables["t1"]["columns"] == {
        "k0": {"type": "bigint", "nulls": 0, "min": 1, "max": 8919, "distinct": 4459},
        "k2": {"type": "bigint", "nulls": 0, "min": 1, "max": 8919, "distinct": 2973},
    }


def test_peak_memory_grows_with_what_is_remembered() -> None:
    small, large = (peak_memory("star", n, COut(), 25_000) for n in (4, 10))
    assert 0 < small < large < 10_000_000


@pytest.mark.parametrize("shape", SHAPES)
def test_no_quicker_search_is_better_than_the_exact_one(shape: str) -> None:
    for seed in range(3):
        found = ratios(shape, 9, COut(), seed)
        assert found is not None
        greedy, polished, linear = found
        assert greedy >= polished * (1 - 1e-9) and polished >= linear * (1 - 1e-9) and linear >= 1 - 1e-9


@pytest.mark.slow
@pytest.mark.jvm
def test_sparks_rule_in_its_own_process_and_its_end() -> None:
    requested = SparkSearch(20)
    try:
        small, large = requested.seconds("star", 5, 2), requested.seconds("star", 9, 2)
        assert small is not None and large is not None and 0 < small < large
        requested._limit = 0.05
        assert requested.seconds("clique", 10, 1) is None and requested._process is None
    finally:
        requested.close()
