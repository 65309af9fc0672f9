"""The runs of one recurring query in chronological order, as data, text and picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from pyjoinopt.report.render.history_svg import history_svg
from pyjoinopt.report.render.svg_style import as_image

#: The name of the plan of a query as written.
AS_WRITTEN = "as written"


@dataclass(frozen=True)
class HistoryRun:
    """One run.

    Attributes:
        ended: when, in seconds since the epoch.
        seconds: from the start to the end of the query.
        plan: "as written", or a number.
        changes: what the plan changed.
        failed: "memory" if it ran out of memory; empty if it ended well.
    """

    ended: float
    seconds: float
    plan: str
    changes: str = ""
    failed: str = ""

    @property
    def day(self) -> str:
        """When it ended, in UTC, to the second."""
        return datetime.fromtimestamp(self.ended, timezone.utc).isoformat(" ", "seconds").removesuffix("+00:00")


@dataclass(frozen=True)
class QueryHistory:
    """What one recurring query did. It has a picture in notebooks.

    Attributes:
        query: its number, as in `pyjoinopt.queries`.
        tables: the names of what it reads.
        runs: the kept ones, the oldest first: up to 16 of each plan.
        states: plan -> its state, such as "in use", or "revoked" with the reason.
    """

    query: str
    tables: tuple[str, ...]
    runs: tuple[HistoryRun, ...]
    states: dict[str, str]

    def to_text(self) -> str:
        """The runs, one line for each time that the plan changed.

        >>> runs = (HistoryRun(0, 2.0, "as written"), HistoryRun(9, 8.0, "1f2e"), HistoryRun(99, 7.5, "1f2e"))
        >>> print(QueryHistory("0a1b", ("a", "b"), runs, {"1f2e": "in use"}))
        query 0a1b over a, b: 3 runs
        1970-01-01 00:00:00  as written    1 run   2 s
        1970-01-01 00:00:09  1f2e          2 runs  7.5 .. 8 s  in use
        """
        lines = [f"query {self.query} over {', '.join(self.tables)}: {len(self.runs)} runs"]
        changes = list(self._by_plan())
        latest = {plan: number for number, (plan, _) in enumerate(changes)}
        for number, (plan, runs) in enumerate(changes):
            seconds = [run.seconds for run in runs if not run.failed]
            span = " .. ".join(f"{each:.3g}" for each in _ends(seconds))
            failed = len(runs) - len(seconds)
            state = self.states.get(plan, "") if latest[plan] == number else ""
            what = "  ".join(filter(None, (f"{span} s" if span else "", f"{failed} failed" if failed else "", state)))
            counted = f"{len(runs)} run{'s' * (len(runs) > 1)}"
            lines.append(f"{runs[0].day}  {plan:<12}  {counted:<6}  {what}".rstrip())
        return "\n".join(lines)

    def to_svg(self) -> str:
        """The runs by their times, as a picture."""
        rows = [(run.plan, run.changes, run.seconds, run.day, bool(run.failed)) for run in self.runs]
        return history_svg(f"Runs of query {self.query}", rows, AS_WRITTEN)

    def _by_plan(self) -> Iterator[tuple[str, list[HistoryRun]]]:
        for plan, runs in groupby(self.runs, lambda run: run.plan):
            yield plan, list(runs)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": as_image(self.to_svg())}


def _ends(seconds: list[float]) -> list[float]:
    """The shortest and the longest time; one of them if they are equal."""
    return sorted({min(seconds), max(seconds)}) if seconds else []
