"""The searches over graphs with outer, semi and anti joins, compared with an exhaustive one."""

from __future__ import annotations

import random

import pytest

from pyjoinopt.cost import CostModel, COut, SparkCost
from pyjoinopt.cost.size import SHUFFLE_HASH
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import connected_components, search, with_sides_in_place
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.greedy import MERITS, greedy, single_relations
from pyjoinopt.joins.search.interesting_partitionings import Partitionings
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, LogicalPlan
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join
from tests.oracles.joins.random_plans import Draw
from tests.oracles.joins.small_worlds import Orders
from tests.support.graphs import best_costs, with_hash_tables
from tests.support.regions import estimates, region_of

#: Of 110 graphs each.
CHUNKS = [*range(10), *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(10, 30))]
ROWS = (0, 1, 3, 10, 77, 500, 4000, 100_000)


def drawn(seed: int, most: int) -> tuple[JoinGraph, JoinTree, GraphEstimates]:
    """A random query with every join type: its graph, the written order, and sizes."""
    rng = random.Random(seed)
    draw = Draw(seed, rng.randint(2, most), wide=0.2)
    region = next(r for r in find_groups(draw.plan).groups.values() if r.top is draw.plan)
    graph, written = build_graph(region, {})
    known = []
    for plan in graph.relations:
        rows = float(rng.choice(ROWS))
        columns = {a.bit: ColumnStatistics(ndv=float(rng.choice((1, 5, 100, 10_000)))) for a in plan.output}
        known.append(RelationStatistics(rows, rows * 40, "test", True, columns, unfiltered=rows))
    return graph, written, GraphEstimates(graph, known)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_exact_search_is_as_cheap_as_trying_everything(chunk: int) -> None:
    model: CostModel = (COut(), SparkCost(), SparkCost(executors=50))[chunk % 3]
    types: set[str] = set()
    wide = loose = hashed = 0
    for seed in range(chunk * 110, chunk * 110 + 110):
        graph, written, estimates = drawn(seed, 7 if chunk < 10 else 8)
        if seed % 3 == 0:
            estimates = with_hash_tables(estimates)
        # A plan may be cheaper than the sum of its joins.
        shared = Partitionings(graph, estimates, model).any_shared_key
        assert graph.allows_order(written), seed
        best = best_costs(graph, estimates, model)
        whole = connected_components(graph, canonical_order(graph, estimates))
        for block in whole:
            found = exact(SearchContext(graph, estimates, model), 100_000, block)
            assert (found is None) == (block not in best), seed
            if found is not None:
                assert found.cost == pytest.approx(best[block]), seed
                if not shared:
                    assert JoinCosts(graph, estimates, model).order(found.tree) == pytest.approx(best[block]), seed
        for budget in (100_000, 0):
            result = search(graph, estimates, model, budget, written)
            assert graph.allows_order(result.tree), seed
            assert result.tree.relations == graph.everything
            if graph.everything in best and not shared:
                assert result.cost >= best[graph.everything] * (1 - 1e-9), seed
                if budget > 0:
                    assert result.strategy == "exact" and result.cost == pytest.approx(best[graph.everything]), seed
        types |= {edge.join_type for edge in graph.edges}
        wide += bool(graph.wide_edges)
        loose += len(whole) > 1
        hashed += not shared and any(estimates.size(s).build == SHUFFLE_HASH for s in best)
    assert types == {INNER, LEFT, FULL, SEMI, ANTI} and wide > 40 and loose >= 1 and hashed >= 20


def test_sizes_are_those_of_the_set() -> None:
    """The parts that the greedy search adds up agree with the sets that the exact one looks up."""
    for seed in range(60):
        graph, written, estimates = drawn(seed, 7)
        parts = {}
        for node in written.post_order():
            if node.left is None or node.right is None:
                parts[node.relations] = estimates.part(node.vertex)
                continue
            part = estimates.joined(parts[node.left.relations], parts[node.right.relations])
            parts[node.relations] = part
            assert part.log_rows == pytest.approx(estimates._sums(node.relations).log_rows), seed
            edge = graph.operator(node.left.relations, node.right.relations)
            if edge is not None and edge.join_type in (LEFT, FULL):
                preserved = [node.left] if edge.join_type == LEFT else [node.left, node.right]
                waiting = [e for e in graph.applied_by(node.left.relations, node.right.relations) if e is not edge]
                if not waiting:
                    assert part.log_rows >= max(parts[p.relations].log_rows for p in preserved) - 1e-6, seed


def named(seed: int, plan: LogicalPlan) -> tuple[JoinGroup, JoinGraph, JoinTree, GraphEstimates]:
    """The group of a plan; sizes depend on the names of the relations only."""
    region = region_of(plan)
    graph, written = build_graph(region, {})
    known = []
    for name, source in zip(graph.names, graph.relations, strict=True):
        rng = random.Random(f"{name}{seed}")
        rows = float(rng.choice(ROWS))
        columns = {
            a.bit: ColumnStatistics(ndv=float(rng.choice((1, 5, 100, 10_000))))
            for a in sorted(source.output, key=lambda a: a.bit)
        }
        known.append(RelationStatistics(rows, rows * 40, "test", True, columns, unfiltered=rows))
    return region, graph, written, GraphEstimates(graph, known)


def test_one_order_however_the_query_was_written() -> None:
    """A legal order, written down as a query, has the same legal orders and ends in the same one."""
    compared = 0
    for seed in range(250):
        rng = random.Random(seed)
        draw = Draw(seed, rng.choice((3, 4, 5, 6)), plain=True)
        plan = demote_outer_join(draw.plan).plan
        region, graph, written, estimates = named(seed, plan)
        legal = Orders(graph).trees
        for tree in rng.sample(legal, min(2, len(legal))):
            again = emit(graph, tree, region).plan
            _, other, other_written, other_estimates = named(seed, again)
            assert len(Orders(other).trees) == len(legal), f"{seed}\n{show(plan)}\n{show(again)}"
            for budget in (100_000, 0):
                found = search(graph, estimates, SparkCost(), budget, written)
                new = search(other, other_estimates, SparkCost(), budget, other_written)
                texts = found.tree.show(graph.names, graph.sign), new.tree.show(other.names, other.sign)
                assert texts[0] == texts[1], f"{seed}, budget {budget}\n{show(plan)}\n{show(again)}"
            compared += 1
    assert compared > 250


#: Random queries in which greedy choices reach a dead end, unless the limits of an operator's sides are checked first.
DEAD_ENDS = (15, 42, 47, 53, 61, 104, 137, 151, 181, 214, 247, 257, 264, 297)


@pytest.mark.parametrize("seed", DEAD_ENDS)
def test_greedy_choices_leave_a_way_on(seed: int) -> None:
    rng = random.Random(seed)
    draw = Draw(seed, rng.randint(20, 50), plain=not seed % 2, wide=0.2)
    graph, written = build_graph(region_of(draw.plan), {})
    rows = [float(rng.choice(ROWS)) for _ in graph.relations]
    found = greedy(SearchContext(graph, estimates(graph, rows), COut()), single_relations(range(len(graph))))
    assert found is not None and graph.allows_order(with_sides_in_place(graph, found))


def test_one_order_of_groups_that_are_too_large_to_be_searched() -> None:
    """Three orders, far apart, of one query."""
    orders = 0
    for seed in range(12):
        draw = Draw(seed, random.Random(seed).randint(22, 32), plain=True, types={INNER: 5, LEFT: 5, SEMI: 1})
        region, graph, written, known = named(seed, draw.plan)
        found = search(graph, known, SparkCost(), 0)
        text = found.tree.show(graph.names, graph.sign)
        alone = single_relations(canonical_order(graph, known))
        for notion in MERITS:
            tree = greedy(SearchContext(graph, known, COut()), alone, notion)
            assert tree is not None
            tree = with_sides_in_place(graph, tree)
            assert JoinCosts(graph, known, SparkCost()).order(tree) >= found.cost * (1 - 1e-9)
            again = emit(graph, with_sides_in_place(graph, tree), region).plan
            _, other, _, of_other = named(seed, again)
            assert search(other, of_other, SparkCost(), 0).tree.show(other.names, other.sign) == text, seed
            orders += tree.sets != found.tree.sets
    assert orders > 20
