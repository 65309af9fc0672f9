"""PushProjectionThroughUnion: each branch of a UNION ALL computes only what is wanted of the union.

    SELECT a FROM (SELECT a, b, c FROM t UNION ALL SELECT d, e, f FROM u)

    Project a                        Union
      Union                            Project a
        t (a, b, c)      becomes         t (a, b, c)
        u (d, e, f)                    Project d
                                         u (d, e, f)

A union matches columns by position and is known by the columns of its first branch, so the first branch gets the
projection as it is. In the others every column is replaced by the one in the same position, and what has a new name
gets a new identity: `a + 1 AS x` of one branch and `d + 1 AS x` of another are two columns. With the columns that
not read gone from the branches, the scans below need not read them.

The projection must be deterministic, and since Spark 4.1 it must not list a column twice (a union with such a branch
is taken for unresolved). One with a correlated subquery is kept, too, since the subquery's plan and conditions name
columns of the first branch only; on such a query Spark 4.3 fails here.
"""

from __future__ import annotations

from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.expressions import CORRELATED, Expression, reference, substitute
from pyjoinopt.plan.nodes import LogicalPlan, Project
from pyjoinopt.plan.traversal import transform_down

_UNIONS = frozenset({"Union", "SequentialStreamingUnion"})


def push_projection_through_union(plan: LogicalPlan, *, fresh: ColumnFactory, repeats: bool = False) -> LogicalPlan:
    """Every deterministic Project over a Union goes into its branches (Catalyst's `PushProjectionThroughUnion`).

    Args:
        plan: any plan; cached sub-plans are not changed.
        fresh: gives the new columns of the branches but the first.
        repeats: push a projection that lists a column twice, too (Spark before 4.1).

    Returns:
        The plan, the very same object if nothing was pushed.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> from pyjoinopt.plan.constructors import project, union
    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> a, b, c, d = (Attribute(i, i, name) for i, name in enumerate("abcd"))
    >>> both = union([relation("t", [a, b]), relation("u", [c, d])])
    >>> print(show(push_projection_through_union(project([b], both), fresh=ColumnFactory(4))))
    Union
      Project b
        LocalRelation t
      Project d
        LocalRelation u
    """

    def at(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Project) or node.cached:
            return node
        union = node.child
        if union.kind not in _UNIONS or union.cached or not union.children:
            return node
        if not all(e.deterministic and not e.contains & CORRELATED for e in node.projections):
            return node
        if not repeats and node.output_set.bit_count() != len(node.projections):
            return node
        return _pushed(node, union, fresh)

    return transform_down(plan, at)


def _pushed(project: Project, union: LogicalPlan, fresh: ColumnFactory) -> LogicalPlan:
    first, *others = union.children
    branches = [Project(project.projections, first)]
    for branch in others:
        columns = {a.bit: reference(b) for a, b in zip(first.output, branch.output, strict=True)}
        branches.append(Project(tuple(_renamed(e, columns, fresh) for e in project.projections), branch))
    return LogicalPlan(
        union.kind, tuple(branches), project.output, union.expressions, None, union.origin, union.info
    )  # fmt: skip


def _renamed(e: Expression, columns: dict[int, Expression], fresh: ColumnFactory) -> Expression:
    """A column of the projection as another branch has it."""
    if e.kind == "Alias" and e.attribute is not None:
        return fresh.alias(substitute(e.children[0], columns), e.attribute.name, e.attribute.nullable)
    return substitute(e, columns)
