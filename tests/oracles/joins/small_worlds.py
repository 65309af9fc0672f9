"""Evaluates joins over a few rows in plain Python, with three-valued logic: the actual result of a join order.

A row of a join is one int: the digit of relation *v* (four bits) is 1 + the number of its row there, or 0 where the
relation is missing or padded. So joining two rows is `|`, and a condition's value depends only on the digits of the
relations that it reads, so it is stored as a table. Rows of one relation with equal values stay distinct, as if every
relation had a key in the result: orders that agree here agree on every choice of columns.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from pyjoinopt.joins.emit.join_predicates import predicates_by_join
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import Expression, walk
from pyjoinopt.plan.nodes import ANTI, FULL, INNER_LIKE, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan

WIDTH = 4
Value = int | None
Table = list[tuple[Value, ...]]


def answer(e: Expression, values: dict[int, Value]) -> Value | bool:
    """The value of an expression over column values; comparisons give True, False or None."""
    done: list = []
    for part in walk(e):
        n = len(part.children)
        args = done[len(done) - n :]
        del done[len(done) - n :]
        done.append(_apply(part, args, values))
    return done[0]


def _apply(e: Expression, args: list, values: dict[int, Value]) -> Value | bool:
    match e.kind:
        case "AttributeReference":
            return values[e.attribute.bit]
        case "Literal":
            return e.value
        case "And":
            return False if False in args else None if None in args else True
        case "Or":
            return True if True in args else None if None in args else False
        case "IsNull":
            return args[0] is None
        case "IsNotNull":
            return args[0] is not None
        case "EqualNullSafe":
            return args[0] == args[1]
        case "Coalesce":
            return next((a for a in args if a is not None), None)
    if None in args:
        return None
    match e.kind:
        case "Not":
            return not args[0]
        case "EqualTo":
            return args[0] == args[1]
        case "LessThan":
            return args[0] < args[1]
        case "Add":
            return args[0] + args[1]
    raise NotImplementedError(e.kind)


class World:
    """Rows for some relations.

    Args:
        relations: leaf plans, vertex 0, 1, ...
        tables: the rows of each.
    """

    def __init__(self, relations: Sequence[LogicalPlan], tables: Sequence[Table]) -> None:
        self.relations = relations
        self.tables = tables
        self._place = {a.bit: (v, i) for v, plan in enumerate(relations) for i, a in enumerate(plan.output)}
        self._tests: dict[int, Callable[[int], bool]] = {}
        self._alive: list[Expression] = []

    def rows(self, vertex: int) -> list[int]:
        """The rows of one relation."""
        return [1 + i << WIDTH * vertex for i in range(len(self.tables[vertex]))]

    def test(self, predicate: Expression) -> Callable[[int], bool]:
        """A function that returns whether a predicate is true for a row."""
        if id(predicate) in self._tests:
            return self._tests[id(predicate)]
        bits = [bit for bit in self._place if predicate.references >> bit & 1]
        mask = 0
        for bit in bits:
            mask |= (1 << WIDTH) - 1 << WIDTH * self._place[bit][0]
        known: dict[int, bool] = {}

        def holds(row: int) -> bool:
            key = row & mask
            if key not in known:
                values = {}
                for bit in bits:
                    vertex, column = self._place[bit]
                    number = row >> WIDTH * vertex & (1 << WIDTH) - 1
                    values[bit] = self.tables[vertex][number - 1][column] if number else None
                known[key] = answer(predicate, values) is True
            return known[key]

        self._tests[id(predicate)] = holds
        self._alive.append(predicate)
        return holds

    def joined(
        self,
        left: list[int],
        right: list[int],
        join_type: str,
        on: Expression | None,
        others: Sequence[Expression] = (),
    ) -> list[int]:
        """A join of two results and filters on top of it."""
        found: list[int] = []
        holds = self.test(on) if on is not None else lambda _: True
        if join_type in INNER_LIKE:
            found = [a | b for a in left for b in right if holds(a | b)]
        elif join_type == RIGHT:
            return self.joined(right, left, LEFT, on, others)
        elif join_type in (LEFT, FULL):
            met = set()
            for a in left:
                pairs = [a | b for b in right if holds(a | b)]
                met.update(b for b in right if holds(a | b))
                found += pairs or [a]
            if join_type == FULL:
                found += [b for b in right if b not in met]
        elif join_type in (SEMI, ANTI):
            found = [a for a in left if any(holds(a | b) for b in right) == (join_type == SEMI)]
        for predicate in others:
            test = self.test(predicate)
            found = [row for row in found if test(row)]
        return found

    def of_plan(self, plan: LogicalPlan) -> list[int]:
        """The rows of a plan of joins and filters."""
        if isinstance(plan, Join):
            return self.joined(self.of_plan(plan.left), self.of_plan(plan.right), plan.join_type, plan.condition)
        if isinstance(plan, Filter):
            test = self.test(plan.condition)
            return [row for row in self.of_plan(plan.child) if test(row)]
        return self.rows(next(v for v, known in enumerate(self.relations) if known is plan))


class Orders:
    """All legal orders of a graph, and their rows; parts that orders share are evaluated once."""

    def __init__(self, graph: JoinGraph) -> None:
        self.graph = graph
        self._of: dict[int, list[JoinTree]] = {}
        for v in range(len(graph)):
            self._of[1 << v] = [leaf(v)]
        self.trees = self.of(graph.everything)

    def of(self, relations: int) -> list[JoinTree]:
        """The legal orders of a set, sides in their places."""
        if relations not in self._of:
            found = []
            for one, other in halves(relations):
                if self.graph.allows(relations) and self.graph.allows_join(one, other):
                    edge = self.graph.operator(one, other)
                    turned = edge is not None and not edge.fits(one, other)
                    for a in self.of(one):
                        found += [join(b, a) if turned else join(a, b) for b in self.of(other)]
            self._of[relations] = found
        return self._of[relations]

    def rows(self, world: World, tree: JoinTree, known: dict[int, list[int]]) -> list[int]:
        """The rows of an order; `known` caches those of its parts in one world."""
        if id(tree) not in known:
            if tree.left is None or tree.right is None:
                rows = world.of_plan(self.graph.relations[tree.vertex])
            else:
                left, right = self.rows(world, tree.left, known), self.rows(world, tree.right, known)
                sides = tree.left.relations, tree.right.relations
                edge = self.graph.operator(*sides)
                predicates = predicates_by_join(self.graph, tree)[tree.relations]
                others = [p for p in predicates if edge is None or p is not edge.predicate]
                rows = world.joined(
                    left, right, edge.join_type if edge else "Inner", edge.predicate if edge else None, others
                )  # fmt: skip
            known[id(tree)] = rows
        return known[id(tree)]


def halves(relations: int) -> Iterator[tuple[int, int]]:
    """Every way to split a set in two, each once."""
    half = relations - 1 & relations
    while half:
        if half > relations ^ half:
            yield half, relations ^ half
        half = half - 1 & relations


def random_tables(rng: random.Random, plans: Sequence[LogicalPlan], most: int = 3, values: int = 2) -> list[Table]:
    """Few rows, many NULLs, many duplicates; now and then none at all."""
    choices: list[Value] = [None, *range(values)]
    return [
        [tuple(rng.choice(choices) for _ in plan.output) for _ in range(rng.choice((0, *range(1, most + 1))))]
        for plan in plans
    ]


def same(one: list[int], other: list[int]) -> bool:
    """The same rows, each as often."""
    return len(one) == len(other) and Counter(one) == Counter(other)
