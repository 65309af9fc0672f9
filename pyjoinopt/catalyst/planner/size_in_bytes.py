"""Spark's estimate of the size of a plan's result.

Without its cost-based optimizer Spark knows bytes, not rows (`SizeInBytesOnlyStatsPlanVisitor`). A filter changes
nothing, a projection scales by the width of the columns that remain, and a join is as large as the *product* of its
sides, unless one side is unique on its keys (`distinct_keys`): then as their sum. That is why a few rows behind a
filter or a join look too large to broadcast, and where a hint helps.

Rows are known in a few places only (a range, a limit, an aggregate without groups) and forgotten by the next
projection or filter. All numbers are exact integers, as in Spark: what differs by one byte may be planned differently.

Spark estimates after IN and EXISTS have become joins. A conjunct of a filter is a semi or anti join by then, as large
as its left side. One alternative of several (`EXISTS (...) OR ...`) is an existence join, which is estimated as any
other join: the filter is as large as its input times all its subqueries.

Spark estimates after unused columns are gone, too. For a plan that is not optimised yet, pass it as `root`: which
columns are needed is worked out first (`needed_columns`), and widths count those only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache, reduce
from math import prod
from operator import or_

from pyjoinopt.catalyst.planner.build_side import parse_bytes
from pyjoinopt.catalyst.planner.distinct_keys import DistinctKeyVisitor
from pyjoinopt.catalyst.statistics.column_stat import ROW_OVERHEAD, default_size
from pyjoinopt.plan.expressions import SUBQUERY, Expression, conjuncts, walk
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Aggregate, Join, LogicalPlan
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.traversal import post_order

#: [bytes] A relation of unknown size (spark.sql.defaultSizeInBytes).
UNKNOWN = (1 << 63) - 1
#: Products are cut off here; Spark has no limit, but no plan of a size that it can handle comes near.
_CEILING = 1 << (1 << 17)
_RANGE_ROW = 8
#: Scala's BigDecimal, in which Spark multiplies a size by the fraction of a sample.
_SCALA = Context(prec=34, rounding=ROUND_HALF_EVEN)

#: Operators whose size is their input's, scaled by the width of a row.
_SCALED = frozenset({"Project", "Filter", "Aggregate", "Distinct", "Window", "Expand"})
#: Operators with the statistics of their input.
_SAME = frozenset("Sort Repartition RepartitionByExpression RebalancePartitions LocalLimit Except".split())
_LIMITS = frozenset({"GlobalLimit", "Limit", "Tail"})

LeafBytes = Callable[[LogicalPlan], float | None]

_type_size = lru_cache(maxsize=4096)(default_size)


def exported_bytes(leaf: LogicalPlan) -> float | None:
    """Size of a leaf in the export: bytes of its files, or rows times their width."""
    size = (leaf.info.get("rel") or {}).get("bytes")
    if size is not None:
        return float(size)
    if leaf.kind == "OneRowRelation":
        return 1
    rows = leaf.info.get("rows")
    if rows is None:
        return None
    return int(rows) * (_RANGE_ROW if leaf.kind == "Range" else ROW_OVERHEAD + _width_of(leaf))


class SparkSizes:
    """Callable: plan -> Spark's estimate of its bytes. Every node is looked at once, over all calls.

    Args:
        conf: Spark's configuration, for spark.sql.defaultSizeInBytes.
        root: the whole plan, if it is not optimised; columns that nothing in it reads do not count. None to count all.
        leaf_bytes: bytes of a leaf, None if Spark does not know them.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> from pyjoinopt.plan.nodes import relation
    >>> a, b = relation("s", [Attribute(0, 1, "a")], rows=10), relation("t", [Attribute(1, 2, "b")], rows=20)
    >>> sizes = SparkSizes()
    >>> sizes(a), sizes(b), sizes(Join(a, b, "LeftOuter"))
    (120, 240, 28800)
    """

    def __init__(
        self,
        conf: Mapping[str, str] | None = None,
        root: LogicalPlan | None = None,
        leaf_bytes: LeafBytes = exported_bytes,
    ) -> None:
        default = parse_bytes((conf or {}).get("spark.sql.defaultSizeInBytes", ""))
        self._unknown = UNKNOWN if default is None else default
        self._needed = -1 if root is None else reduce(or_, needed_columns(root).values())
        self._leaf_bytes = leaf_bytes
        self._keys = DistinctKeyVisitor(conf)
        # Bytes, and rows where Spark knows them. The node is kept, so that its id is not reused.
        self._known: dict[int, tuple[LogicalPlan, int, int | None]] = {}
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
                size, rows = self._of(node, below)
                self._known[id(node)] = node, min(size, _CEILING), rows
        return self._known[id(plan)][1]

    def _below(self, node: LogicalPlan) -> tuple[LogicalPlan, ...]:
        definition = self._definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        if definition is not None:
            return (definition,)
        return () if node.cached else node.children

    def _width(self, node: LogicalPlan) -> int:
        return ROW_OVERHEAD + _width_of(node, self._needed)

    def _of(self, node: LogicalPlan, below: tuple[LogicalPlan, ...]) -> tuple[int, int | None]:
        """Bytes and, where Spark knows them, rows."""
        if not below:
            return self._leaf(node), _leaf_rows(node)
        inputs = [self._known[id(child)][1:] for child in below]
        size, rows = inputs[0]
        if isinstance(node, Join):
            return inputs[0] if node.join_type in (SEMI, ANTI) else (self._join(node, size, inputs[1][0]), None)
        if isinstance(node, Aggregate) and not node.grouping:
            return self._width(node), 1
        if node.kind in _SCALED:
            scaled = size * self._width(node) // self._width(node.children[0]) or 1
            if node.kind == "Expand":
                return scaled * len(node.info.get("projections") or (0,)), None
            return _product([scaled, *(self(subquery) for subquery in _marking(node))]), None
        if node.kind in _LIMITS or node.kind == "Offset":
            return self._limited(node, size, rows)
        if node.kind == "LocalLimit" and _number(node) == 0:
            return 1, 0
        if node.kind in _SAME:
            return size, rows
        if node.kind in ("WithCTE", "CTERelationRef"):
            return inputs[-1]
        if node.kind == "Sample":
            return _sampled(node, size) or 1, None if rows is None else _sampled(node, rows)
        sizes = [size for size, _ in inputs]
        if node.kind == "Union":
            return sum(sizes), None
        return min(sizes) if node.kind == "Intersect" else _product(sizes), None

    def _leaf(self, node: LogicalPlan) -> int:
        known = self._leaf_bytes(node)
        if known is None or known >= UNKNOWN:
            return self._unknown
        if self._needed == -1:
            return int(known)
        return int(known) * self._width(node) // (ROW_OVERHEAD + _width_of(node))

    def _join(self, node: Join, left: int, right: int) -> int:
        if node.join_type in (INNER, LEFT, RIGHT, FULL) and self._keys.unique_side(node):
            return sum(size for size in (left, right) if size > 1)
        return _product([left, right])

    def _limited(self, node: LogicalPlan, size: int, rows: int | None) -> tuple[int, int | None]:
        number = _number(node)
        if number is None:
            return size, rows
        if node.kind == "Offset":
            left = 0 if rows is None else max(0, rows - number)
        else:
            left = number if rows is None else min(rows, number)
        return (left * self._width(node) if left > 0 else 1), left


#: A whole plan -> Spark's estimates for its parts.
SizesOf = Callable[[LogicalPlan], SparkSizes]


def _marking(node: LogicalPlan) -> list[LogicalPlan]:
    """The subqueries of IN and EXISTS that become existence joins (`RewritePredicateSubquery`)."""
    with_subqueries = [e for e in node.expressions if e.contains & SUBQUERY]
    if node.kind == "Filter":
        with_subqueries = [e for condition in with_subqueries for e in conjuncts(condition) if not _stands_alone(e)]
    return [e.plan for subquery in with_subqueries for e in walk(subquery) if e.plan is not None and _is_joined(e)]


def _stands_alone(conjunct: Expression) -> bool:
    inside = conjunct.children[0] if conjunct.kind == "Not" else conjunct
    return inside.kind in ("Exists", "InSubquery")


def _is_joined(e: Expression) -> bool:
    """False for an EXISTS without outer references, which is evaluated once, before the query."""
    return e.kind == "ListQuery" or (e.kind == "Exists" and bool(e.info.get("outer_references")))


def _width_of(node: LogicalPlan, needed: int = -1) -> int:
    return sum(_type_size(a.type) for a in node.output if a.mask & needed)


def _leaf_rows(leaf: LogicalPlan) -> int | None:
    return int(leaf.info["rows"]) if leaf.kind in ("Range", "LocalRelation") and "rows" in leaf.info else None


def _number(node: LogicalPlan) -> int | None:
    """The constant of a limit or an offset."""
    if node.info.get("limit") is not None:
        return int(node.info["limit"])
    value = node.expressions[0].value if node.expressions and node.expressions[0].kind == "Literal" else None
    return value if isinstance(value, int) else None


def _sampled(node: LogicalPlan, count: int) -> int:
    fraction = node.info.get("fraction")
    product = _SCALA.multiply(Decimal(count), Decimal(repr(float(1.0 if fraction is None else fraction))))
    return int(product.to_integral_value("ROUND_CEILING"))


def _product(sizes: list[int]) -> int:
    return prod(size for size in sizes if size > 0)
