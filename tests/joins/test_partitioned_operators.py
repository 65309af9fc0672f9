"""Orders with outer, semi and anti joins on one key in a row, against trying all orders and all ways."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from pyjoinopt.cost import SparkCost
from pyjoinopt.cost.model import PartitionedModel
from pyjoinopt.joins.edges import build_graph
from pyjoinopt.joins.graph import JoinGraph
from pyjoinopt.joins.partitioned import Partitionings
from pyjoinopt.joins.price import cost_of
from pyjoinopt.joins.search import search
from pyjoinopt.joins.tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import Attribute, Expression, conjuncts
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, Join, LogicalPlan
from pyjoinopt.rules.demote_outer_join import demote_outer_join
from pyjoinopt.statistics.graph import GraphEstimates
from pyjoinopt.statistics.relation import BROADCAST_TABLE, HASH_TABLES, NO_TABLE, ColumnStatistics, RelationStatistics
from tests.groups.regions import region_of
from tests.groups.small_worlds import Orders
from tests.support.letters import Letters

Lies = frozenset[frozenset[str]]  # for each column of the key the columns that are equal to it
Way = tuple[float, Lies]
NOWHERE: Lies = frozenset()


def drawn(seed: int, types: tuple[str, ...] = (INNER, INNER, LEFT, LEFT, FULL, SEMI, ANTI)) -> LogicalPlan:
    """Three to five relations, each with three columns; joins are on columns of one number, or of two."""
    rng = random.Random(seed)
    letters = Letters()
    names = "abcde"[: rng.randint(3, 5)]
    relations = {name: letters.relation(name, f"{name}0 {name}1 {name}2") for name in names}

    def tree(within: str) -> tuple[LogicalPlan, str]:
        """A plan and the relations that are seen above it."""
        if len(within) == 1:
            return relations[within], within
        cut = rng.randint(1, len(within) - 1)
        (left, l_seen), (right, r_seen) = tree(within[:cut]), tree(within[cut:])
        kind = rng.choice(types)
        one, other = rng.choice(l_seen), rng.choice(r_seen)
        number, more = rng.sample((0, 0, 0, 1, 2), 2)
        condition = f"{one}{number} = {other}{number}"
        if number != more and rng.random() < 0.5:
            condition += f" and {one}{rng.choice((number, more))} = {other}{more}"
        return Join(left, right, kind, letters(condition)), l_seen if kind in (SEMI, ANTI) else l_seen + r_seen

    return tree(names)[0]


def sized(graph: JoinGraph, seed: int) -> GraphEstimates:
    rng = random.Random(f"sizes {seed}")
    known = []
    for plan in graph.relations:
        rows = 10.0 ** rng.randint(3, 7)
        columns = {a.bit: ColumnStatistics(ndv=rows / rng.choice((1, 3, 10))) for a in plan.output}
        known.append(RelationStatistics(rows, rows * 40, "test", True, columns, unfiltered=rows))
    estimates = GraphEstimates(graph, known)
    tables = [rng.choice((NO_TABLE, NO_TABLE, NO_TABLE, HASH_TABLES, BROADCAST_TABLE)) for _ in known]
    estimates.judge(lambda relations, _: min(table for v, table in enumerate(tables) if relations >> v & 1))
    return estimates


class AllWays:
    """Every way to carry out an order. What lies where is told by columns, not by classes as the search does."""

    def __init__(self, graph: JoinGraph, estimates: GraphEstimates, model: PartitionedModel) -> None:
        self._graph, self._estimates, self._model = graph, estimates, model
        self._home = {a.bit: 1 << v for v, plan in enumerate(graph.relations) for a in plan.output}

    def cheapest(self, tree: JoinTree) -> float:
        return min(cost for cost, _ in self._of(tree))

    def _of(self, tree: JoinTree) -> set[Way]:
        if tree.left is None or tree.right is None:
            return {(0.0, NOWHERE)}
        graph, (left, right) = self._graph, (tree.left.relations, tree.right.relations)
        operator = graph.operator(left, right)
        assert operator is None or operator.fits(left, right)
        kind = operator.join_type if operator else INNER
        pairs = self._pairs([operator.predicate] if operator else self._inner(left, right), left)
        size = self._estimates.size
        parts = self._model.parts(size(left), size(right), size(tree.relations), kind)
        ways = set()
        for l_cost, l_lies in self._of(tree.left):
            for r_cost, r_lies in self._of(tree.right):
                total = l_cost + r_cost + parts.work
                if parts.streamed is not None:
                    lies = (l_lies, r_lies)[parts.streamed]
                    ways.add((total, lies))
                    continue
                l_there, r_there = _there(l_lies, pairs, 0), _there(r_lies, pairs, 1)
                total += (0.0 if l_there else parts.left) + (0.0 if r_there else parts.right)
                lies = frozenset(frozenset(self._equal(column)) for column, _ in pairs)
                ways.add((total, NOWHERE if kind == FULL or len(lies) < len(pairs) else lies))
        return ways

    def _inner(self, left: int, right: int) -> list[Expression]:
        """What an inner join may be told to equate: all that holds between its sides, one for each class."""
        seen, found = set(), []
        for edge in self._graph.edges:
            between = edge.join_type == INNER and edge.relations & left and edge.relations & right
            if between and not edge.relations & ~(left | right) and edge.equality_class not in seen:
                seen.add(edge.equality_class)
                found.append(edge.predicate)
        return found

    def _pairs(self, predicates: list[Expression], left: int) -> list[tuple[str, str]]:
        found = []
        for predicate in predicates:
            for equality in conjuncts(predicate):
                a, b = (child.attribute for child in equality.children)
                assert equality.kind == "EqualTo" and isinstance(a, Attribute) and isinstance(b, Attribute)
                found.append((a.name, b.name) if self._home[a.bit] & left else (b.name, a.name))
        return found

    def _equal(self, column: str) -> set[str]:
        """The columns of its class; which of them are there is asked by nobody who does not have them."""
        classes = [
            {e.attribute.name for edge in self._graph.edges if edge.equality_class == number and edge.keys
             for _, e in edge.keys if e.attribute is not None}
            for number in {edge.equality_class for edge in self._graph.edges if edge.equality_class >= 0}
        ]  # fmt: skip
        return next((found for found in classes if column in found), {column})


def _there(lies: Lies, pairs: list[tuple[str, str]], side: int) -> bool:
    """Does a side lie by these columns, each once and no others?"""
    if len(lies) != len(pairs):
        return False
    met = [column for pair in pairs for column in lies if pair[side] in column]
    return len(met) == len(pairs) == len(set(met))


def test_as_cheap_as_trying_everything() -> None:
    model = SparkCost()
    gained, types = 0, set()
    for seed in range(400):
        region = region_of(demote_outer_join(drawn(seed)))
        graph, written = build_graph(region, {})
        trees = [tree for tree in Orders(graph).trees if _has_no_product(tree, graph)]
        if not trees or len(trees) > 150:
            continue
        estimates = sized(graph, seed)
        ways = AllWays(graph, estimates, model)
        best = min(map(ways.cheapest, trees))
        found = search(graph, estimates, model, written=written)
        assert found.cost == pytest.approx(best), seed
        assert cost_of(found.tree, estimates, model, graph) == pytest.approx(best), seed
        for tree in trees:
            assert cost_of(tree, estimates, model, graph) == pytest.approx(ways.cheapest(tree)), (seed, tree.sets)
        plain = min(_moving_all(tree, estimates, model, graph) for tree in trees)
        assert best <= plain * (1 + 1e-9)
        if best < plain * 0.999:
            gained += 1
            types |= {edge.join_type for edge in graph.edges}
    assert gained > 60 and types == {INNER, LEFT, FULL, SEMI, ANTI}


def _has_no_product(tree: JoinTree, graph: JoinGraph) -> bool:
    inner = [n for n in tree.post_order() if n.left is not None and n.right is not None]
    return all(n.left and n.right and graph.connected(n.left.relations, n.right.relations) for n in inner)


def _moving_all(tree: JoinTree, estimates: GraphEstimates, model: SparkCost, graph: JoinGraph) -> float:
    total = 0.0
    for node in tree.post_order():
        if node.left is not None and node.right is not None:
            edge = graph.operator(node.left.relations, node.right.relations)
            sizes = [estimates.size(n.relations) for n in (node.left, node.right, node)]
            total += model.join(sizes[0], sizes[1], sizes[2], edge.join_type if edge else INNER)
    return total


def test_left_joins_on_one_key_move_the_left_side_once() -> None:
    """No inner join makes the key a class; three large tables are moved, the fourth by another key."""
    letters = Letters()
    a, b, c, d = (letters.relation(name, f"{name}0 {name}1") for name in "abcd")
    plan = Join(Join(Join(a, b, LEFT, letters("a0 = b0")), d, LEFT, letters("a1 = d1")), c, LEFT, letters("a0 = c0"))
    graph, written = build_graph(region_of(plan), {})
    unique = ColumnStatistics(ndv=1e7)
    known = [
        RelationStatistics(1e7, 4e8, "test", True, {column.bit: unique for column in plan.output})
        for plan in graph.relations
    ]
    estimates = GraphEstimates(graph, known)
    estimates.judge(lambda relations, _: NO_TABLE)
    priced = Partitionings(graph, estimates, SparkCost())
    assert priced.worth
    prices = {last: priced.price(join(join(join(leaf(0), leaf(one)), leaf(two)), leaf(last)))
              for one, two, last in permutations((1, 2, 3))}  # fmt: skip
    assert graph.names == ("a", "b", "d", "c") and min(prices.values()) == prices[3] < priced.price(written)
    assert search(graph, estimates, SparkCost(), written=written).cost == pytest.approx(prices[3])
