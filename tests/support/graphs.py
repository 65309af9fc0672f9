"""Join graphs for tests, from text or at random, and an exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pyjoinopt.cost import CostModel
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, SHUFFLE_HASH
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import relation
from pyjoinopt.util.bitset import members

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class PassedAfter(Deadline):
    """A deadline that passes after a given number of checks."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._times = times

    @property
    def passed(self) -> bool:
        """Whether it was checked often enough."""
        self._times -= 1
        return self._times < 0


class Builder:
    """Collects relations and edges; every relation gets a new column for each predicate unless one is named."""

    def __init__(self, rows: Sequence[float], names: Sequence[str] | None = None) -> None:
        self.rows = list(rows)
        self.names = tuple(names or LETTERS[: len(rows)])
        self.columns: list[dict[str, Attribute]] = [{} for _ in rows]
        self.known: list[dict[int, ColumnStatistics]] = [{} for _ in rows]
        self.edges: list[Edge] = []
        self._count = 0

    def column(self, vertex: int, name: str | None = None, ndv: float | None = None) -> Expression:
        """A column of a relation, created on first use."""
        name = name or f"c{self._count}"
        if name not in self.columns[vertex]:
            self.columns[vertex][name] = Attribute(self._count, self._count, name)
            self._count += 1
        attribute = self.columns[vertex][name]
        if ndv is not None:
            rows = self.rows[vertex]
            self.known[vertex][attribute.bit] = ColumnStatistics(
                ndv=min(ndv, rows), key_values=rows if ndv >= rows else None
            )
        return reference(attribute)

    def equal(self, i: int, j: int, a: Expression | None = None, b: Expression | None = None, **flags: int) -> None:
        """An equality between two relations; its `tes` may be wider."""
        a, b = a or self.column(i), b or self.column(j)
        both = 1 << i | 1 << j
        predicate = call("EqualTo", a, b)
        self.edges.append(Edge(predicate, both, flags.get("tes", both), ((1 << i, a), (1 << j, b))))

    def over(self, relations: int) -> None:
        """Some predicate over a set of relations."""
        read = tuple(self.column(v) for v in members(relations))
        self.edges.append(Edge(Expression("Udf", read), relations, relations))

    def statistics(self) -> list[RelationStatistics]:
        """The statistics of each relation."""
        return [
            RelationStatistics(rows, rows * 40, "footers", False, known, unfiltered=rows)
            for rows, known in zip(self.rows, self.known)
        ]

    def graph(self) -> JoinGraph:
        """The graph so far."""
        relations = tuple(relation(n, tuple(c.values())) for n, c in zip(self.names, self.columns))
        return JoinGraph(relations, self.names, tuple(self.edges), tuple(() for _ in self.rows))


def graph(text: str, rows: Sequence[float]) -> tuple[JoinGraph, GraphEstimates]:
    """A graph from text: `"A-B, B-C, ABC"`, two letters with a dash for an equality, letters alone for a wide edge.

    Rows are those of A, B, C, ...
    """
    builder = Builder(rows)
    for part in filter(None, (p.strip() for p in text.split(","))):
        members = [LETTERS.index(letter) for letter in part if letter != "-"]
        if "-" in part:
            builder.equal(*members)
        else:
            builder.over(sum(1 << v for v in members))
    made = builder.graph()
    return made, GraphEstimates(made, builder.statistics())


def random_builder(seed: int, most: int = 8, connected: bool = False) -> Builder:
    """Trees and more: extra edges, classes of equal columns, composite keys, ranges, wide edges, loose parts."""
    rng = random.Random(seed)
    n = rng.randint(2, most)
    builder = Builder([float(rng.choice((0, 1, 3, 10, 77, 500, 4000, 100_000))) for _ in range(n)])

    def equality(i: int, j: int) -> None:
        shared = rng.random() < 0.3
        name = f"k{rng.randint(0, 1)}" if shared else None
        sides = [builder.column(v, name, rng.choice((None, 5.0, 100.0, 1e6))) for v in (i, j)]
        tes = 1 << i | 1 << j
        if not connected and rng.random() < 0.1:
            tes |= 1 << rng.randrange(n)
        builder.equal(i, j, *sides, tes=tes)

    for j in range(1, n):
        if connected or rng.random() < 0.85:
            equality(rng.randrange(j), j)
    for _ in range(rng.randint(0, n // 2)):
        i, j = rng.sample(range(n), 2)
        if rng.random() < 0.7:
            equality(i, j)
        else:
            a, b = builder.column(i), builder.column(j)
            builder.edges.append(Edge(call("LessThan", a, b), 1 << i | 1 << j, 1 << i | 1 << j))
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        if n > 2:
            builder.over(sum(1 << v for v in rng.sample(range(n), rng.randint(3, min(5, n)))))
    return builder


def with_hash_tables(estimates: GraphEstimates) -> GraphEstimates:
    """Judge that of small sets one table may be broadcast, of middling ones hash tables be built, of large ones none.

    By default, estimates never allow hash tables.
    """

    def by_size(relations: int, bytes: float, _: GraphEstimates) -> int:
        return BROADCAST_HASH if bytes <= 1e3 else SHUFFLE_HASH if bytes <= 1e5 else NO_BUILD

    return estimates.with_buildable(by_size)


def best_costs(graph: JoinGraph, estimates: GraphEstimates, cost: CostModel) -> dict[int, float]:
    """The cheapest cost of every set with a legal order without a cross product, by trying all halves of all sets."""
    best = {1 << v: 0.0 for v in range(len(graph))}
    for relations in sorted(range(1, graph.everything + 1), key=int.bit_count):
        if relations.bit_count() < 2:
            continue
        half = (relations - 1) & relations
        while half:
            other = relations ^ half
            tied = half > other and half in best and other in best and graph.connected(half, other)
            if tied and graph.allows(relations) and graph.allows_join(half, other):
                total = best[half] + best[other] + join_cost(graph, estimates, cost, half, other)
                best[relations] = min(total, best.get(relations, total))
            half = (half - 1) & relations
    return best


def join_cost(graph: JoinGraph, estimates: GraphEstimates, cost: CostModel, one: int, other: int) -> float:
    """The cost of a join, its sides in the places that its type requires."""
    edge, size = graph.operator(one, other), estimates.size
    if edge is not None and not edge.fits(one, other):
        one, other = other, one
    return cost.join(size(one), size(other), size(one | other), edge.join_type if edge else "Inner")


def renumbered(builder: Builder, order: Sequence[int]) -> Builder:
    """The same relations and edges in another order: new vertex i is old vertex `order[i]`."""
    place = {old: new for new, old in enumerate(order)}

    def moved(relations: int) -> int:
        return sum(1 << place[v] for v in members(relations))

    result = Builder([builder.rows[v] for v in order], [builder.names[v] for v in order])
    result.columns = [builder.columns[v] for v in order]
    result.known = [builder.known[v] for v in order]
    for edge in reversed(builder.edges):
        keys = (
            None
            if edge.keys is None
            else ((moved(edge.keys[0][0]), edge.keys[0][1]), (moved(edge.keys[1][0]), edge.keys[1][1]))
        )
        result.edges.append(Edge(edge.predicate, moved(edge.ses), moved(edge.tes), keys, edge.implied))
    return result
