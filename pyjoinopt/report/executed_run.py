"""What a query did when it ran, operator by operator, beside what was expected: Spark's missing EXPLAIN ANALYZE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyjoinopt.report.render.number_format import quantity, times
from pyjoinopt.report.render.spine_layout import outline_of
from pyjoinopt.report.render.terminal_boxes import Box, pad

#: An estimate that is wrong by this factor or more is flagged.
MISESTIMATED = 10.0
_TIMES = ("scanTime", "sortTime", "buildTime", "aggTime", "shuffleWriteTime", "broadcastTime", "collectTime")


@dataclass(frozen=True)
class OperatorReport:
    """One physical operator, as it ran.

    Attributes:
        name: Spark's name of it.
        detail: its keys, its condition or its table.
        children: numbers of the operators below it.
        rows: that it gave; None where Spark does not count them.
        milliseconds: that Spark measured for it, over all tasks; None where it measures none.
        relations: of a join group, those that it joins or reads, where that is known.
        estimated: rows that were expected of it; None where nothing was.
        note: why the count may not be the whole truth.
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
        """Logarithm of the rows found over the rows expected; both sides count as one row at least."""
        if self.rows is None or self.estimated is None:
            return None
        return math.log(max(1.0, self.rows) / max(1.0, self.estimated))

    @property
    def q_error(self) -> float | None:
        """How many times too high or too low the estimate was."""
        return None if self.error is None else math.exp(abs(self.error))

    @property
    def misestimated(self) -> bool:
        """Whether that is ten times or more."""
        return self.q_error is not None and self.q_error >= MISESTIMATED


    @property
    def told(self) -> str:
        """Name, detail and note in one line."""
        return f"{self.name} {self.detail}".rstrip() + (f" ({self.note})" if self.note else "")

    def figures(self) -> tuple[str, str, str, str]:
        """Rows, rows expected, by how much that was wrong, and milliseconds; empty where nothing is known."""
        q = self.q_error
        wrong = "" if q is None or q < 1.05 else times(q)
        return _figure(self.rows), _figure(self.estimated), wrong, _figure(self.milliseconds)


@dataclass(frozen=True)
class RunReport:
    """One run of a query.

    Attributes:
        which: "as written" or "optimised".
        seconds: from the analysed plan to the last row.
        planning: how much of that was Spark's planning.
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
        """The operator whose estimate misled most, and the factor by which it is wrong beyond what its inputs are.

        An estimate that is right by chance, because errors below it cancel out, has misled nobody.
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
        """The operators as a tree, with rows found and expected; `!` marks an estimate wrong by ten times and more."""
        box = Box(self.title, width, ascii_only)
        figures = f"{'rows':>8}{'expected':>9}{'wrong by':>9}{'ms':>8}"
        room = box.inside - len(figures) - 1
        box.line(f"{'':<{room}} {figures}")
        for line in outline_of([operator.children for operator in self.operators]):
            operator = self.operators[line.node]
            flag = "!" if operator.misestimated else " "
            rows, estimated, wrong, milliseconds = operator.figures()
            text = pad(box.text(f"{flag} {line.prefix(ascii_only)}{operator.told}"), room)
            box.line(f"{text} {rows:>8}{estimated:>9}{wrong:>9}{milliseconds:>8}")
        box.rule()
        box.wrapped(self.verdict(), "  ")
        return box.to_text()

    def verdict(self) -> str:
        """Which estimate misled most, in a sentence or two."""
        flagged = sum(operator.misestimated for operator in self.operators)
        judged = sum(operator.error is not None for operator in self.operators)
        if not judged:
            return "No estimate to compare with: none of these operators belongs to a join group."
        misled = self.misled()
        if misled is None or misled[1] < MISESTIMATED:
            told = "none misled by itself" if flagged else "none misled"
            return f"{flagged} of {judged} estimates are wrong by {MISESTIMATED:.0f}x and more (!); {told}."
        operator, own = misled
        expected, found = quantity(operator.estimated or 0.0), quantity(operator.rows or 0.0)
        return (
            f"{flagged} of {judged} estimates are wrong by {MISESTIMATED:.0f}x and more (!). "
            f"What misled most: {' ⋈ '.join(operator.relations)}, {expected} rows expected, {found} found; "
            f"{times(own)} of that is its own."
        )


def run_report(which: str, told: Mapping[str, Any], expected: Mapping[int, tuple[tuple[str, ...], float]]) -> RunReport:
    """From the JVM's account of a run, and what was expected of its operators, by number."""
    operators = []
    for number, operator in enumerate(told["operators"]):
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
    return RunReport(which, told["seconds"], told["planning"], tuple(operators))


def compared(runs: Sequence[RunReport]) -> str:
    """One line on two runs."""
    if len(runs) != 2:
        return ""
    before, after = runs
    return f"{before.seconds:.2f} s as written, {after.seconds:.2f} s optimised: {before.seconds / after.seconds:.2f}x"


def _figure(value: float | None) -> str:
    return "" if value is None else quantity(value)
