"""Orders with consecutive joins on one key, compared with all orders and all ways to execute them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from pyjoinopt.cost import CostModel, SparkCost
from pyjoinopt.cost.model import PartitionedModel
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, SHUFFLE_HASH
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.plan.expressions import Attribute, call, conjuncts, reference, walk
from pyjoinopt.plan.nodes import (
    ANTI,
    FULL,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    Join,
    LogicalPlan,
    relation,
)
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join
from pyjoinopt.util.bitset import members
from tests.support.graphs import join_cost
from tests.support.letters import Letters
from tests.support.regions import region_of

Row = tuple[float, frozenset[int]]  # cost, the classes by which the result is partitioned


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
    tables = [rng.choice((NO_BUILD, NO_BUILD, SHUFFLE_HASH, BROADCAST_HASH)) for _ in range(n)]
    estimates = estimates.with_buildable(
        lambda relations, *_: min(table for v, table in enumerate(tables) if relations >> v & 1)
    )
    return graph, estimates


def drawn_with_operators(seed: int) -> tuple[JoinGraph, GraphEstimates]:
    """Two to five relations, joins of every type on the same one or two keys; some large relations are bucketed."""
    rng = random.Random(seed)
    letters, keys = Letters(), rng.randint(1, 2)

    def some() -> list[int]:
        return rng.sample(range(keys), rng.randint(1, keys))

    def written(names: str) -> tuple[LogicalPlan, str]:
        if len(names) == 1:
            return letters.relation(names, " ".join(f"{names}{c}" for c in range(keys))), names
        cut = rng.randint(1, len(names) - 1)
        (left, l_seen), (right, r_seen) = written(names[:cut]), written(names[cut:])
        kind = rng.choices((INNER, LEFT, RIGHT, FULL, SEMI, ANTI), (5, 4, 2, 4, 2, 2))[0]
        one, other = rng.choice(l_seen), rng.choice(r_seen)
        equal = [f"{one}{c} = {other}{c}" for c in some()]
        if rng.random() < 0.1:
            equal.append(f"{one}{rng.randrange(keys)} = {other}{rng.randrange(keys)}")
        on = letters(" and ".join(dict.fromkeys(equal)))
        return Join(left, right, kind, on), l_seen if kind in (SEMI, ANTI) else l_seen + r_seen

    plan = demote_outer_join(written("abcde"[: rng.randint(3, 5)])[0]).plan
    graph, _ = build_graph(region_of(plan), {})
    known, tables = [], []
    for source in graph.relations:
        r = 10.0 ** rng.randint(2, 7)
        distinct = {a.bit: ColumnStatistics(ndv=r / rng.choice((1, 3, 10))) for a in source.output}
        known.append(RelationStatistics(r, r * 40, "test", True, distinct))
        tables.append(rng.choice((NO_BUILD, NO_BUILD, SHUFFLE_HASH, BROADCAST_HASH)))
        if source.info and tables[-1] != BROADCAST_HASH and rng.random() < 0.2:
            source.info["rel"]["buckets"] = [source.output[c].bit for c in some()]
    estimates = GraphEstimates(graph, known)
    estimates = estimates.with_buildable(
        lambda relations, *_: min(table for v, table in enumerate(tables) if relations >> v & 1)
    )
    return graph, estimates


def all_trees(graph: JoinGraph, relations: int) -> Iterator[JoinTree]:
    """Every legal tree without a cross product, sides in their places."""
    if not relations & (relations - 1):
        yield leaf(relations.bit_length() - 1)
    half = (relations - 1) & relations
    while half:
        other = relations ^ half
        legal = graph.allows(relations) and graph.allows_join(half, other)
        if half > other and legal and graph.connected(half, other):
            for left in all_trees(graph, half):
                for right in all_trees(graph, other):
                    edge = graph.operator(half, other)
                    yield join(left, right) if edge is None or edge.fits(half, other) else join(right, left)
        half = (half - 1) & relations


def all_ways(graph: JoinGraph, estimates: GraphEstimates, model: PartitionedModel, tree: JoinTree) -> set[Row]:
    """Every way to carry out a tree, good or bad."""
    if tree.left is None or tree.right is None:
        rel = graph.relations[tree.vertex].info.get("rel") or {}
        return {(0.0, _key([_classes(graph).get(bit) for bit in rel.get("buckets") or ()]))}
    left, right = tree.left.relations, tree.right.relations
    edge, size = graph.operator(left, right), estimates.size
    kind = INNER if edge is None else edge.join_type
    parts = model.parts(size(left), size(right), size(tree.relations), kind)
    wanted = sides_wanted(graph, left, right, edge)
    lies = frozenset() if kind == FULL else wanted[0]  # padded rows are in partitions to which NULLs do not belong
    ways = set()
    for l_cost, l_lies in all_ways(graph, estimates, model, tree.left):
        for r_cost, r_lies in all_ways(graph, estimates, model, tree.right):
            if parts.streamed is not None:
                ways.add((l_cost + r_cost + parts.work, (l_lies, r_lies)[parts.streamed]))
                continue
            l_moves = 0.0 if wanted[0] and l_lies == wanted[0] else parts.left
            r_moves = 0.0 if wanted[1] and r_lies == wanted[1] else parts.right
            ways.add((l_cost + r_cost + parts.work + l_moves + r_moves, lies))
    return ways


def sides_wanted(graph: JoinGraph, left: int, right: int, edge: Edge | None) -> tuple[frozenset[int], frozenset[int]]:
    """The classes by which each side must be partitioned to avoid a shuffle; none if one of them occurs twice."""
    if edge is None:
        shared = frozenset(_has(graph, left) & _has(graph, right))
        return shared, shared
    sides: tuple[list[int | None], list[int | None]] = ([], [])
    held = sum(1 << a.bit for v in members(left) for a in graph.relations[v].output)
    for predicate in conjuncts(edge.predicate):
        for column in predicate.children:
            assert predicate.kind == "EqualTo" and column.attribute is not None
            found = _classes(graph).get(column.attribute.bit)
            sides[0 if column.references & held else 1].append(found)
    return _key(sides[0]), _key(sides[1])


def _key(classes: list[int | None]) -> frozenset[int]:
    known = frozenset(c for c in classes if c is not None)
    return known if len(known) == len(classes) else frozenset()


def _classes(graph: JoinGraph) -> dict[int, int]:
    """Column (its bit) -> the class that inner joins put it in, or, of those that others read, one of its own."""
    equated = [(e, edge) for edge in graph.edges if edge.equality_class >= 0 for _, e in edge.keys or ()]
    found = {e.attribute.bit: edge.equality_class for e, edge in equated if e.attribute is not None}
    read = [e for edge in graph.operators for e in walk(edge.predicate) if e.attribute is not None]
    return {e.attribute.bit: 1000 + e.attribute.bit for e in read if e.attribute is not None} | found


def _has(graph: JoinGraph, relations: int) -> set[int]:
    return {e.equality_class for e in graph.edges if e.equality_class >= 0 and e.ses & relations}


@pytest.mark.parametrize(("draw", "seeds"), [(drawn, 150), (drawn_with_operators, 600)])
def test_as_cheap_as_trying_everything(draw: Callable[[int], tuple[JoinGraph, GraphEstimates]], seeds: int) -> None:
    gained: Counter[str] = Counter()
    model = SparkCost()
    for seed in range(seeds):
        graph, estimates = draw(seed)
        trees = list(all_trees(graph, graph.everything))
        if len(trees) > 500:
            continue
        costs = [min(cost for cost, _ in all_ways(graph, estimates, model, tree)) for tree in trees]
        best = min(costs)
        found = search(graph, estimates, model)
        assert found.cost == pytest.approx(best), seed
        assert JoinCosts(graph, estimates, model).order(found.tree) == pytest.approx(best), seed
        for tree, cost in zip(trees[:60], costs):  # each at the price of its best way
            assert JoinCosts(graph, estimates, model).order(tree) == pytest.approx(cost), f"{seed}: {tree}"
        without = min(_plain(graph, estimates, model, tree) for tree in trees)
        assert best <= without * (1 + 1e-9)
        if best < without * 0.999:
            gained.update({INNER, *(edge.join_type for edge in graph.operators)})
    assert gained[INNER] > 20
    if draw is drawn_with_operators:
        assert min(gained[kind] for kind in (LEFT, FULL, SEMI, ANTI)) >= 5


def _plain(graph: JoinGraph, estimates: GraphEstimates, model: CostModel, tree: JoinTree) -> float:
    nodes = [n for n in tree.post_order() if n.left is not None and n.right is not None]
    return sum(join_cost(graph, estimates, model, n.left.relations, n.right.relations) for n in nodes)
