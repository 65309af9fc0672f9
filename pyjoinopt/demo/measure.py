"""Times a query as written and optimised, in turns, and compares the rows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyjoinopt
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.util.same_rows import same_rows

#: Seconds that the slower side must take for the ratio to be shown. Below, most of the time is Spark's fixed cost for
#: each stage (scheduling, code generation), and the ratio would say little about the joins.
MEANINGFUL_SECONDS = 0.5
#: A smaller ratio between two medians of a few runs is noise.
NOTICEABLE = 1.1


@dataclass(frozen=True)
class Query:
    """A query: its name, whether it is SQL or DataFrame code, a description, and how to build it in a session."""

    name: str
    form: str
    about: str
    build: Callable[[Any], Any]


@dataclass(frozen=True)
class Measurement:
    """The result of one query: report, median times in seconds, number of rows, and whether the rows are the same."""

    query: Query
    report: JoinReport
    planning: float
    before: float
    after: float
    rows: int
    same: bool

    @property
    def ratio(self) -> float:
        """Time as written divided by time optimised."""
        return self.before / self.after

    @property
    def factor(self) -> float | None:
        """The ratio, or None if both times are too small for it to mean anything.

        >>> query = Query("a", "SQL", "", lambda spark: spark)
        >>> [Measurement(query, JoinReport(), 0.1, *times, 7, True).factor for times in ((2.0, 0.4), (0.4, 0.2))]
        [5.0, None]
        """
        return self.ratio if max(self.before, self.after) >= MEANINGFUL_SECONDS else None


def measure(spark: Any, query: Query, rounds: int) -> Measurement:
    """Compare rows in a first, untimed run of each; then time both in turns, each on a DataFrame never run before.

    A DataFrame that ran once keeps its finished shuffles, so a second run of it would skip them. The turns alternate
    which side runs first, because the second one finds warmer caches. The time after includes ``optimize_joins()``
    itself.
    """
    original = query.build(spark)
    optimised = pyjoinopt.optimize_joins(original)
    report = pyjoinopt.join_report(optimised)
    expected, found = original.collect(), optimised.collect()
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
    same = same_rows(expected, found)
    return Measurement(query, report, middle(planning), middle(before), middle(after), len(expected), same)
