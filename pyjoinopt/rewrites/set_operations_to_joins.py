"""INTERSECT and EXCEPT over joins become semi and anti joins, so that a join group can order them.

    before  SELECT a.x FROM a JOIN b ON a.k = b.k INTERSECT SELECT c.x FROM c
    after   SELECT DISTINCT x FROM (SELECT a.x FROM a JOIN b ON a.k = b.k) q LEFT SEMI JOIN c ON q.x <=> c.x

Spark does the same, but too late for a join order that begins with the semi join.

Legal if it is not INTERSECT ALL or EXCEPT ALL. Not done

* where the left side is no join: the semi join could not move into a join group;
* where a column of an INTERSECT is never NULL only because of the right side: a semi join has the columns of its left
  side, and the schema of the user's DataFrame must not change;
* where a column cannot be compared by `<=>` (intervals of months, days and microseconds together): Spark checks that in
  the analysed plan and not afterwards.

Source: Catalyst's `ReplaceIntersectWithSemiJoin` and `ReplaceExceptWithAntiJoin`.
"""

from __future__ import annotations

import re

from pyjoinopt.catalyst.rules.replace_intersect_with_semi_join import on_all_columns
from pyjoinopt.plan import constructors
from pyjoinopt.plan.nodes import ANTI, OUTER, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.traversal import post_order, transform_down

_TYPES = {"Intersect": SEMI, "Except": ANTI}
#: `interval` alone; `interval day to second` and its like are ordered.
_UNORDERED = re.compile(r"\binterval\b(?! (?:year|month|day|hour|minute|second))")


def set_operations_as_joins(plan: LogicalPlan) -> LogicalPlan:
    """INTERSECT and EXCEPT (not ALL) with a join on the left become semi and anti joins, below a Distinct.

    Returns:
        The plan, the very same object if there are none.
    """
    return transform_down(plan, _joined)


def _joined(node: LogicalPlan) -> LogicalPlan:
    join_type = _TYPES.get(node.kind)
    if join_type is None or node.cached or node.info.get("all", True):
        return node
    left, right = node.children
    if not _over_a_join(left) or (join_type == SEMI and _knows_more(left, right)):
        return node
    if any(_UNORDERED.search(attribute.type) for attribute in left.output):
        return node
    return constructors.distinct(on_all_columns(left, right, join_type))


def _over_a_join(plan: LogicalPlan) -> bool:
    while not plan.cached and (isinstance(plan, (Filter, Project)) or is_only_a_name(plan)):
        plan = plan.children[0]
    return isinstance(plan, Join) and not plan.cached


def _knows_more(left: LogicalPlan, right: LogicalPlan) -> bool:
    """True if the right side might have a column without NULLs where the left side might have one with NULLs."""
    certain = not any(
        node.kind == "Union" or (isinstance(node, Join) and node.join_type in OUTER) for node in post_order(left)
    )
    for ours, theirs in zip(left.output, right.output, strict=True):
        if (ours.nullable or not certain) and not theirs.nullable:
            return True
    return False
