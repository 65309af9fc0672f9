"""Outer joins among the relations of a join group: their factor, and what padding does to upper bounds.

The factor of an outer join is the share of pairs of rows that its condition keeps, but never so small that fewer rows
are left than the preserved side has. How many rows the padded side has must not depend on the set that is estimated,
or two orders of one set would have two estimates. So it is what that side *must* hold; what may join it there beyond
that, left joins, takes no rows away. Hence rows(A and B) >= rows(A) for every A that holds the preserved side.

A filter over one relation that stays above the outer join that pads it (`b.x IS NULL`, for rows without a partner)
keeps what it would of that relation with so many more NULLs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.join import padded_column, share_of_pairs
from pyjoinopt.estimation.plans.selectivity import selectivity
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import FULL, INNER, LEFT

_LEAST_PAIRS = ASSUMPTIONS.least_share_of_pairs
_LEAST = ASSUMPTIONS.least_share
_ANTI_LEAST = ASSUMPTIONS.anti_join_least


class Edge(Protocol):
    """What is read of an edge of a join graph."""

    @property
    def predicate(self) -> Expression: ...
    @property
    def relations(self) -> int: ...
    @property
    def required(self) -> int: ...
    @property
    def join_type(self) -> str: ...
    @property
    def sides(self) -> tuple[int, int]: ...
    @property
    def room(self) -> tuple[int, int]: ...


def is_applied_above(edge: Edge) -> bool:
    """Is the edge an outer join, or a filter over one relation that stays above joins?"""
    return edge.join_type in (LEFT, FULL) or (edge.join_type == INNER and edge.relations.bit_count() == 1)


class OuterJoinFactors:
    """The outer joins of a graph and the filters above them, in an order in which they can be estimated."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        waiting = [edge for edge in edges if is_applied_above(edge)]
        self.edges = sorted(waiting, key=lambda edge: (edge.required.bit_count(), edge.join_type == INNER))
        self._padded = self._full = 0
        self._share: defaultdict[int, float] = defaultdict(float)
        for edge in self.edges:
            if edge.join_type == FULL:
                self._full |= edge.room[0] | edge.room[1]
            elif edge.join_type == LEFT:
                self._padded |= edge.room[1]

    def join_factor(
        self,
        edge: Edge,
        log_rows: tuple[float, float],
        statistics: Sequence[RelationStatistics],
        outputs: Sequence[int],
    ) -> float:
        """Logarithm of what an outer join multiplies the product of its sides' rows with.

        Args:
            edge: the join.
            log_rows: logarithms of the rows of what its sides must hold.
            statistics, outputs: of each relation of the graph, and its columns.
        """
        left, right = (_together([known for v, known in enumerate(statistics) if side >> v & 1]) for side in edge.sides)
        columns = 0
        for vertex, output in enumerate(outputs):
            if edge.sides[1] >> vertex & 1:
                columns |= output
        kept = math.log(max(_LEAST_PAIRS, share_of_pairs(edge.predicate, left, right, columns)))
        factor = max(kept, -log_rows[1], -log_rows[0] if edge.join_type == FULL else -math.inf)
        padded = edge.sides[1] | (edge.sides[0] if edge.join_type == FULL else 0)
        for vertex in range(padded.bit_length()):
            if padded >> vertex & 1:
                self._share[vertex] = max(self._share[vertex], _ANTI_LEAST, 1.0 - math.exp(kept - factor))
        return factor

    def filter_factor(self, edge: Edge, statistics: Sequence[RelationStatistics]) -> float:
        """Logarithm of the share of rows that a filter above the joins that pad its relation keeps."""
        vertex = edge.relations.bit_length() - 1
        known, bits = statistics[vertex], edge.predicate.references
        columns = dict(known.columns)
        for bit in range(bits.bit_length()):
            if bits >> bit & 1:
                columns[bit] = padded_column(known.column(bit), self._share[vertex])
        return math.log(max(_LEAST, selectivity(edge.predicate, replace(known, columns=columns))))

    def pads(self, relations: int) -> bool:
        """May rows of some relation of a set be filled up with NULLs in its join?"""
        return bool(relations & (self._padded | self._full))

    def widened(self, relations: int, bounds: Sequence[float]) -> list[float]:
        """Upper bounds of the relations of a set whose product bounds its outer joins, too.

        A left join has at most as many rows as the product, if that counts an empty padded side as one row. A full
        join has at most l * r + l + r < (l + 1) * (r + 1).
        """
        if not self.pads(relations):
            return list(bounds)
        members = [v for v in range(relations.bit_length()) if relations >> v & 1]
        return [
            max(bound, float(self._padded >> vertex & 1)) + (self._full >> vertex & 1)
            for vertex, bound in zip(members, bounds, strict=True)
        ]


def _together(parts: Sequence[RelationStatistics]) -> RelationStatistics:
    """Enough of several relations' statistics to judge a condition over them."""
    columns = {bit: column for part in parts for bit, column in part.columns.items()}
    most = max((part.base_rows for part in parts), default=1.0)
    rows = max((part.rows for part in parts), default=1.0)
    return RelationStatistics(max(1.0, rows), 0.0, "group", False, columns, unfiltered=most)
