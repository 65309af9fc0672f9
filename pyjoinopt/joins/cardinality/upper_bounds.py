"""How many rows the join of a set of relations is *proved* not to exceed, from the bounds of the relations.

Without keys that is the product of the relations' bounds, which is soon too large to be useful. But a relation that is
unique on what it is compared by is *determined* by the others: it gives at most one row for each row of theirs, and may
in turn determine a third. The bound is the product over relations that determine all others,

    facts x days x stores x cities   with unique days, stores and cities:   facts.

What nothing determines is in every such product. Where that is not enough (of two relations that determine each other
one is needed), all that are missing are taken, and those go again that the others determine: once the largest first,
once the smallest first, for either may leave the smaller product. How relations are numbered makes no difference.

Where all rows of a relation were counted, it is known how many of them share a value at most. So many rows it has at
most for each row of what it is compared with, which may be far fewer than it has at all.

The same calculus over bounds that samples support gives bounds that hold unless one of these is broken. There, sketches
of a column's frequencies bound their l2 norm, too (`estimation.model.frequency_sketch`): no value has more rows than
that, and two relations give no more rows than the product of their norms. Of so many rows that a filter leaves, with at
most so many for each value, the square of the norm is at most the product of these two.

A set with outer joins in it is bounded by the product alone (`outer_joins`): of a padded row it is not known that the
key was compared at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyjoinopt.estimation.model.relation_statistics import FrequencyBound, RelationStatistics
from pyjoinopt.estimation.plans.unique_keys import plain_column, times
from pyjoinopt.joins.cardinality.outer_joins import Padding
from pyjoinopt.joins.graph.hypergraph import Edge
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import INNER
from pyjoinopt.util.bitset import members, singletons

#: Of sets of more vertices the product has to do: nothing so large is small enough for a hint.
_MOST = 64
#: More rows than this bound nothing.
_HUGE = 1e300


class Bounds:
    """Upper bounds of sets of vertices.

    Args:
        edges: of the join graph.
        relations: what is known of each vertex.
        bounds: rows that each vertex does not exceed; proved, or supported by samples.
        padding: which relations its outer joins pad.
        semi_right: the right sides of semi and anti joins; they never multiply rows.
        frequencies: of each vertex what bounds its columns' frequencies; for bounds that samples support.
    """

    def __init__(
        self,
        edges: Sequence[Edge],
        relations: Sequence[RelationStatistics],
        bounds: Sequence[float],
        padding: Padding,
        semi_right: int,
        frequencies: Sequence[Mapping[int, FrequencyBound]] = (),
    ) -> None:
        self._bounds = list(bounds)
        self._padding = padding
        self._semi_rights = semi_right
        self._empty = sum(1 << vertex for vertex, bound in enumerate(self._bounds) if bound == 0.0)
        self._known: dict[int, float] = {}
        # Vertex -> the vertices that it may determine, each with what a whole key of it is compared with, by column.
        self._determines: dict[int, list[tuple[int, list[int]]]] = {}
        # Vertex -> per key of it what its columns are compared with.
        self._keys: dict[int, list[list[int]]] = {}
        compared: list[dict[int, int]] = [{} for _ in relations]
        most = [_most_per_value(known, of) for known, of in zip(relations, frequencies or [{}] * len(relations))]
        counted = sum(1 << vertex for vertex, known in enumerate(relations) if known.keys or most[vertex])
        pairs: dict[int, float] = {}
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
                sides = [(v.bit_length() - 1, e) for v, e in edge.keys]
                if frequencies and any((column := plain_column(e)) and column.bit in frequencies[v] for v, e in sides):
                    squares = (
                        _squared_norm(e, relations[v], self._bounds[v], most[v], frequencies[v]) for v, e in sides
                    )
                    rows = math.ceil(math.sqrt(min(times(*squares), _HUGE)))
                    pairs[edge.tes] = min(rows, pairs.get(edge.tes, math.inf))
        for vertex, known in enumerate(relations):
            of_vertex = compared[vertex]
            for key in sorted(known.keys):
                if partners := _partners(key, of_vertex):
                    self._keys.setdefault(1 << vertex, []).append(partners)
                    for partner in singletons(reduce(or_, partners)):
                        self._determines.setdefault(partner, []).append((1 << vertex, partners))
        # Pairs of vertices, each with the rows of their join at most, by the norms of two columns; the fewest first.
        self._pairs = sorted(pairs.items(), key=lambda pair: (pair[1], pair[0]))
        self._may_be_determined = sum(self._keys)
        self._acyclic = _is_acyclic(self._keys)
        self._products: dict[int, float] = {}
        self._undetermined: dict[int, int] = {}
        # Vertex -> per counted column what it is compared with, and the most rows that share a value.
        self._most: dict[int, list[tuple[int, float]]] = {}
        for vertex in range(len(relations)):
            counts = ((compared[vertex].get(1 << bit, 0), count) for bit, count in most[vertex].items())
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
        if relations & self._empty:
            return 0.0  # though it may be determined by others, and not be in the product
        chosen = self._determining(relations) if relations.bit_count() <= _MOST else relations
        product = self._product(chosen)
        if product and self._most and chosen & (chosen - 1):
            alone = {vertex: self._bounds[vertex.bit_length() - 1] for vertex in singletons(chosen)}
            if any(vertex in self._most for vertex in alone):
                product = min(product, *(self._from(v, alone[v], alone, relations) for v in alone))
        for pair, rows in self._pairs:
            if rows >= product:
                break
            if not pair & ~relations:
                alone = {vertex: self._bounds[vertex.bit_length() - 1] for vertex in singletons(chosen)}
                product = min(product, self._from(pair, rows, alone, relations))
        return product

    def _product(self, relations: int) -> float:
        """The product of the bounds of some relations."""
        product = self._products.get(relations)
        if product is None:
            bounds = [self._bounds[vertex] for vertex in members(relations)]
            product = self._products[relations] = 0.0 if 0.0 in bounds else math.prod(bounds)
        return product

    def _from(self, first: int, rows: float, bounds: dict[int, float], relations: int) -> float:
        """Rows at most, if some relations are joined first, with so many rows, and each other one then meets these."""
        total, joined, rest = rows, self._determined(first, relations), set(bounds)
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
        chosen = self._undetermined.get(relations)
        if chosen is None:
            chosen = self._undetermined[relations] = self._undetermined_of(relations)
        if self._acyclic:
            return chosen
        found = self._determined(chosen, relations)
        if found == relations:
            return chosen
        missing = sorted(singletons(relations & ~found), key=lambda v: self._bounds[v.bit_length() - 1])
        ways = [self._without_determined(relations, chosen, order) for order in (missing, missing[::-1])]
        return chosen | min(ways, key=self._product)

    def grow(self, relations: int, added: int) -> None:
        """Prepare the bound of a set that is one relation larger than one whose bound was needed."""
        before = self._undetermined.get(relations ^ added)
        if before is None or relations in self._undetermined:
            return
        for vertex, partners in self._determines.get(added, ()):
            if vertex & before and all(p & relations for p in partners):
                before ^= vertex
        keys = self._keys.get(added, ())
        if not any(all(p & relations for p in partners) for partners in keys):
            before |= added
        self._undetermined[relations] = before

    def _undetermined_of(self, relations: int) -> int:
        """The vertices of a set that all others of it together do not determine.

        Where no two vertices can determine each other, these determine the whole set: the vertices that determine a
        vertex come before it in some order, and the first ones of that order are among these.
        """
        found = relations & ~self._may_be_determined
        rest = relations ^ found
        while rest:
            vertex = rest & -rest
            rest ^= vertex
            for partners in self._keys[vertex]:
                for partner in partners:
                    if not partner & relations:
                        break
                else:
                    break
            else:
                found |= vertex
        return found

    def _without_determined(self, relations: int, chosen: int, order: list[int]) -> int:
        """What is left of some vertices of a set if each goes, in this order, that all others of the set determine."""
        kept = sum(order)
        for vertex in order:
            if self._determined(chosen | kept & ~vertex, relations) == relations:
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


def _squared_norm(
    e: Expression,
    known: RelationStatistics,
    rows: float,
    most: Mapping[int, float],
    frequencies: Mapping[int, FrequencyBound],
) -> float:
    """Bound of the squared l2 norm of a column's frequencies among so many rows at most."""
    column = plain_column(e)
    if column is None:
        return math.inf
    largest = 1.0 if known.is_unique(column.mask) else most.get(column.bit, math.inf)
    square = frequencies[column.bit].norm ** 2 if column.bit in frequencies else math.inf
    return min(square, times(rows, largest))


def _most_per_value(known: RelationStatistics, frequencies: Mapping[int, FrequencyBound]) -> dict[int, float]:
    """Attribute number -> rows that share a value of it at most, by counts, sketches and samples."""
    most = dict(known.max_rows_per_value)
    for bit, bound in frequencies.items():
        most[bit] = min(most.get(bit, math.inf), bound.most)
    return most


def _is_acyclic(keys: dict[int, list[list[int]]]) -> bool:
    """True if no vertex determines itself by way of others."""
    left = {vertex: reduce(or_, (partner for partners in of for partner in partners)) for vertex, of in keys.items()}
    everything = sum(left)
    while first := [vertex for vertex, partners in left.items() if not partners & everything]:
        for vertex in first:
            del left[vertex]
            everything ^= vertex
    return not left


def _partners(key: int, compared: dict[int, int]) -> list[int]:
    """Per column of a key the vertices that it is compared with; none if one of them is not compared."""
    partners = []
    for column in singletons(key):
        if column not in compared:
            return []
        partners.append(compared[column])
    return partners
