"""What the JVM gets of a plan, beside its report: how to rebuild it, and what is logged and counted of it."""

from __future__ import annotations

import math
from typing import Any

from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.reason_keys import keys_of


def plan_answer(report: JoinReport, edits: dict[str, Any] | None = None) -> dict[str, Any]:
    """The part of an answer that depends on the plan alone.

    Args:
        report: of the plan; its deferred sections are not needed.
        edits: how to rebuild the plan; None if it was not changed.
    """
    return {
        "edits": edits,
        "summary": summary(report),
        "refusals": keys_of(refusal.reason for refusal in report.refusals),
        "costs": _costs(report),
    }


def _costs(report: JoinReport) -> list[float] | None:
    """The costs of the written and the chosen orders; None if there are none, or if JSON has no number for them."""
    costs = report.costs
    return list(costs) if costs is not None and all(map(math.isfinite, costs)) else None


def summary(report: JoinReport) -> str:
    """The changes, in one line."""
    hints = (f"{h.strategy} {h.side} of {h.join}" for h in report.hints)
    avoided = (*report.eliminated_outer_joins, *report.spared_joins)
    added = (*report.eager_aggregations, *report.prefilters)
    return "; ".join((*report.changes, *avoided, *added, *hints))
