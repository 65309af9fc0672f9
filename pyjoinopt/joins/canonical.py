"""An order of the vertices that does not depend on how the query was written.

Orders of equal cost are common, and a search keeps the one it meets first. If vertices were numbered as written, two
spellings of a query would get two plans. So they are numbered by what they *are*: name, size, neighbours.
"""

from __future__ import annotations

import re
from typing import Any

from pyjoinopt.joins.graph import JoinGraph, vertices
from pyjoinopt.statistics.graph import GraphEstimates

_COPY = re.compile(r"_\d+$")
_ROUNDS = 10


def canonical_order(graph: JoinGraph, estimates: GraphEstimates) -> list[int]:
    """All vertices, canonically ordered.

    Relations that look alike (the copies of a self-join) are told apart by their neighbours; if those look alike
    too, it makes no difference which is which.
    """
    roles: list[list[tuple[str, int]]] = [[] for _ in range(len(graph))]
    for edge in graph.operators:
        for side in (0, 1):
            for v in vertices(edge.relations & edge.sides[side]):
                roles[v].append((edge.join_type, side))
    keys = []
    for v in range(len(graph)):
        size = estimates.size(1 << v)
        name = _COPY.sub("", graph.names[v])
        keys.append((tuple(sorted(roles[v])), name, size.rows, size.bytes, graph.adjacency[v].bit_count()))
    colours = _ranks(keys)
    for _ in range(_ROUNDS):
        seen = len(set(colours))
        if seen == len(colours):
            break
        near = [tuple(sorted(colours[w] for w in vertices(graph.adjacency[v]))) for v in range(len(graph))]
        colours = _ranks(list(zip(colours, near)))
        if len(set(colours)) == seen:
            break
    return sorted(range(len(graph)), key=lambda v: (colours[v], graph.names[v], v))


def _ranks(keys: list[Any]) -> list[int]:
    rank = {key: i for i, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]
