"""Joins that keep each row once go on top where that is cheapest, and nowhere else."""

from __future__ import annotations

import random

import pytest

from pyjoinopt.cost import CostModel, COut, SparkCost, Weighted
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.search.choose_order import choose_order
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.lookup_joins import lookup_joins
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.plan.nodes import INNER, LEFT, SEMI, Join, LogicalPlan
from tests.support.letters import Letters
from tests.support.regions import graph_of


class Query:
    """Joins in the order in which they are added; each relation has a unique key and columns that are not unique."""

    def __init__(self, name: str, rows: float) -> None:
        self._w = Letters()
        self._rows: dict[str, float] = {}
        self._distinct: dict[str, float] = {}
        self._columns = 0
        self.plan: LogicalPlan = self._relation(name, rows)

    def _relation(self, name: str, rows: float) -> LogicalPlan:
        self._rows[name] = rows
        return self._w.relation(name, f"{name}_key " + " ".join(f"{name}_{i}" for i in range(40)))

    def join(
        self, name: str, rows: float, on: str, join_type: str = LEFT, unique: bool = True, distinct: float | None = None
    ) -> None:
        """Join a relation by a new column of another one, which has so many distinct values."""
        self._columns += 1
        if distinct is not None:
            self._distinct[f"{on}_{self._columns % 40}"] = distinct
        key = f"{name}_key" if unique else f"{name}_0"
        other = self._relation(name, rows)
        self.plan = Join(self.plan, other, join_type, self._w(f"{on}_{self._columns % 40} = {key}"))

    def context(self, cost: CostModel) -> SearchContext:
        """What the searches read."""
        graph, _, _ = graph_of(self.plan)
        return SearchContext(graph, self._estimates(graph), cost)

    def _estimates(self, graph: JoinGraph) -> GraphEstimates:
        known = []
        for name, plan in zip(graph.names, graph.relations, strict=True):
            rows = self._rows[name]
            columns = {
                a.bit: ColumnStatistics(ndv=rows if "key" in a.name else self._distinct.get(a.name, rows / 10))
                for a in plan.output
            }
            known.append(RelationStatistics(rows, rows * 40, "test", True, columns, unfiltered=rows))
        return GraphEstimates(graph, known)


def drawn(seed: int) -> Query:
    """Random joins of relations that are small enough to be broadcast, most of them left joins to unique keys."""
    rng = random.Random(seed)
    query, names = Query("a", float(rng.choice((500, 4000, 100_000)))), ["a"]
    for name in "bcdefgh"[: rng.randint(3, 7)]:
        join_type = rng.choice((LEFT, LEFT, INNER, INNER, SEMI))
        rows = float(rng.choice((50, 200, 1000, 5000)))
        distinct = rows / 2 if join_type == INNER and rng.random() < 0.7 else None
        query.join(name, rows, rng.choice(names), join_type, rng.random() < 0.8, distinct)
        if join_type != SEMI:
            names.append(name)
    return query


def drawn_star(seed: int) -> Query:
    """Inner joins of a relation with dimensions, most of which keep each row, and joins of these with others."""
    rng = random.Random(seed)
    query, names = Query("a", float(rng.choice((4000, 100_000, 1e6)))), ["a"]
    for name in "bcdefghi":
        rows = float(rng.choice((50, 200, 1000, 5000)))
        distinct = rows * rng.choice((0.5, 0.5, 0.5, 10.0))
        query.join(name, rows, rng.choice((*"aaaaaaaaaaaaaaaaaaaa", *names)), INNER, distinct=distinct)
        names.append(name)
    if rng.random() < 0.3:
        query.join("j", 1000.0, rng.choice(names), rng.choice((INNER, LEFT, SEMI)), unique=rng.random() < 0.5)
    return query


@pytest.mark.parametrize("cost", [COut(), SparkCost(), Weighted()], ids=lambda cost: cost.name)
def test_stars_are_ordered_as_by_the_full_search(cost: CostModel) -> None:
    on_top = 0
    for seed in range(40):
        context = drawn_star(seed).context(cost)
        full, found = exact(context, 100_000, partitioned=True), choose_order(context, 100_000)
        assert full is not None and found.strategy == "exact", seed
        assert context.costs.order(full.tree) <= found.cost * 1.000001 <= context.costs.order(full.tree) * 1.01, seed
        on_top += found.pairs < full.pairs / 2
    assert on_top > 4


@pytest.mark.parametrize(("cost", "most"), [(COut(), 40), (SparkCost(), 40), (Weighted(), 5)])
def test_the_order_is_as_cheap_as_that_of_the_full_search(cost: CostModel, most: int) -> None:
    on_top = below = 0
    for seed in range(150):
        context = drawn(seed).context(cost)
        full = exact(context, 100_000, partitioned=True)
        found = choose_order(context, 100_000)
        assert full is not None and found.strategy == "exact", seed
        assert context.costs.order(full.tree) <= found.cost * 1.000001 <= context.costs.order(full.tree) * 1.01, seed
        assert context.graph.allows_order(found.tree), seed
        lookups = lookup_joins(context, context.graph.everything)
        on_top += bool(lookups) and found.pairs < full.pairs
        below += bool(lookups) and found.pairs == full.pairs
    assert on_top > most and below > 3


def test_a_star_of_left_joins_needs_no_search() -> None:
    query = Query("fact", 1e6)
    for i in range(30):
        query.join(f"d{i}", 100.0 + i, "fact")
    context = query.context(SparkCost())
    found = choose_order(context)
    assert (found.strategy, found.pairs) == ("exact", 30)
    assert context.graph.allows_order(found.tree) and found.tree.relations == context.graph.everything


def test_a_left_join_goes_below_a_join_that_multiplies_rows() -> None:
    query = Query("a", 1000.0)
    query.join("b", 1000.0, "a")
    query.join("c", 50_000.0, "a", INNER, unique=False)
    found = choose_order(query.context(COut()))
    assert found.tree.show("abc") in ("((a ⋈ b) ⋈ c)", "(c ⋈ (a ⋈ b))")


def test_dimensions_that_are_not_filtered_are_joined_last() -> None:
    query = Query("fact", 1e6)
    for i in range(12):
        query.join(f"d{i}", 100.0 + i, "fact", INNER, distinct=90.0)
    for i in range(3):
        query.join(f"f{i}", 10.0 * (i + 1), "fact", INNER, distinct=10_000.0)
    context = query.context(SparkCost())
    assert len(lookup_joins(context, context.graph.everything)) == 12
    found = choose_order(context)
    assert found.strategy == "exact" and found.pairs < 40
    assert found.cost == pytest.approx(min(found.cost, exact(context, 500_000).cost))


def test_a_predicate_over_both_sides_above_the_left_join_keeps_it_in_the_search() -> None:
    w = Letters()
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1 c2")
    plan = Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("a2 = c1 and coalesce(b2, 0) = c2"))
    graph, _, _ = graph_of(plan)
    known = [
        RelationStatistics(100.0, 800.0, "test", True, {x.bit: ColumnStatistics(ndv=100.0) for x in plan.output}, 100.0)
        for plan in graph.relations
    ]
    assert not lookup_joins(SearchContext(graph, GraphEstimates(graph, known), COut()), graph.everything)
