"""When a predicate may be written in terms of what a projection computes, and when that would be unwise."""

from __future__ import annotations

from pyjoinopt.catalyst.support.predicate_helper import size
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import Expression, walk
from pyjoinopt.plan.nodes import LogicalPlan


def grows_too_large(predicate: Expression, columns: dict[int, Expression], largest: int = limits.PREDICATE) -> bool:
    """True if the predicate with every computed column (by bit) written out is too large; nothing is written out."""
    total = 0
    for e in walk(predicate):
        body = columns.get(e.attribute.bit) if e.kind == "AttributeReference" and e.attribute is not None else None
        total += 1 if body is None else size(body, largest + 1)
        if total > largest:
            return True
    return False


def reads_same_source(predicate: Expression, plan: LogicalPlan) -> bool:
    """True if a subquery in the predicate is over the very columns of `plan`: attribute ids would collide there."""
    return any(e.plan is not None and e.plan.output_set & plan.output_set for e in walk(predicate))
