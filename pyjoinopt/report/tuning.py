"""The result of `pyjoinopt.tune`: the plans that were tried, with their times, as data, text and picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyjoinopt.report.render.svg_style import as_image, cut
from pyjoinopt.report.render.times_svg import times_svg
from pyjoinopt.report.report_data import ReportData

#: The plan of the query as written, and the plan of the optimizer without further options.
AS_WRITTEN, DEFAULT = "as written", "default"


@dataclass(frozen=True)
class TriedPlan:
    """One plan of the query.

    Attributes:
        name: how it was found.
        order: the orders of its join groups.
        seconds: of its runs that came to their end, planning included.
        stopped: seconds after which a run was stopped, because a faster plan was known; None if no run was.
        cost: of its orders, by the estimates at that time.
        baseline: the plan as a baseline.
    """

    name: str
    order: str
    seconds: tuple[float, ...]
    stopped: float | None = None
    cost: float = math.nan
    baseline: Any = field(default=None, repr=False)

    @property
    def typical(self) -> float:
        """The median of its seconds; infinite if no run came to its end.

        >>> TriedPlan("default", "(a ⋈ b)", (1.0, 3.0)).typical
        2.0
        """
        return statistics.median(self.seconds) if self.seconds else math.inf


@dataclass(frozen=True)
class Tuning:
    """What `tune` found.

    Attributes:
        plans: all that were tried, the fastest first.
        best: the fastest; the default plan if no other one is faster by more than the noise.
        runs: number of timed runs.
        learned: relations and joins whose rows were counted, with the estimate before: a list of
            `pyjoinopt.statistics.Observation`, the worst estimate first.
        report: the report of the default plan.
        same: whether the best plan's rows are those of the query as written; None if only their number was compared.
        pinned: the name under which the best plan was pinned; empty if it was not.
        ended: why no more plans were tried.
    """

    plans: tuple[TriedPlan, ...]
    best: TriedPlan
    runs: int
    learned: tuple[Any, ...] = ()
    report: ReportData | None = field(default=None, repr=False)
    same: bool | None = True
    pinned: str = ""
    ended: str = ""

    def plan(self, name: str) -> TriedPlan:
        """The plan of a name, such as "default" or "as written".

        Raises:
            KeyError: there is none of this name.
        """
        for plan in self.plans:
            if name in plan.name.split(", "):
                return plan
        raise KeyError(f"no plan is named {name!r}; there are {', '.join(plan.name for plan in self.plans)}")

    @property
    def speed_up(self) -> float:
        """Seconds of the default plan divided by those of the best one."""
        return self.plan(DEFAULT).typical / self.best.typical

    def to_text(self) -> str:
        """The plans with their times, and what was learned."""
        width = max(len(cut(plan.name)) for plan in self.plans)
        lines = [f"{len(self.plans)} plans, {self.runs} runs ({self.ended})"]
        for plan in self.plans:
            mark = "*" if plan is self.best else " "
            lines.append(f"{mark} {cut(plan.name):{width}}  {shown(plan)}  {plan.order}".rstrip())
        if self.best.name != self.plan(DEFAULT).name:
            lines.append(f"best       {cut(self.best.name)}: {self.speed_up:.2f} times as fast as the default plan")
        else:
            lines.append("best       the default plan: no other one was faster by more than the noise")
        rows = {True: "the same rows", False: "OTHER ROWS: please report this", None: "the same number of rows"}
        lines.append(f"result     {rows[self.same]}")
        wrong = [seen for seen in self.learned if seen.q_error >= 2.0][:5]
        for seen in wrong:
            lines.append(f"learned    {' ⋈ '.join(seen.relations)}: {seen.actual:,.0f} rows, not {seen.estimated:,.0f}")
        if self.pinned:
            lines.append(f"pinned     as {self.pinned}: use it with optimize_joins(baseline={self.pinned!r})")
        return "\n".join(lines)

    def to_svg(self) -> str:
        """The plans by their times, as a picture."""
        rows = [(plan.name, plan.order, plan.seconds, plan.stopped, plan is self.best) for plan in self.plans]
        return times_svg("Plans by their times", rows)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": as_image(self.to_svg())}


def shown(plan: TriedPlan) -> str:
    """The times of a plan as text.

    >>> shown(TriedPlan("x", "", (1.0, 2.0))), shown(TriedPlan("x", "", (), 4.25))
    ('    1.50 s (1.00, 2.00)', '  > 4.25 s')
    """
    if not plan.seconds:
        return f"  > {plan.stopped or 0.0:.2f} s"
    return f"{plan.typical:8.2f} s ({_listed(plan.seconds)})"


def _listed(seconds: Sequence[float]) -> str:
    return ", ".join(f"{second:.2f}" for second in seconds)
