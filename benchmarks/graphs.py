"""Generates join graphs of known shapes and any size, with statistics, and the same queries as SQL."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import relation
from pyjoinopt.util.bitset import members

SHAPES = ("chain", "cycle", "star", "snowflake", "clique", "grid", "random")


def pairs_of(shape: str, n: int, seed: int | None = None) -> Iterator[tuple[int, int]]:
    """The edges of a shape; the seed selects a random graph."""
    if shape in ("chain", "cycle"):
        yield from ((i, i + 1) for i in range(n - 1))
        if shape == "cycle":
            yield 0, n - 1
    elif shape == "star":
        yield from ((0, i) for i in range(1, n))
    elif shape == "snowflake":
        yield from ((0 if i <= n // 4 or i < 4 else 1 + i % (n // 4 or 1), i) for i in range(1, n))
    elif shape == "random":
        rng = random.Random(n if seed is None else f"{n} {seed}")
        tree = [(rng.randrange(j), j) for j in range(1, n)]
        more = {tuple(sorted(rng.sample(range(n), 2))) for _ in range(n // 2)}
        yield from tree
        yield from sorted(more - set(tree))
    elif shape == "clique":
        yield from ((i, j) for j in range(n) for i in range(j))
    else:
        side = math.isqrt(n)
        for i in range(side * side):
            if i % side:
                yield i - 1, i
            if i >= side:
                yield i - side, i


def make(shape: str, n: int, seed: int | None = None) -> tuple[JoinGraph, list[RelationStatistics]]:
    """A graph of the shape, in which each edge has its own columns; a clique is one class of equal columns.

    Without a seed the row counts are 1,000 to 100,000 and every column is nearly a key. With one they are drawn, from a
    hundred to ten million, and so is how often a value repeats: such graphs have good orders and very bad ones.
    """
    if shape == "grid":
        n = math.isqrt(n) ** 2
    columns: list[list[Attribute]] = [[] for _ in range(n)]
    count = 0

    def column(vertex: int, name: str) -> Attribute:
        nonlocal count
        if shape == "clique" and columns[vertex]:
            return columns[vertex][0]
        attribute = Attribute(count, count, name)
        columns[vertex].append(attribute)
        count += 1
        return attribute

    edges = []
    for i, j in pairs_of(shape, n, seed):
        a, b = reference(column(i, f"k{j}")), reference(column(j, f"k{i}"))
        both = 1 << i | 1 << j
        edges.append(Edge(call("EqualTo", a, b), both, both, ((1 << i, a), (1 << j, b))))
    statistics = []
    rng = random.Random(f"{shape} {n} {seed}")
    for vertex in range(n):
        rows = float(1000 + (vertex * 7919) % 99991) if seed is None else round(10 ** rng.uniform(2, 7), 0)
        repeats = {a.bit: 1 + a.bit % 7 if seed is None else 10 ** rng.uniform(0, 3) for a in columns[vertex]}
        known = {bit: ColumnStatistics(ndv=max(1.0, rows / often)) for bit, often in repeats.items()}
        statistics.append(RelationStatistics(rows, rows * 40, "footers", True, known, rows))
    names = tuple(f"t{vertex}" for vertex in range(n))
    relations = tuple(relation(name, own) for name, own in zip(names, columns))
    return JoinGraph(relations, names, tuple(edges), tuple(() for _ in range(n))), statistics


def sql(graph: JoinGraph) -> str:
    """The query with this join graph."""
    names = {1 << vertex: name for vertex, name in enumerate(graph.names)}
    conditions = []
    for edge in graph.edges:
        assert edge.keys is not None
        sides = [f"{names[side]}.{column.attribute.name}" for side, column in edge.keys if column.attribute]
        conditions.append(" = ".join(sides))
    return f"SELECT * FROM {', '.join(graph.names)} WHERE {' AND '.join(conditions)}"


def catalog(graph: JoinGraph, statistics: list[RelationStatistics]) -> dict[str, dict[str, object]]:
    """Table name -> its statistics, for `injection.create_table`."""
    tables: dict[str, dict[str, object]] = {}
    for vertex in members(graph.everything):
        known = statistics[vertex]
        columns: dict[str, dict[str, object]] = {}
        for a in graph.relations[vertex].output:
            distinct = int(known.columns[a.bit].ndv or 1)
            columns[a.name] = {"type": "bigint", "nulls": 0, "min": 1, "max": int(known.rows), "distinct": distinct}
        tables[graph.names[vertex]] = {"rows": int(known.rows), "columns": columns}
    return tables
