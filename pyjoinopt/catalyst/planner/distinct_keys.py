"""Distinct keys of a plan, as Spark's size estimates compute them.

Spark takes the result of an equi-join for the product of its sides, unless one side has at most one row for each
value of its keys: then for their sum. What it knows of uniqueness comes from the plan alone: groups of an aggregate
differ in what they are grouped by, a DISTINCT in all columns, a single row in any of them. The knowledge passes
through whatever drops or orders rows, and through a join with a side that is unique itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys
from pyjoinopt.plan.expressions import Attribute, Expression, reference
from pyjoinopt.plan.nodes import ANTI, INNER, LEFT, RIGHT, SEMI, Aggregate, Join, LogicalPlan, Project

#: A set of expressions, by `Expression.key`, whose values no two rows share.
Key = frozenset[Any]
Keys = frozenset[Key]

_NONE: Keys = frozenset()
_KEEPS = frozenset(
    "Filter LocalLimit GlobalLimit Offset Tail Sort Window Repartition RepartitionByExpression RebalancePartitions "
    "Sample".split()
)


class DistinctKeys:
    """Callable: plan -> its distinct keys (Catalyst's `DistinctKeyVisitor`). Every node is looked at once."""

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        enabled = str((conf or {}).get("spark.sql.optimizer.propagateDistinctKeys.enabled", "true"))
        self._enabled = enabled.lower() != "false"
        self._known: dict[int, tuple[LogicalPlan, Keys]] = {}  # the node is kept, so that its id stays its own

    def __call__(self, plan: LogicalPlan) -> Keys:
        stack = [plan] if self._enabled else []
        while stack:
            node = stack[-1]
            missing = [child for child in node.children if id(child) not in self._known]
            if id(node) not in self._known and missing:
                stack.extend(missing)
                continue
            stack.pop()
            if id(node) not in self._known:
                self._known[id(node)] = node, self._of(node)
        return self._known[id(plan)][1] if self._enabled else _NONE

    def unique_side(self, join: Join) -> bool:
        """True if either side of an equi-join has no two rows with the same keys."""
        found = extract_equi_keys(join)
        if found is None:
            return False
        return _covered(self(join.left), found.left) or _covered(self(join.right), found.right)

    def _of(self, node: LogicalPlan) -> Keys:
        below = [self._known[id(child)][1] for child in node.children]
        if isinstance(node, Aggregate):
            return _projected(_added(below[0], frozenset(g.key for g in node.grouping)), node.aggregates)
        if isinstance(node, Project):
            return _projected(below[0], node.projections)
        if isinstance(node, Join):
            return self._of_join(node, below[0], below[1])
        if node.kind == "Distinct" or node.kind in ("Except", "Intersect") and not node.info.get("all", True):
            return frozenset({frozenset(_column(a) for a in node.output)})
        if node.kind == "GlobalLimit" and node.info.get("limit") in (0, 1):
            return frozenset(frozenset({_column(a)}) for a in node.output)
        if node.kind == "WithCTE":
            return below[-1]
        return below[0] if node.kind in _KEEPS and below else _NONE

    def _of_join(self, join: Join, left: Keys, right: Keys) -> Keys:
        if join.join_type in (SEMI, ANTI):
            return left
        found = extract_equi_keys(join) if left or right else None
        if found is None:
            return _NONE
        left_unique, right_unique = _covered(left, found.left), _covered(right, found.right)
        if join.join_type == INNER and left_unique and right_unique:
            return left | right
        if join.join_type in (INNER, LEFT) and right_unique:
            return left
        return right if join.join_type in (INNER, RIGHT) and left_unique else _NONE


def _covered(keys: Keys, by: tuple[Expression, ...]) -> bool:
    have = {e.key for e in by}
    return any(key <= have for key in keys)


def _added(keys: Keys, new: Key) -> Keys:
    """With one more key; of keys that contain each other only the smallest stays."""
    return keys if any(key <= new for key in keys) else frozenset({key for key in keys if not new <= key} | {new})


def _projected(keys: Keys, listed: tuple[Expression, ...]) -> Keys:
    """The keys whose expressions a list of columns and aliases still gives, under their new names if it has any."""
    if not keys:
        return keys
    columns = {_column(e.attribute) for e in listed if e.attribute is not None}
    names: dict[Any, Any] = {}
    for e in listed:
        if e.kind == "Alias" and e.attribute is not None:
            names.setdefault(e.children[0].key, _column(e.attribute))
    renamed = {frozenset(names.get(e, e) for e in key) for key in keys}
    return frozenset(key for key in renamed | keys if key and key <= columns)


def _column(attribute: Attribute) -> Any:
    return reference(attribute).key
