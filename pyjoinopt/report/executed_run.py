"""EXPLAIN ANALYZE for Spark: the operators of a run with their counted rows and times, and our estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyjoinopt.report.render.number_format import quantity, times
from pyjoinopt.report.render.spine_layout import outline_of
from pyjoinopt.report.render.terminal_boxes import Box, pad

#: Error factor from which on an estimate is flagged.
MISESTIMATED = 10.0
_TIMES = ("scanTime", "sortTime", "buildTime", "aggTime", "shuffleWriteTime", "broadcastTime", "collectTime")


@dataclass(frozen=True)
class OperatorReport:
    """One physical operator of a run.

    Attributes:
        name: Spark's name of the operator.
        detail: its keys, condition or table, as text.
        children: indexes of its inputs in `RunReport.operators`.
        rows: output rows that Spark counted; None if Spark does not count them.
        milliseconds: the sum of Spark's timing metrics over all tasks; None if it has none.
        relations: names of the join group's relations below it; empty if it was not matched to the group.
        estimated: estimated output rows; None if there is no estimate.
        note: why the count may be incomplete.
    """

    name: str
    detail: str
    children: tuple[int, ...]
    rows: float | None
    milliseconds: float | None
    relations: tuple[str, ...] = ()
    estimated: float | None = None
    note: str = ""

    @property
    def error(self) -> float | None:
        """ln(counted rows / estimated rows), each taken as at least one row; None if either is missing."""
        if self.rows is None or self.estimated is None:
            return None
        return math.log(max(1.0, self.rows) / max(1.0, self.estimated))

    @property
    def q_error(self) -> float | None:
        """The q-error: the factor by which the estimate is too high or too low; None if unknown."""
        return None if self.error is None else math.exp(abs(self.error))

    @property
    def misestimated(self) -> bool:
        """Whether the q-error is `MISESTIMATED` or more."""
        return self.q_error is not None and self.q_error >= MISESTIMATED

    @property
    def label(self) -> str:
        """Name, detail and note in one line."""
        return f"{self.name} {self.detail}".rstrip() + (f" ({self.note})" if self.note else "")

    def figures(self) -> tuple[str, str, str, str]:
        """Counted rows, estimated rows, error factor and milliseconds as text; unknown ones are empty."""
        q = self.q_error
        factor = "" if q is None or q < 1.05 else times(q)
        return _figure(self.rows), _figure(self.estimated), factor, _figure(self.milliseconds)


@dataclass(frozen=True)
class RunReport:
    """One run of a query.

    Attributes:
        which: "as written" or "optimised".
        seconds: wall time from the analysed plan to the last row.
        planning: the part of `seconds` that Spark spent on planning.
        operators: children before parents.
    """

    which: str
    seconds: float
    planning: float
    operators: tuple[OperatorReport, ...]

    @property
    def title(self) -> str:
        """One line on the whole run."""
        return f"Run {self.which}: {self.seconds:.2f} s, of which {self.planning:.2f} s planning"

    def misled(self) -> tuple[OperatorReport, float] | None:
        """The flagged operator with the largest error of its own, and that error as a factor.

        The own error is the q-error after the errors of its inputs are divided out. An estimate is not flagged if
        errors below it cancel out.
        """
        inherited: list[float] = []
        worst: tuple[OperatorReport, float] | None = None
        for operator in self.operators:
            below = sum(inherited[child] for child in operator.children)
            error = operator.error
            inherited.append(below if error is None else error)
            if error is not None and operator.misestimated:
                own = math.exp(abs(error - below))
                if worst is None or own > worst[1]:
                    worst = operator, own
        return worst

    def to_text(self, width: int = 110, ascii_only: bool = False) -> str:
        """The operators as a tree, with counted and estimated rows; `!` marks an error factor of ten or more."""
        box = Box(self.title, width, ascii_only)
        figures = f"{'rows':>8}{'estimate':>9}{'error factor':>13}{'ms':>8}"
        room = box.inside - len(figures) - 1
        box.line(f"{'':<{room}} {figures}")
        for line in outline_of([operator.children for operator in self.operators]):
            operator = self.operators[line.node]
            flag = "!" if operator.misestimated else " "
            rows, estimated, factor, milliseconds = operator.figures()
            text = pad(box.text(f"{flag} {line.prefix(ascii_only)}{operator.label}"), room)
            box.line(f"{text} {rows:>8}{estimated:>9}{factor:>13}{milliseconds:>8}")
        box.rule()
        box.wrapped(self.verdict(), "  ")
        return box.to_text()

    def verdict(self) -> str:
        """How many estimates are flagged, and which has the largest error of its own, in a sentence or two."""
        flagged = sum(operator.misestimated for operator in self.operators)
        judged = sum(operator.error is not None for operator in self.operators)
        if not judged:
            return "No estimates to compare: none of these operators belongs to a join group."
        misled = self.misled()
        if misled is None or misled[1] < MISESTIMATED:
            inherited = ", which they inherit from their inputs" if flagged else ""
            return f"{flagged} of {judged} estimates have an error factor of {MISESTIMATED:.0f} or more (!){inherited}."
        operator, own = misled
        expected, found = quantity(operator.estimated or 0.0), quantity(operator.rows or 0.0)
        return (
            f"{flagged} of {judged} estimates have an error factor of {MISESTIMATED:.0f} or more (!). "
            f"Largest own error: {' ⋈ '.join(operator.relations)}, {expected} rows estimated, {found} counted; "
            f"{times(own)} without the errors of its inputs."
        )


def run_report(which: str, run: Mapping[str, Any], expected: Mapping[int, tuple[tuple[str, ...], float]]) -> RunReport:
    """Build a `RunReport`.

    Args:
        which: "as written" or "optimised".
        run: the JVM's record of the run.
        expected: index of an operator -> the relations below it, and its estimated rows.
    """
    operators = []
    for number, operator in enumerate(run["operators"]):
        metrics = operator["m"]
        times = [metrics[name] for name in _TIMES if name in metrics]
        relations, estimated = expected.get(number, ((), None))
        note = "may have stopped early" if operator.get("limited") else ""
        operators.append(
            OperatorReport(
                operator["c"], operator.get("t", ""), tuple(operator["k"]), metrics.get("numOutputRows"),
                float(sum(times)) if times else None, relations, estimated, note,
            )  # fmt: skip
        )
    return RunReport(which, run["seconds"], run["planning"], tuple(operators))


def compared(runs: Sequence[RunReport]) -> str:
    """One line that compares the times of two runs."""
    if len(runs) != 2:
        return ""
    before, after = runs
    return f"{before.seconds:.2f} s as written, {after.seconds:.2f} s optimised: {before.seconds / after.seconds:.2f}x"


def _figure(value: float | None) -> str:
    return "" if value is None else quantity(value)
