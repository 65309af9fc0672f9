"""The samples of joins that a join group can use: those of the plan's leaves, in terms of the group's vertices."""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import FilteredLeaf, PlanEstimates
from pyjoinopt.estimation.sources.column_lineage import number_of
from pyjoinopt.estimation.sources.joined_sample import JoinedSample, Partners
from pyjoinopt.joins.cardinality.join_synopses import Partner, Synopsis
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.optimizer.semi_join_samples import semi_joins
from pyjoinopt.plan.nodes import INNER

_NONE: tuple[list[Partner], bool] = [], True


def synopses_of(
    graph: JoinGraph, statistics: Sequence[RelationStatistics], estimate: PlanEstimates
) -> list[Synopsis]:
    """The samples of joins whose relations are vertices of a graph.

    Args:
        graph: the join graph.
        statistics: of each vertex, its filters included.
        estimate: has estimated each vertex.
    """
    leaves = [estimate.filtered_leaf(plan) for plan in graph.relations]
    vertex_of = {found.leaf.number: v for v, found in enumerate(leaves) if found is not None}
    equated = _Equated(graph.edges, estimate)
    synopses = []
    for v, center in enumerate(leaves):
        if center is None or statistics[v].rows <= 0:
            continue
        for joined in estimate.joined_samples(center.leaf):
            partners = _partners(v, joined, leaves, vertex_of, equated, estimate) if joined.rows else []
            tested, counted = semi_joins(v, joined, partners, leaves, graph, estimate) if joined.rows else _NONE
            if partners or tested:
                kept, complete = joined.kept(center.conjuncts), joined.complete and counted
                hashed = _hashed(joined, partners, leaves)
                partners += tested
                synopses.append(
                    Synopsis(
                        1 << v, joined.rows, complete, kept, joined.starts, tuple(partners), joined.by_key, hashed
                    )
                )
    return synopses


def _partners(
    center: int,
    joined: JoinedSample,
    leaves: Sequence[FilteredLeaf | None],
    vertex_of: dict[int | None, int],
    equated: _Equated,
    estimate: PlanEstimates,
) -> list[Partner]:
    """The dimensions of a centre that the group joins with it, or with each other, as they were joined in the sample.

    Two relations that other predicates connect, too, are left to the model, and so is a second dimension that the same
    columns refer to.
    """
    found: list[Partner] = []
    clustered = {center: False}
    used: set[tuple[int, frozenset[int]]] = set()
    for number, partners in joined.dimensions.items():
        v, of = vertex_of.get(number), vertex_of.get(partners.of)
        leaf = leaves[v] if v is not None else None
        referring = frozenset(column for column, _ in partners.columns)
        if v is None or of not in clustered or of is None or leaf is None or (of, referring) in used:
            continue
        matches = _matches(partners, leaf)
        if matches is None or equated(1 << of, 1 << v) != partners.columns:
            continue
        used.add((of, referring))
        clustered[v] = clustered[of]
        if of == center and joined.by_key:
            clustered[v] = True
        elif of == center:
            clustered[v] = all(estimate.is_clustered(leaves[center], column) for column in referring)
        found.append(Partner(1 << v, 1 << of, matches, partners.filled, clustered[v]))
    return found


def _hashed(
    joined: JoinedSample, partners: Sequence[Partner], leaves: Sequence[FilteredLeaf | None]
) -> dict[int, Sequence[int]]:
    """The hashes of the columns of a centre and of the dimensions that the group joins with it."""
    found = dict(joined.hashed)
    for leaf in (leaves[p.vertex.bit_length() - 1] for p in partners):
        of_dimension = joined.dimensions.get(number_of(leaf.leaf)) if leaf is not None else None
        found.update(of_dimension.hashed if of_dimension is not None else {})
    return found


def _matches(partners: Partners, leaf: FilteredLeaf) -> int | None:
    """The rows with a partner that fulfils the filter of its relation; None if that is not known."""
    matches = partners.matched
    for e in leaf.conjuncts:
        if e.kind == "IsNotNull":  # Spark adds these to a plan that it has begun to optimise
            continue
        hits = partners.hits.get(e.key)
        if hits is None:
            return None
        matches &= hits
    return matches


class _Equated:
    """Callable: two vertices -> the leaves' columns that edges equate, those of the first one first.

    None is among them if there is an edge that equates no columns.
    """

    def __init__(self, edges: Sequence[Edge], estimate: PlanEstimates) -> None:
        self._estimate = estimate
        self._between: dict[int, list[Edge]] = {}
        for edge in edges:
            self._between.setdefault(edge.ses, []).append(edge)
        self._known: dict[tuple[int, int], set[tuple[int | None, int | None] | None]] = {}

    def __call__(self, one: int, other: int) -> set[tuple[int | None, int | None] | None]:
        found = self._known.get((one, other))
        if found is None:  # a pair may be in the samples of many relations
            found = {self._columns(edge, one) for edge in self._between.get(one | other, ())}
            self._known[one, other] = found
        return found

    def _columns(self, edge: Edge, first: int) -> tuple[int | None, int | None] | None:
        if edge.join_type != INNER or edge.keys is None or edge.tes != edge.ses:
            return None
        (one, left), (_, right) = edge.keys
        columns = self._estimate.leaf_column(left), self._estimate.leaf_column(right)
        return columns if one == first else columns[::-1]
