"""Spark's own arithmetic of operators other than filters and joins, flaws included.

What counts rows needs the rows of its input (`AggregateEstimation`, `ProjectEstimation`, `UnionEstimation`,
`BasicStatsPlanVisitor`). Without them, and for operators of which Spark counts no rows, there is still a size
(`SizeInBytesOnlyStatsPlanVisitor`): that of the input, in proportion to the widths of the columns. The columns of a
LIMIT, a sample or a window are forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from pyjoinopt.catalyst.statistics.column_stat import (
    CatalystStatistics,
    ColumnStatistics,
    PlanSize,
    default_size,
    output_size,
    row_width,
)
from pyjoinopt.catalyst.statistics.predicate_estimation import plain, scaled_up
from pyjoinopt.plan.expressions import DETERMINISTIC, FOLDABLE, Attribute, Expression
from pyjoinopt.plan.facts.max_rows import integer
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
#: Types whose bounds a union keeps.
_ORDERED = (*_NUMBERS, "date", "timestamp", "interval ")
#: From this version on Spark estimates the distinct values of a union.
COUNTS_DISTINCT = (4, 3)


def operator_size(node: LogicalPlan, below: Sequence[PlanSize], spark: tuple[int, int]) -> PlanSize:
    """Rows, bytes and columns of any operator that is neither a filter nor a join.

    Args:
        node: the operator; it has children.
        below: what is known of these.
        spark: as this version of Spark counts.
    """
    if isinstance(node, Project):
        counted = below[0].counted
        return in_proportion(node, below[0]) if counted is None else PlanSize.of(project_statistics(node, counted))
    if isinstance(node, Aggregate):
        return _grouped(node, node.grouping, node.aggregates, below[0])
    if node.kind == "Union":
        return _union(node, below, spark)
    special = _SPECIAL.get(node.kind)
    return product(below) if special is None else special(node, below)


# -- sizes without rows --------------------------------------------------------------------------------------------


def in_proportion(node: LogicalPlan, below: PlanSize) -> PlanSize:
    """As many rows as the input has, however many these are; as wide as the types of the columns make them."""
    size = below.bytes * row_width(node.output, {}) // row_width(node.children[0].output, {})
    return PlanSize(size or 1)


def product(below: Sequence[PlanSize]) -> PlanSize:
    """Spark's default for operators without a formula: every row with every row."""
    rows = [size.rows for size in below]
    known = None if None in rows else math.prod(n for n in rows if n)
    return PlanSize(math.prod(size.bytes for size in below if size.bytes > 0), known)


# -- projections and aggregates ------------------------------------------------------------------------------------


def project_statistics(project: Project, child: CatalystStatistics) -> CatalystStatistics:
    """Rows, bytes and columns of a projection."""
    columns = _listed(project.projections, project.output, child.columns, child.rows)
    return CatalystStatistics(child.rows, output_size(project.output, child.rows, columns), columns)


def _listed(
    listed: Sequence[Expression], output: Sequence[Attribute], below: Mapping[int, ColumnStatistics], rows: int
) -> dict[int, ColumnStatistics]:
    known = dict(below)
    for e in listed:
        if e.kind == "Alias" and e.attribute is not None:
            column = _aliased(e.children[0], below, rows)
            if column is not None:
                known[e.attribute.bit] = column
    return {a.bit: known[a.bit] for a in output if a.bit in known}


def _aliased(body: Expression, below: Mapping[int, ColumnStatistics], rows: int) -> ColumnStatistics | None:
    if body.kind == "AttributeReference" and body.attribute is not None:
        return below.get(body.attribute.bit)
    constant = _constant(body)
    if constant is None:
        return None
    size = default_size(body.type)
    if constant.value is None:
        return ColumnStatistics(0, None, None, rows, size, size)
    value = plain(constant.value)
    bound = value if isinstance(value, (int, float, Decimal, str)) else None
    return ColumnStatistics(1, bound, bound, 0, size, size)


def _constant(body: Expression) -> Expression | None:
    """The literal that an expression comes to, through casts that leave a whole number or NULL as it is."""
    inner = body
    while inner.kind == "Cast":
        inner = inner.children[0]
    if inner.kind != "Literal" or not (inner.flags & FOLDABLE and inner.flags & DETERMINISTIC):
        return None
    whole = isinstance(inner.value, int) and body.type.startswith(_NUMBERS) and inner.type.startswith(_NUMBERS)
    return inner if inner is body or inner.value is None or whole else None


def _grouped(
    node: LogicalPlan, grouping: Sequence[Expression], aggregates: Sequence[Expression], below: PlanSize
) -> PlanSize:
    """As many groups as there are combinations of values, NULL being one, and no more than rows."""
    groups = 1
    for e in grouping:
        column = below.columns.get(e.attribute.bit) if e.kind == "AttributeReference" and e.attribute else None
        if below.rows is None or column is None or column.ndv is None or column.nulls is None:
            return in_proportion(node, below)
        groups *= column.ndv + (column.nulls > 0)
    if grouping:
        assert below.rows is not None
        groups = min(groups, below.rows)
    elif below.rows is None:
        return PlanSize(output_size(node.output, 1, {}), 1)
    columns = _listed(aggregates, node.output, below.columns, groups)
    return PlanSize(output_size(node.output, groups, columns), groups, columns)


def _distinct(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    columns = [Expression("AttributeReference", (), a.type, attribute=a) for a in node.children[0].output]
    return _grouped(node, columns, (), below[0])


# -- unions --------------------------------------------------------------------------------------------------------


def _union(node: LogicalPlan, below: Sequence[PlanSize], spark: tuple[int, int]) -> PlanSize:
    rows = [size.rows for size in below]
    total = None if None in rows else sum(n for n in rows if n)
    columns = {}
    for position, attribute in enumerate(node.output):
        branches = ((size.columns, child.output[position]) for child, size in zip(node.children, below))
        found = [columns.get(own.bit, ColumnStatistics()) for columns, own in branches]
        column = _united(found, attribute.type, total if spark >= COUNTS_DISTINCT else -1)
        if column != ColumnStatistics():
            columns[attribute.bit] = column
    return PlanSize(sum(size.bytes for size in below), total, columns)


def _united(found: Sequence[ColumnStatistics], type: str, rows: int | None) -> ColumnStatistics:
    """A column of a union: bounds, NULLs and, unless `rows` is negative, distinct values that all branches know."""
    column = ColumnStatistics()
    if type.startswith(_ORDERED) and all(one.has_range for one in found):
        column = replace(column, min=min(one.min for one in found), max=max(one.max for one in found))
    nulls = [one.nulls for one in found]
    if None not in nulls:
        column = replace(column, nulls=sum(n for n in nulls if n))
    ndv = [one.ndv for one in found]
    if None not in ndv and (rows is None or rows >= 0):
        most = max(n or 0 for n in ndv)
        column = replace(column, ndv=most if rows is None else min(most, rows))
    return column


# -- the rest ------------------------------------------------------------------------------------------------------


def _limit_of(node: LogicalPlan) -> int | None:
    return integer(node.expressions[0]) if node.expressions else None


def _global_limit(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    limit = _limit_of(node)
    if limit is None:
        return below[0]
    rows = limit if below[0].rows is None else min(below[0].rows, limit)
    return PlanSize(output_size(node.output, rows, below[0].columns), rows)


def _local_limit(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    return PlanSize(1, 0) if _limit_of(node) == 0 else replace(below[0], columns={})


def _offset(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    rows = max((below[0].rows or 0) - (_limit_of(node) or 0), 0)
    return PlanSize(output_size(node.output, rows, below[0].columns), rows)


def _sample(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    fraction = float(node.info.get("fraction", 1.0))
    rows = None if below[0].rows is None else scaled_up(below[0].rows, fraction)
    return PlanSize(scaled_up(below[0].bytes, fraction) or 1, rows)


def _expand(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    return PlanSize(in_proportion(node, below[0]).bytes * len(node.info.get("lists", (1,))))


def _intersect(_: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    smaller = below[0] if below[0].bytes < below[1].bytes else below[1]
    return replace(smaller, columns={})


def _as_below(_: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    return below[0]


def _last(_: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    return below[-1]


def _window(node: LogicalPlan, below: Sequence[PlanSize]) -> PlanSize:
    return in_proportion(node, below[0])


_SPECIAL: dict[str, Callable[[LogicalPlan, Sequence[PlanSize]], PlanSize]] = {
    "Distinct": _distinct,
    "Except": _as_below,
    "Expand": _expand,
    "GlobalLimit": _global_limit,
    "Intersect": _intersect,
    "LocalLimit": _local_limit,
    "Offset": _offset,
    "RebalancePartitions": _as_below,
    "Repartition": _as_below,
    "RepartitionByExpression": _as_below,
    "Sample": _sample,
    "Sort": _as_below,
    "SubqueryAlias": _as_below,
    "Tail": _global_limit,
    "View": _as_below,
    "Window": _window,
    "WithCTE": _last,
}
