"""RemoveLiteralFromGroupExpressions: a constant does not distinguish groups.

    SELECT a, 'x', sum(b) FROM t GROUP BY a, 'x', 1 + 1      groups as      GROUP BY a

Constants come from generated queries, from ordinals, and from views that call a constant a column; they make the key
that is hashed and shipped wider. Only the grouping shrinks, the columns of the result are kept.

One thing must not happen: if all of them are constants, an empty GROUP BY is not what is left. Over no rows
`SELECT sum(b) FROM t GROUP BY 1` has no row (there is no group), `SELECT sum(b) FROM t` has one. So a cheap constant,
the int 0, is the only key.
"""

from __future__ import annotations

from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import FOLDABLE, Expression
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan
from pyjoinopt.plan.traversal import transform_down


def remove_literal_from_group_expressions(plan: LogicalPlan) -> LogicalPlan:
    """Drop what is constant from every GROUP BY (Catalyst's `RemoveLiteralFromGroupExpressions`).

    Constant is what Catalyst calls foldable: literals and deterministic expressions over nothing but them.

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if no grouping has a constant to drop.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> a = reference(Attribute(0, 1, "a"))
    >>> one = constructors.constant(1, "int")
    >>> grouped = constructors.aggregate([a, one], [a], relation("t", [Attribute(0, 1, "a")]))
    >>> remove_literal_from_group_expressions(grouped).grouping
    (a,)
    """
    return transform_down(plan, _without_constants)


def _without_constants(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Aggregate) or node.cached:
        return node
    kept = tuple(e for e in node.grouping if not e.flags & FOLDABLE)
    if len(kept) == len(node.grouping) or not kept and [_is_zero(e) for e in node.grouping] == [True]:
        return node
    return regrouped(node, kept or (constructors.constant(0, "int"),))


def _is_zero(e: Expression) -> bool:
    return e.kind == "Literal" and e.type == "int" and e.value == 0


def regrouped(node: Aggregate, grouping: tuple[Expression, ...]) -> Aggregate:
    """The same aggregate, hints and all, with other grouping expressions."""
    return Aggregate(grouping, node.aggregates, node.child, node.output, None, node.origin)
