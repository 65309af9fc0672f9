"""What keeps the joins of a plan apart, for a report that else could only say that nothing changed."""

from __future__ import annotations

from pyjoinopt.plan.nodes import ANTI, INNER_LIKE, OUTER, SEMI, Join, LogicalPlan
from pyjoinopt.plan.tree import post_order

#: What a group looks through.
_CLEAR = frozenset({"Filter", "Project", "SubqueryAlias", "View", "HintScope", "ResolvedHint"})
_ORDERED = INNER_LIKE | OUTER | {SEMI, ANTI}


def walls(root: LogicalPlan) -> list[str]:
    """The kinds of operators that stand between two joins, and of joins that are never moved, each once.

    None where there are fewer than two joins: nothing is kept apart.

    >>> walls(LogicalPlan("LocalRelation"))
    []
    """
    found: dict[str, None] = {}
    joins = 0
    joins_below: set[int] = set()
    for node in post_order(root):
        below = not node.cached and any(id(child) in joins_below for child in node.children)
        if not node.cached and isinstance(node, Join):
            for child in node.children:
                _down(child, joins_below, found)
            if node.join_type not in _ORDERED:
                found[node.join_type] = None
            below = True
            joins += 1
        if below:
            joins_below.add(id(node))
    return list(found) if joins > 1 else []


def _down(node: LogicalPlan, joins_below: set[int], found: dict[str, None]) -> None:
    """What stands between a join and the next one below this side of it."""
    while id(node) in joins_below and not isinstance(node, Join):
        if node.kind not in _CLEAR:
            found[node.kind] = None
        if len(node.children) != 1:
            break
        node = node.children[0]
