"""ReplaceExceptWithFilter: EXCEPT of a relation and a part of it is a filter.

    SELECT a, b FROM t WHERE b = 12 EXCEPT SELECT a, b FROM t WHERE a = 5

Both sides read the same rows of t, so nothing needs to be looked up: a row of the left side is on the right exactly if
it passes the right side's filter. No join, one scan instead of two:

    SELECT DISTINCT a, b FROM t WHERE b = 12 AND NOT coalesce(a = 5, false)

`coalesce` because a filter takes an unknown condition for a failed one: a row with NULL in a is not on the right, so
it must be kept, and `NOT (a = 5)` alone would drop it.

When is that right? Take away from each side a projection on top and the filters below it. What remains must be the
same relation under the same projection. The right side's condition must be deterministic, and read only columns that
the left side puts out as they are: two rows that are equal in the result must then agree on the condition. Subqueries
are left to the anti join.

Here Catalyst (up to 4.3) finds the left side's columns by name. That takes the wrong column where an alias reuses a
name, as in `SELECT b AS a FROM t EXCEPT SELECT b AS a FROM t WHERE a = 5`. This module follows the column itself, and
fires only if its name agrees as well. Filters on the right that cannot become one (a `rand()` below another filter)
are refused; Catalyst would look at the upper one only.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.catalyst.rules.remove_repetition_from_group_expressions import distinct_expressions
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import (
    SUBQUERY,
    Attribute,
    Expression,
    call,
    conjunction,
    conjuncts,
    reference,
    substitute,
    walk,
)
from pyjoinopt.plan.fallible.fallibility import is_meant_to_throw
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order, transform_down

SETTING = "spark.sql.optimizer.replaceExceptWithFilter"


def replace_except_with_filter(plan: LogicalPlan, *, conf: Mapping[str, str] | None = None) -> LogicalPlan:
    """EXCEPT (DISTINCT) over one relation becomes Distinct over a filter (Catalyst's `ReplaceExceptWithFilter`).

    Args:
        plan: any plan; cached sub-plans are not changed.
        conf: Spark's settings; `spark.sql.optimizer.replaceExceptWithFilter` switches the rule off.

    Returns:
        The plan, the very same object if the rule does not apply anywhere.
    """
    if (conf or {}).get(SETTING, "true") == "false":
        return plan
    return transform_down(plan, _filtered)


def _filtered(node: LogicalPlan) -> LogicalPlan:
    if node.kind != "Except" or node.cached or node.info.get("all", True):
        return node
    left, right = node.children
    if not _same_source(node) or _has_subquery(left) or _has_subquery(right):
        return node
    if len({a.name for a in left.output}) < len(left.output):
        return node
    condition = _combined(right)
    if condition is None:
        return node
    on_left = _on_left(condition, left, right)
    if on_left is None:
        return node
    known = Expression("Coalesce", (on_left, constructors.constant(False, "boolean")))
    return constructors.distinct(Filter(call("Not", known), left))


# -- are both sides the same but for filters? ------------------------------------------------------------------------


def _same_source(node: LogicalPlan) -> bool:
    """True if the JVM found both sides equal without their filters, and they have not changed since.

    `sides` holds the numbers of each side and of the relation below each side's filters. A rule may have
    rewritten them since; names that were taken away do not count.
    """
    sides = node.info.get("sides")
    if not sides:
        return False
    tops, bases = sides[::2], sides[1::2]
    return all(
        _number(side) == top and _keeps_expressions(side) and _number(_base(side)) == base and _unchanged(_base(side))
        for side, top, base in zip(node.children, tops, bases, strict=True)
    )


def _base(side: LogicalPlan) -> LogicalPlan:
    """What is below a projection and the filters under it."""
    below = side.child if isinstance(side, Project) else side
    while isinstance(below, Filter):
        below = below.child
    return below


def _number(node: LogicalPlan) -> int | None:
    return node.number if node.number is not None else node.origin


def _keeps_expressions(node: LogicalPlan) -> bool:
    """True if the node has the expressions that it came with; filters are compared elsewhere."""
    if node.number is not None or isinstance(node, Filter):
        return True
    return not node.info.get("narrowed") and [e.number for e in node.expressions] == node.info.get("x")


def _unchanged(root: LogicalPlan) -> bool:
    """True if a sub-plan is what the JVM exported, but for names (aliases, views, hints) taken away."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.number is not None:
            continue
        below = node.info.get("below", node.info.get("k"))
        if node.origin is None or [_number(child) for child in node.children] != below:
            return False
        if not [e.number for e in node.expressions] == node.info.get("x") or node.info.get("narrowed"):
            return False
        stack.extend(node.children)
    return True


def _has_subquery(plan: LogicalPlan) -> bool:
    return any(e.contains & SUBQUERY for node in post_order(plan) for e in node.expressions)


# -- the right side's condition --------------------------------------------------------------------------------------


def _combined(right: LogicalPlan) -> Expression | None:
    """The condition of all filters of the right side together, as CombineFilters merges them; None if it cannot.

    The lower filter's conjuncts come first, then those of the upper one that are new.
    """
    top = right.child if isinstance(right, Project) else right
    if not isinstance(top, Filter) or not top.condition.deterministic:
        return None
    condition, below = top.condition, top.child
    while isinstance(below, Filter):
        upper, lower = conjuncts(condition), conjuncts(below.condition)
        if not below.condition.deterministic or any(is_meant_to_throw(p) for p in upper):
            return None
        new = conjunction(distinct_expressions((*lower, *upper))[len(distinct_expressions(tuple(lower))) :])
        condition = below.condition if new is None else call("And", below.condition, new)
        below = below.child
    return condition


def _on_left(condition: Expression, left: LogicalPlan, right: LogicalPlan) -> Expression | None:
    """The right side's condition over the left side's columns; None if one of them is not put out, or only computed."""
    same = dict(zip((a.bit for a in _base(right).output), _base(left).output, strict=True))
    put_out: dict[int, Attribute] = {}
    for e, column in zip(left.projections if isinstance(left, Project) else (), left.output, strict=False):
        source = e.children[0] if e.kind == "Alias" else e
        if source.kind == "AttributeReference" and source.attribute is not None:
            put_out.setdefault(source.attribute.bit, column)
    if not isinstance(left, Project):
        put_out = {column.bit: column for column in left.output}
    columns: dict[int, Expression] = {}
    for e in walk(condition):
        if e.kind != "AttributeReference" or e.attribute is None:
            continue
        source_column = same.get(e.attribute.bit)
        column_put = put_out.get(source_column.bit) if source_column is not None else None
        if column_put is None or column_put.name != e.attribute.name:
            return None
        columns[e.attribute.bit] = reference(column_put)
    return substitute(condition, columns)
