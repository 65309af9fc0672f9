"""Why a plan is the same after an optimisation, where no rule and no search has given a reason of its own.

The reasons of `find_groups`, `barriers` and `reorder` come from where something is refused. This module has the reason
for plans in which nothing was refused: it names what they lack, and has an answer for every plan.
"""

from __future__ import annotations

from pyjoinopt.joins.groups.barriers import reorder_barriers, why_separate
from pyjoinopt.plan.expressions import SUBQUERY, walk
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

_NO_HINT = "there is no outer join to eliminate, and no hint is proved to be better than Spark's own choice"


def why_unchanged(root: LogicalPlan, strategy: str) -> str:
    """The reason, as the end of a sentence that begins with "the whole query".

    Args:
        root: the plan as it was given, in which nothing was changed.
        strategy: of the option.

    >>> why_unchanged(LogicalPlan("LocalRelation"), "auto")
    'it has no join'
    """
    plans = _with_subqueries(root)
    nodes = [node for plan in plans for node in post_order(plan)]
    joins = sum(isinstance(node, Join) for node in nodes)
    if not joins:
        cached = any(node.cached for node in nodes)
        return "all of its joins are inside cached data, which Spark reads as it is" if cached else "it has no join"
    if joins == 1:
        return f"it joins two relations, so there is one order; {_NO_HINT}"
    if between := list(dict.fromkeys(kind for plan in plans for kind in reorder_barriers(plan))):
        return why_separate(between)
    if len(plans) > 1 or any(node.kind == "WithCTE" for node in nodes):
        return (
            f"its {joins} joins are in different subqueries or common table expressions, so no three relations are "
            f"joined in one place; {_NO_HINT}"
        )
    if strategy in ("spark", "heuristic"):
        return f"the strategy {strategy!r} leaves its order unchanged, as Spark's own rule does"
    return f"no other order of its {joins} joins is allowed; {_NO_HINT}"


def _with_subqueries(root: LogicalPlan) -> list[LogicalPlan]:
    """The plan and the plans of all subqueries in its expressions."""
    found = [root]
    for plan in found:  # grows while it is read
        for node in post_order(plan):
            for e in node.expressions:
                if not node.cached and e.contains & SUBQUERY:
                    found += [inner.plan for inner in walk(e) if inner.plan is not None]
    return found
