"""Estimates of many sub-plans of one plan, each operator estimated once.

The optimizer asks for the items of every join group, then for both sides of every join of the finished plan, which
share most of their nodes. A common table expression is defined in one place and read in others, so its definition is
looked up among all nodes of the plan, not only below the node that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.statistics.cardinality import estimate_operator, renamed
from pyjoinopt.statistics.relation import RelationStatistics


class PlanEstimates:
    """Callable: plan -> statistics of what it gives.

    Args:
        leaf: statistics of the nodes without children.
        nodes: all nodes of the plan, to find the definitions of common table expressions.
    """

    def __init__(self, leaf: Callable[[LogicalPlan], RelationStatistics], nodes: Iterable[LogicalPlan] = ()) -> None:
        self._leaf = leaf
        self._definitions: dict[object, LogicalPlan] = {}
        self.define(nodes)
        self._known: dict[int, RelationStatistics] = {}
        self._kept: list[LogicalPlan] = []  # ids in `_known` must stay unique

    def define(self, nodes: Iterable[LogicalPlan]) -> None:
        """Look up common table expressions among these nodes from now on: predicates may have moved in them."""
        self._definitions.update((node.info.get("cte"), node) for node in nodes if node.kind == "CTERelationDef")

    def __call__(self, plan: LogicalPlan) -> RelationStatistics:
        stack: list[tuple[LogicalPlan, bool]] = [(plan, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in self._known:
                continue
            below = self._below(node)
            if not expanded and below:
                stack.append((node, True))
                stack.extend((child, False) for child in below)
            else:
                self._remember(node, self._estimate(node))
        return self._known[id(plan)]

    def _below(self, node: LogicalPlan) -> tuple[LogicalPlan, ...]:
        definition = self._definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        if definition is not None:
            return (definition,)
        return () if node.cached else node.children

    def _estimate(self, node: LogicalPlan) -> RelationStatistics:
        below = self._below(node)
        if node.kind == "CTERelationRef" and below:
            return renamed(self._known[id(below[0])], below[0].output, node.output)
        return estimate_operator(node, [self._known[id(child)] for child in below], self._leaf)

    def _remember(self, node: LogicalPlan, known: RelationStatistics) -> None:
        self._known[id(node)] = known
        self._kept.append(node)
