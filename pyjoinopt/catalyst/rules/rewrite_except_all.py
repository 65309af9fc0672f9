"""RewriteExceptAll: count each row, +1 on the left and -1 on the right, and put out what is left over.

EXCEPT ALL takes rows away one by one: three times (1, NULL) on the left and once on the right leaves it twice. No join
expresses that, a sum does:

    SELECT c FROM x EXCEPT ALL SELECT d FROM y

    SELECT c
    FROM (SELECT c, sum(vcol) AS sum FROM (SELECT 1 AS vcol, c FROM x UNION ALL SELECT -1, d FROM y) GROUP BY c)
    WHERE sum > 0        -- and every row of it `sum` times

The last step is the generator `replicate_rows(sum, c)`. Grouping takes NULLs as equal, as set operations do. The union
compares columns by position and calls them as the left side does, so the result has the left side's columns.

A side that lists a column twice, `SELECT a, a FROM x EXCEPT ALL SELECT c, d FROM y`, needs care: in the union the two
are no longer equal, yet `a` names both. Catalyst's rule makes an invalid plan of it; here the second gets an alias.
"""

from __future__ import annotations

from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import call, reference
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.plan.traversal import transform_down


def rewrite_except_all(plan: LogicalPlan, *, fresh: constructors.ColumnFactory) -> LogicalPlan:
    """Every EXCEPT ALL becomes a union, a sum, a filter and a generator (Catalyst's `RewriteExceptAll`).

    Args:
        plan: any plan; cached sub-plans are not changed.
        fresh: for the counting columns.

    Returns:
        The plan, the very same object if it has no EXCEPT ALL.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> x, y = relation("x", [Attribute(0, 1, "c")]), relation("y", [Attribute(1, 2, "d")])
    >>> except_all = LogicalPlan("Except", (x, y), x.output, info={"all": True})
    >>> print(show(rewrite_except_all(except_all, fresh=constructors.ColumnFactory(2))))
    Project c
      Generate replicaterows(sum, c)
        Filter (sum > 0)
          Aggregate c, c, aggregateexpression(sum(vcol)) AS sum
            Union
              Project 1 AS vcol, c
                LocalRelation x
              Project -1 AS vcol, d
                LocalRelation y
    """

    def rewritten(node: LogicalPlan) -> LogicalPlan:
        if node.kind != "Except" or node.cached or not node.info.get("all"):
            return node
        left, right = node.children
        both = constructors.union([_counted(left, 1, fresh), _counted(right, -1, fresh)])
        total = fresh.alias(constructors.aggregate_call("Sum", reference(both.output[0])), "sum")
        assert total.attribute is not None
        columns = both.output[1:]
        keys = [reference(a) for a in columns]
        sums = constructors.aggregate(keys, [*keys, total], both)
        left_over = Filter(call("GreaterThan", reference(total.attribute), constructors.constant(0, "bigint")), sums)
        return constructors.project(left.output, constructors.replicate_rows(total.attribute, columns, left_over))

    return transform_down(plan, rewritten)


def _counted(side: LogicalPlan, by: int, fresh: constructors.ColumnFactory) -> Project:
    count = fresh.alias(constructors.constant(by, "bigint"), "vcol", nullable=False)
    return Project((count, *constructors.with_distinct_ids(side.output, fresh)), side)
