"""Orders that join on one key in a row, against trying all orders and all ways to carry them out."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from pyjoinopt.cost import CostModel, COut, SparkCost
from pyjoinopt.cost.model import PartitionedModel
from pyjoinopt.joins.graph import Edge, JoinGraph
from pyjoinopt.joins.partitioned import Partitionings, partitioned_by
from pyjoinopt.joins.price import cost_of
from pyjoinopt.joins.search import search
from pyjoinopt.joins.tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, LogicalPlan, Project, relation
from pyjoinopt.statistics.graph import GraphEstimates
from pyjoinopt.statistics.relation import (
    BROADCAST_TABLE,
    HASH_TABLES,
    NO_TABLE,
    ColumnStatistics,
    RelationStatistics,
)

Row = tuple[float, frozenset[int]]  # cost, the classes by which the result lies


def drawn(seed: int) -> tuple[JoinGraph, GraphEstimates]:
    """Up to six relations, most of them large, with few classes of equal columns between them."""
    rng = random.Random(seed)
    n, classes = rng.randint(3, 6), rng.randint(1, 3)
    columns = [[Attribute(v * 8 + c, v * 8 + c, f"k{c}") for c in range(classes)] for v in range(n)]
    edges, tied = [], set()
    for j in range(1, n):
        for i in (rng.randrange(j), rng.randrange(j)):
            for c in rng.sample(range(classes), rng.randint(1, classes)):
                if (i, j, c) not in tied:
                    tied.add((i, j, c))
                    a, b = reference(columns[i][c]), reference(columns[j][c])
                    both = 1 << i | 1 << j
                    edges.append(Edge(call("EqualTo", a, b), both, both, ((1 << i, a), (1 << j, b)), equality_class=c))
    rows = [10.0 ** rng.randint(2, 7) for _ in range(n)]
    known = []
    for r, own in zip(rows, columns):
        distinct = {a.bit: ColumnStatistics(ndv=r / rng.choice((1, 3, 10))) for a in own}
        known.append(RelationStatistics(r, r * 40, "test", True, distinct))
    relations = tuple(relation(f"t{v}", own) for v, own in enumerate(columns))
    graph = JoinGraph(relations, tuple(f"t{v}" for v in range(n)), tuple(edges), tuple(() for _ in range(n)))
    estimates = GraphEstimates(graph, known)
    tables = [rng.choice((NO_TABLE, NO_TABLE, HASH_TABLES, BROADCAST_TABLE)) for _ in range(n)]
    estimates.judge(lambda relations, _: min(table for v, table in enumerate(tables) if relations >> v & 1))
    return graph, estimates


def all_trees(graph: JoinGraph, relations: int) -> Iterator[JoinTree]:
    """Every tree without a cross product."""
    if not relations & (relations - 1):
        yield leaf(relations.bit_length() - 1)
    half = (relations - 1) & relations
    while half:
        other = relations ^ half
        if half > other and graph.connected(half, other):
            for left in all_trees(graph, half):
                for right in all_trees(graph, other):
                    yield join(left, right)
        half = (half - 1) & relations


def all_ways(graph: JoinGraph, estimates: GraphEstimates, model: PartitionedModel, tree: JoinTree) -> set[Row]:
    """Every way to carry out a tree, good or bad."""
    if tree.left is None or tree.right is None:
        return {(0.0, frozenset())}
    left, right = tree.left.relations, tree.right.relations
    size = estimates.size
    parts = model.parts(size(left), size(right), size(tree.relations))
    key = frozenset(
        e.equality_class for e in graph.edges for f in graph.edges
        if e.equality_class == f.equality_class and e.relations & left and f.relations & right
        and _has(graph, left, e.equality_class) and _has(graph, right, e.equality_class)
    )  # fmt: skip
    ways = set()
    for l_cost, l_lies in all_ways(graph, estimates, model, tree.left):
        for r_cost, r_lies in all_ways(graph, estimates, model, tree.right):
            if parts.streamed is not None:
                ways.add((l_cost + r_cost + parts.work, (l_lies, r_lies)[parts.streamed]))
                continue
            moved = (0.0 if key and l_lies == key else parts.left) + (0.0 if key and r_lies == key else parts.right)
            ways.add((l_cost + r_cost + parts.work + moved, key))
    return ways


def _has(graph: JoinGraph, relations: int, number: int) -> bool:
    return any(e.equality_class == number and e.relations & relations for e in graph.edges)


def test_as_cheap_as_trying_everything() -> None:
    gained = 0
    model = SparkCost()
    for seed in range(150):
        graph, estimates = drawn(seed)
        trees = list(all_trees(graph, graph.everything))
        if len(trees) > 500:
            continue
        best = min(cost for tree in trees for cost, _ in all_ways(graph, estimates, model, tree))
        found = search(graph, estimates, model)
        assert found.cost == pytest.approx(best), seed
        assert cost_of(found.tree, estimates, model, graph) == pytest.approx(best), seed
        without = min(_plain(tree, estimates, model) for tree in trees)
        assert best <= without * (1 + 1e-9)
        gained += best < without * 0.999
    assert gained > 20


def _plain(tree: JoinTree, estimates: GraphEstimates, model: CostModel) -> float:
    size = estimates.size
    return sum(
        model.join(size(n.left.relations), size(n.right.relations), size(n.relations))
        for n in tree.post_order() if n.left is not None and n.right is not None
    )  # fmt: skip


def three_on_one_key(tables: int) -> tuple[JoinGraph, GraphEstimates]:
    """A fact table of which two columns meet other tables; one of these columns meets two."""
    columns = [[Attribute(v * 8 + c, v * 8 + c, "ab"[c]) for c in range(2)] for v in range(4)]
    edges = []
    for number, pairs in ((0, [(0, 1), (0, 3)]), (1, [(0, 2)])):
        for i, j in pairs:
            a, b = reference(columns[i][number]), reference(columns[j][number])
            both = 1 << i | 1 << j
            edges.append(Edge(call("EqualTo", a, b), both, both, ((1 << i, a), (1 << j, b)), equality_class=number))
    known = [
        RelationStatistics(1e7, 4e8, "test", True, {a.bit: ColumnStatistics(ndv=1e7) for a in own}) for own in columns
    ]
    relations = tuple(relation(name, own) for name, own in zip("FGHK", columns))
    graph = JoinGraph(relations, ("F", "G", "H", "K"), tuple(edges), ((),) * 4)
    estimates = GraphEstimates(graph, known)
    estimates.judge(lambda relations, bytes: tables)
    return graph, estimates


def test_joins_on_one_key_come_in_a_row() -> None:
    graph, estimates = three_on_one_key(NO_TABLE)
    partitionings = Partitionings(graph, estimates, SparkCost())
    assert partitionings.worth
    tree = search(graph, estimates, SparkCost()).tree
    above_h = next(n for n in tree.post_order() if not n.is_leaf and n.relations & 0b0100)
    assert above_h.relations in (0b1111, 0b0101), tree.show(graph.names)  # H comes last, or before G and K
    between = join(join(join(leaf(0), leaf(1)), leaf(2)), leaf(3))
    assert partitionings.price(between) > partitionings.price(tree)


def test_nothing_to_gain() -> None:
    for tables, model in ((BROADCAST_TABLE, SparkCost()), (NO_TABLE, COut())):
        graph, estimates = three_on_one_key(tables)
        assert not Partitionings(graph, estimates, model).worth


def test_relations_that_come_partitioned() -> None:
    a, b, total = Attribute(0, 0, "a"), Attribute(1, 1, "b"), Attribute(2, 2, "total")
    table = relation("t", [a, b])
    grouped = Aggregate((reference(a),), (reference(a), reference(b)), table, (a, total))
    assert partitioned_by(grouped) == (0,)
    assert partitioned_by(Filter(call("IsNotNull", reference(a)), grouped)) == (0,)
    renamed = Attribute(3, 3, "c")
    assert partitioned_by(Project((Expression("Alias", (reference(a),), attribute=renamed),), grouped)) == (3,)
    assert partitioned_by(Project((reference(total),), grouped)) == ()
    assert partitioned_by(table) == ()
    bucketed: LogicalPlan = relation("t", [a, b])
    bucketed.info["rel"]["buckets"] = [1]
    assert partitioned_by(Filter(call("IsNotNull", reference(a)), bucketed)) == (1,)
