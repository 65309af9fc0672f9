"""Rows of any set of relations of a join group.

A search that compares plans for one set of relations must see one row count for it, whichever join was last. So the
estimate is a function of the *set*: the product of the relations' rows, over what the predicates inside the set
take away.

**Equality classes.** a.k = b.k and b.k = c.k make one class {a.k, b.k, c.k}. Inside a set, a class that touches m of
its relations divides the product by the m - 1 largest of their distinct counts (each join after the first finds its
partners among the larger domain; `domains` says what counts after filters). It does so whether or not each pair was
written: Spark infers the missing ones.

**Composite keys.** Two classes that tie the same pair of relations (l.part = p.part and l.supp = p.supp) are columns
of one key, and the product of their distinct counts may exceed the number of keys a thousandfold. A *bundle* of such
classes is capped by the rows of the relation that it is the key of (`classes.key_rows`).

**Everything else** (ranges, functions, what must wait for other relations) is a factor, once its `required` set is
complete. So is an outer join (see `padding`).

"Product of all but the smallest" is the sum of all logarithms minus the smallest. So each relation has one constant,
each class adds one minimum, and disjoint sets can be put together from their minima alone (`Part`): that makes a greedy
search on a thousand relations affordable. Logarithms also cannot overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyjoinopt.cost.size import BROADCAST_TABLE, NO_TABLE, Size
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.join import combined_columns, member, residual_selectivity, share_kept, share_left
from pyjoinopt.estimation.plans.join_domains import Member, met_domains, shared_domains
from pyjoinopt.estimation.plans.unique_keys import plain_mask
from pyjoinopt.joins.cardinality.composite_keys import Term, bundle_terms
from pyjoinopt.joins.cardinality.log_cardinality import Sums
from pyjoinopt.joins.cardinality.null_keys import without_null_keys
from pyjoinopt.joins.cardinality.outer_joins import OuterJoinFactors, is_applied_above
from pyjoinopt.joins.cardinality.row_widths import widths
from pyjoinopt.joins.cardinality.upper_bounds import Bounds
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.facts.or_extraction import top_filters
from pyjoinopt.plan.nodes import INNER
from pyjoinopt.plan.spark_defaults import BROADCAST_THRESHOLD
from pyjoinopt.util.disjoint_sets import DisjointSets

Counting = Callable[[Sequence[Member]], list[float]]
_HIGHEST = ASSUMPTIONS.largest_log
_NO_ROWS = ASSUMPTIONS.empty_relation_rows
_EMPTY = ASSUMPTIONS.empty_result_rows
_LEAST_SHARE = ASSUMPTIONS.least_share
_DIGITS = ASSUMPTIONS.digits


@dataclass(slots=True)
class Part:
    """A set of relations with what is needed to join it to another: logarithm of its rows, minima of its terms."""

    relations: int
    log_rows: float
    minima: dict[int, float]
    waiting: frozenset[int]


class GraphEstimates:
    """Rows, width and bytes of sets of vertices.

    Args:
        graph: the join graph.
        statistics: of each vertex, its filters included.
        needed: attributes that the query still reads above the group; None for all. Only for widths.
        never_null: attributes that are not NULL in any row that the query keeps above the group.
    """

    def __init__(
        self,
        graph: JoinGraph,
        statistics: Sequence[RelationStatistics],
        needed: int | None = None,
        never_null: int = 0,
    ) -> None:
        proved, statistics = statistics, without_null_keys(graph, statistics, never_null)
        self.relations = tuple(statistics)
        self._outputs = [plan.output_set for plan in graph.relations]
        self._sizes: dict[int, Size] = {}
        self._table: Callable[[int, float], int] = _by_size
        self._terms: list[Term] = []
        factors: list[tuple[int, float]] = []  # (required vertices, logarithm of the selectivity)
        base = [math.log(max(1.0, s.rows) if s.rows > 0 else _NO_ROWS) for s in statistics]
        self._collect(graph, base, factors)
        for term in self._terms:
            for vertex, value in term.values.items():
                base[vertex] -= term.sign * value
        self._terms_of: list[dict[int, float]] = [{} for _ in base]
        for t, term in enumerate(self._terms):
            for vertex, value in term.values.items():
                self._terms_of[vertex][t] = value
        self._signs = [term.sign for term in self._terms]
        self._read = needed if needed is None else reduce(or_, (e.predicate.references for e in graph.edges), needed)
        self._sums = Sums(base, self._terms, widths(graph.relations, statistics, self._read))
        for required, factor in factors:
            self._sums.factor(required, factor)
        self._padding = OuterJoinFactors(graph.edges)
        for edge in self._padding.edges:
            if edge.join_type == INNER:
                factor = self._padding.filter_factor(edge, statistics)
            else:
                inputs = self._log_rows(edge.sides[0]), self._log_rows(edge.sides[1])
                factor = self._padding.join_factor(edge, inputs, statistics, self._outputs)
            self._sums.factor(edge.required, factor)
        semi_right = 0
        # A relation that a semi join looks into has a size of its own, but gives no column to any result.
        for edge in graph.edges:
            if edge.right:
                vertex = edge.right.bit_length() - 1
                rows = max(1.0, statistics[vertex].rows)
                bytes = rows * self.width(edge.right)
                self._sizes[edge.right] = Size(rows, bytes, self._table(edge.right, bytes))
                self._sums.without_columns(vertex)
                semi_right |= edge.right
        self._bounds = Bounds(graph.edges, proved, self._padding, semi_right)

    def apply_true_rows(self, rows: Mapping[int, float]) -> None:
        """Take true row counts of sets of two relations and more; to be called before anything is asked.

        Each is a factor that larger sets inherit. Those inside it are taken first, so the set itself comes out exactly.
        """
        for relations in sorted(rows, key=lambda s: (s.bit_count(), s)):
            if relations & (relations - 1):
                true = math.log(max(_EMPTY, rows[relations]))
                self._sums.factor(relations, true - self._log_rows(relations))

    def set_buildable(self, table: Callable[[int, float], int]) -> None:
        """Have it said of sets, given with their bytes, what may be built of them (`Size.table`)."""
        self._table = table
        self._sizes = {s: Size(size.rows, size.bytes, table(s, size.bytes)) for s, size in self._sizes.items()}

    # -- questions ---------------------------------------------------------------------------------------------

    def reads(self, bit: int) -> bool:
        """Is a column read by the joins, or above them?"""
        return self._read is None or bool(self._read >> bit & 1)

    def rows(self, relations: int) -> float:
        """Estimated rows of the join of a set, at least 1 and at most what is proved; costs go by `size`."""
        return max(1.0, min(self.size(relations).rows, self.upper_bound(relations)))

    def bytes(self, relations: int) -> float:
        """Estimated bytes of the join of a set, of at least one row."""
        return self.rows(relations) * self.width(relations)

    def width(self, relations: int) -> float:
        """Bytes of a row of the join of a set."""
        return self._sums(relations).width

    def size(self, relations: int, added: int = 0) -> Size:
        """Rows and bytes of a set, for costs; there may be less than one row: the result is likely to be empty then.

        It is found sooner where `added` is one relation of it, and the others were asked for before.
        """
        size = self._sizes.get(relations)
        if size is None:
            log_rows, width = self._sums(relations, added)
            rows = math.exp(round(max(-_HIGHEST, min(_HIGHEST, log_rows)), _DIGITS))
            bytes = rows * round(width, _DIGITS)
            size = self._sizes[relations] = Size(rows, bytes, self._table(relations, bytes))
        return size

    def upper_bound(self, relations: int) -> float:
        """Rows that the join of a set is proved not to exceed; infinite if nothing is proved."""
        return self._bounds(relations)

    def statistics(self, relations: int) -> RelationStatistics:
        """What is known of the join of a set, in the form that is used for plans."""
        parts = [s for v, s in enumerate(self.relations) if relations >> v & 1]
        rows, size = self.rows(relations), self.bytes(relations)
        exact = len(parts) == 1 and parts[0].exact
        columns = {bit: column for part in parts for bit, column in part.columns.items()}
        source = parts[0].source if len({p.source for p in parts}) == 1 else "mixed"
        return RelationStatistics(rows, size, source, exact, columns, self.upper_bound(relations))

    def part(self, vertex: int) -> Part:
        """A single vertex as a part."""
        relations = 1 << vertex
        minima = dict(self._terms_of[vertex])
        waiting = frozenset(f for f, (required, _) in enumerate(self._sums.factors) if required & relations)
        return Part(relations, self._log_rows(relations), minima, waiting)

    def log_rows_with(self, a: Part, others: Iterable[Part]) -> Iterator[float]:
        """Logarithm of the rows of a part's join with each of some others, not limited to 1 row and more."""
        signs, own = self._signs, a.minima
        for b in others:
            total = a.log_rows + b.log_rows
            few, many = (own, b.minima) if len(own) <= len(b.minima) else (b.minima, own)
            for t, value in few.items():
                other = many.get(t)
                if other is not None:  # the smaller of the two minima stays, the larger one divides
                    total -= signs[t] * (value if value > other else other)
            if a.waiting and b.waiting:
                both = a.relations | b.relations
                for f in a.waiting & b.waiting:
                    required, factor = self._sums.factors[f]
                    if not required & ~both:
                        total += factor
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

    # -- arithmetic --------------------------------------------------------------------------------------------

    def _log_rows(self, relations: int) -> float:
        return self._sums(relations).log_rows

    def _collect(self, graph: JoinGraph, base: list[float], factors: list[tuple[int, float]]) -> None:
        """Sort the edges into classes, bundles and factors."""
        columns: dict[object, tuple[int, Expression]] = {}
        linked = DisjointSets[object]()
        for edge in graph.edges:
            if edge.join_type == INNER and edge.keys is not None and _ties_two(edge):
                (left, a), (right, b) = edge.keys
                one, two = _column_key(a), _column_key(b)
                if one not in columns:
                    columns[one] = left.bit_length() - 1, a
                if two not in columns:
                    columns[two] = right.bit_length() - 1, b
                linked.union(one, two)
                continue
            if edge.right:
                factors.append((edge.required, self._looking(graph, edge) - base[edge.right.bit_length() - 1]))
                continue
            if is_applied_above(edge):
                continue
            if not edge.implied and edge.required:
                factors.append((edge.required, math.log(self._other(graph, edge))))
        groups = [[columns[key] for key in keys] for keys in linked.groups()]
        classes = [self._class(group, met_domains) for group in groups]
        full = [self._class(group, shared_domains) for group in groups]
        base_rows = [s.base_rows for s in self.relations]
        def is_key(vertex: int, bundle: Sequence[int]) -> bool:
            return self.relations[vertex].is_unique(plain_mask(e for c in bundle for v, e in groups[c] if v == vertex))

        corrections = bundle_terms(classes, base_rows, full, is_key, graph.names)
        self._terms = [Term(1.0, values) for values in classes] + corrections

    def _looking(self, graph: JoinGraph, edge: Edge) -> float:
        """Logarithm of the share of rows that a semi or anti join keeps."""
        left = self._side_by_side(edge.relations & ~edge.right)
        vertex = edge.right.bit_length() - 1
        inside = graph.relations[vertex].output_set
        kept = share_kept(edge.join_type, edge.predicate, left, self.relations[vertex], inside)
        return math.log(max(kept, _LEAST_SHARE))

    def _side_by_side(self, relations: int) -> RelationStatistics:
        return combined_columns([known for _, known in self._parts(relations)])

    def _parts(self, relations: int) -> list[tuple[int, RelationStatistics]]:
        """The attributes of each relation of a set, and what is known of it."""
        return [part for v, part in enumerate(zip(self._outputs, self.relations)) if relations >> v & 1]

    def _class(self, columns: list[tuple[int, Expression]], count: Counting) -> dict[int, float]:
        domains = count([member(e, self.relations[vertex]) for vertex, e in columns])
        values: dict[int, float] = {}
        for (vertex, _), domain in zip(columns, domains):
            values[vertex] = min(values.get(vertex, math.inf), math.log(domain))
        return values

    def _other(self, graph: JoinGraph, edge: Edge) -> float:
        """Selectivity of an edge that belongs to no class."""
        if edge.keys is None:
            passed = {e.key for plan in graph.relations if edge.predicate.kind == "Or" for e in top_filters(plan)}
            return max(share_left(edge.predicate, self._parts(edge.relations), passed), _LEAST_SHARE)
        known = [member(e, self.relations[side.bit_length() - 1]) for side, e in edge.keys if side.bit_count() == 1]
        return 1.0 / max(shared_domains(known)) if known else residual_selectivity(edge.predicate)


def _ties_two(edge: Edge) -> bool:
    """Is it applied as soon as two relations are there?"""
    return edge.required == edge.relations and edge.required.bit_count() == 2


def _by_size(relations: int, bytes: float) -> int:
    """What Spark broadcasts as it comes, were it to know the sizes."""
    return BROADCAST_TABLE if bytes <= BROADCAST_THRESHOLD else NO_TABLE


def _column_key(e: Expression) -> object:
    attribute = e.attribute if e.kind == "AttributeReference" else column_of(e)
    return attribute.bit if attribute is not None else e.key
