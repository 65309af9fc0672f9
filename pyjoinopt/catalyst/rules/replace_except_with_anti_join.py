"""ReplaceExceptWithAntiJoin: EXCEPT is an anti join on all columns, without duplicates.

    SELECT a, b FROM x EXCEPT SELECT c, d FROM y

keeps the rows of x that are not in y, each once:

    SELECT DISTINCT a, b FROM x LEFT ANTI JOIN y ON a <=> c AND b <=> d

`<=>` takes NULLs as equal, so a NULL on the right takes a NULL on the left away and nothing else. (NOT IN differs:
there one NULL on the right takes everything away.) EXCEPT ALL takes rows away one by one: see `rewrite_except_all`.
Where both sides read the same rows a filter does it without a join; `replace_except_with_filter` runs before this.
"""

from __future__ import annotations

from pyjoinopt.catalyst.rules.replace_intersect_with_semi_join import on_all_columns
from pyjoinopt.plan import constructors
from pyjoinopt.plan.nodes import ANTI, LogicalPlan
from pyjoinopt.plan.traversal import transform_down


def replace_except_with_anti_join(plan: LogicalPlan) -> LogicalPlan:
    """Every EXCEPT (DISTINCT) becomes Distinct over an anti join (Catalyst's `ReplaceExceptWithAntiJoin`).

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if it has no EXCEPT.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> x, y = relation("x", [Attribute(0, 1, "a")]), relation("y", [Attribute(1, 2, "b")])
    >>> print(show(replace_except_with_anti_join(LogicalPlan("Except", (x, y), x.output, info={"all": False}))))
    Distinct
      Join LeftAnti (a <=> b)
        LocalRelation x
        LocalRelation y
    """
    return transform_down(plan, _joined)


def _joined(node: LogicalPlan) -> LogicalPlan:
    if node.kind != "Except" or node.cached or node.info.get("all", True):
        return node
    left, right = node.children
    return constructors.distinct(on_all_columns(left, right, ANTI))
