"""Typical mistakes of optimizers that reorder more than inner joins, each under the exact and the greedy search."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys

import pytest

from pyjoinopt.cost import COut
from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.emit.transitive_filters import transitive_filters
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import CROSS, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from tests.oracles.joins.random_plans import Draw
from tests.oracles.joins.small_worlds import Orders, World, random_tables, same
from tests.support.letters import Letters
from tests.support.regions import estimates, predicates_of, region_of

EXACT, GREEDY = 100_000, 0


def check(plan: LogicalPlan, relations: tuple[LogicalPlan, ...], rows: list[float], budget: int) -> LogicalPlan:
    """The plan that the search ends in, after every legal order was seen to give the written rows."""
    region = region_of(plan)
    graph, written = build_graph(region, {})
    legal = Orders(graph)
    assert graph.allows_order(written)
    rng = random.Random(7)
    for _ in range(30):
        world = World(relations, random_tables(rng, relations))
        known: dict[int, list[int]] = {}
        for tree in legal.trees:
            assert same(legal.rows(world, tree, known), world.of_plan(plan)), tree.show(graph.names, graph.sign)
    found = search(graph, estimates(graph, rows), COut(), budget, written)
    assert graph.allows_order(found.tree)
    result = emit(graph, found.tree, region).plan
    assert same(world.of_plan(result), world.of_plan(plan)), show(result)
    return result


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_a_filter_does_not_vanish(budget: int) -> None:
    """Every order contains every written conjunct exactly once, but equalities of columns, which may follow."""
    seen = 0
    for seed in range(150):
        draw = Draw(seed, random.Random(seed).choice((3, 4, 5, 6)))
        region = region_of(draw.plan)
        graph, written = build_graph(region, {})
        implied = [describe(e.predicate) for e in graph.edges if e.implied]
        inherited = [describe(p) for predicates in transitive_filters(graph).values() for p in predicates]
        classes = {describe(e.predicate) for e in graph.edges if e.equality_class >= 0}
        rows = [float(random.Random(f"{seed} {v}").choice((1, 50, 10_000))) for v in range(len(graph))]
        found = search(graph, estimates(graph, rows), COut(), budget, written)
        kept = predicates_of(emit(graph, found.tree, region).plan)
        for predicate in set(predicates_of(draw.plan)) - classes:
            written_or_inherited = predicates_of(draw.plan).count(predicate) + inherited.count(predicate)
            assert kept.count(predicate) == written_or_inherited, (seed, predicate)
        assert not set(kept) - set(predicates_of(draw.plan)) - {*implied, *inherited}
        seen += found.tree.show(graph.names) != written.show(graph.names)
    assert seen > 50


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_one_conjunct_joins_while_the_other_must_wait(w, abcd, budget):
    a, b, c, _ = abcd
    plan = Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("a2 = c1 and b2 <=> c2"))
    result = check(plan, (a, b, c), [1e6, 1e5, 1], budget)
    assert isinstance(result, Filter) and describe(result.condition) == "(b2 <=> c2)"  # a is joined with c first
    assert predicates_of(result) == predicates_of(plan)


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_a_transitive_predicate_does_not_replace_what_it_follows_from(w, abcd, budget):
    a, b, c, d = abcd
    inner = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1"))
    plan = Join(inner, d, LEFT, w("c1 = d1"))
    region = region_of(plan)
    graph, _ = build_graph(region, {})
    assert [describe(e.predicate) for e in graph.edges if e.implied] == ["(a1 = c1)"]  # and none with d
    check(plan, abcd, [10, 1e6, 10, 10], budget)


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_an_inner_join_above_a_left_join_is_not_free(w, abcd, budget):
    a, b, c, _ = abcd
    plan = Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("b2 <=> c2"))
    result = check(plan, (a, b, c), [1e6, 2, 2], budget)
    (left,) = (node for node in post_order(result) if isinstance(node, Join) and node.join_type == LEFT)
    assert not left.right.output_set & c.output_set  # b and c are not joined first, although they are small


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
@pytest.mark.parametrize("kind", [LEFT, FULL])
def test_a_filter_that_keeps_nulls_does_not_enter_the_condition(w, abcd, kind, budget):
    a, b, c, _ = abcd
    plan = Join(Filter(w("a2 <=> b2"), Join(a, b, kind, w("a1 = b1"))), c, INNER, w("a1 = c1"))
    result = check(plan, (a, b, c), [100, 100, 100], budget)
    conditions = [describe(n.condition) for n in post_order(result) if isinstance(n, Join) and n.join_type == kind]
    assert conditions == ["(a1 = b1)"]


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_a_semi_join_is_not_split_by_what_it_compares(w, abcd, budget):
    a, b, c, d = abcd
    inner = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b2 = c1"))
    plan = Join(inner, d, SEMI, w("a2 = d1 and c2 = d2"))
    result = check(plan, abcd, [1e4, 1e4, 1e4, 2], budget)
    semi = [node for node in post_order(result) if isinstance(node, Join) and node.join_type == SEMI]
    assert [describe(node.condition) for node in semi] == ["((a2 = d1) AND (c2 = d2))"]


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_products_of_three_relations_beside_an_outer_join(w, abcd, budget):
    a, b, c, d = abcd
    plan = Join(Join(Join(a, b, CROSS), c, CROSS), d, LEFT, w("a1 = d1"))
    check(plan, abcd, [4, 3, 2, 100], budget)
    plan = Join(d, Join(Join(a, b, CROSS), c, CROSS), FULL, w("a1 = d1"))
    check(plan, abcd, [4, 3, 2, 100], budget)


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
@pytest.mark.parametrize("on", [None, "a1 = 1", "b1 = 1"])
@pytest.mark.parametrize("kind", [LEFT, RIGHT, FULL])
def test_an_outer_join_that_ties_nothing_has_an_order(w, abcd, kind, on, budget):
    a, b, c, _ = abcd
    plan = Join(Join(a, b, kind, w(on) if on else None), c, INNER, w("a2 <=> c1"))
    result = check(plan, (a, b, c), [1e4, 10, 1e6], budget)
    assert predicates_of(result) == sorted(filter(None, (f"({on})" if on else None, "(a2 <=> c1)")))
    assert [n.join_type for n in post_order(result) if isinstance(n, Join) and n.join_type in (LEFT, FULL)] == [
        FULL if kind == FULL else LEFT
    ]


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_each_join_keeps_its_own_way_with_nulls(w, abcd, budget):
    a, b, c, d = abcd
    inner = Join(Join(a, b, INNER, w("a1 <=> b1")), c, LEFT, w("a2 = c1"))
    plan = Join(inner, d, LEFT, w("b2 <=> d1"))
    assert predicates_of(check(plan, abcd, [10, 1e4, 5, 7], budget)) == ["(a1 <=> b1)", "(a2 = c1)", "(b2 <=> d1)"]


@pytest.mark.parametrize("budget", [EXACT, GREEDY])
def test_an_empty_relation_does_not_make_all_orders_equal(w, abcd, budget):
    a, b, c, d = abcd
    plan = Join(Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("a2 = c1")), d, INNER, w("c2 = d1"))
    region = region_of(plan)
    graph, written = build_graph(region, {})
    found = search(graph, estimates(graph, [1e6, 1e6, 1e5, 0]), COut(), budget, written)
    assert found.cost > 0
    first = next(node for node in found.tree.post_order() if not node.is_leaf)
    assert graph.names[3] == "d" and first.relations == 0b1100


@pytest.mark.ci
def test_the_order_of_hash_tables_does_not_show() -> None:
    """The same query in processes whose hash tables run in different orders."""
    program = (
        "from tests.oracles.joins.test_traps import many_orders\n"
        "print(many_orders())"
    )  # fmt: skip
    texts = set()
    for seed in ("0", "1", "4242"):
        ran = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        texts.add(ran.stdout)
    assert len(texts) == 1 and "⟕" in texts.pop()


def many_orders() -> str:
    """The search's results for queries whose relations all look the same."""
    shown = []
    for seed, budget in itertools.product(range(12), (EXACT, GREEDY)):
        draw = Draw(seed, 5, plain=True)
        region = region_of(draw.plan)
        graph, written = build_graph(region, {})
        found = search(graph, estimates(graph, [10.0] * len(graph)), COut(), budget, written)
        shown.append(shown_order(graph, found.tree))
    return "\n".join(shown)


def shown_order(graph: JoinGraph, tree) -> str:
    return tree.show(graph.names, graph.sign)


def test_a_key_that_may_fail_is_computed_for_joined_rows_only() -> None:
    """Spark computes risky(a2) for all rows of its side: `a` must be joined with `c` before `b`."""
    w = Letters()
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1 c2")
    lower = Join(a, c, INNER, w("a1 = c1"))
    for condition, orders in (("c2 = b2 and risky(a2) = b1", 1), ("c2 = b2 and a2 = b1", 3)):
        graph, written = build_graph(region_of(Join(lower, b, INNER, w(condition))), {})
        assert graph.allows_order(written)
        assert len(Orders(graph).trees) == orders


def test_what_spark_infers_from_a_key_that_may_fail_is_no_way_around_it() -> None:
    """From risky(a2) = b1 and b1 = d1 Spark infers risky(a2) = d1: `a` must be joined with `c` before `d`, too."""
    w = Letters()
    a, b, c, d = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1 c2"), w.relation("d", "d1")
    left, right = Join(a, c, INNER, w("a1 = c1")), Join(b, d, INNER, w("b1 = d1"))
    whole = Join(left, right, INNER, w("c2 = b2 and risky(a2) = b1 and c1 = d1"))
    graph, written = build_graph(region_of(whole), {})
    assert graph.allows_order(written)
    vertex = {name: 1 << graph.names.index(name) for name in "abcd"}
    assert not graph.allows(vertex["a"] | vertex["d"]) and not graph.allows(vertex["c"] | vertex["d"])
    assert graph.allows(vertex["a"] | vertex["c"] | vertex["d"])
