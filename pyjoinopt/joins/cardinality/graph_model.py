"""The model behind the estimate: what each relation, each class of equal columns and each predicate contributes.

`estimator` explains the formula. This module sorts the edges of a join graph into its parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.join import combined_columns, member, residual_selectivity, share_kept, share_left
from pyjoinopt.estimation.plans.join_domains import Member, met_domains, shared_domains
from pyjoinopt.estimation.plans.unique_keys import plain_mask
from pyjoinopt.joins.cardinality.composite_keys import CompositeKeys, Term
from pyjoinopt.joins.cardinality.log_cardinality import Factor
from pyjoinopt.joins.cardinality.outer_joins import is_applied_above
from pyjoinopt.joins.cardinality.semi_joined_dimensions import raised_by_references
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, OperatorEdge
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.facts.or_extraction import top_filters
from pyjoinopt.plan.nodes import INNER, SEMI
from pyjoinopt.util.bitset import members
from pyjoinopt.util.disjoint_sets import DisjointSets

_NO_ROWS = ASSUMPTIONS.empty_relation_rows
_LEAST_SHARE = ASSUMPTIONS.least_share
#: A class of equal columns: of each the vertex, and the expression.
EqualColumns = list[tuple[int, Expression]]


@dataclass(frozen=True)
class GraphModel:
    """The parts of the estimate, all as logarithms.

    Attributes:
        base: of each relation's rows, less what the terms give back.
        terms: classes of equal columns, and corrections for composite keys and for semi joins of dimensions.
        factors: selectivities of all other predicates, and of semi and anti joins.
    """

    base: tuple[float, ...]
    terms: tuple[Term, ...]
    factors: tuple[Factor, ...]


def collect(
    graph: JoinGraph, statistics: Sequence[RelationStatistics], own_rows: Mapping[int, float] | None = None
) -> GraphModel:
    """The model of a join graph, without its outer joins.

    Args:
        graph: the join graph.
        statistics: of each vertex, its filters included.
        own_rows: right side of a semi or anti join -> share of the left rows that are among its rows.
    """
    base = [math.log(max(1.0, s.rows) if s.rows > 0 else _NO_ROWS) for s in statistics]
    groups = _equal_columns(graph)
    factors = [factor for edge in graph.edges for factor in _factors(edge, graph, statistics, base, own_rows or {})]
    known = [_members(group, statistics) for group in groups]
    classes = [_domains(met_domains(group), columns) for group, columns in zip(known, groups)]
    unfiltered = [_domains(shared_domains(group), columns) for group, columns in zip(known, groups)]
    keys = CompositeKeys(
        classes, [s.base_rows for s in statistics], unfiltered, _Keys(groups, statistics), graph.names
    )
    terms = [*(Term(1.0, values) for values in classes), *keys.terms()]
    terms += raised_by_references(
        [list(zip((vertex for vertex, _ in columns), group)) for columns, group in zip(groups, known)],
        _semi_joined(graph, statistics, own_rows or {}),
    )
    for term in terms:
        for vertex, value in term.values.items():
            base[vertex] -= term.sign * value
    return GraphModel(tuple(base), tuple(terms), tuple(factors))


# -- classes -------------------------------------------------------------------------------------------------------


def _is_of_a_class(edge: Edge) -> bool:
    """Whether it is an equality of two relations that is applied as soon as both are there."""
    two = edge.tes == edge.ses and edge.tes.bit_count() == 2
    return two and edge.join_type == INNER and edge.keys is not None


def _equal_columns(graph: JoinGraph) -> list[EqualColumns]:
    columns: dict[object, tuple[int, Expression]] = {}
    linked = DisjointSets[object]()
    for edge in graph.edges:
        if not _is_of_a_class(edge) or edge.keys is None:
            continue
        for side, e in edge.keys:
            columns.setdefault(_column_key(e), (side.bit_length() - 1, e))
        linked.union(*(_column_key(e) for _, e in edge.keys))
    return [[columns[key] for key in keys] for keys in linked.groups()]


def _members(columns: EqualColumns, statistics: Sequence[RelationStatistics]) -> list[Member]:
    return [member(e, statistics[vertex]) for vertex, e in columns]


def _domains(domains: Sequence[float], columns: EqualColumns) -> dict[int, float]:
    """Vertex -> logarithm of the distinct values of its columns of a class."""
    values: dict[int, float] = {}
    for (vertex, _), domain in zip(columns, domains):
        values[vertex] = min(values.get(vertex, math.inf), math.log(domain))
    return values


@dataclass(frozen=True)
class _Keys:
    """What is known of the keys of relations."""

    groups: list[EqualColumns]
    statistics: Sequence[RelationStatistics]

    def is_key(self, vertex: int, classes: Sequence[int]) -> bool:
        columns = plain_mask(e for c in classes for v, e in self.groups[c] if v == vertex)
        return self.statistics[vertex].is_unique(columns)


def _column_key(e: Expression) -> object:
    attribute = e.attribute if e.kind == "AttributeReference" else column_of(e)
    return attribute.bit if attribute is not None else e.key


# -- factors -------------------------------------------------------------------------------------------------------


def _factors(
    edge: Edge,
    graph: JoinGraph,
    statistics: Sequence[RelationStatistics],
    base: Sequence[float],
    own_rows: Mapping[int, float],
) -> list[Factor]:
    """The factor of an edge that is in no class and no outer join; none for others."""
    if _is_of_a_class(edge):
        return []
    if isinstance(edge, OperatorEdge) and edge.semi_right:
        vertex, own = edge.semi_right.bit_length() - 1, own_rows.get(edge.semi_right, 0.0)
        return [Factor(edge.tes, _semi_join_share(edge, vertex, graph, statistics, own) - base[vertex])]
    if is_applied_above(edge) or edge.implied or not edge.tes:
        return []
    return [Factor(edge.tes, math.log(_selectivity(edge, graph, statistics)))]


def _semi_join_share(
    edge: OperatorEdge, right: int, graph: JoinGraph, statistics: Sequence[RelationStatistics], own: float
) -> float:
    """Logarithm of the share of rows that a semi or anti join keeps."""
    left = combined_columns([statistics[v] for v in members(edge.ses & ~edge.semi_right)], unfiltered=True)
    inside = graph.relations[right].output_set
    kept = share_kept(edge.join_type, edge.predicate, left, statistics[right], inside, own)
    return math.log(max(kept, _LEAST_SHARE))


def _semi_joined(
    graph: JoinGraph, statistics: Sequence[RelationStatistics], own_rows: Mapping[int, float]
) -> dict[int, list[tuple[int, float]]]:
    """Vertex -> of each semi join of it alone the right vertex, and the logarithm of the share that it keeps."""
    found: dict[int, list[tuple[int, float]]] = {}
    for right, edge in graph.semi_rights.items():
        left, vertex = edge.ses & ~right, right.bit_length() - 1
        if edge.join_type == SEMI and left.bit_count() == 1:
            share = _semi_join_share(edge, vertex, graph, statistics, own_rows.get(right, 0.0))
            found.setdefault(left.bit_length() - 1, []).append((vertex, share))
    return found


def _selectivity(edge: Edge, graph: JoinGraph, statistics: Sequence[RelationStatistics]) -> float:
    """Selectivity of an edge that belongs to no class."""
    if edge.keys is None:
        passed = {e.key for plan in graph.relations if edge.predicate.kind == "Or" for e in top_filters(plan)}
        parts = [(graph.relations[v].output_set, statistics[v]) for v in members(edge.ses)]
        return max(share_left(edge.predicate, parts, passed), _LEAST_SHARE)
    known = [member(e, statistics[side.bit_length() - 1]) for side, e in edge.keys if side.bit_count() == 1]
    return 1.0 / max(shared_domains(known)) if known else residual_selectivity(edge.predicate)
