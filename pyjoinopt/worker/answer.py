"""What the JVM gets of a plan, beside its report: how to rebuild it, and what is logged and counted of it."""

from __future__ import annotations

import math
from typing import Any

from pyjoinopt.feedback.query_shape import plain_table_name
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
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


def changes_without_constants(report: JoinReport, written: LogicalPlan) -> tuple[str, ...]:
    """The changes for the query store, which has no constant of a query.

    Args:
        report: of the changed plan.
        written: the plan as written, for the names of its relations.
    """
    avoided = len(report.eliminated_outer_joins) + len(report.spared_joins)
    added = len(report.eager_aggregations) + len(report.prefilters)
    counted = ((len(report.hints), "hint"), (avoided, "avoided join"), (added, "early reduction"))
    names = {str((node.info.get("rel") or {}).get("name") or "") for node in post_order(written)}
    orders = report.changes
    for name in sorted(names - {plain_table_name(name) for name in names}, key=len, reverse=True):
        orders = [order.replace(name, plain_table_name(name)) for order in orders]
    return (*orders, *(f"{n} {name}{'s' * (n > 1)}" for n, name in counted if n))
