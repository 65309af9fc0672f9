"""The inputs and conjuncts of a region of inner joins.
"""

from __future__ import annotations

from typing import NamedTuple

from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.fallible.fallibility import is_movable
from pyjoinopt.plan.nodes import INNER_LIKE, NO_HINT, Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import without_aliases


def is_inner(node: LogicalPlan) -> bool:
    """True for an inner join without a hint whose condition may be evaluated elsewhere."""
    return (
        isinstance(node, Join)
        and node.join_type in INNER_LIKE
        and node.hint == NO_HINT
        and not node.cached
        and all(map(is_movable, conjuncts(node.condition)))
    )


class InnerJoinRegion(NamedTuple):
    """A tree of inner joins.

    Attributes:
        inputs: from left to right.
        conjuncts: of the joins' conditions, those of lower joins first.
        joins: ids of all joins of the region.
    """

    inputs: list[LogicalPlan]
    conjuncts: list[Expression]
    joins: set[int]


def inner_join_inputs(top: LogicalPlan) -> InnerJoinRegion:
    """The region whose topmost join is `top`."""
    parts: list[LogicalPlan] = []
    predicates: list[Expression] = []
    seen: set[int] = set()
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
    return InnerJoinRegion(parts, predicates, seen)
