"""How many rows every operator of a plan gives.

There is always an answer, however weak; `source` names what it rests on. Joins inside a join group are not estimated
here but by `joins.cardinality`, which sees the whole group; the joins here are its barriers (outer, semi, hinted ones)
and those below them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.model.relation_statistics import (
    ColumnStatistics,
    RelationStatistics,
    StatisticsOf,
    from_json,
    likely_of,
    row_width,
    unknown,
)
from pyjoinopt.estimation.plans.join import join_statistics
from pyjoinopt.estimation.plans.runs import drawn_values, shared_run
from pyjoinopt.estimation.plans.selectivity import apply_filter
from pyjoinopt.estimation.plans.unique_keys import group_key, keys_under, renamed_keys
from pyjoinopt.estimation.plans.value_ranges import sum_statistics
from pyjoinopt.plan.expressions import AGGREGATE_OR_WINDOW, SUBQUERY, Attribute, Expression
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import ROWS_ONE_TO_ONE
from pyjoinopt.plan.traversal import post_order

_CONSTANT = ColumnStatistics(ndv=1.0, ndv_bound=1.0)
#: Operators with the estimate of their child. (TAIL and OFFSET drop rows, but how many is not known here.)
_THROUGH = ROWS_ONE_TO_ONE | {"Tail", "Offset"}
#: From the best to the worst; of several inputs the worst names the result.
_SOURCES = (
    "feedback", "local", "memory", "analyze", "footers", "delta log", "catalog", "reported", "catalyst",
    "size / row width", "size", "default",
)  # fmt: skip
_RANK = {source: i for i, source in enumerate(_SOURCES)}


def weakest(inputs: Iterable[RelationStatistics]) -> str:
    """The least trustworthy source of several; what comes after a comma only adds to it."""
    sources = dict.fromkeys(known.source for known in inputs)  # a few of many inputs
    return max(sources, key=lambda source: _RANK.get(source.split(",")[0], len(_RANK)), default="default")


def estimate_plan(plan: LogicalPlan, leaf: StatisticsOf) -> RelationStatistics:
    """Statistics of what one plan gives; `pyjoinopt.estimation.plans.plan_estimator.PlanEstimates` is for many.

    Args:
        plan: any plan of the mirror.
        leaf: statistics of a node without children.
    """
    done: dict[int, RelationStatistics] = {}
    for node in post_order(plan):
        done[id(node)] = estimate_operator(node, [done[id(child)] for child in node.children if not node.cached], leaf)
    return done[id(plan)]


def estimate_operator(node: LogicalPlan, inputs: list[RelationStatistics], leaf: StatisticsOf) -> RelationStatistics:
    """Statistics of what one operator gives, from those of its children; a cached one is estimated like a leaf."""
    return _operator(node, inputs) if inputs else _leaf(node, leaf)


def _leaf(node: LogicalPlan, leaf: StatisticsOf) -> RelationStatistics:
    known = leaf(node)
    if known.source == "size":
        width = row_width(node.output, known.columns)
        return replace(known, rows=max(1.0, known.bytes / width))
    return _sized(known, node.output) if node.output else known


def _operator(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    first = inputs[0]
    if isinstance(node, Filter):
        return apply_filter(first, node.condition)
    if isinstance(node, Project):
        known = _projected(node.expressions, node.output, first)
        unique = keys_under(first, zip(node.expressions, node.output))
        return _sized(replace(first, columns=known, keys=unique), node.output)
    if isinstance(node, Join):
        return _sized(join_statistics(node, first, inputs[1], weakest(inputs)), node.output)
    if isinstance(node, Aggregate):
        return _grouped(node, first)
    if node.kind in _THROUGH:
        return renamed(first, node.children[0].output, node.output)
    return _BY_KIND.get(node.kind, _unknown_operator)(node, inputs)


# -- single operators --------------------------------------------------------------------------------------------


def _projected(
    expressions: Sequence[Expression], output: Sequence[Attribute], child: RelationStatistics
) -> dict[int, ColumnStatistics]:
    columns: dict[int, ColumnStatistics] = {}
    for e, attribute in zip(expressions, output):
        known = _expression(e, child)
        if known is not None:
            columns[attribute.bit] = known
    return columns


def _expression(e: Expression, child: RelationStatistics) -> ColumnStatistics | None:
    """What is known of a computed column: a function of one column has no more values than that column."""
    while e.kind == "Alias" and e.children:
        e = e.children[0]
    attribute = column_of(e)
    if attribute is not None:
        return child.columns.get(attribute.bit)
    if not e.deterministic or e.contains & SUBQUERY:
        return None
    if not e.references:
        return _CONSTANT
    if e.references.bit_count() == 1:
        known = child.columns.get(e.references.bit_length() - 1)
        if known is not None and (known.ndv is not None or known.joined is not None):
            bound = known.ndv_bound + 1  # NULL may become a value
            return ColumnStatistics(known.ndv, guessed=True, ndv_bound=bound, joined=known.joined, run=known.run)
    return None


def _grouped(node: Aggregate, child: RelationStatistics) -> RelationStatistics:
    keys = [(e, _expression(e, child)) for e in node.grouping]
    result = _distinct(keys, child)
    by_key = {e.key: known for e, known in keys}
    columns: dict[int, ColumnStatistics] = {}
    for e, attribute in zip(node.aggregates, node.output):
        inner = e.children[0] if e.kind == "Alias" and e.children else e
        if inner.key in by_key:
            columns[attribute.bit] = _as_key(by_key[inner.key], result.rows, [known for _, known in keys])
        elif inner.kind == "AggregateExpression" and inner.children[0].kind == "Count":
            columns[attribute.bit] = ColumnStatistics(mean=max(1.0, child.rows / max(1.0, result.rows)))
        elif inner.kind == "AggregateExpression" and inner.children[0].kind == "Sum":
            known = sum_statistics(inner.children[0].children[0], child, result.rows)
            if known is not None:
                columns[attribute.bit] = known
        elif not inner.references and not inner.contains & AGGREGATE_OR_WINDOW:
            columns[attribute.bit] = _CONSTANT
    return _sized(replace(result, columns=columns, unfiltered=result.rows, keys=group_key(node)), node.output)


def _distinct_rows(node: LogicalPlan, first: RelationStatistics) -> RelationStatistics:
    whole = frozenset({node.output_set}) if node.output else frozenset()
    listed = [_reference(a, first) for a in node.output]
    distinct = _distinct(listed, first)
    together = [known for _, known in listed]
    columns = {a.bit: _as_key(known, distinct.rows, together) for a, known in zip(node.output, together)}
    return replace(distinct, keys=distinct.keys | whole, columns=columns)


def _as_key(
    known: ColumnStatistics | None, groups: float, together: Sequence[ColumnStatistics | None]
) -> ColumnStatistics:
    """What a column holds of the groups that are made by it and others; NULL is in one, as a value is.

    Args:
        known: the column before it was grouped by.
        groups: how many there are.
        together: all columns that make the groups.
    """
    known, alone = known or ColumnStatistics(), len(together) == 1
    most = groups if known.joined is None else min(groups, known.joined[1])
    drawn = known.values
    if known.guessed or drawn is None or drawn == math.inf:
        drawn = min(_unknown_values(known, groups, together), math.inf if known.ndv is None else known.ndv)
    ndv = groups if alone else min(most, drawn if known.ndv is None else known.ndv)
    nulls = known.nulls
    if nulls:
        ndv = max(1.0, ndv - 1.0) if alone else ndv
        nulls = 1.0 / (ndv + 1.0)
    drawn = max(ndv, drawn)
    return replace(
        known.with_ndv(ndv), nulls=nulls, guessed=not alone, key_values=drawn if alone else None, joined=None, heavy=(),
        frequencies=None, drawn=drawn, run=1.0,
    )  # fmt: skip


def _unknown_values(
    known: ColumnStatistics, groups: float, together: Sequence[ColumnStatistics | None]
) -> float:
    """Distinct values of a column of groups that nobody counted.

    Of several columns of one relation one is usually its key, which the others depend on: SQL wants them all listed in
    GROUP BY. A column that is the only one of its relation has more values than `rows_per_group` rows for each, and
    fewer than rows; the middle between these is taken, in logarithms.
    """
    if known.joined is None:
        return groups
    number, rows = known.joined
    of_same = sum(1 for other in together if other is not None and other.joined and other.joined[0] == number)
    return rows if of_same > 1 else rows / math.sqrt(ASSUMPTIONS.rows_per_group)


def _repeating(known: RelationStatistics) -> RelationStatistics:
    """Of an operator that may give a row more than once."""
    return replace(known, keys=frozenset(), max_rows_per_value={}, frequency_bounds={})


def _reference(attribute: Attribute, child: RelationStatistics) -> tuple[Expression, ColumnStatistics | None]:
    e = Expression("AttributeReference", type=attribute.type, attribute=attribute)
    return e, child.columns.get(attribute.bit)


def _distinct(
    keys: Sequence[tuple[Expression, ColumnStatistics | None]], child: RelationStatistics
) -> RelationStatistics:
    """One row for each combination of the keys; with no keys one row in all.

    Columns of one relation have no more combinations than it has rows, however often a join repeats them.
    """
    rows = max(1.0, child.rows)
    combinations: dict[int, tuple[float, float]] = {}  # relation -> (combinations, rows)
    bound = 1.0
    for _, known in keys:
        number, most = known.joined if known is not None and known.joined is not None else (-1, rows)
        so_far = combinations.get(number, (1.0, most))[0]
        if known is None or known.ndv is None:
            so_far *= max(1.0, most / ASSUMPTIONS.rows_per_group)
        else:
            so_far *= max(1.0, min(known.ndv, rows)) + (1.0 if known.nulls else 0.0)
        combinations[number] = min(so_far, most if number >= 0 else math.inf), most
        bound *= math.inf if known is None else known.ndv_bound + 1.0  # and NULL
    values = math.prod(count for count, _ in combinations.values())
    groups = min(rows, drawn_values(values, rows, shared_run(known for _, known in keys)))
    exact = not keys
    # GROUP BY over no rows gives no row; without GROUP BY it gives one.
    if not keys:  # one row, even of no rows
        child = replace(child, likely=None)
    result = child.with_rows(min(groups, child.rows) if keys else 1.0, min(bound, child.upper_bound) if keys else 1.0)
    columns = {
        bit: replace(known, heavy=(), frequencies=None) if known.heavy or known.frequencies else known
        for bit, known in result.columns.items()
    }
    return replace(result, exact=exact, unfiltered=result.rows, columns=columns)


def _limited(node: LogicalPlan, child: RelationStatistics) -> RelationStatistics:
    limit = node.info.get("limit")
    if limit is None or limit < 0:
        return replace(child, exact=False)
    # A LocalLimit lets that many rows of every partition pass: good for a guess, no bound.
    bound = min(child.upper_bound, float(limit)) if node.kind != "LocalLimit" else child.upper_bound
    return child.with_rows(min(child.rows, float(limit)), bound)


def _union(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    rows = sum(s.rows for s in inputs)
    columns: dict[int, ColumnStatistics] = {}
    if all(len(child.output) == len(node.output) for child in node.children):
        for position, attribute in enumerate(node.output):
            parts = [s.column(c.output[position].bit) for s, c in zip(inputs, node.children)]
            if any(part.ndv is not None or part.nulls for part in parts):
                columns[attribute.bit] = _merged(parts, [s.rows for s in inputs])
    bound = sum(s.upper_bound for s in inputs)
    exact = all(s.exact for s in inputs)
    known = RelationStatistics(rows, 0.0, weakest(inputs), exact, columns, bound, sum(s.base_rows for s in inputs))
    return _sized(known.with_likely(likely_of(inputs, sum(s.likely_bound for s in inputs))), node.output)


def _merged(parts: list[ColumnStatistics], rows: list[float]) -> ColumnStatistics:
    """One column of several branches; `rows` are those of the branches."""
    lows, highs = [p.min for p in parts if p.min is not None], [p.max for p in parts if p.max is not None]
    ranged = len(lows) == len(highs) == len(parts)
    ndv = max((p.ndv for p in parts if p.ndv is not None), default=None)
    if all(p.ndv_bound <= 1 for p in parts):
        ndv = float(len(parts))  # constants identify the branch that a row is from
    nulls = [p.nulls * r for p, r in zip(parts, rows) if p.nulls is not None]
    return ColumnStatistics(
        ndv,
        min(lows) if ranged else None,
        max(highs) if ranged else None,
        nulls=sum(nulls) / sum(rows) if len(nulls) == len(parts) and sum(rows) > 0 else None,
        guessed=True,
        ndv_bound=sum(p.ndv_bound for p in parts),
        drawn=max((p.drawn for p in parts if p.drawn is not None), default=None),
    )


def renamed(child: RelationStatistics, before: Sequence[Attribute], after: Sequence[Attribute]) -> RelationStatistics:
    """Column statistics by position, where a view or a CTE gives its columns new identities."""
    if len(before) != len(after) or all(a.bit == b.bit for a, b in zip(before, after)):
        return child if len(before) == len(after) else _sized(_repeating(child), after)
    columns = {b.bit: child.columns[a.bit] for a, b in zip(before, after) if a.bit in child.columns}
    keys = renamed_keys(child.keys, {a.mask: b.mask for a, b in zip(before, after)})
    most = {b.bit: child.max_rows_per_value[a.bit] for a, b in zip(before, after) if a.bit in child.max_rows_per_value}
    bounds = {b.bit: child.frequency_bounds[a.bit] for a, b in zip(before, after) if a.bit in child.frequency_bounds}
    return replace(child, columns=columns, keys=keys, max_rows_per_value=most, frequency_bounds=bounds)


def _sized(known: RelationStatistics, output: Sequence[Attribute]) -> RelationStatistics:
    return replace(known, bytes=max(1.0, known.rows) * row_width(output, known.columns))


def default_leaf(node: LogicalPlan) -> RelationStatistics:
    """Statistics of a leaf from the export alone: rows that it states, or its bytes."""
    rows, relation = node.info.get("rows"), node.info.get("rel") or {}
    if node.kind == "OneRowRelation":
        rows = 1
    if rows is None:
        rows = relation.get("rows")
    if rows is None:
        return unknown(node.output, relation.get("bytes"))
    source = "memory" if relation.get("kind") == "memory" else "local"
    return from_json({"rows": rows, "source": source, "exact": True}, node.output)


def _deduplicated(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    wanted = set(node.info.get("keys") or ())
    keys = [a for a in node.output if a.bit in wanted] or node.output
    return _distinct([_reference(a, inputs[0]) for a in keys], inputs[0])


def _sampled(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    fraction = float(node.info.get("fraction") or 1.0)
    return _repeating(inputs[0].with_rows(inputs[0].rows * fraction, math.inf))


def _generated(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    rows = inputs[0].rows * ASSUMPTIONS.generated_rows
    return _repeating(_sized(inputs[0].with_rows(rows, math.inf), node.output))


def _expanded(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    """Copies of rows, as ROLLUP, CUBE and GROUPING SETS make them: in each some columns are NULL, or a constant."""
    (child,) = inputs
    lists = node.info.get("lists", ())
    copies = max(1, len(lists) or len(node.expressions) // max(1, len(node.output)) - 1)
    columns = {}
    for attribute, listed in zip(node.output, zip(*lists, strict=True)):
        known = _copied(listed, child)
        if known is not None:
            columns[attribute.bit] = known
    result = child.with_rows(child.rows * copies, child.upper_bound * copies)
    return _repeating(_sized(replace(result, columns={**result.columns, **columns}), node.output))


def _copied(listed: Sequence[Expression], child: RelationStatistics) -> ColumnStatistics | None:
    """What is known of a column that has one of these expressions in each copy of a row."""
    computed = {e.key: e for e in listed if e.kind != "Literal"}
    constants = {e.key for e in listed if e.kind == "Literal" and e.value is not None}
    if len(computed) > 1 or (computed and constants):
        return None
    filled = sum(1 for e in listed if e.kind != "Literal" or e.value is not None) / len(listed)
    if not computed:
        return ColumnStatistics(float(len(constants)), nulls=1.0 - filled, ndv_bound=float(len(constants)))
    (value,) = computed.values()
    known = _expression(value, child)
    if known is None:
        return None
    nulls = None if known.nulls is None and filled == 1.0 else 1.0 - filled * (1.0 - (known.nulls or 0.0))
    return replace(known, nulls=nulls, key_values=None, heavy=(), frequencies=None, run=1.0)


def _intersected(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    fewest = min(inputs, key=lambda s: s.rows)
    bound = min(s.upper_bound for s in inputs)
    known = replace(inputs[0].with_rows(fewest.rows, bound), source=weakest(inputs))
    return known.with_likely(likely_of(inputs, min(s.likely_bound for s in inputs)))


def _unknown_operator(node: LogicalPlan, inputs: list[RelationStatistics]) -> RelationStatistics:
    largest = max(inputs, key=lambda s: s.rows)
    unproved = _repeating(replace(largest, exact=False, upper_bound=math.inf, source=weakest(inputs), likely=None))
    return _sized(unproved, node.output)


#: Kind of an operator -> its estimate from those of its inputs.
_BY_KIND: dict[str, Callable[[LogicalPlan, list[RelationStatistics]], RelationStatistics]] = {
    "WithCTE": lambda node, inputs: inputs[-1],
    "Distinct": lambda node, inputs: _distinct_rows(node, inputs[0]),
    "Deduplicate": _deduplicated,
    "Union": lambda node, inputs: _union(node, inputs),
    "GlobalLimit": lambda node, inputs: _limited(node, inputs[0]),
    "LocalLimit": lambda node, inputs: _limited(node, inputs[0]),
    "Limit": lambda node, inputs: _limited(node, inputs[0]),
    "Sample": _sampled,
    "Generate": _generated,
    "Expand": _expanded,
    "Intersect": _intersected,
    "Except": lambda node, inputs: replace(inputs[0], exact=False, source=weakest(inputs)),
}
