"""All findings of one execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyjoinopt.advice.better_order import better_orders
from pyjoinopt.advice.broadcast_sides import large_broadcasts, missed_broadcasts
from pyjoinopt.advice.existence_checks import existence_checks
from pyjoinopt.advice.finding import Finding, rank
from pyjoinopt.advice.missing_statistics import missing_statistics
from pyjoinopt.advice.multiplied_rows import multiplied_rows
from pyjoinopt.advice.outer_joins import needless_outer_joins
from pyjoinopt.advice.repeated_subplans import repeated_subplans
from pyjoinopt.advice.uneven_work import uneven_work
from pyjoinopt.eventlog.execution import Execution

_IDEAS: tuple[Callable[[Execution], Iterable[Finding]], ...] = (
    better_orders, multiplied_rows, existence_checks, missed_broadcasts, large_broadcasts, repeated_subplans,
    needless_outer_joins, uneven_work, missing_statistics,
)  # fmt: skip


def findings_of(execution: Execution) -> list[Finding]:
    """The findings of an execution, the one with most to win first; none of one that failed or did not end."""
    if not execution.complete:
        return []
    found = [finding for idea in _IDEAS for finding in idea(execution)]
    return sorted(found, key=rank)
