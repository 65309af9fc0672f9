"""FinishAnalysis: what the analyser still needed and the optimizer does not, taken away.

An analysed plan is full of names: `SubqueryAlias` nodes hold what a relation may be called, `View` nodes which view it
came from. They have served once every column has its id. Hints are nodes as well, somewhere above the relation that
was hinted; a join wants to know them of its sides. So the hint nodes of each side of a join, down to the next join or
leaf, move into the join. If there are several the outermost wins; hints that no join takes are dropped.

Spark does this with `EliminateSubqueryAliases`, `EliminateView` and `EliminateResolvedHint`, the first batch of its
optimizer. All other rules read plans without names.
"""

from __future__ import annotations

from pyjoinopt.plan.nodes import NO_HINT, Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.traversal import transform_up

_HINT = "ResolvedHint"


def finish_analysis(plan: LogicalPlan) -> LogicalPlan:
    """The plan without aliases, views and hint nodes; hints are in the joins.

    Cached sub-plans are not changed: Spark knows them by their exact shape.
    """

    def nameless(node: LogicalPlan) -> LogicalPlan:
        if node.cached:
            return node
        if is_only_a_name(node):
            return node.children[0]
        return hinted(node) if isinstance(node, Join) and node.hint == NO_HINT else node

    def hintless(node: LogicalPlan) -> LogicalPlan:
        return node.children[0] if node.kind == _HINT and not node.cached else node

    return transform_up(transform_up(plan, nameless), hintless)


def hinted(join: Join) -> Join:
    """The join with the hints of its two sides (Catalyst's `EliminateResolvedHint.extractHintsFromPlan`)."""
    sides = [_without_hints(side) for side in join.children]
    if all(strategy is None for _, strategy in sides):
        return join
    (left, of_left), (right, of_right) = sides
    return join.with_inputs(left, right, join.condition, (of_left, of_right))


def _without_hints(side: LogicalPlan) -> tuple[LogicalPlan, str | None]:
    """One side of a join down to the next join without its hint nodes, and their strategy."""
    above: list[LogicalPlan] = []
    strategy: str | None = None
    found = False
    node = side
    while not node.cached and (len(node.children) == 1 or node.kind in ("Intersect", "Except")):
        if node.kind == _HINT:
            found = True
            strategy = strategy or node.info.get("hint")
        else:
            above.append(node)
        node = node.children[0]
    if not found:
        return side, None
    for parent in reversed(above):
        node = parent.with_children((node, *parent.children[1:]))
    return node, strategy
