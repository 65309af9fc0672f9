"""What a predicate with subqueries reads of the row it is evaluated on (Catalyst's `SubqueryExpression.references`).

A correlated subquery holds the columns of the enclosing query that it uses, and once it is decorrelated also the
conditions that will join it, which mix columns of both. Only the former are read of the row.

Before it is decorrelated, its plan refers to these columns by name from within. They cannot be renamed from outside
then: the predicate may move only to where they have the same identity.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.plan.expressions import CORRELATED, OUTER_REFERENCE, SUBQUERY, Expression, walk
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order


def outer_columns(subquery: Expression) -> tuple[Expression, ...]:
    """Of the children of a subquery expression those that are columns of the enclosing query."""
    if subquery.plan is None:
        return subquery.children
    return subquery.children[: len(subquery.info.get("outer", ()))]


def row_references(predicate: Expression) -> int:
    """The attributes that a predicate reads of its row.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> bin(row_references(call("EqualTo", reference(a), reference(b))))
    '0b11'
    """
    if not predicate.contains & SUBQUERY:
        return predicate.references
    mask = 0
    stack = [predicate]
    while stack:
        e = stack.pop()
        if not e.contains & SUBQUERY:
            mask |= e.references
        elif e.flags & SUBQUERY:
            stack.extend(outer_columns(e))
        else:
            stack.extend(e.children)
    return mask


def joined_plans(predicate: Expression) -> list[LogicalPlan]:
    """The plans of the subqueries in a predicate that Spark joins with what it filters; it computes the others once."""
    if not predicate.contains & SUBQUERY:
        return []
    subqueries = (e for e in walk(predicate) if e.plan is not None)
    return [e.plan for e in subqueries if e.plan is not None and (e.flags & CORRELATED or e.kind != "ScalarSubquery")]


def reads_outer_columns_by_name(predicate: Expression) -> bool:
    """True if a subquery in the predicate refers, within its plan, to columns of the enclosing query.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> reads_outer_columns_by_name(reference(Attribute(0, 1, "a")))
    False
    """
    if not predicate.contains & CORRELATED:
        return False
    plans = [e.plan for e in walk(predicate) if e.plan is not None and e.flags & CORRELATED]
    return any(has_outer_references(post_order(plan)) for plan in plans)


def has_outer_references(nodes: Iterable[LogicalPlan]) -> bool:
    """True if some operators, of a subquery's plan, read columns of the enclosing query.

    Spark decorrelates such a plan later, and not below every operator: never on the right side of a semi join.
    """
    return any(e.contains & OUTER_REFERENCE for node in nodes for e in node.expressions)
