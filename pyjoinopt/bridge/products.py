"""Cartesian products in a physical plan: joins that pair every row of one side with every row of the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_PAIRING = ("CartesianProductExec", "BroadcastNestedLoopJoinExec")
#: Join types that keep a row of the left side or drop it, and repeat none.
_EXISTENCE = ("LeftSemi", "LeftAnti", "ExistenceJoin", "LeftSingle")
_SHOWN = 4


def cartesian_products(df: Any) -> list[str]:
    """The products in the physical plan of a classic DataFrame and of its subqueries, each described in one line.

    A product is a CartesianProduct or BroadcastNestedLoopJoin without a condition, as in Spark's own check
    (`CheckCartesianProducts`). Semi and anti joins are left out, and joins with a side that has at most one row: they
    multiply no rows. Planning the query starts no Spark job.
    """
    return [_described(node) for node in _nodes(df._jdf.queryExecution().executedPlan()) if _multiplies(node)]


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _nodes(plan: Any) -> Iterator[Any]:
    """All operators, also of adaptive plans (as planned, before a run changes them) and of subqueries."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        if _kind(node) == "AdaptiveSparkPlanExec":
            waiting.append(node.initialPlan())
        waiting += [*_items(node.children()), *_items(node.subqueries())]


def _items(seq: Any) -> list[Any]:
    """The items of a Scala Seq."""
    return [seq.apply(position) for position in range(seq.length())]


def _multiplies(node: Any) -> bool:
    if _kind(node) not in _PAIRING or node.condition().isDefined():
        return False
    if _kind(node) == "BroadcastNestedLoopJoinExec" and str(node.joinType()).startswith(_EXISTENCE):
        return False
    return not any(_at_most_one_row(side) for side in (node.left(), node.right()))


def _at_most_one_row(side: Any) -> bool:
    while side.logicalLink().isEmpty() and side.children().length() == 1:  # an exchange has no logical plan of its own
        side = side.children().apply(0)
    link = side.logicalLink()
    most = link.get().maxRows() if link.isDefined() else link
    return bool(most.isDefined() and int(most.get()) <= 1)


def _described(node: Any) -> str:
    kind = _kind(node).removesuffix("Exec")
    return f"{kind} of the rows ({_columns(node.left())}) with the rows ({_columns(node.right())})"


def _columns(side: Any) -> str:
    names = [str(column.name()) for column in _items(side.output())]
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "") or "no columns"
