"""ColumnPruning: no operator makes or carries a column that is not read.

A projection lists the columns that are read above it. What its child gives beyond these is dropped, and what the
child itself does not read is dropped from the grandchildren by a projection of plain columns. Going from the root
down, one pass carries the required columns to the leaves, where they become a narrow scan:

    Project a                          Project a
      Join a = b                         Join a = b
        Scan x(a, c, d)        ->          Project a
        Scan y(b, e)                         Scan x(a, c, d)
                                           Project b
                                             Scan y(b, e)

    below a projection    what is dropped
    projection, aggregate computed columns that are not read
    expand                columns that are not read, from every one of its lists
    generate              child columns that neither it nor the projection reads; what only the generator reads is
                          marked as unrequired
    window                window functions that are not read; the window itself if none is left
    union                 the same positions of every child
    WITH                  columns of the query below the definitions
    DISTINCT, INTERSECT,  nothing: all columns are compared
      EXCEPT, recursion
    any other operator    columns of its inputs that neither it nor the projection reads

Operators that choose their columns themselves (aggregate, expand, the right side of a semi or anti join, ...) need no
projection above them to have their input narrowed.

A projection below a filter would stop the filter from sinking further, and the projection above the filter lists the
same columns; so plain ones right below filters are taken out again at the end.

Not done here: Catalyst's NestedColumnAliasing, which goes on into the fields of structs. A projection of `s.a` reads
all of `s`.

Source: Catalyst's `ColumnPruning`.
"""

from __future__ import annotations

from pyjoinopt.catalyst.support.pruned_operators import (
    narrowed_expand,
    narrowed_generate,
    narrowed_window,
    pruned,
    rebuild_over,
)
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import SUBQUERY, reference, walk
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, SEMI, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import same_plan, transform_down, transform_up

#: Operators whose input needs nothing but what they read, whatever is above them.
_CHOOSE = frozenset({"DeserializeToObject", "FlatMapGroupsInPandas", "MergeRows", "Expand"})

#: Operators that a projection cannot look through: every column counts, or the columns are not their child's.
_OPAQUE = frozenset(
    {"Distinct", "Intersect", "Except", "UnionLoop", "UpdateEventTimeWatermarkColumn", "View", "ResolvedHint"}
)


def column_pruning(plan: LogicalPlan) -> LogicalPlan:
    """Drop columns that are not read.

    Args:
        plan: any plan; cached sub-plans and the plans of subqueries are left as they are.

    Returns:
        The plan, the very same object if every column is read.
    """
    result = transform_up(transform_down(plan, _prune), _without_projection_below_filter)
    return plan if same_plan(plan, result) else result


def _prune(node: LogicalPlan) -> LogicalPlan:
    if node.cached or not node.children:
        return node
    child = node.children[0]
    if isinstance(node, Project):
        return node if child.cached or not child.children else _under_projection(node, child)
    if isinstance(node, Aggregate) or node.kind in _CHOOSE:
        return node.with_children((pruned(child, node.references),))
    if isinstance(node, Join) and node.join_type in (SEMI, ANTI, EXISTENCE):
        return node.with_children((node.left, pruned(node.right, node.references)))
    return node


def _under_projection(node: Project, child: LogicalPlan) -> LogicalPlan:
    wanted = node.references
    unread = child.output_set & ~wanted
    if isinstance(child, Project):
        if not unread:
            return node
        kept = tuple(e for e in child.projections if e.attribute is None or e.attribute.mask & wanted)
        hidden = {"hidden": child.info["hidden"]} if child.info.get("hidden") else None
        return node.with_children((Project(kept, child.child, info=hidden),))
    if isinstance(child, Aggregate) and unread:
        kept = tuple(e for e in child.aggregates if e.attribute is None or e.attribute.mask & wanted)
        return node.with_children((aggregate(child.grouping, kept, child.child, like=child),))
    if child.kind == "Expand" and unread:
        return node.with_children((narrowed_expand(child, wanted),))
    if child.kind == "Generate":
        return node if wanted == child.output_set else node.with_children((narrowed_generate(child, wanted),))
    if child.kind == "Union":
        return node.with_children((_narrowed_union(child, wanted),)) if unread else node
    if child.kind in _OPAQUE:
        return node
    if child.kind == "AttachDistributedSequence" and not _made_here(child) & wanted:
        return node.with_children((pruned(child.children[0], wanted),))
    if child.kind == "Window" and _made_here(child) & ~wanted:
        return node.with_children((narrowed_window(child, wanted),))
    if child.kind == "WithCTE":
        query = child.children[-1]
        if not unread:
            return node
        return node.with_children((rebuild_over(child, (*child.children[:-1], pruned(query, wanted))),))
    required = child.references | wanted
    return node.with_children((rebuild_over(child, tuple(pruned(c, required) for c in child.children)),))


def _made_here(node: LogicalPlan) -> int:
    return node.output_set & ~node.children[0].output_set


def _narrowed_union(node: LogicalPlan, wanted: int) -> LogicalPlan:
    """The union of the wanted positions, by the first child's columns."""
    first = node.children[0]
    kept = [i for i, a in enumerate(first.output) if a.mask & wanted]
    children = tuple(Project(tuple(reference(c.output[i]) for i in kept), c) for c in node.children)
    return rebuild_over(node, children, tuple(node.output[i] for i in kept))


def _without_projection_below_filter(node: LogicalPlan) -> LogicalPlan:
    """Project over Filter over a projection of plain columns: the lower projection goes."""
    if not isinstance(node, Project) or node.cached:
        return node
    filtered = node.child
    if not isinstance(filtered, Filter) or filtered.cached:
        return node
    lower = filtered.child
    if not isinstance(lower, Project) or lower.cached or not lower.only_attributes:
        return node
    source = lower.child
    if lower.output_set & ~source.output_set or _subquery_gives(filtered, source):
        return node
    return node.with_children((filtered.with_children((source,)),))


def _subquery_gives(filtered: Filter, source: LogicalPlan) -> bool:
    """True if a subquery of the condition puts out a column of `source` itself, so that the two would be confused."""
    if not filtered.condition.contains & SUBQUERY:
        return False
    return any(e.plan is not None and e.plan.output_set & source.output_set for e in walk(filtered.condition))
