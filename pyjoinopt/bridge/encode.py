"""Encodes a new plan as edits of the exported plan.

An unchanged node is sent as its number, with everything below it. A node whose children or expressions changed is sent
as a copy of its origin. Only new nodes are written in full. So the length of a message depends on the changed part of
the plan.

A reference is an int: `n >= 0` is number n of the export, `-1 - k` is entry k of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyjoinopt.errors import BridgeError
from pyjoinopt.plan import nodes as n
from pyjoinopt.plan.expressions import STRUCTURAL, Expression
from pyjoinopt.plan.nodes import LogicalPlan

_BUILT_EXPRESSIONS = STRUCTURAL | frozenset(
    "Coalesce If Sum Count Max AggregateExpression WindowExpression Add UnscaledValue Times".split()
)
#: What is built with the type of another expression, which is in `info["typed_like"]`.
_TYPED_LIKE = frozenset({"CastLike", "MakeDecimal", "AverageOf"})


class Edits:
    """Collects one message. Add plans with `plan`, then send `message`."""

    def __init__(self) -> None:
        self.expressions: list[list[Any]] = []
        self.nodes: list[list[Any]] = []
        self._known: dict[int, int] = {}
        self._kept: list[object] = []  # ids in `_known` must stay unique while this object lives

    def message(self, root: int, restore: int | None = None) -> dict[str, Any]:
        """The rebuild request.

        Args:
            root: reference of the new plan.
            restore: number of a node whose output attributes, with their qualifiers, the root must have.
        """
        if restore is not None and root != restore:
            self.nodes.append(["Output", root, restore])
            root = -len(self.nodes)
        return {"exprs": self.expressions, "nodes": self.nodes, "root": root}

    # -- plans -------------------------------------------------------------------------------------------------

    def plan(self, root: LogicalPlan) -> int:
        """The reference of a plan; adds the nodes that must be built to the message."""
        stack: list[tuple[LogicalPlan, bool]] = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in self._known:
                continue
            if node.number is not None:
                self._remember(node, node.number)
            elif not expanded:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.children))
                for plan in _subquery_plans(node):
                    stack.append((plan, False))
            else:
                self.nodes.append(self._entry(node))
                self._remember(node, -len(self.nodes))
        return self._known[id(root)]

    def _entry(self, node: LogicalPlan) -> list[Any]:
        children = [self._known[id(child)] for child in node.children]
        if isinstance(node, n.Join) and node.join_type == n.EXISTENCE and _has_new_hint(node):
            condition = None if node.condition is None else self.expression(node.condition)
            return ["JoinLike", node.origin, *children, None, condition, list(node.hint)]
        same_shape = len(node.info.get("x", ())) == len(node.expressions)
        if node.origin is not None and same_shape and not node.info.get("narrowed"):
            return self._copy(node, children)
        if node.kind in _BUILT:
            return _BUILT[node.kind](self, node, children)
        if isinstance(node, n.Join):
            condition = None if node.condition is None else self.expression(node.condition)
            if node.subquery is not None:
                return ["Subquery", children[0], node.subquery]
            held = [True] if node.held else []
            return ["Join", children[0], children[1], node.join_type, condition, list(node.hint), *held]
        if isinstance(node, n.Filter):
            return ["Filter", children[0], self.expression(node.condition)]
        if isinstance(node, n.Project):
            listed = [self.expression(e) for e in node.projections]
            return ["Project", children[0], listed, *([node.info["hidden"]] if node.info.get("hidden") else [])]
        raise BridgeError(f"cannot build a {node.kind} node by name")

    def _all(self, expressions: Iterable[Expression]) -> list[int]:
        return [self.expression(e) for e in expressions]

    def _aggregate(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        assert isinstance(node, n.Aggregate)
        return ["Aggregate", children[0], self._all(node.grouping), self._all(node.aggregates), node.origin]

    def _limit(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        return [node.kind, children[0], self.expression(node.expressions[0])]

    def _generate(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        if node.origin is not None:
            return ["Generate", children[0], node.origin, node.info["unrequired"]]
        arguments = self._all(node.expressions[0].children)
        return ["ReplicateRows", children[0], arguments, node.info["generated"]]

    def _window(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        calls = self._all(node.expressions[: node.info["parts"][0]])
        if node.origin is None:
            return ["NewWindow", children[0], calls]
        return ["Window", children[0], node.origin, calls]

    def _reference(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        return ["Again" if node.info.get("again") else "Columns", node.origin, [a.bit for a in node.output]]

    def _might_contain(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        return ["MightContain", *children, self.expression(node.expressions[0]), node.info["items"]]

    def _expand(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        projections = [self._all(projection) for projection in node.info["lists"]]
        return ["Expand", children[0], node.origin, projections, [a.bit for a in node.output]]

    def _copy(self, node: LogicalPlan, children: list[int]) -> list[Any]:
        old: list[int] = node.info.get("x", [])
        if len(old) != len(node.expressions):
            raise BridgeError(f"a {node.kind} node came with {len(old)} expressions, not {len(node.expressions)}")
        changed = []
        for number, e in zip(old, node.expressions, strict=True):
            if e.number != number:
                changed.append([number, self.expression(e)])
        return ["Exprs", node.origin, children, changed] if changed else ["Copy", node.origin, children]

    # -- expressions -------------------------------------------------------------------------------------------

    def expression(self, root: Expression) -> int:
        """The reference of an expression; the plans of its subqueries must have been added before."""
        stack: list[tuple[Expression, bool]] = [(root, False)]
        while stack:
            e, expanded = stack.pop()
            if id(e) in self._known:
                continue
            if e.number is not None:
                self._remember(e, e.number)
            elif not expanded:
                stack.append((e, True))
                stack.extend((child, False) for child in reversed(e.children))
            else:
                self.expressions.append(self._expression_entry(e))
                self._remember(e, -len(self.expressions))
        return self._known[id(root)]

    def _expression_entry(self, e: Expression) -> list[Any]:
        children = [self._known[id(child)] for child in e.children]
        if e.plan is not None and e.origin is not None:
            return ["Plan", e.origin, self._known[id(e.plan)], children]
        if e.kind == "Alias" and e.origin is None and e.attribute is not None:
            if e.info.get("as"):
                return ["As", children[0], e.attribute.bit]
            return ["NewAlias", children[0], e.info["n"], e.attribute.bit, e.info.get("like")]
        if e.info.get("filtered"):
            return ["Filtered", e.origin, children]
        if e.origin is not None:
            return ["Copy", e.origin, children]
        if e.kind == "AttributeReference" and e.attribute is not None:
            return ["Attr", e.attribute.bit]
        if e.kind == "Literal" and e.type in ("boolean", "int", "bigint"):
            return ["Literal", e.type, e.value]
        if e.kind in _TYPED_LIKE:
            return [e.kind, *children, self.expression(e.info["typed_like"])]
        if e.kind in _BUILT_EXPRESSIONS:
            return [e.kind, *children]
        raise BridgeError(f"cannot build a {e.kind} expression by name")

    def _remember(self, thing: LogicalPlan | Expression, reference: int) -> None:
        self._known[id(thing)] = reference
        self._kept.append(thing)


#: Nodes that are built, or copied with lists of another length (`info["narrowed"]`).
_BUILT: dict[str, Callable[[Edits, LogicalPlan, list[int]], list[Any]]] = {
    "Distinct": lambda edits, node, children: ["Distinct", children[0]],
    "Union": lambda edits, node, children: ["Union", children],
    "LocalLimit": Edits._limit,
    "GlobalLimit": Edits._limit,
    "Aggregate": Edits._aggregate,
    "Generate": Edits._generate,
    "Window": Edits._window,
    "Expand": Edits._expand,
    "MightContain": Edits._might_contain,
    "CTERelationRef": Edits._reference,
    "LogicalRelation": Edits._reference,
}


def _has_new_hint(join: n.Join) -> bool:
    return list(join.hint) != list(join.info.get("hint") or n.NO_HINT)


def _subquery_plans(node: LogicalPlan) -> list[LogicalPlan]:
    """Plans of changed subquery expressions of a node."""
    found = []
    for root in node.expressions:
        stack = [root] if root.number is None else []
        while stack:
            e = stack.pop()
            if e.number is None:
                if e.plan is not None:
                    found.append(e.plan)
                stack.extend(e.children)
    return found
