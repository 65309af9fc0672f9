"""Which orders of a group are legal: each one gives the rows of the written one, and none that does is left out.

**Soundness.** Random queries of up to five relations and every join type, with conditions that keep NULLs, look at
one side only, or are missing; every order that the graph calls legal is worked out over small tables full of NULLs
and duplicates.

**Completeness.** Every order there is, products included, is worked out with its filters in every place they could
have, over many tables; what never differs from the written order is right, and must be legal. Conditions are then `=`
and `<=>` over columns of their own, because an order may also be right by what its conditions say together. Legal
orders are fewer than right ones where

* a condition may fail at run time (both sides stay as written) or reads nothing on a side that is open, the left one
  of a left, semi or anti join (that side stays as written);
* a condition rejects NULLs in a way that `plan.nulls` does not see.

**Whichever way it is written.** A legal order, written down as a query, has as many legal orders as the query that it
comes from, but for the first of these reasons.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from pyjoinopt.joins.edges import build_graph
from pyjoinopt.joins.emit import emit
from pyjoinopt.joins.graph import JoinGraph
from pyjoinopt.joins.tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.show import show
from pyjoinopt.plan.tree import post_order
from pyjoinopt.rules.demote_outer_join import demote_outer_join
from tests.groups.random_plans import TYPES, Draw
from tests.groups.regions import region_of
from tests.groups.small_worlds import Orders, World, halves, random_tables, same
from tests.support.letters import Letters

#: Some chunks have full joins most of all, which are open to nothing.
MOSTLY_FULL = {FULL: 6, LEFT: 2, RIGHT: 1, INNER: 2, SEMI: 1, ANTI: 1}


@pytest.mark.parametrize("chunk", [*range(4), *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(4, 12))])
def test_every_legal_order_gives_the_written_rows(chunk: int) -> None:
    orders = several = 0
    for seed in range(chunk * 150, chunk * 150 + 150):
        rng = random.Random(seed)
        draw = Draw(seed, rng.choice((3, 4, 4, 5)), types=MOSTLY_FULL if chunk % 4 == 3 else TYPES)
        plan = demote_outer_join(draw.plan)
        region = region_of(plan)
        graph, written = build_graph(region, {})
        assert graph.allows_order(written), show(plan)
        legal = Orders(graph)
        orders += len(legal.trees)
        several += len(legal.trees) > 1
        for _ in range(6):
            world = World(draw.relations, random_tables(rng, draw.relations))
            expected = world.of_plan(draw.plan)
            known: dict[int, list[int]] = {}
            for tree in legal.trees:
                assert graph.allows_order(tree)
                rows = legal.rows(world, tree, known)
                assert same(rows, expected), f"{seed}: {tree.show(graph.names, graph.sign)} of\n{show(plan)}"
        for tree in rng.sample(legal.trees, min(3, len(legal.trees))):
            assert same(world.of_plan(emit(graph, tree, region)), expected), seed
    assert several > 60 and orders > 400  # the drawing still draws what this test is about


def test_a_filter_above_many_full_joins_waits_for_them_all(w: Letters) -> None:
    """z may stand in the first join's right side, for it came in with y; so what reads z must wait for that join."""
    x, p, y, z = (w.relation(name, f"{name}1 {name}2") for name in "xpyz")
    joined = Join(Join(Join(x, p, FULL, w("x1 = p1")), y, FULL, w("p2 = y1")), z, FULL, w("y2 = z1"))
    plan = Filter(w("z2 is null"), joined)
    legal = Orders(build_graph(region_of(plan), {})[0])
    assert len(legal.trees) == 5
    rng = random.Random(1)
    for _ in range(200):
        world = World([x, p, y, z], random_tables(rng, [x, p, y, z]))
        assert all(same(legal.rows(world, tree, {}), world.of_plan(plan)) for tree in legal.trees)


# -- completeness ----------------------------------------------------------------------------------------------


class Placement:
    """Operators and filters of a query, and the nodes of an order that could hold them."""

    def __init__(self, draw: Draw, plan: LogicalPlan) -> None:
        self.relations = draw.relations
        self.owner = {a.bit: 1 << v for v, p in enumerate(draw.relations) for a in p.output}
        self.operators: list[tuple[str, Expression, int, int]] = []
        self.filters: list[tuple[Expression, int]] = []
        stack = [plan]
        while stack:
            node = stack.pop()
            stack.extend(node.children)
            if isinstance(node, Filter) or (isinstance(node, Join) and node.join_type == INNER):
                self.filters += [(p, self._reads(p)) for p in conjuncts(node.condition)]
            elif isinstance(node, Join):
                sides = [node.left, node.right] if node.join_type != RIGHT else [node.right, node.left]
                reads = [self._reads(node.condition) & self._members(side) for side in sides]
                kind = LEFT if node.join_type == RIGHT else node.join_type
                self.operators.append((kind, node.condition, reads[0], reads[1]))

    def _reads(self, predicate: Expression) -> int:
        reads = 0
        for bit, vertex in self.owner.items():
            if predicate.references >> bit & 1:
                reads |= vertex
        return reads

    def _members(self, plan: LogicalPlan) -> int:
        found, stack = 0, [plan]
        while stack:
            node = stack.pop()
            stack.extend(node.children)
            found |= next((1 << v for v, known in enumerate(self.relations) if known is node), 0)
        return found

    def of(self, tree: JoinTree) -> Iterator[dict[int, tuple[str, Expression | None, bool, list[Expression]]]]:
        """Per node what it applies, for every way to spread the filters; nothing if the operators cannot be placed."""
        nodes = [node for node in tree.post_order() if not node.is_leaf]
        applied: dict[int, tuple[str, Expression, bool]] = {}
        for kind, predicate, l_reads, r_reads in self.operators:
            node = next(n for n in nodes if not (l_reads | r_reads) & ~n.relations)
            left, right = node.left.relations, node.right.relations
            turned = not l_reads & ~right and not r_reads & ~left
            if node.relations in applied or not (turned or (not l_reads & ~left and not r_reads & ~right)):
                return
            applied[node.relations] = kind, predicate, turned
        places = [[n.relations for n in tree.post_order() if not reads & ~n.relations] for _, reads in self.filters]
        for choice in itertools.product(*places):
            result = {}
            for node in tree.post_order():
                others = [p for (p, _), place in zip(self.filters, choice, strict=True) if place == node.relations]
                kind, on, turned = applied.get(node.relations, (INNER, None, False))
                result[node.relations] = (kind, on, turned, others)
            yield result

    def rows(self, world: World, tree: JoinTree, applied: dict) -> list[int]:
        done: list[list[int]] = []
        for node in tree.post_order():
            kind, on, turned, others = applied[node.relations]
            if node.is_leaf:
                done.append(world.joined(world.rows(node.vertex), [0], INNER, None, others))
                continue
            right, left = done.pop(), done.pop()
            done.append(world.joined(right, left, kind, on, others) if turned else
                        world.joined(left, right, kind, on, others))  # fmt: skip
        return done[0]


def all_trees(relations: int) -> list[JoinTree]:
    if not relations & (relations - 1):
        return [leaf(relations.bit_length() - 1)]
    return [join(a, b) for one, other in halves(relations) for a in all_trees(one) for b in all_trees(other)]


def shape(tree: JoinTree) -> frozenset[int]:
    """What tells orders apart, whichever side is which."""
    return frozenset(node.relations for node in tree.post_order())


def worlds_for(draw: Draw, rng: random.Random, count: int) -> list[World]:
    """Worlds in which rows often meet, and often do not."""
    made = []
    for i in range(count):
        zero, null = ((0.9, 0.05), (0.7, 0.2), (0.45, 0.45), (0.3, 0.6))[i % 4]

        def value(zero: float = zero, null: float = null) -> int | None:
            drawn = rng.random()
            return 0 if drawn < zero else None if drawn < zero + null else 1

        rows = [rng.choice((0, 1, 2, 2, 3)) for _ in draw.relations]
        outputs = (plan.output for plan in draw.relations)
        tables = [[tuple(value() for _ in o) for _ in range(k)] for o, k in zip(outputs, rows, strict=True)]
        made.append(World(draw.relations, tables))
    return made


def right_orders(draw: Draw, plan: LogicalPlan, rng: random.Random, legal: set[frozenset[int]]) -> set[frozenset[int]]:
    """The shapes of all orders that give the written rows in every one of many worlds; doubtful ones in many more."""
    placement = Placement(draw, plan)
    right = {shape(tree): tree for tree in all_trees((1 << len(draw.relations)) - 1)}
    for count in (100, 400, 4000):
        doubtful = {s: tree for s, tree in right.items() if count == 100 or s not in legal}
        if not doubtful:
            break
        made = worlds_for(draw, rng, count)
        made.sort(key=lambda world: -len(world.of_plan(plan)))
        expected = [world.of_plan(plan) for world in made]
        for key, tree in doubtful.items():
            if not any(
                all(same(placement.rows(w, tree, applied), rows) for w, rows in zip(made, expected, strict=True))
                for applied in placement.of(tree)
            ):
                del right[key]
    return set(right)


def legal_orders(draw: Draw, plan: LogicalPlan) -> tuple[set[frozenset[int]], JoinGraph]:
    """The shapes of all orders that are called legal, vertices numbered as the relations of the drawing."""
    region = region_of(plan)
    graph, _ = build_graph(region, {})
    vertex = {name: i for i, name in enumerate("abcdef")}
    number = [vertex[name] for name in graph.names]
    return {shape(tree.renumbered(number)) for tree in Orders(graph).trees}, graph


def kept_as_written(plan: LogicalPlan) -> bool:
    """Does an operator read nothing on its open side?"""
    for node in post_order(plan):
        if isinstance(node, Join) and node.join_type in (LEFT, RIGHT, SEMI, ANTI):
            side = node.right if node.join_type == RIGHT else node.left
            if node.condition is None or not node.condition.references & side.output_set:
                return True
    return False


def test_a_rewritten_query_has_as_many_legal_orders() -> None:
    """Conditions on one side or none at all included."""
    compared = 0
    for seed in range(600):
        rng = random.Random(seed)
        plan = demote_outer_join(Draw(seed, rng.choice((3, 4, 5, 6))).plan)
        if kept_as_written(plan):
            continue
        region = region_of(plan)
        graph, _ = build_graph(region, {})
        legal = Orders(graph).trees
        for tree in rng.sample(legal, min(2, len(legal))):
            again = emit(graph, tree, region)
            others = Orders(build_graph(region_of(again), {})[0]).trees
            assert len(others) == len(legal), f"{seed}\n{show(plan)}\n{show(again)}"
            compared += 1
    assert compared > 700


def compare_with_right_orders(draw: Draw, seed: int) -> int:
    """The number of legal orders, which are all that are right."""
    plan = demote_outer_join(draw.plan)
    legal, graph = legal_orders(draw, plan)
    right = right_orders(draw, plan, random.Random(seed), legal)
    assert legal == right, f"{seed}: {len(legal)} legal, {len(right)} right\n{show(plan)}"
    return len(legal)


@pytest.mark.parametrize("chunk", [0, *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(1, 8))])
def test_every_right_order_is_legal(chunk: int) -> None:
    seeds = range(chunk * 40, chunk * 40 + 40)
    sizes = [random.Random(seed).choice((3, 4, 4, 4, 5)) for seed in seeds]
    assert sum(compare_with_right_orders(Draw(s, n, plain=True), s) for s, n in zip(seeds, sizes, strict=True)) > 100


@pytest.mark.parametrize("chunk", [0, *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(1, 6))])
@pytest.mark.parametrize("types", [{FULL: 1}, {FULL: 3, LEFT: 2, RIGHT: 1, INNER: 1}], ids=["all", "most"])
def test_of_many_full_joins(types: dict[str, int], chunk: int) -> None:
    seeds = range(chunk * 10, chunk * 10 + 10)
    draws = [(seed, Draw(seed, 5 if seed % 3 == 0 else 4, plain=True, types=types)) for seed in seeds]
    assert sum(compare_with_right_orders(draw, seed) for seed, draw in draws) > 20
