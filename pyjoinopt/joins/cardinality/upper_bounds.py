"""How many rows the join of a set of relations is *proved* not to exceed.

Without keys that is the product of the relations' bounds, which is soon too large to be useful. But a relation that is
unique on what it is compared by is *determined* by the others: it gives at most one row for each row of theirs, and may
in turn determine a third. The bound is the product over relations that determine all others,

    facts x days x stores x cities   with unique days, stores and cities:   facts.

What nothing determines is in every such product. Where that is not enough (of two relations that determine each other
one is needed), all that are missing are taken, and those go again that the others determine: once the largest first,
once the smallest first, for either may leave the smaller product. How relations are numbered makes no difference.

Where all rows of a relation were counted, it is known how many of them share a value at most. So many rows it has at
most for each row of what it is compared with, which may be far fewer than it has at all.

A set with outer joins in it is bounded by the product alone (`outer_joins`): of a padded row it is not known that the
key was compared at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.unique_keys import plain_column, times
from pyjoinopt.joins.cardinality.outer_joins import Padding
from pyjoinopt.joins.graph.hypergraph import Edge
from pyjoinopt.plan.nodes import INNER
from pyjoinopt.util.bitset import singletons

#: Of sets of more vertices the product has to do: nothing so large is small enough for a hint.
_MOST = 64


class Bounds:
    """Upper bounds of sets of vertices.

    Args:
        edges: of the join graph.
        relations: what is known of each vertex.
        padding: which relations its outer joins pad.
        semi_right: the right sides of semi and anti joins; they never multiply rows.
    """

    def __init__(
        self,
        edges: Sequence[Edge],
        relations: Sequence[RelationStatistics],
        padding: Padding,
        semi_right: int,
    ) -> None:
        self._bounds = [known.upper_bound for known in relations]
        self._padding = padding
        self._semi_rights = semi_right
        self._known: dict[int, float] = {}
        # Vertex -> the vertices that it may determine, each with what a whole key of it is compared with, by column.
        self._determines: dict[int, list[tuple[int, list[int]]]] = {}
        self._may_be_determined = 0
        compared: list[dict[int, int]] = [{} for _ in relations]
        counted = sum(1 << vertex for vertex, known in enumerate(relations) if known.keys or known.max_rows_per_value)
        for edge in edges:
            if edge.join_type == INNER and edge.predicate.kind == "EqualTo" and edge.keys is not None:
                (one, a), (other, b) = edge.keys
                if edge.tes != one | other or edge.tes.bit_count() != 2:
                    continue
                for side, e, partner in ((one, a, other), (other, b, one)):
                    column = plain_column(e) if side & counted else None
                    if column is not None:
                        found = compared[side.bit_length() - 1]
                        found[column.mask] = found.get(column.mask, 0) | partner
        for vertex, known in enumerate(relations):
            of_vertex = compared[vertex]
            for key in sorted(known.keys):
                if partners := _partners(key, of_vertex):
                    self._may_be_determined |= 1 << vertex
                    for partner in singletons(reduce(or_, partners)):
                        self._determines.setdefault(partner, []).append((1 << vertex, partners))
        # Vertex -> per counted column what it is compared with, and the most rows that share a value.
        self._most: dict[int, list[tuple[int, float]]] = {}
        for vertex, known in enumerate(relations):
            counts = ((compared[vertex].get(1 << bit, 0), count) for bit, count in known.max_rows_per_value.items())
            if found_here := [(partners, count) for partners, count in counts if partners]:
                self._most[1 << vertex] = found_here

    def __call__(self, relations: int) -> float:
        """Rows that the join of a set cannot exceed; infinite if nothing is proved."""
        if relations & (relations - 1):
            relations &= ~self._semi_rights
        if not relations & (relations - 1):
            return self._bounds[relations.bit_length() - 1]
        bound = self._known.get(relations)
        if bound is None:
            bound = self._known[relations] = self._proved(relations)
        return bound

    def _proved(self, relations: int) -> float:
        if self._padding.pads(relations):
            bounds = [bound for v, bound in enumerate(self._bounds) if relations >> v & 1]
            bounds = self._padding.widened(relations, bounds)
            return 0.0 if 0.0 in bounds else math.prod(bounds)
        chosen = self._determining(relations) if relations.bit_count() <= _MOST else relations
        alone = {vertex: self._bounds[vertex.bit_length() - 1] for vertex in singletons(chosen)}
        if 0.0 in alone.values():
            return 0.0
        product = math.prod(alone.values())
        if len(alone) > 1 and any(vertex in self._most for vertex in alone):
            product = min(product, *(self._from(first, alone, relations) for first in alone))
        return product

    def _from(self, first: int, bounds: dict[int, float], relations: int) -> float:
        """Rows at most, if a relation is joined first and each other one then meets its rows."""
        total, joined, rest = bounds[first], self._determined(first, relations), set(bounds)
        while rest := {vertex for vertex in rest if not joined & vertex}:
            met = {vertex: min(bounds[vertex], self._met(vertex, joined)) for vertex in rest}
            vertex = min(rest, key=lambda v: (met[v] >= bounds[v], met[v], v))
            total = times(total, met[vertex])
            joined = self._determined(joined | vertex, relations)
        return total

    def _met(self, vertex: int, joined: int) -> float:
        counts = (count for partners, count in self._most.get(vertex, ()) if partners & joined)
        return min(counts, default=math.inf)

    def _determining(self, relations: int) -> int:
        """Vertices of a set that determine all others of it, none of which the others determine."""
        chosen = relations & ~self._may_be_determined
        found = self._determined(chosen, relations)
        if found == relations:
            return chosen
        missing = sorted(singletons(relations & ~found), key=lambda v: self._bounds[v.bit_length() - 1])
        ways = [self._without_determined(relations, order) for order in (missing, missing[::-1])]
        return chosen | min(ways, key=lambda way: math.prod(self._bounds[v.bit_length() - 1] for v in singletons(way)))

    def _without_determined(self, relations: int, order: list[int]) -> int:
        """What is left of some vertices of a set if each goes, in this order, that all others of the set determine."""
        kept = sum(order)
        for vertex in order:
            if self._determined(relations & ~self._may_be_determined | kept & ~vertex, relations) == relations:
                kept &= ~vertex
        return kept

    def _determined(self, chosen: int, relations: int) -> int:
        """Some vertices and all of a set that they determine."""
        fresh = list(singletons(chosen))
        while fresh:
            for vertex, partners in self._determines.get(fresh.pop(), ()):
                if vertex & relations & ~chosen and all(p & chosen for p in partners):
                    chosen |= vertex
                    fresh.append(vertex)
        return chosen


def _partners(key: int, compared: dict[int, int]) -> list[int]:
    """Per column of a key the vertices that it is compared with; none if one of them is not compared."""
    partners = []
    for column in singletons(key):
        if column not in compared:
            return []
        partners.append(compared[column])
    return partners
