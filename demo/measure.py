"""Times a query as written and optimised, in turns, and compares the rows."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyjoinopt
from demo.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyjoinopt import JoinReport

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Measurement:
    """The result of one query: report, median times in seconds, and whether the rows are equal."""

    query: Query
    report: JoinReport
    planning: float
    before: float
    after: float
    rows: int
    same: bool

    @property
    def speed_up(self) -> float:
        return self.before / self.after


def measure(spark: SparkSession, query: Query, rounds: int) -> Measurement:
    """Compare rows in a first, untimed run of each; then time both in turns, each on a DataFrame never run before.

    A DataFrame that ran once keeps its finished shuffles, so a second run of it would skip them. The turns alternate
    which side runs first, because the second one finds warmer caches. The time after includes ``optimize_joins()``
    itself.
    """
    original = query.build(spark)
    optimised = pyjoinopt.optimize_joins(original)
    report = optimised._pyjoinopt_report
    expected, found = _rows(original), _rows(optimised)
    before: list[float] = []
    after: list[float] = []
    planning: list[float] = []
    for number in range(rounds):
        for turn in ("before", "after") if number % 2 == 0 else ("after", "before"):
            frame = query.build(spark)
            started = time.perf_counter()
            if turn == "after":
                frame = pyjoinopt.optimize_joins(frame)
                planning.append(time.perf_counter() - started)
            frame.collect()
            (before if turn == "before" else after).append(time.perf_counter() - started)
    middle = statistics.median
    same = equal_rows(expected, found)
    return Measurement(query, report, middle(planning), middle(before), middle(after), len(expected), same)


def equal_rows(left: Rows, right: Rows, tolerance: float = 1e-9) -> bool:
    """Whether two results have the same rows equally often, in any order; floats may differ in their last digits.

    >>> equal_rows([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)])
    True
    >>> equal_rows([(1, 1.0)], [(1, 1.0), (1, 1.0)])
    False
    """
    if len(left) != len(right):
        return False
    # Exact values sort first, so that rows which differ only in floats are neighbours.
    return all(_close(a, b, tolerance) for a, b in zip(sorted(left, key=_order), sorted(right, key=_order)))


def _rows(frame: DataFrame) -> Rows:
    return [tuple(row) for row in frame.collect()]


def _order(row: Sequence[Any]) -> tuple[list[str], list[float]]:
    exact = [repr(value) for value in row if not isinstance(value, float)]
    return exact, [-math.inf if math.isnan(value) else value for value in row if isinstance(value, float)]


def _close(left: Sequence[Any], right: Sequence[Any], tolerance: float) -> bool:
    return len(left) == len(right) and all(_pairs(left, right, tolerance))


def _pairs(left: Sequence[Any], right: Sequence[Any], tolerance: float) -> Iterator[bool]:
    for a, b in zip(left, right):
        if isinstance(a, float) and isinstance(b, float):
            yield math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(a) and math.isnan(b))
        else:
            yield a == b
