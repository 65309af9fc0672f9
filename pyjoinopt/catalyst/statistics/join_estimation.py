"""Spark's own arithmetic of joins (`JoinEstimation`), flaws included.

* A join on columns with statistics has |L| * |R| / max(ndv) rows for its *most selective* key pair; other pairs and
  everything that is not an equality of two plain columns count for nothing. Without a usable pair it is a cross
  product, or as many rows as the other side has if one side is known to be unique on its keys.
* A column is usable if its distinct count *and* its null count are known. After a join the others are forgotten.
* Two histograms are laid over each other, and the formula is used wherever two of their bins meet.
* An outer join has no fewer rows than the sides that it preserves. A semi or anti join keeps all rows of its left side.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics, default_size, output_size
from pyjoinopt.catalyst.statistics.histogram import SparkHistogram, overlaps
from pyjoinopt.plan.equi_keys import hash_keys
from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.facts.constraints import PlanFacts, is_unique
from pyjoinopt.plan.nodes import ANTI, FULL, INNER_LIKE, LEFT, OUTER, RIGHT, SEMI, Join

Columns = dict[int, ColumnStatistics]


def join_statistics(
    join: Join, left: CatalystStatistics, right: CatalystStatistics, facts: PlanFacts | None = None
) -> CatalystStatistics | None:
    """Rows, bytes and columns of a join; None of the types that Spark does not estimate.

    Args:
        join: the join.
        left, right: statistics of its inputs.
        facts: where distinct keys of the inputs are looked up; without it no side counts as unique.
    """
    kind = join.join_type
    if kind in (SEMI, ANTI):
        kept = {a.bit: left.columns[a.bit] for a in join.output if a.bit in left.columns}
        return CatalystStatistics(left.rows, output_size(join.output, left.rows, kept), kept)
    if kind not in INNER_LIKE and kind not in OUTER:
        return None
    pairs = hash_keys(join)
    inner, keys = _inner(join, pairs, left, right, facts)
    rows = inner
    if not pairs:
        rows = left.rows * right.rows
    elif kind == LEFT:
        rows = max(left.rows, inner)
    elif kind == RIGHT:
        rows = max(right.rows, inner)
    elif kind == FULL:
        rows = max(left.rows, inner) + max(right.rows, inner) - inner
    columns = _columns(join, left, right, rows, inner, keys) if rows else {}
    return CatalystStatistics(rows, output_size(join.output, rows, columns), columns)


def _inner(
    join: Join,
    pairs: list[tuple[Expression, Expression]],
    left: CatalystStatistics,
    right: CatalystStatistics,
    facts: PlanFacts | None,
) -> tuple[int, Columns]:
    """Rows of the inner join, and what its keys are like afterwards."""
    product = left.rows * right.rows
    rows, keys = product, Columns()
    if pairs and facts is not None:
        left_unique = is_unique(facts.distinct_keys(join.left), [pair[0] for pair in pairs])
        right_unique = is_unique(facts.distinct_keys(join.right), [pair[1] for pair in pairs])
        if left_unique and right_unique:
            rows = min(left.rows, right.rows)
        elif left_unique or right_unique:
            rows = right.rows if left_unique else left.rows
    for one, other in pairs:
        if rows == 0:
            break
        if one.attribute is None or other.attribute is None or one.kind == "Alias" or other.kind == "Alias":
            continue
        a, b = left.columns.get(one.attribute.bit), right.columns.get(other.attribute.bit)
        if a is None or b is None or not (a.has_counts and b.has_counts):
            continue
        matched = _matched(a, b, one.attribute.type, product)
        if matched is None:
            return 0, keys
        rows = min(rows, matched[0])
        keys[one.attribute.bit] = keys[other.attribute.bit] = matched[1]
    return rows, keys


def _columns(
    join: Join, left: CatalystStatistics, right: CatalystStatistics, rows: int, inner: int, keys: Columns
) -> Columns:
    """Column statistics of a result that has rows."""
    kind, everything = join.join_type, {**left.columns, **right.columns}
    if inner == left.rows * right.rows and inner:
        return everything
    sides = [(join.left.output, left, right), (join.right.output, right, left)]
    preserved = [kind in (LEFT, FULL), kind in (RIGHT, FULL)]
    if kind == FULL and inner:
        return everything
    columns = Columns()
    for (output, own, other), kept in zip(sides, preserved):
        counted = {a: own.columns[a.bit] for a in output if a.bit in own.columns and own.columns[a.bit].has_counts}
        if not inner:
            columns.update(_unmatched(counted, other.rows, kept, kind))
        elif kept:
            columns.update({a.bit: column for a, column in counted.items()})
        else:
            columns.update({a.bit: keys.get(a.bit) or _scaled(c, own.rows, rows) for a, c in counted.items()})
    return columns


def _unmatched(counted: dict[Attribute, ColumnStatistics], others: int, kept: bool, kind: str) -> Columns:
    """Columns of one side if no row finds a partner: as they were, with NULLs added, or NULL all over."""
    if kind == FULL:
        return {a.bit: replace(column, nulls=(column.nulls or 0) + others) for a, column in counted.items()}
    if kept:
        return {a.bit: column for a, column in counted.items()}
    return {a.bit: _all_null(a.type, others) for a in counted}


def _all_null(type: str, rows: int) -> ColumnStatistics:
    return ColumnStatistics(0, None, None, rows, default_size(type), default_size(type))


def _matched(a: ColumnStatistics, b: ColumnStatistics, type: str, product: int) -> tuple[int, ColumnStatistics] | None:
    """Rows of the join on one pair of keys, and what the keys look like afterwards; None if they cannot meet."""
    low = high = None
    if not type.startswith(("string", "binary")):
        if not (a.has_range and b.has_range):
            return None
        if float(a.min) > float(b.max) or float(b.min) > float(a.max):
            return None
        low = a.min if float(a.min) > float(b.min) else b.min
        high = a.max if float(a.max) <= float(b.max) else b.max
    assert a.ndv is not None and b.ndv is not None
    avg = (a.avg_len + b.avg_len) // 2 if a.avg_len is not None and b.avg_len is not None else None
    longest = min(a.max_len, b.max_len) if a.max_len is not None and b.max_len is not None else None
    if a.histogram is not None and b.histogram is not None and low is not None and high is not None:
        rows, values = _laid_over(a.histogram, b.histogram, float(low), float(high))
        return rows, ColumnStatistics(values, low, high, 0, avg, longest)
    most = max(a.ndv, b.ndv)
    if most == 0:
        return None
    return -(-product // most), ColumnStatistics(min(a.ndv, b.ndv), low, high, 0, avg, longest)


def _laid_over(a: SparkHistogram, b: SparkHistogram, low: float, high: float) -> tuple[int, int]:
    """Rows and distinct values of the join on two columns with histograms."""
    rows, values, before = 0.0, 0.0, None
    for part in overlaps(a, b, low, high):
        if part.high != before:  # else it is one value, counted already
            values += min(part.left_ndv, part.right_ndv)
        before = part.high
        rows += part.left_rows * part.right_rows / max(part.left_ndv, part.right_ndv)
    return math.ceil(rows), math.ceil(values)


def _scaled(column: ColumnStatistics, old_rows: int, new_rows: int) -> ColumnStatistics:
    """Counts of a column after rows went away (`ColumnStat.updateCountStats`)."""
    if new_rows >= old_rows:
        return column
    return replace(column, ndv=_scale(column.ndv, old_rows, new_rows), nulls=_scale(column.nulls, old_rows, new_rows))


def _scale(count: int | None, old_rows: int, new_rows: int) -> int | None:
    return -(-count * new_rows // old_rows) if count is not None and count > 1 else count

