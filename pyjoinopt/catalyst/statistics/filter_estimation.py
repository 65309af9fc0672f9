"""Spark's own arithmetic of filters (`FilterEstimation`), flaws included.

Each conjunct keeps a share of the rows, shares are multiplied, and a conjunct narrows its column before the next one is
looked at: after `c > 3` the range of c begins at 3, so `c <= 6` is held against that. Under OR and NOT nothing is
narrowed. What Spark has no formula for (LIKE, functions of columns, ranges of texts, columns without statistics) keeps
everything: the share is 1, never a guess.

A column that a filter compares keeps the values that the comparison allows; every other column loses distinct values
and NULLs in proportion to the rows.

Numbers come out as they do in Spark: shares are doubles, row counts are decimals of 34 digits rounded up.
"""

from __future__ import annotations

from dataclasses import replace

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics, output_size
from pyjoinopt.catalyst.statistics.predicate_estimation import CAREFUL, SparkColumns, bounded, scaled_up
from pyjoinopt.estimation.model.comparisons import wraps_and
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import Filter


def filter_statistics(
    node: Filter, child: CatalystStatistics, spark: tuple[int, int] = CAREFUL
) -> CatalystStatistics:
    """Rows, bytes and columns of a filter's result.

    Args:
        node: the filter.
        child: what is known of its input.
        spark: as this version of Spark counts: from 4.2 on a result is never larger than the input, and a column
            without bounds is one of which they are unknown, instead of one that is all NULL.
    """
    below = node.child
    while below.kind in ("SubqueryAlias", "View") and below.children:  # names are gone when Spark estimates
        below = below.children[0]
    columns = SparkColumns(child, not below.children, spark)
    share = share_kept(node.condition, columns)
    share = 1.0 if share is None else share
    rows = scaled_up(child.rows, bounded(share) if spark >= CAREFUL else share)
    if spark >= CAREFUL:
        rows = min(rows, child.rows)
    left = _left(child, columns.now, rows) if rows else {}
    size = output_size(node.output, rows, left)
    if spark >= CAREFUL and rows and child.rows:
        size = min(size, -(-child.bytes * rows // child.rows))
    return CatalystStatistics(rows, size, left)


def share_kept(condition: Expression, columns: SparkColumns) -> float | None:
    """Share of the rows that a condition keeps; None if Spark has no formula for it.

    Args:
        condition: any condition.
        columns: those of the input; afterwards they are what the condition leaves of them.
    """
    done: list[float | None] = []
    stack: list[tuple[str, Expression, bool]] = [("", condition, True)]
    while stack:
        step, e, narrow = stack.pop()
        if step == "Not":
            share = done.pop()
            done.append(None if share is None else 1.0 - share)
        elif step:
            b, a = (1.0 if share is None else share for share in (done.pop(), done.pop()))
            done.append(a * b if step == "And" else a + b - a * b)
        elif wraps_and(e):
            stack.append(("", e.children[0], narrow))
        elif e.kind in ("And", "Or"):
            narrow = narrow and e.kind == "And"
            stack += ((e.kind, e, narrow), ("", e.children[1], narrow), ("", e.children[0], narrow))
        elif e.kind == "Not":
            stack += _negated(e)
        else:
            share = columns.share(e, narrow)
            done.append(None if share is None else bounded(share))
    return done[0]


def _negated(e: Expression) -> list[tuple[str, Expression, bool]]:
    """Steps for NOT: pushed down by De Morgan, then one minus the share."""
    inner = e.children[0]
    while wraps_and(inner):
        inner = inner.children[0]
    if inner.kind in ("And", "Or"):
        a, b = (Expression("Not", (part,)) for part in inner.children)
        return [("Or" if inner.kind == "And" else "And", inner, False), ("", b, False), ("", a, False)]
    if inner.kind == "Not":
        return [("", inner.children[0], False)]
    if inner.kind == "Literal" and inner.value is None:
        return [("", inner, False)]
    return [("Not", inner, False), ("", inner, False)]


def _left(
    before: CatalystStatistics, now: dict[int, ColumnStatistics], rows: int
) -> dict[int, ColumnStatistics]:
    """The columns when so many rows are left."""
    if rows >= before.rows:
        return now
    return {bit: _fewer(known, now[bit], before.rows, rows) for bit, known in before.columns.items()}


def _fewer(before: ColumnStatistics, now: ColumnStatistics, rows_before: int, rows: int) -> ColumnStatistics:
    """Counts in proportion to the rows, except where the filter itself left one value or none."""
    return replace(
        now,
        ndv=_in_proportion(before.ndv, now.ndv, rows_before, rows),
        nulls=_in_proportion(before.nulls, now.nulls, rows_before, rows),
    )


def _in_proportion(before: int | None, now: int | None, rows_before: int, rows: int) -> int | None:
    if before is None or now is None or now <= 1:
        return now
    return -(-before * rows // rows_before)
