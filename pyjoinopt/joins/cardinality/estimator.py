"""Estimated rows of any set of relations of a join group.

A search that compares plans for one set of relations must see one row count for it, whichever join was last. So the
estimate is a function of the *set*: the product of the relations' rows, divided by what the predicates inside the set
remove.

**Equality classes.** a.k = b.k and b.k = c.k make one class {a.k, b.k, c.k}. Inside a set, a class with columns of m of
its relations divides the product by the m - 1 largest of their distinct counts (each join after the first finds its
partners in the larger domain; `estimation.plans.join_domains` says what counts after filters). Whether each pair was
written makes no difference: Spark infers the missing ones.

**Composite keys.** Two classes that connect the same pair of relations (l.part = p.part and l.supp = p.supp) are
columns of one key, and the product of their distinct counts may exceed the number of keys a thousandfold. A *bundle* of
such classes is limited by the rows of the relation that it is the key of (`composite_keys`).

**Samples of joins** correct what this says of relations with their dimensions (`join_synopses`).

**Everything else** (ranges, functions, what must wait for other relations) is a factor that counts once its TES is
complete. So is an outer join (`outer_joins`), and a row count that was observed when the query ran before.

"Product of all but the smallest" is the sum of all logarithms minus the smallest. So each relation has one constant,
each class adds one minimum, and disjoint sets can be combined from their minima alone (`Part`): that makes a greedy
search on a thousand relations affordable. Logarithms also cannot overflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Protocol

from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, Size
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import LikelyBound, RelationStatistics, likely_of
from pyjoinopt.joins.cardinality.graph_model import collect
from pyjoinopt.joins.cardinality.join_synopses import Synopsis, SynopsisCorrection
from pyjoinopt.joins.cardinality.log_cardinality import NO_COLUMN, Factor, LogCardinality
from pyjoinopt.joins.cardinality.null_keys import without_null_keys
from pyjoinopt.joins.cardinality.outer_joins import Padding, with_outer_joins
from pyjoinopt.joins.cardinality.row_widths import widths
from pyjoinopt.joins.cardinality.upper_bounds import Bounds
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.plan.spark_defaults import BROADCAST_THRESHOLD
from pyjoinopt.util.bitset import members

_HIGHEST = ASSUMPTIONS.largest_log
_EMPTY = ASSUMPTIONS.empty_result_rows
_DIGITS = ASSUMPTIONS.digits


class BuildableSides(Protocol):
    """For which joins a set of vertices may be built (`Size.build`)."""

    def __call__(self, relations: int, bytes: float, estimates: GraphEstimates) -> int:
        """For a set with these expected bytes; `estimates` has its upper bound."""


@dataclass(slots=True)
class Part:
    """A set of relations, with what is needed to estimate its join with another one.

    Attributes:
        relations: the set.
        log_rows: the logarithm of its rows.
        minima: term -> the minimum of its values over the set.
        waiting: the factors that it has a part of, but not all.
    """

    relations: int
    log_rows: float
    minima: dict[int, float]
    waiting: frozenset[int]


class GraphEstimates:
    """Rows, width and bytes of sets of vertices. Immutable but for its memo.

    Args:
        graph: the join graph.
        statistics: of each vertex, its filters included.
        needed: attributes that the query still reads above the group; None for all. Only for widths.
        never_null: attributes that are not NULL in any row that the query keeps above the group.
        true_rows: rows of sets of vertices that were counted when the query ran before.
        buildable: what a join may build of a set; None for what Spark broadcasts if it knows the sizes.
        synopses: samples of joins with dimensions.
        own_rows: right side of a semi or anti join -> share of the left rows that are among its rows.
    """

    def __init__(
        self,
        graph: JoinGraph,
        statistics: Sequence[RelationStatistics],
        needed: int | None = None,
        never_null: int = 0,
        true_rows: Mapping[int, float] | None = None,
        buildable: BuildableSides | None = None,
        synopses: Sequence[Synopsis] = (),
        own_rows: Mapping[int, float] | None = None,
    ) -> None:
        proved, statistics = statistics, without_null_keys(graph, statistics, never_null)
        self.relations = tuple(statistics)
        model = collect(graph, statistics, own_rows)
        self._terms_of: list[dict[int, float]] = [{} for _ in statistics]
        for t, term in enumerate(model.terms):
            for vertex, value in term.values.items():
                self._terms_of[vertex][t] = value
        self._signs = [term.sign for term in model.terms]
        self._read = needed if needed is None else reduce(or_, (e.predicate.references for e in graph.edges), needed)
        own = widths(graph.relations, statistics, self._read)
        # The right side of a semi join has a size of its own, but gives no column to any result.
        self._semi_widths = {right: own[right.bit_length() - 1] for right in graph.semi_rights}
        semi_right = sum(graph.semi_rights)
        given = [0.0 if semi_right >> v & 1 else width for v, width in enumerate(own)]
        outputs = [plan.output_set for plan in graph.relations]
        sums = _with_synopses(LogCardinality(model.base, model.terms, given, model.factors), synopses)
        self._uncounted = with_outer_joins(sums, graph.edges, statistics, outputs)
        self._true_rows = dict(true_rows or {})
        self._sums = _with_true_rows(self._uncounted, self._true_rows)
        padding, bounds = Padding.of(graph.edges), [known.upper_bound for known in proved]
        self._bounds = Bounds(graph.edges, proved, bounds, padding, semi_right)
        self._likely = self._bounds
        if any(known.likely is not None or known.frequency_bounds for known in proved):
            likely, frequencies = [s.likely_bound for s in proved], [s.frequency_bounds for s in proved]
            self._likely = Bounds(graph.edges, proved, likely, padding, semi_right, frequencies)
        self._buildable = buildable
        self._sizes: dict[int, Size] = {}

    def with_buildable(self, buildable: BuildableSides) -> GraphEstimates:
        """The same estimates, with another rule for what a join may build of a set."""
        other = copy(self)
        other._buildable, other._sizes = buildable, {}
        return other

    @property
    def counted(self) -> frozenset[int]:
        """The sets of two relations and more whose rows were counted."""
        return frozenset(relations for relations in self._true_rows if relations & (relations - 1))

    def assuming(self, relations: int, factor: float) -> GraphEstimates:
        """The estimates if a set of two relations or more, and all that contain it, had so many times the rows.

        What was counted keeps its rows, and so does what contains both. Bounds are unchanged.
        """
        other = copy(self)
        other._uncounted = self._uncounted.with_factor(Factor(relations, math.log(factor)))
        other._sums, other._sizes = _with_true_rows(other._uncounted, self._true_rows), {}
        return other

    def reads(self, bit: int) -> bool:
        """Whether a column is read by the joins, or above them."""
        return self._read is None or bool(self._read >> bit & 1)

    def rows(self, relations: int) -> float:
        """Estimated rows of the join of a set, at least 1 and at most what is proved; costs go by `size`."""
        return max(1.0, min(self.size(relations).rows, self.upper_bound(relations)))

    def bytes(self, relations: int) -> float:
        """Estimated bytes of the join of a set, of at least one row."""
        return self.rows(relations) * self.width(relations)

    def width(self, relations: int) -> float:
        """Bytes of a row of the join of a set; for one relation on the right of a semi join, of its own rows."""
        own = self._semi_widths.get(relations)
        return self._sums(relations).width if own is None else NO_COLUMN + own

    def size(self, relations: int, added: int = 0) -> Size:
        """Rows and bytes of a set, for costs. Less than one row means that the result is likely to be empty.

        It is computed faster where `added` is one relation of the set, and the rest was computed before.
        """
        size = self._sizes.get(relations)
        if size is None:
            if relations in self._semi_widths:
                rows = max(1.0, self.relations[relations.bit_length() - 1].rows)
                bytes = rows * self.width(relations)
            else:
                log_rows, width = self._sums(relations, added)
                rows = math.exp(round(max(-_HIGHEST, min(_HIGHEST, log_rows)), _DIGITS))
                bytes = rows * round(width, _DIGITS)
            if self._buildable is not None:
                if added and not added & (added - 1):
                    self._bounds.grow(relations, added)
                build = self._buildable(relations, bytes, self)
            else:
                build = BROADCAST_HASH if bytes <= BROADCAST_THRESHOLD else NO_BUILD
            size = self._sizes[relations] = Size(rows, bytes, build)
        return size

    def upper_bound(self, relations: int) -> float:
        """Rows that the join of a set is proved not to exceed; infinite if nothing is proved."""
        return self._bounds(relations)

    def likely_bound(self, relations: int) -> float:
        """Rows that the join of a set does not exceed, by a proof or by samples; for hints only."""
        proved = self._bounds(relations)
        return proved if self._likely is self._bounds else min(self._likely(relations), proved)

    def likely(self, relations: int) -> LikelyBound | None:
        """The bound that samples give the join of a set, if they give it one; it may be above what is proved."""
        return likely_of((self.relations[v] for v in members(relations)), self.likely_bound(relations))

    def statistics(self, relations: int) -> RelationStatistics:
        """The statistics of the join of a set, in the form that is used for plans."""
        parts = [self.relations[v] for v in members(relations)]
        rows, size = self.rows(relations), self.bytes(relations)
        exact = len(parts) == 1 and parts[0].exact
        columns = {bit: column for part in parts for bit, column in part.columns.items()}
        source = parts[0].source if len({p.source for p in parts}) == 1 else "mixed"
        known = RelationStatistics(rows, size, source, exact, columns, self.upper_bound(relations))
        return known.with_likely(self.likely(relations))

    def log_factor(self, vertex: int) -> float | None:
        """Logarithm of what a relation's join multiplies the rows of any other side with; None if sides differ."""
        return self._sums.log_factor(vertex)

    def part(self, vertex: int) -> Part:
        """A single vertex as a part."""
        relations = 1 << vertex
        minima = dict(self._terms_of[vertex])
        waiting = frozenset(f for f, (tes, _) in enumerate(self._sums.factors) if tes & relations)
        return Part(relations, self._sums(relations).log_rows, minima, waiting)

    def log_rows_with(self, a: Part, others: Iterable[Part]) -> Iterator[float]:
        """Logarithm of the rows of a part's join with each of some others, not limited to 1 row and more."""
        signs, own = self._signs, a.minima
        for b in others:
            total = a.log_rows + b.log_rows
            few, many = (own, b.minima) if len(own) <= len(b.minima) else (b.minima, own)
            for t, value in few.items():
                other = many.get(t)
                if other is not None:  # the smaller of the two minima is kept, the larger one divides
                    total -= signs[t] * (value if value > other else other)
            if a.waiting and b.waiting:
                both = a.relations | b.relations
                for f in a.waiting & b.waiting:
                    tes, factor = self._sums.factors[f]
                    if not tes & ~both:
                        total += factor
            for correction in self._sums.corrections:
                if correction.touched & a.relations and correction.touched & b.relations:
                    total += correction(a.relations | b.relations) - correction(a.relations) - correction(b.relations)
            yield total

    def joined(self, a: Part, b: Part) -> Part:
        """Two disjoint parts as one."""
        minima, fewer = (a.minima, b.minima) if len(a.minima) >= len(b.minima) else (b.minima, a.minima)
        minima = dict(minima)
        for t, value in fewer.items():
            other = minima.get(t)
            if other is None or value < other:
                minima[t] = value
        both = a.relations | b.relations
        waiting = frozenset(f for f in a.waiting | b.waiting if self._sums.factors[f][0] & ~both)
        return Part(both, next(self.log_rows_with(a, (b,))), minima, waiting)


def _with_synopses(sums: LogCardinality, synopses: Sequence[Synopsis]) -> LogCardinality:
    """The sums, corrected by samples of joins; those of smaller relations first."""
    plain = sums
    for synopsis in sorted(synopses, key=lambda s: (plain(s.center).log_rows, s.center)):
        way = {synopsis.center: synopsis.center}  # from the centre: what refers to a dimension may count in its share
        for p in synopsis.partners:
            way[p.vertex] = way[p.of] | p.vertex
        shares = [sums(way[p.vertex]).log_rows - sums(way[p.of]).log_rows for p in synopsis.partners]
        sums = sums.with_correction(SynopsisCorrection(synopsis, shares))
    return sums


def _with_true_rows(sums: LogCardinality, rows: Mapping[int, float]) -> LogCardinality:
    """The sums, with true row counts of sets of two relations and more.

    Each is a factor that larger sets inherit. Those inside it are taken first, so the set itself comes out exactly.
    """
    for relations in sorted(rows, key=lambda s: (s.bit_count(), s)):
        if relations & (relations - 1):
            true = math.log(max(_EMPTY, rows[relations]))
            sums = sums.with_factor(Factor(relations, true - sums(relations).log_rows))
    return sums
