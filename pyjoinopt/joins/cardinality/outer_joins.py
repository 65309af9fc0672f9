"""Outer joins among the relations of a join group: their factors, and what padding does to upper bounds.

The factor of an outer join is the share of pairs of rows that its condition keeps, but never so small that fewer rows
are left than the preserved side has. How many rows the padded side has must not depend on the set that is estimated,
or two orders of one set would have two estimates. So it is what that side *must* contain, its TES; what may join it
there beyond that, left joins, removes no rows. Hence rows(A and B) >= rows(A) for every A that contains the preserved
side.

A filter over one relation that remains above the outer join that pads it (`b.x IS NULL`, for rows without a partner)
keeps what it would keep of that relation with so many more NULLs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.join import padded_column, share_of_pairs
from pyjoinopt.estimation.plans.selectivity import selectivity
from pyjoinopt.joins.cardinality.log_cardinality import Factor, LogCardinality
from pyjoinopt.joins.graph.hypergraph import Edge, OperatorEdge
from pyjoinopt.plan.nodes import FULL, INNER, LEFT
from pyjoinopt.util.bitset import members

_LEAST_PAIRS = ASSUMPTIONS.least_share_of_pairs
_LEAST = ASSUMPTIONS.least_share
_ANTI_LEAST = ASSUMPTIONS.anti_join_least


def is_applied_above(edge: Edge) -> bool:
    """Whether the edge is an outer join, or a filter over one relation that remains above joins."""
    return edge.join_type in (LEFT, FULL) or (edge.join_type == INNER and edge.ses.bit_count() == 1)


def with_outer_joins(
    sums: LogCardinality, edges: Iterable[Edge], statistics: Sequence[RelationStatistics], outputs: Sequence[int]
) -> LogCardinality:
    """The sums of sets of relations, with the factors of outer joins and of the filters above them.

    Args:
        sums: without these.
        edges: all edges of the join graph.
        statistics, outputs: of each relation, and its columns as an attribute mask.
    """
    above = [edge for edge in edges if is_applied_above(edge)]
    padded: dict[int, float] = {}  # vertex -> share of rows in which it is padded
    for edge in sorted(above, key=lambda edge: (edge.tes.bit_count(), edge.join_type == INNER)):
        if isinstance(edge, OperatorEdge):
            factor, share = _join_factor(edge, sums, statistics, outputs)
            for vertex in members(_padded_by(edge)):
                padded[vertex] = max(padded.get(vertex, 0.0), _ANTI_LEAST, share)
        else:
            factor = _filter_factor(edge, statistics, padded)
        sums = sums.with_factor(Factor(edge.tes, factor))
    return sums


def _padded_by(edge: OperatorEdge) -> int:
    """The relations that an outer join must have on the sides that it pads."""
    return edge.right_tes | (edge.left_tes if edge.join_type == FULL else 0)


def _join_factor(
    edge: OperatorEdge, sums: LogCardinality, statistics: Sequence[RelationStatistics], outputs: Sequence[int]
) -> tuple[float, float]:
    """An outer join: the logarithm of what the product of its sides' rows is multiplied with, and the share padded."""
    sides = edge.left_tes, edge.right_tes
    log_rows = [sums(side).log_rows for side in sides]
    left, right = (_together([known for v, known in enumerate(statistics) if side >> v & 1]) for side in sides)
    columns = 0
    for vertex, output in enumerate(outputs):
        if edge.right_tes >> vertex & 1:
            columns |= output
    kept = math.log(max(_LEAST_PAIRS, share_of_pairs(edge.predicate, left, right, columns)))
    factor = max(kept, -log_rows[1], -log_rows[0] if edge.join_type == FULL else -math.inf)
    return factor, 1.0 - math.exp(kept - factor)


def _filter_factor(edge: Edge, statistics: Sequence[RelationStatistics], padded: Mapping[int, float]) -> float:
    """Logarithm of the share of rows that a filter above the joins that pad its relation keeps."""
    vertex = edge.ses.bit_length() - 1
    known = statistics[vertex]
    columns = dict(known.columns)
    for bit in members(edge.predicate.references):
        columns[bit] = padded_column(known.column(bit), padded.get(vertex, 0.0))
    return math.log(max(_LEAST, selectivity(edge.predicate, replace(known, columns=columns))))


@dataclass(frozen=True)
class Padding:
    """Which relations the outer joins of a graph may pad: by left joins, and by full joins."""

    by_left: int
    by_full: int

    @classmethod
    def of(cls, edges: Iterable[Edge]) -> Padding:
        """That of a join graph's edges."""
        left = full = 0
        for edge in edges:
            if isinstance(edge, OperatorEdge) and edge.join_type == FULL:
                full |= edge.max_left | edge.max_right
            elif isinstance(edge, OperatorEdge) and edge.join_type == LEFT:
                left |= edge.max_right
        return cls(left, full)

    def pads(self, relations: int) -> bool:
        """Whether rows of some relation of a set may be filled up with NULLs in its join."""
        return bool(relations & (self.by_left | self.by_full))

    def widened(self, relations: int, bounds: Sequence[float]) -> list[float]:
        """Upper bounds of the relations of a set whose product bounds its outer joins, too.

        A left join has at most as many rows as the product, if that counts an empty padded side as one row. A full
        join has at most l * r + l + r < (l + 1) * (r + 1).
        """
        if not self.pads(relations):
            return list(bounds)
        return [
            max(bound, float(self.by_left >> vertex & 1)) + (self.by_full >> vertex & 1)
            for vertex, bound in zip(members(relations), bounds, strict=True)
        ]


def _together(parts: Sequence[RelationStatistics]) -> RelationStatistics:
    """Enough of several relations' statistics to estimate a condition over them."""
    columns = {bit: column for part in parts for bit, column in part.columns.items()}
    most = max((part.base_rows for part in parts), default=1.0)
    rows = max((part.rows for part in parts), default=1.0)
    return RelationStatistics(max(1.0, rows), 0.0, "group", False, columns, unfiltered=most)
