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

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import FULL, LEFT
from pyjoinopt.statistics.joins import ANTI_LEAST, padded_column, share_of_pairs
from pyjoinopt.statistics.relation import RelationStatistics
from pyjoinopt.statistics.selectivity import selectivity

_LEAST = 1e-6  # an estimate of no row at all is never meant so


class OuterJoin(Protocol):
    """What is read of an edge of a join graph."""

    @property
    def predicate(self) -> Expression: ...
    @property
    def required(self) -> int: ...
    @property
    def join_type(self) -> str: ...
    @property
    def sides(self) -> tuple[int, int]: ...
    @property
    def room(self) -> tuple[int, int]: ...


class Padding:
    """The outer joins of a graph, what stands inside of another before that one, and what they pad.

    `share` has per relation the share of rows in which it is padded, as far as `note` was told.
    """

    def __init__(self, edges: Iterable[OuterJoin]) -> None:
        outer = [edge for edge in edges if edge.join_type in (LEFT, FULL)]
        self.joins = sorted(outer, key=lambda edge: edge.required.bit_count())
        self._padded = self._full = 0
        self.share: defaultdict[int, float] = defaultdict(float)
        for edge in self.joins:
            if edge.join_type == FULL:
                self._full |= edge.room[0] | edge.room[1]
            else:
                self._padded |= edge.room[1]

    def note(self, edge: OuterJoin, share: float) -> None:
        """Remember the share of rows that a join pads."""
        sides = edge.sides[1] | (edge.sides[0] if edge.join_type == FULL else 0)
        for vertex in range(sides.bit_length()):
            if sides >> vertex & 1:
                self.share[vertex] = max(self.share[vertex], share)

    def widened(self, relations: int, bounds: Sequence[float]) -> list[float]:
        """Upper bounds of the relations of a set whose product bounds its outer joins, too.

        A left join has at most as many rows as the product, if that counts an empty padded side as one row. A full
        join has at most l * r + l + r < (l + 1) * (r + 1).
        """
        if not relations & (self._padded | self._full):
            return list(bounds)
        members = [v for v in range(relations.bit_length()) if relations >> v & 1]
        return [
            max(bound, float(self._padded >> vertex & 1)) + (self._full >> vertex & 1)
            for vertex, bound in zip(members, bounds, strict=True)
        ]


def outer_factor(
    edge: OuterJoin, log_rows: tuple[float, float], statistics: Sequence[RelationStatistics], outputs: Sequence[int]
) -> tuple[float, float]:
    """(logarithm of what an outer join multiplies the product of its sides' rows with, share of padded rows).

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
    kept = math.log(max(1e-300, share_of_pairs(edge.predicate, left, right, columns)))
    factor = max(kept, -log_rows[1], -log_rows[0] if edge.join_type == FULL else -math.inf)
    return factor, max(ANTI_LEAST, 1.0 - math.exp(kept - factor))


def share_above(predicate: Expression, known: RelationStatistics, padded: float) -> float:
    """Share of rows that a filter over one relation keeps, of which a share is padded."""
    columns = dict(known.columns)
    for bit in range(predicate.references.bit_length()):
        if predicate.references >> bit & 1:
            columns[bit] = padded_column(known.column(bit), padded)
    return max(_LEAST, selectivity(predicate, replace(known, columns=columns)))


def _together(parts: Sequence[RelationStatistics]) -> RelationStatistics:
    """Enough of several relations' statistics to judge a condition over them."""
    columns = {bit: column for part in parts for bit, column in part.columns.items()}
    most = max((part.base_rows for part in parts), default=1.0)
    rows = max((part.rows for part in parts), default=1.0)
    return RelationStatistics(max(1.0, rows), 0.0, "group", False, columns, unfiltered=most)
