"""ReplaceIntersectWithSemiJoin: INTERSECT is a semi join on all columns, without duplicates.

    SELECT a, b FROM x INTERSECT SELECT c, d FROM y

keeps the rows of x that are in y, each once:

    SELECT DISTINCT a, b FROM x LEFT SEMI JOIN y ON a <=> c AND b <=> d

The comparison is `<=>`, not `=`: for set operations NULL is a value like any other, so (1, NULL) is in both sides if
it is in both sides. The columns of the result are those of the left side; that is why it is a semi join and not an
inner one. INTERSECT ALL counts how often a row occurs and needs more: see `rewrite_intersect_all`.
"""

from __future__ import annotations

from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import call, conjunction, reference
from pyjoinopt.plan.nodes import SEMI, Join, LogicalPlan
from pyjoinopt.plan.traversal import transform_down


def replace_intersect_with_semi_join(plan: LogicalPlan) -> LogicalPlan:
    """Every INTERSECT (DISTINCT) becomes Distinct over a semi join (Catalyst's `ReplaceIntersectWithSemiJoin`).

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if it has no INTERSECT.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> x, y = relation("x", [Attribute(0, 1, "a")]), relation("y", [Attribute(1, 2, "b")])
    >>> print(show(replace_intersect_with_semi_join(LogicalPlan("Intersect", (x, y), x.output, info={"all": False}))))
    Distinct
      Join LeftSemi (a <=> b)
        LocalRelation x
        LocalRelation y
    """
    return transform_down(plan, _joined)


def _joined(node: LogicalPlan) -> LogicalPlan:
    if node.kind != "Intersect" or node.cached or node.info.get("all", True):
        return node
    left, right = node.children
    return constructors.distinct(on_all_columns(left, right, SEMI))


def on_all_columns(left: LogicalPlan, right: LogicalPlan, join_type: str) -> Join:
    """A join of two sides with equally many columns in which the rows are equal, NULLs too.

    Sides without columns are joined without a condition: all their rows are equal.
    """
    pairs = zip(left.output, right.output, strict=True)
    condition = conjunction(call("EqualNullSafe", reference(a), reference(b)) for a, b in pairs)
    return Join(left, right, join_type, condition)
