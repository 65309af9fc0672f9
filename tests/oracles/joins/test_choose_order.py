"""The searches, compared with an exhaustive one."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace

import pytest

from pyjoinopt.cost import CostModel, COut, SparkCost, Weighted
from pyjoinopt.cost.size import SHUFFLE_HASH
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.choose_order import connected_components, search
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.dphyp import exact
from pyjoinopt.joins.search.dphyp_enumerator import DPhyp
from pyjoinopt.joins.search.greedy import greedy, single_relations
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.joins.search.pair_budget import Exhausted
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.util.bitset import members
from tests.support.graphs import Builder, PassedAfter, best_costs, graph, random_builder, renumbered, with_hash_tables

#: Of sixty graphs each.
CHUNKS = [*range(10), *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(10, 30))]
MODELS: list[CostModel] = [COut(), SparkCost(), SparkCost(executors=50), Weighted()]


def check_tree(graph: JoinGraph, tree: JoinTree) -> None:
    """Every vertex once, and every join of two disjoint sets."""
    leaves = [node.vertex for node in tree.post_order() if node.is_leaf]
    assert sorted(leaves) == list(range(len(graph)))
    assert tree.relations == graph.everything
    for node in tree.post_order():
        if node.left is not None and node.right is not None:
            assert node.relations == node.left.relations | node.right.relations
            assert not node.left.relations & node.right.relations


def cross_products(graph: JoinGraph, tree: JoinTree) -> int:
    """The number of joins in the tree that no edge connects."""
    inner = [(n.left.relations, n.right.relations) for n in tree.post_order() if n.left and n.right]
    return sum(not graph.connected(*sides) for sides in inner)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_exact_search_is_as_cheap_as_trying_everything(chunk: int) -> None:
    wide = loose = hashed = 0
    for seed in range(chunk * 60, chunk * 60 + 60):
        builder = random_builder(seed)
        g = builder.graph()
        for model in MODELS:
            estimates = GraphEstimates(g, builder.statistics())
            if seed % 3 == 0:
                estimates = with_hash_tables(estimates)
            best = best_costs(g, estimates, model)
            hashed += any(estimates.size(s).build == SHUFFLE_HASH for s in best)
            whole = connected_components(g, canonical_order(g, estimates))
            assert sum(whole) == g.everything, seed
            largest = [s for s in best if not any(s != t and not s & ~t for t in best)]
            assert sorted(whole) == sorted(largest), seed
            for block in whole:
                found = exact(SearchContext(g, estimates, model), 100_000, block)
                assert found is not None and found.tree.relations == block, seed
                assert found.cost == pytest.approx(best[block]), seed
                assert JoinCosts(g, estimates, model).order(found.tree) == pytest.approx(best[block]), seed
                assert cross_products(g, found.tree) == 0, seed
            result = search(g, estimates, model)
            check_tree(g, result.tree)
            assert result.strategy == "exact"
            assert cross_products(g, result.tree) <= len(whole) - 1
            if len(whole) == 1:
                assert result.cost == pytest.approx(best[g.everything]), seed
            if len(whole) == 2:
                sizes = [estimates.size(part) for part in (*whole, g.everything)]
                product = min(model.join(*sizes), model.join(sizes[1], sizes[0], sizes[2]))
                assert result.cost == pytest.approx(sum(best[part] for part in whole) + product), seed
        wide += bool(g.wide_edges)
        loose += len(whole) > 1
    assert wide >= 15 and loose >= 3 and hashed >= 40  # the random queries still cover what this test is about


def test_each_pair_is_compared_once() -> None:
    """The known numbers of pairs for a chain, a cycle, a star and a clique of 7 relations."""
    n = 7
    chain = [(i, i + 1) for i in range(n - 1)]
    shapes = {
        (n**3 - n) // 6: chain,
        (n**3 - 2 * n**2 + n) // 2: [*chain, (0, n - 1)],
        (n - 1) * 2 ** (n - 2): [(0, i) for i in range(1, n)],
        (3**n - 2 ** (n + 1) + 1) // 2: list(itertools.combinations(range(n), 2)),
    }
    for pairs, edges in shapes.items():
        for seed in range(5):
            builder = Builder([float(100 + i) for i in range(n)])
            order = random.Random(seed).sample(range(n), n)
            for i, j in edges:
                builder.equal(order[i], order[j])
            g = builder.graph()
            assert search(g, GraphEstimates(g, builder.statistics()), COut()).pairs == pairs


def test_greedy_is_valid_and_never_better_than_exact() -> None:
    for seed in range(150):
        builder = random_builder(seed, connected=True)
        g = builder.graph()
        estimates = GraphEstimates(g, builder.statistics())
        for model in MODELS:
            tree = greedy(SearchContext(g, estimates, COut()), single_relations(canonical_order(g, estimates)))
            check_tree(g, tree)
            assert cross_products(g, tree) == 0, seed
            best = search(g, estimates, model)
            assert JoinCosts(g, estimates, model).order(tree) >= best.cost * (1 - 1e-9), seed
            limited = search(g, estimates, model, budget=0)
            check_tree(g, limited.tree)
            assert limited.cost >= best.cost * (1 - 1e-9), seed


def chain(n: int, seed: int = 1) -> tuple[JoinGraph, GraphEstimates]:
    """A chain with random sizes, its vertices shuffled."""
    rng = random.Random(seed)
    builder = Builder([float(rng.randint(1, 10**6)) for _ in range(n)], [f"t{i}" for i in range(n)])
    order = rng.sample(range(n), n)
    for i, j in itertools.pairwise(order):
        builder.equal(i, j, builder.column(i, None, rng.choice((10.0, 1e3, 1e5))), builder.column(j, None, 1e3))
    return builder.graph(), GraphEstimates(builder.graph(), builder.statistics())


def test_a_spent_budget_leads_to_the_next_rung() -> None:
    g, estimates = chain(13)
    full = search(g, estimates, COut())
    assert full.strategy == "exact" and full.pairs == (13**3 - 13) // 6
    assert search(g, estimates, COut(), budget=full.pairs).strategy == "exact"
    assert exact(SearchContext(g, estimates, COut()), full.pairs - 1) is None
    limited = search(g, estimates, COut(), budget=full.pairs - 1)
    assert limited.strategy == "linearized" and limited.cost >= full.cost * (1 - 1e-9)
    check_tree(g, limited.tree)
    g, estimates = chain(90)
    result = search(g, estimates, COut(), budget=100)
    assert result.strategy == "greedy"
    check_tree(g, result.tree)


def test_a_larger_budget_is_enough_for_longer_lines() -> None:
    builder = Builder([float(10 + i * 7919 % 1000) for i in range(60)], [f"r{i}" for i in range(60)])
    for i, j in itertools.combinations(range(60), 2):
        builder.equal(i, j)
    g = builder.graph()
    estimates = GraphEstimates(g, builder.statistics())
    greedy, linearized = (search(g, estimates, COut(), budget=budget) for budget in (25_000, 100_000))
    assert (greedy.strategy, linearized.strategy) == ("greedy", "linearized")
    assert linearized.cost <= greedy.cost * (1 + 1e-9)
    check_tree(g, linearized.tree)


def test_sparse_graphs_of_some_hundred_relations_stand_in_a_line() -> None:
    g, estimates = chain(160)
    found = search(g, estimates, COut())
    assert found.strategy == "linearized"
    check_tree(g, found.tree)


def test_twelve_relations_are_always_searched_exactly() -> None:
    builder = Builder([10.0] * 9)
    for i, j in itertools.combinations(range(9), 2):
        builder.equal(i, j)
    g = builder.graph()
    estimates = GraphEstimates(g, builder.statistics())
    assert search(g, estimates, COut(), budget=1000).strategy == "exact"  # of 9,330 pairs
    assert search(g, estimates, COut(), budget=500).strategy == "linearized"


def test_the_inlined_loop_is_the_plain_one() -> None:
    """Set by set the same plans, costs and number of pairs; and the same end where the budget is too small."""
    compared = 0
    for seed in range(150):
        builder = random_builder(seed, most=9, connected=True)
        g = builder.graph()
        estimates = GraphEstimates(g, builder.statistics())
        context = SearchContext(g, with_hash_tables(estimates) if seed % 2 else estimates, SparkCost())
        plain, inlined = (DPhyp(context, context.canonical, 10_000, inlined=way) for way in (False, True))
        if not inlined._inlined:
            continue
        plain.run()
        inlined.run()
        assert (plain.cost, plain.half, plain.pairs) == (inlined.cost, inlined.half, inlined.pairs), seed
        compared += inlined.pairs > 20
        for way in (False, True):
            with pytest.raises(Exhausted):
                DPhyp(context, context.canonical, plain.pairs - 1, inlined=way).run()
    assert compared > 30


def test_a_deadline_is_kept() -> None:
    """The search returns a complete order at every fallback level; if it finds none, the written order is used."""
    for builder in (random_builder(5, connected=True), random_builder(44)):
        g = builder.graph()
        estimates = GraphEstimates(g, builder.statistics())
        for patience in (0, 1, 5):
            result = search(g, estimates, COut(), deadline=PassedAfter(patience))
            check_tree(g, result.tree)
    builder = Builder([10.0] * 18)
    for i, j in itertools.combinations(range(18), 2):
        builder.equal(i, j)
    g = builder.graph()
    estimates = GraphEstimates(g, builder.statistics())
    deadline = Deadline(0.2)
    result = search(g, estimates, COut(), 100_000_000, deadline=deadline)
    assert deadline.elapsed < 2.2  # all its 190 million pairs would take minutes
    assert result.strategy == "greedy"  # the line was not gone through, either
    check_tree(g, result.tree)


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_a_large_group_past_its_deadline_stays_as_written(shape: str) -> None:
    builder = Builder([float(10 + i * 7919 % 1000) for i in range(400)], [f"r{i}" for i in range(400)])
    for i in range(1, 400):
        builder.equal(i - 1 if shape == "chain" else 0, i)
    g = builder.graph()
    estimates = GraphEstimates(g, builder.statistics())
    written = leaf(0)
    for i in range(1, 400):
        written = join(written, leaf(i))
    assert search(g, estimates, COut(), written=written).tree.sets != written.sets
    result = search(g, estimates, COut(), written=written, deadline=PassedAfter(0))
    assert result.tree.sets == written.sets
    with pytest.raises(ValueError, match="no order was found"):
        search(g, estimates, COut(), deadline=Deadline(0.0))


def test_same_order_however_the_query_was_written() -> None:
    for seed in range(120):
        builder = random_builder(seed, most=7)
        shuffled = random.Random(-seed).sample(range(len(builder.rows)), len(builder.rows))
        other = renumbered(builder, shuffled)
        for budget in (100_000, 0):
            shown = []
            for b in (builder, other):
                g = b.graph()
                result = search(g, GraphEstimates(g, b.statistics()), SparkCost(), budget)
                shown.append(result.tree.show(g.names))
            assert shown[0] == shown[1], seed


def test_equal_relations_give_one_order() -> None:
    """These relations differ only in their names."""
    trees = set()
    for order in itertools.permutations(range(4)):
        builder = Builder([10.0] * 4, ["ABCD"[v] for v in order])
        for i, j in itertools.combinations(range(4), 2):
            builder.equal(i, j)
        g = builder.graph()
        trees.add(search(g, GraphEstimates(g, builder.statistics()), COut()).tree.show(g.names))
    assert len(trees) == 1


def test_build_side_is_the_smaller() -> None:
    g, estimates = graph("A-B, B-C", [10, 1e6, 1000])
    tree = search(g, estimates, SparkCost()).tree
    for node in tree.post_order():
        if node.left and node.right:
            assert estimates.bytes(node.left.relations) >= estimates.bytes(node.right.relations)


def test_filters_first_in_a_star() -> None:
    """The dimension that keeps fewest rows of the fact table A is joined first: C, of which a filter left 2 in 1000."""
    builder = Builder([1e6, 50.0, 2.0, 5000.0])
    for vertex in (1, 2, 3):
        builder.equal(0, vertex, builder.column(0, f"k{vertex}"), builder.column(vertex))
    known = builder.statistics()
    filtered = [replace(known[v], unfiltered=base) for v, base in enumerate((1e6, 100.0, 1000.0, 5000.0))]
    g = builder.graph()
    estimates = GraphEstimates(g, filtered)
    assert estimates.rows(0b0101) == pytest.approx(2000)
    # D is larger than the relations joined to it, so it is the probe side.
    assert search(g, estimates, COut()).tree.show(g.names) == "(D ⋈ ((A ⋈ C) ⋈ B))"


def test_wide_edge_ties_what_nothing_else_ties() -> None:
    g, estimates = graph("A-B, ABC", [100, 200, 300])
    result = search(g, estimates, COut())
    assert result.strategy == "exact"
    assert result.tree.show(g.names) in ("((B ⋈ A) ⋈ C)", "(C ⋈ (B ⋈ A))")
    assert cross_products(g, result.tree) == 0


def test_wide_edge_alone_needs_one_cross_product() -> None:
    g, estimates = graph("ABC", [1000, 20, 300])
    result = search(g, estimates, COut())
    check_tree(g, result.tree)
    assert cross_products(g, result.tree) == 1  # the smallest two, then the edge connects the third
    assert result.tree.show(g.names) in ("((C ⋈ B) ⋈ A)", "(A ⋈ (C ⋈ B))")


def test_waiting_predicate_is_not_used_before_its_time() -> None:
    """A = B may fail at run time and was written above C: it must not join A to B before C is joined."""
    builder = Builder([100.0, 100.0, 100.0])
    builder.equal(0, 1, required=0b111)
    builder.equal(1, 2)
    g = builder.graph()
    result = search(g, GraphEstimates(g, builder.statistics()), COut())
    first = next(n for n in result.tree.post_order() if not n.is_leaf)
    assert first.relations == 0b110


def test_parts_that_nothing_ties_are_multiplied_whole() -> None:
    g, estimates = graph("A-B, D-E", [1000, 1000, 50, 2000, 2000, 3])
    result = search(g, estimates, COut())
    check_tree(g, result.tree)
    assert result.strategy == "exact"
    assert cross_products(g, result.tree) == 3
    assert {0b000011, 0b011000} <= result.tree.sets


def test_cross_product_of_provably_tiny_relations() -> None:
    """Two one-row relations on a large one: joining the two first touches the large one once."""
    builder = Builder([1e6, 2.0, 2.0])
    builder.equal(0, 1, builder.column(0, "x", 2.0), builder.column(1, None, 2.0))
    builder.equal(0, 2, builder.column(0, "y", 2.0), builder.column(2, None, 2.0))
    g = builder.graph()
    guessed = builder.statistics()
    assert cross_products(g, search(g, GraphEstimates(g, guessed), SparkCost()).tree) == 0
    proved = [guessed[0], *(RelationStatistics(2.0, 80, "local", True, s.columns, 2.0, 2.0) for s in guessed[1:])]
    assert cross_products(g, search(g, GraphEstimates(g, proved), SparkCost()).tree) == 1


def test_empty_relations_do_not_make_all_orders_equal() -> None:
    builder = Builder([0, 1e5, 1e6, 1e5])
    for i in range(3):
        builder.equal(i, i + 1)
    g, known = builder.graph(), builder.statistics()
    known[0] = replace(known[0], unfiltered=1000.0)  # a filter keeps none of a thousand
    for model in MODELS:
        estimates = GraphEstimates(g, known)
        best = search(g, estimates, model)
        worst = join(join(join(leaf(2), leaf(3)), leaf(1)), leaf(0))
        assert best.cost > 0
        assert JoinCosts(g, estimates, model).order(worst) > 2 * best.cost
        first = next(n for n in best.tree.post_order() if not n.is_leaf)
        assert first.relations == 0b0011


def test_written_order_is_priced_by_the_same_model() -> None:
    g, estimates = graph("A-B, B-C", [100, 1000, 100])
    cross = join(join(leaf(0), leaf(2)), leaf(1))
    rows = [estimates.rows(0b101), estimates.rows(0b111)]
    assert rows[0] == pytest.approx(10_000)
    assert JoinCosts(g, estimates, COut()).order(cross) == pytest.approx(sum(rows))
    assert JoinCosts(g, estimates, COut()).order(leaf(0)) == 0


def test_one_and_two_relations() -> None:
    g, estimates = graph("", [5])
    assert search(g, estimates, COut()).tree.is_leaf
    g, estimates = graph("A-B", [5, 50])
    assert search(g, estimates, COut()).tree.show(g.names) == "(B ⋈ A)"


@pytest.mark.parametrize("shape", [*(pytest.param(s, marks=pytest.mark.ci) for s in ("chain", "star")), "tree"])
def test_a_thousand_relations(shape: str) -> None:
    rng = random.Random(3)
    n = 1000
    builder = Builder([float(rng.randint(1, 10**6)) for _ in range(n)], [f"t{i}" for i in range(n)])
    for j in range(1, n):
        builder.equal({"chain": j - 1, "star": 0, "tree": rng.randrange(j)}[shape], j)
    g = builder.graph()
    started = time.process_time()
    result = search(g, GraphEstimates(g, builder.statistics()), SparkCost())
    assert time.process_time() - started < 20  # a quadratic slip takes minutes; about a second is usual
    check_tree(g, result.tree)
    assert result.strategy == "greedy"
    assert cross_products(g, result.tree) == 0


def test_vertices_of_every_set_add_up() -> None:
    g, _ = graph("A-B, C-D", [1, 2, 3, 4])
    assert [list(members(b)) for b in connected_components(g, [0, 1, 2, 3])] == [[0, 1], [2, 3]]
