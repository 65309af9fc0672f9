"""How many rows the join of a set of relations is *proved* not to exceed.

Without keys that is the product of the relations' bounds, which says nothing soon. But a relation that is unique on
what it is compared by gives at most one row for each row of the others: it can be left out of the product. What is left
after all such relations went is the bound,

    facts x days x stores   with unique days and stores:   facts.

Of two relations that are both unique on what they are compared by, one has to stay; the larger one goes first.
A set with outer joins in it is bounded by the product alone (see `padding`): of a padded row it is not known that the
key was compared at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyjoinopt.plan.nodes import INNER
from pyjoinopt.statistics.join_graph import GraphEdge
from pyjoinopt.statistics.padding import Padding
from pyjoinopt.statistics.relation import RelationStatistics
from pyjoinopt.statistics.unique import plain_column


class Bounds:
    """Upper bounds of sets of vertices.

    Args:
        edges: of the join graph.
        relations: what is known of each vertex.
        padding: the outer joins of the graph.
        looked_into: vertices that semi and anti joins look into; they never multiply rows.
    """

    def __init__(
        self,
        edges: Sequence[GraphEdge],
        relations: Sequence[RelationStatistics],
        padding: Padding,
        looked_into: int,
    ) -> None:
        self._bounds = [known.upper_bound for known in relations]
        self._padding = padding
        self._looked_into = looked_into
        # Vertices that may go, the largest first, each with its keys: column -> the vertices that it is compared with.
        self._unique: list[tuple[int, list[list[int]]]] = []
        compared: list[dict[int, int]] = [{} for _ in relations]
        for edge in edges:
            if edge.join_type == INNER and edge.predicate.kind == "EqualTo" and edge.keys is not None:
                (one, a), (other, b) = edge.keys
                if edge.required != one | other or edge.required.bit_count() != 2:
                    continue
                for side, e, partner in ((one, a, other), (other, b, one)):
                    column = plain_column(e)
                    if column is not None:
                        found = compared[side.bit_length() - 1]
                        found[column.mask] = found.get(column.mask, 0) | partner
        for vertex, known in enumerate(relations):
            of_vertex = compared[vertex]
            keys = [partners for key in known.keys if (partners := _partners(key, of_vertex))]
            if keys:
                self._unique.append((1 << vertex, keys))
        self._unique.sort(key=lambda entry: (-self._bounds[entry[0].bit_length() - 1], entry[0]))

    def __call__(self, relations: int) -> float:
        """Rows that the join of a set cannot exceed; infinite if nothing is proved."""
        if relations & (relations - 1):
            relations &= ~self._looked_into
        if not relations & (relations - 1):
            return self._bounds[relations.bit_length() - 1]
        if self._padding.pads(relations):
            bounds = [bound for v, bound in enumerate(self._bounds) if relations >> v & 1]
            bounds = self._padding.widened(relations, bounds)
            return 0.0 if 0.0 in bounds else math.prod(bounds)
        gone = True
        while gone:
            gone = False
            for vertex, keys in self._unique:
                others = relations & ~vertex
                if relations & vertex and others and any(all(p & others for p in partners) for partners in keys):
                    relations, gone = others, True
        product = 1.0
        while relations:
            low = relations & -relations
            relations ^= low
            bound = self._bounds[low.bit_length() - 1]
            if bound == 0.0:
                return 0.0
            product *= bound
        return product


def _partners(key: int, compared: dict[int, int]) -> list[int]:
    """Per column of a key the vertices that it is compared with; none if one of them is not compared."""
    partners = []
    while key:
        low = key & -key
        key ^= low
        if low not in compared:
            return []
        partners.append(compared[low])
    return partners
