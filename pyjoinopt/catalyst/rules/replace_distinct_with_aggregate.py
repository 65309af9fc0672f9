"""ReplaceDistinctWithAggregate: SELECT DISTINCT is a GROUP BY over all columns.

    SELECT DISTINCT a, b FROM t      becomes      SELECT a, b FROM t GROUP BY a, b

Both give one row for each combination of values, and both take NULLs as equal to each other. From here on there is one
operator that removes duplicates, and every rule about grouping holds for DISTINCT too: keys that are constant go away,
filters on a column pass, an outer join that only repeats rows is dropped.
"""

from __future__ import annotations

from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import reference
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import transform_down


def replace_distinct_with_aggregate(plan: LogicalPlan) -> LogicalPlan:
    """Every Distinct becomes an Aggregate (Catalyst's `ReplaceDistinctWithAggregate`).

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if it has no Distinct.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> print(show(replace_distinct_with_aggregate(constructors.distinct(relation("t", [Attribute(0, 1, "a")])))))
    Aggregate a, a
      LocalRelation t
    """
    return transform_down(plan, _grouped)


def _grouped(node: LogicalPlan) -> LogicalPlan:
    if node.kind != "Distinct" or node.cached:
        return node
    (child,) = node.children
    columns = [reference(a) for a in child.output]
    return constructors.aggregate(columns, columns, child)
