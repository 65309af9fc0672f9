"""Finds the correct orders of a random query: tries all orders, with filters in every place, over many tables."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import INNER, LEFT, RIGHT, Filter, Join, LogicalPlan
from tests.oracles.joins.random_plans import Draw
from tests.oracles.joins.small_worlds import Orders, World, halves, same
from tests.support.regions import region_of


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
        """The predicates of each node, for every placement of the filters; empty if operators cannot be placed."""
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
    """A key that identifies an order, independently of left and right sides."""
    return frozenset(node.relations for node in tree.post_order())


def worlds_for(draw: Draw, rng: random.Random, count: int) -> list[World]:
    """Worlds in which rows often match, and often do not."""
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
