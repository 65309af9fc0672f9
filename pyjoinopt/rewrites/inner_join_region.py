"""What a region of inner joins puts side by side: its parts, and what is demanded of them together."""

from __future__ import annotations

from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.fallible.fallibility import is_movable
from pyjoinopt.plan.nodes import INNER_LIKE, NO_HINT, Join, LogicalPlan
from pyjoinopt.rewrites.plan_equivalence import without_aliases


def is_inner(node: LogicalPlan) -> bool:
    """True for an inner join without a hint whose condition may be tested elsewhere."""
    return (
        isinstance(node, Join)
        and node.join_type in INNER_LIKE
        and node.hint == NO_HINT
        and not node.cached
        and all(map(is_movable, conjuncts(node.condition)))
    )


def inner_join_inputs(top: LogicalPlan, seen: set[int]) -> tuple[list[LogicalPlan], list[Expression]]:
    """The parts of a region from left to right, and the conjuncts of its joins, those of lower joins first.

    Args:
        top: the topmost inner join.
        seen: gets the ids of all joins of the region.
    """
    parts: list[LogicalPlan] = []
    predicates: list[Expression] = []
    stack: list[tuple[LogicalPlan, bool]] = [(top, False)]
    while stack:
        node, expanded = stack.pop()
        below = without_aliases(node)
        if not isinstance(below, Join) or not is_inner(below):
            parts.append(node)
        elif expanded:
            predicates += conjuncts(below.condition)
        else:
            seen.add(id(below))
            stack += ((below, True), (below.right, False), (below.left, False))
    return parts, predicates
