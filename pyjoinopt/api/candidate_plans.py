"""The plans that `tune` tries, in the order in which they promise most.

1. The query as written, and the default plan.
2. The default plan by the row counts of these runs, made anew until it stays the same.
3. Two plans that would be the best if one of the least certain estimates was wrong (`optimizer.orders_if_wrong`): the
   one that costs least by the estimates as they are, and the one that gains most if they are wrong. After each comes
   the default plan by the rows that it has counted, if that is another one.
4. The plans of other estimates, cost models and hints, and those without one of the rewrites.
5. Two more plans as in 3, because the plans of 4 have counted more joins.
6. Neighbours of the best plan: orders in which one relation was moved, the cheapest first by what is known then.

A plan that was tried before, by whatever options, is not tried again. Source of 2: Leis and Kemper, "Approximate
cardinalities by re-optimisation". The sequence is ours: counts correct the largest errors. Those that are left are in
joins that no plan has made so far. The plans of 3 make such joins, and use all counts, while those of 4 mostly ignore
some. The runs are limited, so 3 has no more than two.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pyjoinopt.api.dataframe import run_watching_pairs, run_with_baseline
from pyjoinopt.config import REWRITES
from pyjoinopt.feedback.baseline import Baseline, PinnedGroup
from pyjoinopt.feedback.match_baseline import order_text
from pyjoinopt.feedback.neighbour_orders import neighbours
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.tuning import AS_WRITTEN, DEFAULT

#: How often the default plan is made anew by the row counts of its last run.
_MOST_LEARNED = 3
#: Neighbours that are priced at most, and the cheapest of them that are tried.
_PRICED, _TRIED = 40, 4
#: Everything that changes a plan is off.
_NOTHING: dict[str, Any] = {"hints": False, "rewrites_without": ", ".join(REWRITES)}
#: Name -> options by which plans differ.
_VARIED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("no hints", {"hints": False}),
    ("cost c_out", {"cost": "c_out"}),
    ("no samples", {"statistics_without": "samples, bounds"}),
    ("no rewrites", {"rewrites_without": ", ".join(REWRITES)}),
    ("full statistics", {"statistics": "full"}),
    ("cost weighted", {"cost": "weighted"}),
    ("file sizes only", {"statistics": "none"}),
    *((f"without {name}", {"rewrites_without": name}) for name in REWRITES),
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A plan to be tried.

    Attributes:
        name: how it was found.
        df: the DataFrame with this plan.
        report: of making it.
        baseline: the plan as a baseline.
    """

    name: str
    df: Any
    report: JoinReport
    baseline: Baseline

    @property
    def key(self) -> tuple[Any, ...]:
        """What two candidates with the same plan have in common."""
        if self.name == AS_WRITTEN or not self.report.changed:
            return (AS_WRITTEN,)
        report = self.report
        done = (*report.spared_joins, *report.eliminated_outer_joins, *report.eager_aggregations, *report.prefilters)
        return (self.order, self.baseline.hints, tuple(sorted(done)))

    @property
    def order(self) -> str:
        """The orders of the join groups."""
        return "; ".join(map(order_text, self.baseline.groups))


class CandidatePlans:
    """The candidates of one query.

    Args:
        df: the query as written.
        options: of the default plan.
    """

    def __init__(self, df: Any, options: dict[str, Any]) -> None:
        self._df, self._options = df, {"mode": "on", "guard": "off", **options}

    def as_written(self) -> Candidate:
        """The query as written, with a baseline that keeps its orders and changes nothing else."""
        options = {**self._options, **_NOTHING}
        _, report = run_watching_pairs(self._df, options)
        baseline = _planned(report, written=True)
        report.changed = False
        return Candidate(AS_WRITTEN, self._df, report, replace(baseline, hints=()))

    def default(self, name: str = DEFAULT) -> Candidate:
        """The plan by the options of the call, and by what was learned so far."""
        return self._with(name, {})

    def learned(self) -> Iterator[Candidate]:
        """The default plan by what was learned, for as long as somebody wants more."""
        for number in range(1, _MOST_LEARNED + 1):
            yield self.default("by counted rows" if number == 1 else f"by counted rows, again ({number})")

    def varied(self) -> Iterator[Candidate]:
        """The plans by other options; those that the call has itself are left alone."""
        for name, options in _VARIED:
            if not set(options) & set(self._options):
                yield self._with(name, options)

    def if_wrong(self, is_tried: Callable[[Candidate], bool]) -> Iterator[Candidate]:
        """Two plans that would be the best if an estimate was wrong, each by what was learned so far.

        After each the default plan follows, if what its run has counted makes that another one.

        Args:
            is_tried: whether a plan was tried before.
        """
        for by_gain in (False, True):
            found = next((candidate for candidate in self._all_if_wrong(by_gain) if not is_tried(candidate)), None)
            if found is None:
                return
            yield found
            corrected = self.default(f"counted after {found.name}")
            if not is_tried(corrected):
                yield corrected

    def near(self, best: Candidate) -> list[Candidate]:
        """The cheapest neighbours of a plan, by what was learned so far.

        Hints are given anew, since those of the best plan are for its order; to the neighbours of one without, none.
        """
        found, keeps_hints = [], not best.baseline.hints
        for number, group in enumerate(best.baseline.groups):
            others = list(neighbours(group))
            random.Random(number).shuffle(others)
            for other in islice(others, _PRICED // len(best.baseline.groups)):
                candidate = self._in_order("near the best", best.baseline, number, other, keeps_hints)
                if candidate is not None:
                    found.append(candidate)
        found.sort(key=lambda candidate: candidate.report.cost_after)
        return found[:_TRIED]

    def _all_if_wrong(self, by_gain: bool) -> Iterator[Candidate]:
        """Those that gain most, or lose least, first. Hints are given anew: the default plan's are for its order."""
        _, report = run_watching_pairs(self._df, self._options)
        default = _planned(report)
        orders = report._orders_if_wrong() if report._orders_if_wrong is not None else ()
        for other in sorted(orders, key=lambda order: -order.gain) if by_gain else orders:
            candidate = self._in_order(other.assumption, default, other.group, other.order, keeps_hints=False)
            if candidate is not None:
                yield candidate

    def _in_order(
        self, name: str, baseline: Baseline, number: int, order: PinnedGroup, keeps_hints: bool
    ) -> Candidate | None:
        """A baseline with another order of one of its groups; None if that is not legal."""
        groups = (*baseline.groups[:number], order, *baseline.groups[number + 1 :])
        df, report = run_with_baseline(self._df, replace(baseline, groups=groups), self._options, keeps_hints)
        if report.error is not None or any("baseline" in refusal.where for refusal in report.refusals):
            return None
        return Candidate(name, df, report, _planned(report))

    def _with(self, name: str, options: dict[str, Any]) -> Candidate:
        df, report = run_watching_pairs(self._df, {**self._options, **options})
        return Candidate(name, df, report, _planned(report))


def _planned(report: JoinReport, written: bool = False) -> Baseline:
    if report._planned is None:
        return Baseline("", ())
    found: Baseline = report._planned(written=written)
    return found
