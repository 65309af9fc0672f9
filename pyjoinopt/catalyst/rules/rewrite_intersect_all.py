"""RewriteIntersectAll: count each row on both sides and put out the smaller number of it.

Three times (1, NULL) on the left and twice on the right is twice in both. Each side marks its rows in a column of its
own; `count` skips the NULLs in the other side's column:

    SELECT c FROM x INTERSECT ALL SELECT d FROM y

    SELECT c, if(vcol1_count > vcol2_count, vcol2_count, vcol1_count) AS min_count
    FROM (SELECT c, count(vcol1) AS vcol1_count, count(vcol2) AS vcol2_count
          FROM (SELECT true AS vcol1, NULL AS vcol2, c FROM x UNION ALL SELECT NULL, true, d FROM y) GROUP BY c)
    WHERE vcol1_count >= 1 AND vcol2_count >= 1        -- and every row of it `min_count` times

The last step is the generator `replicate_rows(min_count, c)`. As in `rewrite_except_all`, grouping takes NULLs as
equal, the union goes by position, and a column that a side lists twice gets an alias.
"""

from __future__ import annotations

from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.plan.traversal import transform_down


def rewrite_intersect_all(plan: LogicalPlan, *, fresh: constructors.ColumnFactory) -> LogicalPlan:
    """Every INTERSECT ALL becomes a union, two counts, a filter and a generator (Catalyst's `RewriteIntersectAll`).

    Args:
        plan: any plan; cached sub-plans are not changed.
        fresh: for the marking and counting columns.

    Returns:
        The plan, the very same object if it has no INTERSECT ALL.
    """

    def rewritten(node: LogicalPlan) -> LogicalPlan:
        if node.kind != "Intersect" or node.cached or not node.info.get("all"):
            return node
        left, right = node.children
        both = constructors.union([_marked(left, (True, None), fresh), _marked(right, (None, True), fresh)])
        columns = both.output[2:]
        keys = [reference(a) for a in columns]
        counts = [
            fresh.alias(constructors.aggregate_call("Count", reference(mark)), f"{mark.name}_count", nullable=False)
            for mark in both.output[:2]
        ]
        grouped = constructors.aggregate(keys, [*counts, *keys], both)
        in_left, in_right = (reference(_column(count)) for count in counts)
        one = constructors.constant(1, "bigint")
        in_both = call("And", call("GreaterThanOrEqual", in_left, one), call("GreaterThanOrEqual", in_right, one))
        smaller = constructors.if_else(call("GreaterThan", in_left, in_right), in_right, in_left)
        times = fresh.alias(smaller, "min_count", nullable=False)
        counted = Project((*keys, times), Filter(in_both, grouped))
        return constructors.project(left.output, constructors.replicate_rows(_column(times), columns, counted))

    return transform_down(plan, rewritten)


def _marked(side: LogicalPlan, marks: tuple[bool | None, bool | None], fresh: constructors.ColumnFactory) -> Project:
    """The side with two columns in front: true in its own, NULL in the other one's."""
    made = [
        fresh.alias(constructors.constant(mark, "boolean"), f"vcol{i}", nullable=mark is None)
        for i, mark in enumerate(marks, 1)
    ]
    return Project((*made, *constructors.with_distinct_ids(side.output, fresh)), side)


def _column(alias: Expression) -> Attribute:
    assert alias.attribute is not None
    return alias.attribute
