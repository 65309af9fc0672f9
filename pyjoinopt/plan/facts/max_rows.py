"""How many rows a plan gives at most, by its operators alone (Catalyst's `maxRows` and `maxRowsPerPartition`).

`LIMIT 5` gives at most five rows, a global aggregate one, a list of values as many as it has; a filter or a sort never
adds any, a union adds up, a join multiplies. A table may have any number of rows: None. Statistics play no part in
this; the bounds are certain.

A local limit bounds only each partition, so both numbers are computed. Where an operator does not bound partitions,
a bound on all rows is a bound on those of one.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import (
    ANTI,
    CROSS,
    FULL,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    SINGLE,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
)
from pyjoinopt.util.node_memo import NodeMemo

_LARGEST = (1 << 63) - 1

#: Operators with one child whose rows are at most those of the child; in the second, partition by partition as well.
_NO_MORE = frozenset(
    """
    ReturnAnswer Sort Window Distinct Repartition RepartitionByExpression RebalancePartitions SubqueryAlias Deduplicate
    DeduplicateWithinWatermark
    """.split()
)
_NO_MORE_BY_PARTITION = frozenset({"Project", "WindowGroupLimit", "CollectMetrics", "DataFrameDropColumns"})

#: (in all, in one partition); None if there is no bound.
Bounds = tuple["int | None", "int | None"]
_NONE: Bounds = (None, None)


def integer(e: Expression) -> int | None:
    """The value of an `int` literal (Catalyst's `IntegerLiteral`), else None."""
    if e.kind == "Literal" and e.type == "int" and isinstance(e.value, int) and not isinstance(e.value, bool):
        return e.value
    return None


class MaxRows:
    """The bounds of the nodes of one plan, remembered by node."""

    def __init__(self) -> None:
        self._bounds = NodeMemo[LogicalPlan, Bounds]()

    def __call__(self, plan: LogicalPlan) -> int | None:
        """At most so many rows; None if there is no bound.

        >>> from pyjoinopt.plan.nodes import relation
        >>> MaxRows()(relation("t", [])) is None
        True
        """
        return self.bounds(plan)[0]

    def per_partition(self, plan: LogicalPlan) -> int | None:
        """At most so many rows in any one partition; None if there is no bound."""
        return self.bounds(plan)[1]

    def bounds(self, plan: LogicalPlan) -> Bounds:
        """Both."""
        return self._bounds.filled(plan, lambda node: node.children, self._of)

    def _of(self, node: LogicalPlan) -> Bounds:
        if node.cached:  # what Spark reads instead is a relation
            return _NONE
        below = [self._bounds[child] for child in node.children]
        if not below:
            return _leaf(node)
        if isinstance(node, Join):
            return _both(_join(node, below[0][0], below[1][0]))
        if isinstance(node, Aggregate):
            return _both(below[0][0] if node.grouping else 1)
        if isinstance(node, Filter):
            never = node.condition.kind == "Literal" and node.condition.value is False
            return (0, 0) if never else below[0]
        if node.kind == "Sort" and not node.info.get("global", True):
            return below[0]
        if node.kind in _NO_MORE:
            return _both(below[0][0])
        if node.kind in _NO_MORE_BY_PARTITION:
            return below[0]
        return _other(node, below)


def _both(rows: int | None) -> Bounds:
    return rows, rows


def _fitting(rows: int | None) -> int | None:
    return None if rows is None or rows > _LARGEST else rows


def _leaf(node: LogicalPlan) -> Bounds:
    if node.kind == "OneRowRelation":
        return 1, 1
    if node.kind == "EmptyRelation":
        return 0, 0
    if node.kind in ("LocalRelation", "Range") and isinstance(node.info.get("rows"), (int, float)):
        rows = int(node.info["rows"])
        if rows > _LARGEST:
            return _NONE
        slices = node.info.get("slices")
        return rows, -(-rows // slices) if slices else rows
    return _NONE


def _other(node: LogicalPlan, below: list[Bounds]) -> Bounds:
    if node.kind == "Union":
        sums = [None if None in column else _fitting(sum(n for n in column if n is not None)) for column in zip(*below)]
        return sums[0], sums[1]
    if node.kind == "Intersect":
        rows = [b[0] for b in below if b[0] is not None]
        return _both(min(rows) if len(rows) == len(below) else None)
    if node.kind == "Except":
        return _both(below[0][0])
    if node.kind in ("GlobalLimit", "Tail"):
        return _both(integer(node.expressions[0]))
    if node.kind == "LocalLimit":
        return None, integer(node.expressions[0])
    if node.kind == "Offset":
        offset = integer(node.expressions[0])
        rows_below = below[0][0]
        return _both(None if offset is None or rows_below is None else max(rows_below - offset, 0))
    if node.kind == "Expand" and "lists" in node.info:
        lists = len(node.info["lists"])
        of_all, of_one = (_fitting(None if b is None else b * lists) for b in below[0])
        return of_all, of_all if below[0][1] is None else of_one
    if node.kind == "Sample":
        return _NONE if node.info.get("replacement") else below[0]
    if node.kind == "WithCTE":
        return below[-1]
    if node.kind == "Zip":
        return below[0]
    return _NONE


def _join(join: Join, left: int | None, right: int | None) -> int | None:
    if join.join_type in (SEMI, ANTI):
        return left
    if join.join_type not in (INNER, CROSS, FULL, LEFT, RIGHT, SINGLE) or left is None or right is None:
        return None
    least = {LEFT: left, SINGLE: left, RIGHT: right, FULL: left + right}.get(join.join_type, 0)
    return _fitting(max(left * right, least))
