"""What separates the joins of a plan from each other, for a report that has no other reason why nothing changed.

A plan that reads a common table expression several times has it once, as a definition, and references to it as leaves.
The joins of the definition are below each reference, so the walk goes from a reference to its definition.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.plan.nodes import ANTI, INNER_LIKE, OUTER, SEMI, Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import NAMES
from pyjoinopt.plan.traversal import post_order

#: Operators that a group absorbs, and hints, for which the join that takes them has a reason of its own.
_CLEAR = NAMES | {"Filter", "Project", "CTERelationDef", "WithCTE"}
_ORDERED = INNER_LIKE | OUTER | {SEMI, ANTI}
#: The barrier of a reference to a common table expression.
SHARED = "a common table expression that is read several times"


def reorder_barriers(root: LogicalPlan) -> list[str]:
    """The kinds of operators between two joins, and of joins that are never moved, each once.

    None where there are fewer than two joins: nothing is separated.

    >>> reorder_barriers(LogicalPlan("LocalRelation"))
    []
    """
    walk = _Walk(root)
    return list(walk.found) if walk.joins > 1 else []


def why_separate(between: list[str]) -> str:
    """The reason why a plan with these barriers has no three relations that could be ordered."""
    kinds = ", ".join(between)
    return f"no three relations of it are joined without {kinds} between them, and joins are not moved across that"


class _Walk:
    def __init__(self, root: LogicalPlan) -> None:
        self.found: dict[str, None] = {}
        self.joins = 0
        self._nodes = list(post_order(root))
        self._definitions = {n.info.get("cte"): n for n in self._nodes if n.kind == "CTERelationDef"}
        self._joins_below: set[int] = set()
        seen: set[int] = set()
        for definition in self._definitions.values():  # a definition reads only those before it
            self._pass(post_order(definition), seen)
        self._pass(self._nodes, seen)

    def _pass(self, nodes: Iterable[LogicalPlan], seen: set[int]) -> None:
        for node in nodes:
            if id(node) not in seen:
                seen.add(id(node))
                self._visit(node)

    def _visit(self, node: LogicalPlan) -> None:
        if node.cached:
            return
        below = any(id(child) in self._joins_below for child in self._below(node))
        if isinstance(node, Join):
            for child in node.children:
                self._down(child)
            if node.join_type not in _ORDERED:
                self.found[node.join_type] = None
            below = True
            self.joins += 1
        if below:
            self._joins_below.add(id(node))

    def _below(self, node: LogicalPlan) -> tuple[LogicalPlan, ...]:
        """Its children; of a reference the definition, of a plan with definitions the plan."""
        if node.kind == "WithCTE":
            return node.children[-1:]
        definition = self._definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        return node.children if definition is None else (definition,)

    def _down(self, node: LogicalPlan) -> None:
        """The barriers between a join and the next one below this side of it."""
        while id(node) in self._joins_below and not isinstance(node, Join):
            below = self._below(node)
            if node.kind == "CTERelationRef":
                self.found[SHARED] = None
            elif node.kind not in _CLEAR and not _is_new_window(node):
                self.found[node.kind] = None
            if len(below) != 1:
                break
            node = below[0]


def _is_new_window(node: LogicalPlan) -> bool:
    """Whether a rewrite made a window: the query has no such operator that could be moved."""
    return node.kind == "Window" and node.number is None and node.origin is None
