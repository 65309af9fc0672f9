"""Filters on partition columns right above a leaf: the partitions that they exclude are never read.

Their rows must not be counted either, and no file of theirs is worth opening. So these filters go along with the
question about the leaf, what comes back is of the partitions that are left, and the filters then keep every row.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.estimation.model.comparisons import and_operands
from pyjoinopt.estimation.sources.column_lineage import is_countable
from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import NAMES
from pyjoinopt.plan.traversal import parents_of


def partition_columns(leaf: LogicalPlan) -> int:
    """The set of a leaf's attributes whose values are in the paths of its files."""
    bits = (leaf.info.get("rel") or {}).get("partitionCols") or ()
    return sum(1 << bit for bit in bits)


def partition_filters(nodes: Iterable[LogicalPlan]) -> dict[int, tuple[Expression, ...]]:
    """Number of a leaf -> the conjuncts over nothing but its partition columns that all its rows have to fulfil.

    A leaf that has several parents is read under both filters, so it has none.

    >>> from pyjoinopt.plan.expressions import Attribute, call, literal, reference
    >>> day, n = Attribute(0, 0, "day", "int"), Attribute(1, 1, "n", "int")
    >>> leaf = LogicalPlan("LogicalRelation", (), (day, n), number=7, info={"rel": {"partitionCols": [0]}})
    >>> kept = Filter(call("GreaterThan", reference(day), literal(3, "int")), leaf)
    >>> [len(found) for found in partition_filters([leaf, kept]).values()]
    [1]
    """
    listed = list(nodes)
    leaves = [node for node in listed if not node.children and node.number is not None and partition_columns(node)]
    if not leaves:
        return {}
    above = parents_of(listed)
    found: dict[int, tuple[Expression, ...]] = {}
    for leaf in leaves:
        number = leaf.number if leaf.number is not None else -1
        found[number] = () if number in found else _filters_of(leaf, above)
    return {number: conjuncts for number, conjuncts in found.items() if conjuncts}


def _filters_of(leaf: LogicalPlan, above: dict[int, list[LogicalPlan]]) -> tuple[Expression, ...]:
    others, node = ~partition_columns(leaf), leaf
    conjuncts: dict[object, Expression] = {}
    while len(parents := above.get(id(node), [])) == 1:
        node = parents[0]
        if isinstance(node, Filter):
            for e in and_operands(inline_common_expressions(node.condition)):
                if is_countable(e) and not e.references & others:
                    conjuncts.setdefault(e.key, e)
        elif not (node.kind in NAMES or (isinstance(node, Project) and node.only_attributes)):
            break
    return tuple(conjuncts.values())
