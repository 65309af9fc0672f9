"""An order leaves out an equality only where others, evaluated in that order, make sure of it.

Every legal order is evaluated over small tables full of NULLs, with the predicates that its joins would be given.
"""

from __future__ import annotations

import random

import pytest

from pyjoinopt.joins.emit.join_predicates import join_predicates, predicates_by_join
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.nodes import FULL, INNER, LEFT, SEMI, Join, LogicalPlan
from tests.oracles.joins.small_worlds import Orders, World, random_tables, same
from tests.support.letters import Letters
from tests.support.regions import region_of


def star(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    a, b, c, d = relations
    return Join(Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("a1 = c1")), d, INNER, w("a1 = d1"))


def cycle(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    a, b, c, d = relations
    joined = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1"))
    return Join(joined, d, INNER, w("c1 = d1 and d1 = a1"))


def through_two_columns(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    """Nothing but d makes both columns of a equal."""
    a, b, c, d = relations
    joined = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1"))
    return Join(joined, d, INNER, w("c1 = d1 and d1 = a2"))


def padded_together(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    """In padded rows both columns are NULL, which is not equal."""
    a, b, c, d = relations
    inside = Join(b, c, INNER, w("b1 = c1"))
    return Join(Join(a, inside, LEFT, w("a2 = b2")), d, INNER, w("d1 = b1 and d1 = c1"))


def padded_on_both_sides(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    a, b, c, d = relations
    return Join(Join(a, b, FULL, w("a2 = b2")), Join(c, d, FULL, w("c2 = d2")), INNER, w("a1 = c1 and a1 = d1"))


def optional(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    a, b, c, d = relations
    joined = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("a1 = c1 and b1 = c1"))
    return Join(joined, d, LEFT, w("a1 = d1 and b1 = d1 and c1 = d1"))


def only_tested(w: Letters, relations: tuple[LogicalPlan, ...]) -> LogicalPlan:
    a, b, c, d = relations
    joined = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("a1 = c1 and b1 = c1"))
    return Join(joined, d, SEMI, w("a1 = d1 and b1 = d1"))


@pytest.mark.parametrize(
    ("make", "fewer"),
    [
        (star, True), (cycle, True), (through_two_columns, True), (padded_together, False),
        (padded_on_both_sides, False), (optional, True), (only_tested, True),
    ],
)  # fmt: skip
def test_every_order_gives_the_written_rows(w: Letters, abcd: tuple[LogicalPlan, ...], make, fewer: bool) -> None:
    plan = make(w, abcd)
    graph, written = build_graph(region_of(plan), {})
    legal = Orders(graph)
    assert graph.allows_order(written)
    assert any(_leaves_some_out(graph, tree) for tree in legal.trees) is fewer
    rng = random.Random(5)
    for _ in range(60):
        world = World(abcd, random_tables(rng, abcd))
        expected, known = world.of_plan(plan), {}
        for tree in legal.trees:
            assert same(legal.rows(world, tree, known), expected), tree.show(graph.names, graph.sign)


def _leaves_some_out(graph, tree: JoinTree) -> bool:
    kept = predicates_by_join(graph, tree)
    return any(
        len(kept[node.relations]) < len(join_predicates(graph, node.left.relations, node.right.relations))
        for node in tree.post_order()
        if node.left is not None and node.right is not None
    )
