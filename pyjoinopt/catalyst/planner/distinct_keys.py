"""Distinct keys of a plan, as Spark's size estimates compute them.

Spark takes the result of an equi-join for the product of its sides, unless one side has at most one row for each
value of its keys: then for their sum. Uniqueness is derived from the plan alone: groups of an aggregate
differ in what they are grouped by, a DISTINCT in all columns, a single row in any of them. The knowledge passes
through whatever drops or orders rows, and through a join with a side that is unique itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys
from pyjoinopt.plan.expressions import Attribute, reference
from pyjoinopt.plan.facts.distinct_keys import is_unique, joined_keys, projected_keys
from pyjoinopt.plan.nodes import ANTI, SEMI, Aggregate, Join, LogicalPlan, Project
from pyjoinopt.util.node_memo import NodeMemo

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
        self._known = NodeMemo[LogicalPlan, Keys]()

    def __call__(self, plan: LogicalPlan) -> Keys:
        return self._known.filled(plan, lambda node: node.children, self._of) if self._enabled else _NONE

    def unique_side(self, join: Join) -> bool:
        """True if either side of an equi-join has no two rows with the same keys."""
        found = extract_equi_keys(join)
        if found is None:
            return False
        return is_unique(self(join.left), found.left) or is_unique(self(join.right), found.right)

    def _of(self, node: LogicalPlan) -> Keys:
        below = [self._known[child] for child in node.children]
        if isinstance(node, Aggregate):
            return projected_keys(_added(below[0], frozenset(g.key for g in node.grouping)), node.aggregates)
        if isinstance(node, Project):
            return projected_keys(below[0], node.projections)
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
        left_unique, right_unique = is_unique(left, found.left), is_unique(right, found.right)
        return joined_keys(join.join_type, left, right, left_unique, right_unique)


def _added(keys: Keys, new: Key) -> Keys:
    """With one more key; of keys that contain each other only the smallest stays."""
    return keys if any(key <= new for key in keys) else frozenset({key for key in keys if not new <= key} | {new})


def _column(attribute: Attribute) -> Any:
    return reference(attribute).key
