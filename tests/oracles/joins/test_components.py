"""Unconnected components: each gets its best order, and cross products join only whole components.

By design products come last, so the search is compared with an exhaustive search inside components, and then with every
order of whole components. If there are more than six, the two parts with the fewest rows are joined repeatedly.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest

from pyjoinopt.cost import CostModel, COut, SparkCost, Weighted
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.search.choose_order import connected_components, search
from pyjoinopt.joins.search.interesting_partitionings import Partitionings
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join
from tests.support.graphs import best_costs, join_cost, with_hash_tables
from tests.support.graphs import graph as graph_of
from tests.support.letters import Letters
from tests.support.regions import region_of

MODELS: tuple[CostModel, ...] = (COut(), SparkCost(), SparkCost(executors=50), Weighted())


def drawn(seed: int) -> tuple[JoinGraph, GraphEstimates]:
    """Blocks of one to three relations, joined in any way; now and then a predicate that reads three of them."""
    rng = random.Random(seed)
    letters, names = Letters(), iter("abcdefghijkl")

    def block(n: int) -> tuple[LogicalPlan, list[str]]:
        if n == 1:
            name = next(names)
            return letters.relation(name, f"{name}0 {name}1"), [name]
        cut = rng.randint(1, n - 1)
        (left, l_seen), (right, r_seen) = block(cut), block(n - cut)
        kind = rng.choices((INNER, LEFT, FULL, SEMI, ANTI), (5, 3, 2, 1, 1))[0]
        on = letters(f"{column(l_seen)} = {column(r_seen)}")
        return Join(left, right, kind, on), l_seen if kind in (SEMI, ANTI) else l_seen + r_seen

    def column(seen: list[str]) -> str:
        return f"{rng.choice(seen)}{rng.randint(0, 1)}"

    drawings = [block(rng.choice((1, 1, 2, 2, 3))) for _ in range(rng.choice((3, 3, 4)))]
    plan = drawings[0][0]
    for other, _ in drawings[1:]:
        plan = Join(plan, other, INNER, None)
    if rng.random() < 0.25:
        x, y, z = (column(seen) for _, seen in rng.sample(drawings, 3))
        plan = Filter(letters(f"coalesce({x}, {y}) = {z}"), plan)
    graph, _ = build_graph(region_of(demote_outer_join(plan).plan), {})
    known = []
    for source in graph.relations:
        rows = float(rng.choice((0, 1, 3, 10, 77, 500, 4000, 100_000)))
        columns = {a.bit: ColumnStatistics(ndv=float(rng.choice((1, 5, 100, 10_000)))) for a in source.output}
        known.append(RelationStatistics(rows, rows * 40, "test", True, columns, unfiltered=rows))
    return graph, GraphEstimates(graph, known)


def all_products(graph: JoinGraph, estimates: GraphEstimates, model: CostModel, parts: Sequence[int]) -> float:
    """The cost of the best order of whole components, without the components' own cost."""
    if len(parts) == 1:
        return 0.0
    costs = []
    for one, other in combinations(parts, 2):
        rest = [part for part in parts if part not in (one, other)]
        costs.append(
            join_cost(graph, estimates, model, one, other)
            + all_products(graph, estimates, model, [*rest, one | other])
        )  # fmt: skip
    return min(costs)


def smallest_first(graph: JoinGraph, estimates: GraphEstimates, model: CostModel, parts: Sequence[int]) -> set[float]:
    """The cost of repeatedly joining the two smallest parts, for every way to choose among equals."""
    if len(parts) == 1:
        return {0.0}
    pairs = list(combinations(parts, 2))
    tied = [pair for pair in pairs if graph.connected(*pair)]
    rows = {
        (one, other): [estimates.size(one | other).rows] if tied
        else sorted((estimates.size(one).rows, estimates.size(other).rows))
        for one, other in tied or pairs
    }  # fmt: skip
    least = min(rows.values())
    costs = set()
    for (one, other), own in rows.items():
        if own == pytest.approx(least, rel=1e-8):
            rest = [part for part in parts if part not in (one, other)]
            cost = join_cost(graph, estimates, model, one, other)
            costs |= {cost + more for more in smallest_first(graph, estimates, model, [*rest, one | other])}
    return costs


@pytest.mark.parametrize("model", MODELS, ids=["rows", "spark", "fifty executors", "weighted"])
def test_whole_blocks_are_multiplied_in_the_best_order(model: CostModel) -> None:
    drawn_of: Counter[str] = Counter()
    for seed in range(500):
        graph, estimates = drawn(seed)
        if seed % 3 == 0:
            estimates = with_hash_tables(estimates)
        if Partitionings(graph, estimates, model).any_shared_key:
            continue  # costs are not those of sets then
        whole = connected_components(graph, canonical_order(graph, estimates))
        best = best_costs(graph, estimates, model)
        assert sum(whole) == graph.everything and all(block in best for block in whole), seed
        result = search(graph, estimates, model)
        assert result.strategy == "exact" and graph.allows_order(result.tree), seed
        assert set(whole) <= {node.relations for node in result.tree.post_order()}, seed
        inside = sum(best[block] for block in whole)
        assert result.cost == pytest.approx(inside + all_products(graph, estimates, model, whole)), seed
        drawn_of.update([f"{len(whole)} blocks", *{edge.join_type for edge in graph.edges}])
        drawn_of.update({"hashed": seed % 3 == 0, "wide": bool(graph.wide_edges)})
    assert drawn_of["3 blocks"] > 200 and drawn_of["4 blocks"] > 80, drawn_of
    assert min(drawn_of[what] for what in (INNER, LEFT, FULL, SEMI, ANTI, "hashed", "wide")) > 40, drawn_of


@pytest.mark.parametrize("seed", range(20))
def test_many_blocks_are_multiplied_the_smallest_first(seed: int) -> None:
    rng = random.Random(seed)
    graph, estimates = graph_of("", [float(rng.randint(1, 1000)) for _ in range(rng.randint(7, 9))])
    costs = smallest_first(graph, estimates, COut(), [1 << v for v in range(len(graph))])
    assert any(search(graph, estimates, COut()).cost == pytest.approx(cost) for cost in costs)
