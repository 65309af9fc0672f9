"""EliminateSorts: sorts that have no effect on the result are removed.

A sort is not needed below another sort, below a join, or below an aggregate whose functions do not care about order
(`min`, `count`, a sum of integers; not `first`, not a sum of doubles, whose rounding depends on the order). It is
looked for through projections, filters and local limits, and through repartitioning, which scatters the rows anyhow.
A local sort, of each partition for itself, cannot replace a global one below it. Ordering by nothing but
constants is no order.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import FOLDABLE, PYTHON_UDF, Expression
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import transform_up

_ANY_ORDER = frozenset({"Min", "Max", "Count", "BitAndAgg", "BitOrAgg", "BitXorAgg"})
_ANY_ORDER_IF_EXACT = frozenset("Sum Average StddevPop StddevSamp VariancePop VarianceSamp Skewness Kurtosis".split())
_USER_DEFINED = frozenset(
    "ScalaUDF PythonUDF PythonUDAF PythonUDTF ScalaAggregator ScalaUDAF HiveSimpleUDF HiveGenericUDF".split()
)
_SCATTER = frozenset({"Repartition", "RepartitionByExpression", "RebalancePartitions"})


def eliminate_sorts(plan: LogicalPlan) -> LogicalPlan:
    """The plan without sorts that have no effect on its result (Catalyst's `EliminateSorts`).

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if every sort is needed.
    """
    return transform_up(plan, _at)


def _at(node: LogicalPlan) -> LogicalPlan:
    if node.cached:
        return node
    if node.kind == "Sort":
        if all(_constant(order) for order in node.expressions):
            return node.children[0]
        return node.with_children((_unsorted(node.children[0], bool(node.info.get("global"))),))
    if isinstance(node, Join):
        if node.condition is None or node.condition.deterministic:
            return node.with_children(tuple(_unsorted(child, True) for child in node.children))
        return node
    if isinstance(node, Aggregate) and all(_any_order(e) for e in node.aggregates):
        return node.with_children((_unsorted(node.child, True),))
    return node


def _constant(order: Expression) -> bool:
    return bool(order.children and order.children[0].flags & FOLDABLE)


def _unsorted(plan: LogicalPlan, global_too: bool) -> LogicalPlan:
    """The plan without the sorts that a new order, or none, makes pointless; `global_too`: also global ones."""
    above: list[LogicalPlan] = []
    removed = False
    node = plan
    while not node.cached:
        if node.kind == "Sort" and (global_too or not node.info.get("global")):
            removed = True
        elif _keeps_order(node):
            above.append(node)
        elif node.kind in _SCATTER and all(e.deterministic for e in node.expressions):
            above.append(node)
            global_too = True
        else:
            break
        node = node.children[0]
    if not removed:
        return plan
    for parent in reversed(above):
        node = parent.with_children((node,))
    return node


def _keeps_order(node: LogicalPlan) -> bool:
    if isinstance(node, (Project, Filter)):
        return all(e.deterministic for e in node.expressions)
    return node.kind == "LocalLimit"


def _any_order(root: Expression) -> bool:
    """True if an item of an aggregate's list does not depend on the order of rows."""
    stack = [root]
    while stack:
        e = stack.pop()
        if e.kind == "AggregateExpression":
            function = e.children[0]
            exact = not function.children or function.children[0].type not in ("float", "double")
            if function.kind not in _ANY_ORDER and not (function.kind in _ANY_ORDER_IF_EXACT and exact):
                return False
        elif e.kind in _USER_DEFINED or e.flags & PYTHON_UDF:
            return False
        else:
            stack.extend(e.children)
    return True
