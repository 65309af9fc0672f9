"""What was changed in a query, in words for the query store, which has no constant of a query."""

from __future__ import annotations

from pyjoinopt.feedback.query_shape import plain_table_name
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.report.join_report import JoinReport


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
    for name in sorted(names - {plain_table_name(name) for name in names} - {""}, key=len, reverse=True):
        orders = [order.replace(name, plain_table_name(name)) for order in orders]
    return (*orders, *(f"{n} {name}{'s' * (n > 1)}" for n, name in counted if n))
