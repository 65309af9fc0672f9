"""The size that Spark believes a plan's result to have.

Without its cost-based optimizer Spark knows bytes, not rows (`SizeInBytesOnlyStatsPlanVisitor`). A filter changes
nothing, a projection scales by the width of the columns that stay, and a join is as large as the *product* of its
sides. That is why a few rows behind a filter or a join look too large to broadcast, and where a hint helps.

The plan that arrives here is the analysed one. Spark estimates after unused columns are gone; so which columns are
needed is worked out first (`needed_columns`), and widths count those only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from operator import or_

from pyjoinopt.plan.columns import needed_columns
from pyjoinopt.plan.expressions import conjuncts
from pyjoinopt.plan.nodes import ANTI, SEMI, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.tree import post_order
from pyjoinopt.statistics.constants import column_of
from pyjoinopt.statistics.relation import row_width

#: What Spark takes for the size of a relation about which it knows nothing (spark.sql.defaultSizeInBytes).
UNKNOWN = (1 << 63) - 1
#: Products of many joins are cut off here: far beyond any threshold, and still quick to multiply.
_CEILING = 1 << 200

LeafBytes = Callable[[LogicalPlan], float | None]


def exported_bytes(leaf: LogicalPlan) -> float | None:
    """What the export says of a leaf: bytes of its files, or rows times their width."""
    size = (leaf.info.get("rel") or {}).get("bytes")
    if size is not None:
        return float(size)
    rows = 1 if leaf.kind == "OneRowRelation" else leaf.info.get("rows")
    return None if rows is None else max(1.0, float(rows) * row_width(leaf.output))


class SparkSizes:
    """Callable: plan -> bytes that Spark believes it to give. Every node is looked at once, over all calls.

    Args:
        conf: Spark's configuration, for spark.sql.defaultSizeInBytes.
        root: the whole plan; columns that nothing in it reads do not count. None to count all.
        leaf_bytes: bytes of a leaf, None if Spark does not know them.
    """

    def __init__(
        self,
        conf: Mapping[str, str] | None = None,
        root: LogicalPlan | None = None,
        leaf_bytes: LeafBytes = exported_bytes,
    ) -> None:
        self._unknown = int((conf or {}).get("spark.sql.defaultSizeInBytes", UNKNOWN))
        self._needed = -1 if root is None else reduce(or_, needed_columns(root).values())
        self._leaf_bytes = leaf_bytes
        self._known: dict[int, tuple[LogicalPlan, int]] = {}  # the node is kept, so that its id stays its own
        nodes = [] if root is None else post_order(root)
        self._definitions = {n.info.get("cte"): n for n in nodes if n.kind == "CTERelationDef"}

    def __call__(self, plan: LogicalPlan) -> int:
        stack: list[tuple[LogicalPlan, bool]] = [(plan, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in self._known:
                continue
            below = self._below(node)
            if below and not expanded:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(below))
            else:
                if node.kind == "CTERelationDef":
                    self._definitions[node.info.get("cte")] = node
                self._known[id(node)] = node, min(max(1, self._size(node)), _CEILING)
        return self._known[id(plan)][1]

    def _below(self, node: LogicalPlan) -> tuple[LogicalPlan, ...]:
        definition = self._definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        if definition is not None:
            return (definition,)
        return () if node.cached else node.children

    def _width(self, node: LogicalPlan) -> float:
        return row_width(a for a in node.output if a.mask & self._needed)

    def _size(self, node: LogicalPlan) -> int:
        below = self._below(node)
        if not below:
            known = self._leaf_bytes(node)
            if known is None or known >= self._unknown:
                return self._unknown
            return int(known * (self._width(node) / row_width(node.output)))
        sizes = [self._known[id(child)][1] for child in below]
        return self._operator(node, sizes) if node.children else sizes[0]

    def _operator(self, node: LogicalPlan, inputs: list[int]) -> int:
        first = inputs[0]
        if isinstance(node, Join):
            if node.join_type in (SEMI, ANTI):
                return first
            return sum(inputs) if _one_side_unique(node) else first * inputs[1]
        width = self._width(node)
        if isinstance(node, Aggregate) and not node.grouping:
            return int(width)
        match node.kind:
            case "Union":
                return sum(inputs)
            case "Intersect":
                return min(inputs)
            case "Except":
                return first
            case "WithCTE":
                return inputs[-1]
            case "GlobalLimit" | "Limit" if node.info.get("limit") is not None:
                return int(node.info["limit"] * width)
            case "Sample":
                return int(first * Fraction(node.info.get("fraction") or 1.0))
        if len(inputs) > 1:
            size = 1
            for part in inputs:
                size = min(size * part, _CEILING)
            return size
        return int(first * Fraction(width) / Fraction(self._width(node.children[0])))


def _one_side_unique(node: Join) -> bool:
    """True if the keys of one side are distinct there, as far as Spark sees: it was grouped by (some of) them."""
    keys = [e for e in conjuncts(node.condition) if e.kind in ("EqualTo", "EqualNullSafe")]
    attributes = [a for e in keys for a in map(column_of, e.children) if a is not None]
    joined_on = 0
    for attribute in attributes:
        joined_on |= attribute.mask
    for side in node.children:
        unique = _distinct_keys(side)
        if unique and not unique & ~joined_on:
            return True
    return False


def _distinct_keys(plan: LogicalPlan) -> int | None:
    """Attributes by which the rows were grouped, if all of them are still there."""
    node = plan
    while isinstance(node, (Filter, Project)) or node.kind in ("SubqueryAlias", "View", "Sort", "ResolvedHint"):
        node = node.children[0]
    if node.kind == "Distinct":
        unique = node.output_set
    elif isinstance(node, Aggregate) and node.grouping:
        unique = 0
        for e in node.grouping:
            if e.attribute is None:
                return None
            unique |= e.attribute.mask
    else:
        return None
    return unique if not unique & ~plan.output_set else None
