"""Rows that are stored together and share values: they count once where different values are counted.

    SELECT c_id, sum(price) FROM lines JOIN customers ON l_customer = c_id JOIN days ON l_day = d_id
    WHERE d_year = 2001 GROUP BY c_id

The twelve lines of an order follow each other, and have one customer and one day. 14,000 lines of a year are 1,200
orders, so there are at most 1,200 groups, and not as many as 14,000 customers that are drawn one by one. Samples show
how long the *runs* of equal values are. A dimension's columns have the runs of the column that refers to it.

A filter leaves a run as it is if all rows of the run fulfil it, such as one on the day of an order. Others, such as
one on the article of a line, leave single rows of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics

#: [rows] Shorter runs may be those of rows that follow each other by chance.
_LEAST = 1.2


def shared_run(columns: Iterable[ColumnStatistics | None]) -> float:
    """How many rows that follow each other share the values of all columns, on average; constants do not matter.

    >>> shared_run([ColumnStatistics(run=12.0), ColumnStatistics(ndv_bound=1.0), ColumnStatistics(run=30.0)])
    12.0
    >>> shared_run([ColumnStatistics(run=12.0), None]), shared_run([])
    (1.0, 1.0)
    """
    return min((1.0 if c is None else c.run for c in columns if c is None or c.ndv_bound > 1.0), default=1.0)


def drawn_values(values: float, rows: float, run: float) -> float:
    """How many of some values occur in rows of which `run` after each other have the same value.

    These are rows / run draws, and a value that occurs as often as the others is missed by all of them with probability
    exp(-draws / values) (Cardenas, CACM 1975). Without runs all values are taken to occur.

    >>> round(drawn_values(10_000.0, 14_400.0, 12.0)), drawn_values(10_000.0, 14_400.0, 1.0)
    (1131, 10000.0)
    """
    return values if run < _LEAST else -values * math.expm1(-rows / run / values)


def thinned(column: ColumnStatistics, share: float, run: float = 1.0) -> ColumnStatistics:
    """A column after a filter that keeps a share of the rows.

    Of a run of n pieces that are kept or not with probability p, something is left with probability 1 - (1 - p) ** n.

    Args:
        column: before.
        share: of the rows.
        run: rows after each other that fulfil the filter, or do not, all alike.

    >>> round(thinned(ColumnStatistics(run=12.0), 0.1).run, 2), thinned(ColumnStatistics(run=12.0), 0.1, 12.0).run
    (1.67, 12.0)
    """
    if column.run <= run or not 0.0 < share < 1.0:
        return column
    pieces = column.run / run
    return replace(column, run=run * pieces * share / -math.expm1(pieces * math.log1p(-share)))


def with_runs(columns: Mapping[int, ColumnStatistics], runs: Mapping[int, float]) -> dict[int, ColumnStatistics]:
    """Columns with what a sample shows of their runs."""
    found = dict(columns)
    for bit, run in runs.items():
        found[bit] = replace(found.get(bit, ColumnStatistics()), run=run)
    return found
