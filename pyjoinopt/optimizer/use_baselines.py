"""The baselines that a call names: which of them are for this query, and which of their groups were found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyjoinopt._version import __version__
from pyjoinopt.config import PLAN_OPTIONS, Options, check_keywords
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.baseline import Baseline, PinnedGroup, PinnedHint, pinned_group, pinned_hints
from pyjoinopt.feedback.baseline_store import read_baselines
from pyjoinopt.feedback.match_baseline import PinnedOrder
from pyjoinopt.feedback.query_shape import table_name
from pyjoinopt.optimizer.reorder import ChangedGroup, Reordered
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.report.join_report import JoinReport

_OTHER_TABLES = "it is for another query: no group of it reads only tables of this one"
_OTHER_JOINS = "no join group of the query has its relations ({names}), joined by the same columns"


@dataclass(frozen=True)
class UsedBaselines:
    """The baselines for one query.

    Attributes:
        baselines: those whose tables the query reads.
        options: of the call, with theirs.
    """

    baselines: tuple[Baseline, ...]
    options: Options

    def hints_for(self, reordered: Reordered) -> tuple[PinnedHint, ...] | None:
        """The hints of the baselines whose orders a plan has; None if it has none, or if only orders are used."""
        names = {pinned.baseline for pinned in map(_used, reordered.groups) if pinned is not None}
        if not names or not self.options.pinned_hints:
            return None
        return tuple(hint for baseline in self.baselines if baseline.name in names for hint in baseline.hints)

    def refuse_unused(self, groups: Sequence[ChangedGroup], report: JoinReport) -> None:
        """Report the groups of baselines that the plan does not have."""
        seen = {id(group.ordered.pinned.group) for group in groups if group.ordered.pinned is not None}
        for baseline in self.baselines:
            for group in baseline.groups:
                if id(group) not in seen:
                    reason = _OTHER_JOINS.format(names=", ".join(group.relations))
                    report.refuse(f"the baseline {baseline.name}", reason)


def baselines_for(leaves: Iterable[LogicalPlan], options: Options, report: JoinReport) -> UsedBaselines:
    """The baselines that the options name, and those given; what cannot be used is reported."""
    given = list(options.pinned)
    if options.baseline_names:
        store = open_store(options.store, options.store_folder)
        found, missing = read_baselines(options.baseline_names, store)
        given += found
        for name, reason in missing:
            report.refuse(f"the baseline {name}", reason)
    if not given:
        return UsedBaselines((), options)
    tables = Counter(table_name(leaf) for leaf in leaves)
    used = []
    for baseline in given:
        if not any(_is_part(group, tables) for group in baseline.groups):
            report.refuse(f"the baseline {baseline.name}", _OTHER_TABLES)
            continue
        try:
            options = replace(options, **check_keywords(_plan_options(baseline)))
        except (ValueError, TypeError) as error:
            report.refuse(f"the baseline {baseline.name}", f"its options are not valid here: {error}")
            continue
        used.append(baseline)
    return UsedBaselines(tuple(used), options)


def pinned_groups(reordered: Reordered) -> int:
    """How many groups of a plan have the order of a baseline."""
    return sum(_used(group) is not None for group in reordered.groups)


def planned_joins(
    groups: Iterable[ChangedGroup], hinted: Iterable[Join], options: Options, spark: str, written: bool = False
) -> Baseline:
    """A plan as a baseline without a name.

    Args:
        groups, hinted, options: see `Optimized`.
        spark: the version of Spark.
        written: whether to take the orders as written instead of those that were chosen.
    """
    ordered = [group.ordered for group in groups]
    pinned = (pinned_group(o.estimated.graph, o.estimated.written if written else o.chosen) for o in ordered)
    default = Options()
    kept = {
        name: value
        for name in PLAN_OPTIONS
        if (value := getattr(options, name)) != getattr(default, name) and isinstance(value, (str, int, bool))
    }
    return Baseline("", tuple(pinned), pinned_hints(hinted), kept, spark, __version__)


def _plan_options(baseline: Baseline) -> dict[str, Any]:
    """Its options.

    Raises:
        ValueError: it has others than those of plans.
    """
    for name in baseline.options:
        if name not in PLAN_OPTIONS:
            raise ValueError(f"{name!r} is none of {', '.join(PLAN_OPTIONS)}")
    return dict(baseline.options)


def _used(group: ChangedGroup) -> PinnedOrder | None:
    return None if group.ordered.why_not_pinned else group.ordered.pinned


def _is_part(group: PinnedGroup, tables: Counter[str]) -> bool:
    return not Counter(group.tables) - tables
