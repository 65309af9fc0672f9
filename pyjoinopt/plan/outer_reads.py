"""What a predicate with subqueries reads of the row it is evaluated on (Catalyst's `SubqueryExpression.references`).

A correlated subquery holds the columns of the enclosing query that it uses, and once it is decorrelated also the
conditions that will join it, which mix columns of both. Only the former are read of the row.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import SUBQUERY, Expression


def outer_columns(subquery: Expression) -> tuple[Expression, ...]:
    """Of the children of a subquery expression those that stand for columns of the enclosing query."""
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
