"""Spark's own arithmetic of plan statistics, for inner joins and projections.

What `CostBasedJoinReorder` compares are the row counts and sizes that Catalyst's estimator gives to joins which do
not exist yet. To decide as Spark does, one must count as Spark does, flaws included:

* A join on columns with statistics has |L| * |R| / max(ndv) rows for its *most selective* key pair; other pairs and
  everything that is not an equality of two plain columns count for nothing. Without a usable pair it is a cross
  product, or as many rows as the other side has if one side is known to be unique on its keys.
* A column is usable if its distinct count *and* its null count are known. After a join the others are forgotten.
* A row is 8 bytes plus the average length of each column (12 more for strings), or the type's default size.

Histograms are left out; Spark collects them only on request. All numbers are exact integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from pyjoinopt.plan.constraints import PlanFacts, equi_keys, is_unique
from pyjoinopt.plan.expressions import DETERMINISTIC, FOLDABLE, Attribute, Expression
from pyjoinopt.plan.nodes import INNER_LIKE, Join, LogicalPlan, Project

ROW_OVERHEAD = 8
STRING_OVERHEAD = 12


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of one column (Catalyst's `ColumnStat`); None for unknown.

    Attributes:
        ndv: number of distinct values.
        min, max: as numbers (days, microseconds, 0 and 1 for booleans); None for strings and all-NULL columns.
        nulls: number of NULLs.
        avg_len, max_len: bytes of a value.
    """

    ndv: int | None = None
    min: Any = None
    max: Any = None
    nulls: int | None = None
    avg_len: int | None = None
    max_len: int | None = None

    @property
    def has_counts(self) -> bool:
        """Catalyst's `hasCountStats`."""
        return self.ndv is not None and self.nulls is not None


@dataclass(frozen=True, slots=True)
class CatalystStatistics:
    """Statistics of a plan whose row count is known; `columns` by attribute bit."""

    rows: int
    bytes: int
    columns: Mapping[int, ColumnStatistics] = field(default_factory=dict)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> CatalystStatistics | None:
        """Read what the JVM says of a plan; None if it has no row count for it."""
        if entry.get("rows") is None or entry.get("bytes") is None or entry.get("error"):
            return None
        columns = {
            int(bit): ColumnStatistics(
                _whole(c.get("ndv")), c.get("min"), c.get("max"), _whole(c.get("nulls")),
                _whole(c.get("avgLen")), _whole(c.get("maxLen")),
            )
            for bit, c in (entry.get("columns") or {}).items()
        }  # fmt: skip
        return cls(int(entry["rows"]), int(entry["bytes"]), columns)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


# -- row width -------------------------------------------------------------------------------------------------

_SIZES = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8, "date": 4,
    "timestamp": 8, "timestamp_ntz": 8, "string": 20, "binary": 100, "void": 1, "interval": 16, "variant": 2048,
}  # fmt: skip


def default_size(type: str) -> int:
    """Bytes that Catalyst assumes for a value of a type (`DataType.defaultSize`).

    >>> default_size("decimal(10,2)"), default_size("array<int>"), default_size("struct<a:int,b:map<string,date>>")
    (8, 4, 28)
    """
    total = 0
    stack = [type.strip()]
    while stack:
        name = stack.pop()
        head, _, rest = name.partition("<")
        if rest and head in ("array", "map", "struct"):
            parts = _split(rest[: rest.rfind(">")])
            stack.extend(part.split(":", 1)[-1].strip() if head == "struct" else part for part in parts)
        elif name.startswith("decimal"):
            digits = name[8:].split(",")[0].rstrip(")")
            total += 8 if not digits.isdigit() or int(digits) <= 18 else 16
        elif name.startswith(("interval ", "time(")):
            total += 4 if name.startswith(("interval year", "interval month")) else 8
        elif name.startswith(("char(", "varchar(")):
            total += int(name[name.index("(") + 1 : -1])
        else:
            total += _SIZES.get(name.split(" ")[0], 8)
    return total


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def row_width(output: tuple[Attribute, ...], columns: Mapping[int, ColumnStatistics]) -> int:
    """Bytes of a row (`EstimationUtils.getSizePerRow`)."""
    width = ROW_OVERHEAD
    for attribute in output:
        known = columns.get(attribute.bit)
        if known is None or known.avg_len is None:
            width += default_size(attribute.type)
        else:
            width += known.avg_len + (STRING_OVERHEAD if attribute.type.startswith("string") else 0)
    return width


def output_size(output: tuple[Attribute, ...], rows: int, columns: Mapping[int, ColumnStatistics]) -> int:
    """Bytes of a result; never 0 (`EstimationUtils.getOutputSize`)."""
    return rows * row_width(output, columns) if rows > 0 else 1


# -- joins and projections ---------------------------------------------------------------------------------------


def join_statistics(
    join: Join, left: CatalystStatistics, right: CatalystStatistics, facts: PlanFacts | None = None
) -> CatalystStatistics:
    """Rows, bytes and columns of an inner join (`JoinEstimation`).

    Args:
        join: an inner or cross join.
        left, right: statistics of its inputs.
        facts: where distinct keys of the inputs are looked up; without it no side counts as unique.
    """
    product = left.rows * right.rows
    rows, keys = product, dict[int, ColumnStatistics]()
    pairs = equi_keys(join)
    if pairs and facts is not None:
        left_unique = is_unique(facts.distinct_keys(join.left), [pair[0] for pair in pairs])
        right_unique = is_unique(facts.distinct_keys(join.right), [pair[1] for pair in pairs])
        if left_unique and right_unique:
            rows = min(left.rows, right.rows)
        elif left_unique or right_unique:
            rows = right.rows if left_unique else left.rows
    for one, other in pairs:
        if rows == 0:
            break
        if one.attribute is None or other.attribute is None or one.kind == "Alias" or other.kind == "Alias":
            continue
        a, b = left.columns.get(one.attribute.bit), right.columns.get(other.attribute.bit)
        if a is None or b is None or not (a.has_counts and b.has_counts):
            continue
        matched = _matched(a, b, one.attribute.type, product)
        if matched is None:
            rows = 0
            break
        rows = min(rows, matched[0])
        keys[one.attribute.bit] = keys[other.attribute.bit] = matched[1]
    columns: dict[int, ColumnStatistics] = {}
    if rows:
        for side in (left, right):
            for bit, column in side.columns.items():
                if rows == product:
                    columns[bit] = column
                elif column.has_counts:
                    columns[bit] = keys.get(bit) or _scaled(column, side.rows, rows)
    return CatalystStatistics(rows, output_size(join.output, rows, columns), columns)


def _matched(a: ColumnStatistics, b: ColumnStatistics, type: str, product: int) -> tuple[int, ColumnStatistics] | None:
    """Rows of the join on one pair of keys, and what the keys look like afterwards; None if they cannot meet."""
    low = high = None
    if not type.startswith(("string", "binary")):
        ranges = [_number(x) for x in (a.min, a.max, b.min, b.max)]
        if any(x is None for x in ranges):
            return None
        if ranges[0] > ranges[3] or ranges[2] > ranges[1]:  # type: ignore[operator]
            return None
        low = a.min if ranges[0] > ranges[2] else b.min  # type: ignore[operator]
        high = a.max if ranges[1] <= ranges[3] else b.max  # type: ignore[operator]
    assert a.ndv is not None and b.ndv is not None
    most = max(a.ndv, b.ndv)
    if most == 0:
        return None
    avg = (a.avg_len + b.avg_len) // 2 if a.avg_len is not None and b.avg_len is not None else None
    longest = min(a.max_len, b.max_len) if a.max_len is not None and b.max_len is not None else None
    return -(-product // most), ColumnStatistics(min(a.ndv, b.ndv), low, high, 0, avg, longest)


def _number(value: Any) -> float | int | Decimal | None:
    if isinstance(value, date):
        return value.toordinal()
    return value if isinstance(value, (bool, int, float, Decimal)) else None


def _scaled(column: ColumnStatistics, old_rows: int, new_rows: int) -> ColumnStatistics:
    """Counts of a column after rows went away (`ColumnStat.updateCountStats`)."""
    if new_rows >= old_rows:
        return column
    return replace(column, ndv=_scale(column.ndv, old_rows, new_rows), nulls=_scale(column.nulls, old_rows, new_rows))


def _scale(count: int | None, old_rows: int, new_rows: int) -> int | None:
    return -(-count * new_rows // old_rows) if count is not None and count > 1 else count


def project_statistics(project: Project, child: CatalystStatistics) -> CatalystStatistics:
    """Rows, bytes and columns of a projection (`ProjectEstimation`)."""
    known = dict(child.columns)
    for e in project.projections:
        if e.kind == "Alias" and e.attribute is not None:
            column = _aliased(e.children[0], child)
            if column is not None:
                known[e.attribute.bit] = column
    columns = {a.bit: known[a.bit] for a in project.output if a.bit in known}
    return CatalystStatistics(child.rows, output_size(project.output, child.rows, columns), columns)


def _aliased(body: Expression, child: CatalystStatistics) -> ColumnStatistics | None:
    if body.kind == "AttributeReference" and body.attribute is not None:
        return child.columns.get(body.attribute.bit)
    if body.kind == "Literal" and body.flags & FOLDABLE and body.flags & DETERMINISTIC:
        size = default_size(body.type)
        if body.value is None:
            return ColumnStatistics(0, None, None, child.rows, size, size)
        return ColumnStatistics(1, body.value, body.value, 0, size, size)
    return None


class PlanStatistics:
    """Statistics of inner joins and projections over sub-plans whose statistics are `given` (None for unknown)."""

    def __init__(self, given: Callable[[LogicalPlan], CatalystStatistics | None]) -> None:
        self.given = given
        self.facts = PlanFacts()
        self._known: dict[int, CatalystStatistics | None] = {}
        self._alive: list[LogicalPlan] = []  # ids in `_known` stay unique while these live

    def __call__(self, plan: LogicalPlan) -> CatalystStatistics | None:
        """Statistics of a plan, computed once per node and without recursion."""
        stack = [plan]
        while stack:
            node = stack.pop()
            if id(node) in self._known:
                continue
            children = node.children if _computed(node) else ()
            missing = [child for child in children if id(child) not in self._known]
            if missing:
                stack.append(node)
                stack.extend(missing)
            else:
                self.remember(node, self._of(node))
        return self._known[id(plan)]

    def remember(self, plan: LogicalPlan, statistics: CatalystStatistics | None) -> None:
        """Set the statistics of one node."""
        self._known[id(plan)] = statistics
        self._alive.append(plan)

    def _of(self, node: LogicalPlan) -> CatalystStatistics | None:
        if not _computed(node):
            return self.given(node)
        below = [self._known[id(child)] for child in node.children]
        first = below[0]
        if first is None:
            return None
        if isinstance(node, Join):
            return None if below[1] is None else join_statistics(node, first, below[1], self.facts)
        return project_statistics(node, first) if isinstance(node, Project) else first


def _computed(node: LogicalPlan) -> bool:
    if isinstance(node, Join):
        return node.join_type in INNER_LIKE
    return isinstance(node, Project) or node.kind == "SubqueryAlias"
