"""LimitPushDown: as few rows as possible reach a limit.

A limit is two operators: a *local* one takes so many rows of every partition, a *global* one over it so many of all.
A local limit may be repeated further down wherever so many rows of the input are enough:

    below                                      because
    each branch of a UNION ALL                 a branch alone may give them all
    left of a left outer join, right of right  every row of that side gives at least one row
    both sides of a join without condition     n rows of one side meet all rows of the other (inner, cross, outer)
    left of a semi or anti join without one    all left rows pass, or none does
    OFFSET m                                   then it must be m rows more; the offset remains above
    an operator that runs Python functions     row by row

    SELECT * FROM orders LEFT JOIN customer ON ... LIMIT 5

    Limit 5                             Limit 5
      Join LeftOuter                      Join LeftOuter
        orders            becomes           LocalLimit 5
        customer                              orders
                                            customer

A join is also looked for below one projection. The limit at the top is kept, since a join may give more rows than it
takes. No local limit is added where there cannot be that many rows anyway (`plan.facts.max_rows`).

Two more. `SELECT DISTINCT a FROM t LIMIT 1` is any one row of `t`: a limit of one over an aggregate that only groups
is a limit of one over its input. And the right side of a semi or anti join without a condition only matters by whether
it has a row: one is enough.
"""

from __future__ import annotations

from pyjoinopt.catalyst.rules.eliminate_sorts import eliminate_sorts
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import DETERMINISTIC, FOLDABLE, Expression
from pyjoinopt.plan.facts.max_rows import MaxRows, integer
from pyjoinopt.plan.nodes import ANTI, FULL, INNER_LIKE, LEFT, RIGHT, SEMI, Aggregate, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import transform_down

_RUNS_PYTHON = frozenset({"BatchEvalPython", "ArrowEvalPython"})
_PASSED = INNER_LIKE | {FULL, LEFT, RIGHT}
_ONE = constructors.constant(1, "int")


def limit_push_down(plan: LogicalPlan) -> LogicalPlan:
    """Every local limit repeated where it saves work (Catalyst's `LimitPushDown`).

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if no limit could be added.

    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> both = constructors.union([relation("t", []), relation("u", [])])
    >>> print(show(limit_push_down(constructors.local_limit(constructors.constant(5, "int"), both))))
    LocalLimit 5
      Union
        LocalLimit 5
          LocalRelation t
        LocalLimit 5
          LocalRelation u
    """
    pusher = _Pusher()
    return transform_down(plan, pusher.at)


class _Pusher:
    def __init__(self) -> None:
        self.max_rows = MaxRows()

    def at(self, node: LogicalPlan) -> LogicalPlan:
        """One node, its children not yet visited."""
        if node.cached:
            return node
        if node.kind == "LocalLimit":
            return self._local(node)
        if node.kind == "GlobalLimit":
            return _over_groups(node)
        if isinstance(node, Join) and node.join_type in (SEMI, ANTI) and node.condition is None:
            rows = self.max_rows(node.right)
            if rows is None or rows > 1:
                return node.with_children((node.left, self.limited(_ONE, node.right)))
        return node

    def limited(self, limit: Expression, plan: LogicalPlan) -> LogicalPlan:
        """The plan under a local limit, unless it has as few rows anyway; in place of a global limit that is larger."""
        most = self.max_rows.per_partition(plan)
        wanted = integer(limit)
        if most is not None and (wanted is None or wanted >= most):
            return plan
        if plan.kind == "GlobalLimit" and not plan.cached:
            plan = plan.children[0]
        return constructors.local_limit(limit, plan)

    def _local(self, node: LogicalPlan) -> LogicalPlan:
        (child,), (limit,) = node.children, node.expressions
        if child.cached:
            return node
        if child.kind == "Offset":
            rows = add(limit, child.expressions[0])
            return child.with_children((constructors.local_limit(rows, child.children[0]),))
        if isinstance(child, Project) and not child.child.cached:
            return node.with_children((child.with_children((self._below(limit, child.child, projected=True),)),))
        return node.with_children((self._below(limit, child),))

    def _below(self, limit: Expression, node: LogicalPlan, projected: bool = False) -> LogicalPlan:
        """An operator with the limit repeated on its inputs, as far as that is right."""
        if isinstance(node, Join):
            return self._join(limit, node)
        if node.kind in _RUNS_PYTHON or node.kind == "Union" and not projected:
            return node.with_children(tuple(self.limited(limit, child) for child in node.children))
        return node

    def _join(self, limit: Expression, join: Join) -> Join:
        free = join.condition is None
        if join.join_type in (SEMI, ANTI):
            sides = (free, False)
        elif join.join_type in _PASSED:
            sides = (free or join.join_type == LEFT, free or join.join_type == RIGHT)
        else:
            return join
        pairs = zip(join.children, sides, strict=True)
        result = join.with_children(tuple(self.limited(limit, child) if may else child for child, may in pairs))
        assert isinstance(result, Join)
        return result


def add(left: Expression, right: Expression) -> Expression:
    """left + right, as Spark adds two of its own integers."""
    return Expression("Add", (left, right), left.type, DETERMINISTIC | left.flags & right.flags & FOLDABLE)


def _over_groups(node: LogicalPlan) -> LogicalPlan:
    """LIMIT 1 over an aggregate that only groups, or a projection of one: LIMIT 1 over what is grouped."""
    (local,), (limit,) = node.children, node.expressions
    if integer(limit) != 1 or local.kind != "LocalLimit" or local.cached or integer(local.expressions[0]) != 1:
        return node
    (top,) = local.children
    grouped = top.child if isinstance(top, Project) and not top.cached else top
    if not isinstance(grouped, Aggregate) or grouped.cached or not _only_groups(grouped):
        return node
    inner = eliminate_sorts(grouped.with_children((constructors.local_limit(limit, grouped.child),)))
    assert isinstance(inner, Aggregate)
    below: LogicalPlan = Project(inner.aggregates, inner.child)
    if top is not grouped:
        below = top.with_children((below,))
    return node.with_children((local.with_children((below,)),))


def _only_groups(node: Aggregate) -> bool:
    """Catalyst's `groupOnly`: every item of the list is a grouping expression or constant."""
    keys = {g.key for g in node.grouping}
    bodies = (e.children[0] if e.kind == "Alias" else e for e in node.aggregates)
    return bool(node.grouping) and all(e.flags & FOLDABLE or e.key in keys for e in bodies)
