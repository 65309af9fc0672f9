"""Rows that no join of a group keeps, because a column that it compares is NULL.

Spark tests `IS NOT NULL` below a join for every column that the join's condition needs, so the rows that reach the
join are fewer than those of the relation. A plan that Spark has begun to optimise holds these filters, an analysed plan
does not. Both must get the same estimates, so the filters are counted here; a relation that has them has no NULLs left.

Which side of a join is filtered follows Catalyst's `InferFiltersFromConstraints`: both of an inner or semi join, the
right one of a left or anti join, none of a full join. A column that another outer join of the group fills up with NULLs
is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyjoinopt.estimation.model.relation_statistics import FEEDBACK, RelationStatistics
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, OperatorEdge
from pyjoinopt.plan.expressions import conjuncts
from pyjoinopt.plan.facts.inference import null_intolerant_columns
from pyjoinopt.plan.nodes import FULL, LEFT, SEMI


def without_null_keys(
    graph: JoinGraph, statistics: Sequence[RelationStatistics], never_null: int = 0
) -> list[RelationStatistics]:
    """The statistics of each relation of a group, less the rows in which a compared column is NULL.

    Args:
        graph: the group.
        statistics: of each vertex.
        never_null: columns that are not NULL in any row that is kept above the group.
    """
    found = list(statistics)
    if not any(column.nulls for known in statistics for column in known.columns.values()):
        return found
    semi_right = sum(graph.semi_rights)
    owner = {a.bit: v for v, plan in enumerate(graph.relations) if not semi_right >> v & 1 for a in plan.output}
    outer = [edge for edge in graph.operators if edge.join_type in (LEFT, FULL)]
    for bit, own in owner.items() if never_null else ():
        if never_null >> bit & 1 and not _is_padded(own, outer):
            found[own] = _without_nulls(found[own], bit)
    for edge in graph.edges:
        inside = (edge.semi_right if isinstance(edge, OperatorEdge) else 0).bit_length() - 1
        hidden = graph.relations[inside].output_set if inside >= 0 else 0
        filtered = _filtered(edge)
        for bit in _never_null(edge) if filtered else ():
            vertex = inside if hidden >> bit & 1 else owner.get(bit)
            if vertex is not None and filtered >> vertex & 1 and not _is_padded(vertex, outer, edge):
                found[vertex] = _without_nulls(found[vertex], bit)
    return found


def _never_null(edge: Edge) -> Iterator[int]:
    """The columns that are not NULL where the condition of an edge is true."""
    for conjunct in conjuncts(edge.predicate):
        for e in null_intolerant_columns(conjunct):
            if e.kind == "AttributeReference" and e.attribute is not None:
                yield e.attribute.bit


def _filtered(edge: Edge) -> int:
    """The vertices whose rows with a NULL key never reach the join."""
    if not isinstance(edge, OperatorEdge):
        return edge.ses if edge.ses.bit_count() > 1 and edge.tes == edge.ses else 0
    if edge.join_type == FULL:
        return 0
    return edge.right_tes | edge.semi_right | (edge.left_tes if edge.join_type == SEMI else 0)


def _is_padded(vertex: int, outer: Sequence[OperatorEdge], edge: Edge | None = None) -> bool:
    """True if an outer join other than `edge` puts NULLs into the columns of a relation."""
    for join in outer:
        side = join.right_tes | (join.left_tes if join.join_type == FULL else 0)
        if join is not edge and side >> vertex & 1:
            return True
    return False


def _without_nulls(known: RelationStatistics, bit: int) -> RelationStatistics:
    column = known.column(bit)
    if not column.nulls:
        return known
    columns = {**known.columns, bit: replace(column, nulls=0.0)}
    if known.source == FEEDBACK:  # when a query ran, with these filters
        return replace(known, columns=columns)
    return replace(known.with_rows(known.rows * (1.0 - column.nulls)), columns=columns, unfiltered=known.base_rows)
