"""What Spark's own estimator knows of a plan, and how many bytes it takes a row to have.

What `CostBasedJoinReorder` compares are the row counts and sizes that Catalyst's estimator gives to plans which do not
exist yet. To decide as Spark does, one must count as Spark does, flaws included: `plan_estimation` does, by way of
`filter_estimation`, `join_estimation` and `operator_estimation`. A row is 8 bytes plus the average length of each
column (12 more for strings), or the type's default size. Counts are exact integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyjoinopt.catalyst.statistics.histogram import SparkHistogram
from pyjoinopt.estimation.model.histogram import Bin
from pyjoinopt.plan.expressions import Attribute

ROW_OVERHEAD = 8
STRING_OVERHEAD = 12
#: [bytes] A relation of unknown size (`spark.sql.defaultSizeInBytes`).
HUGE = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of one column (Catalyst's `ColumnStat`); None for unknown.

    Attributes:
        ndv: number of distinct values.
        min, max: as numbers (days, microseconds, 0 and 1 for booleans); None for strings and all-NULL columns.
        nulls: number of NULLs.
        avg_len, max_len: bytes of a value.
        histogram: an equi-height one, which Spark collects only on request.
    """

    ndv: int | None = None
    min: Any = None
    max: Any = None
    nulls: int | None = None
    avg_len: int | None = None
    max_len: int | None = None
    histogram: SparkHistogram | None = None

    @property
    def has_counts(self) -> bool:
        """Catalyst's `hasCountStats`."""
        return self.ndv is not None and self.nulls is not None

    @property
    def has_range(self) -> bool:
        """Catalyst's `hasMinMaxStats`."""
        return self.min is not None and self.max is not None


@dataclass(frozen=True, slots=True)
class CatalystStatistics:
    """Statistics of a plan whose row count is known; `columns` by attribute bit."""

    rows: int
    bytes: int
    columns: Mapping[int, ColumnStatistics] = field(default_factory=dict)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> CatalystStatistics | None:
        """Decode the JVM's statistics of a plan; None if it has no row count for it."""
        return PlanSize.from_json(entry).counted


@dataclass(frozen=True, slots=True)
class PlanSize:
    """Statistics of a plan whose row count may be unknown (Catalyst's `Statistics`); `columns` by attribute bit."""

    bytes: int
    rows: int | None = None
    columns: Mapping[int, ColumnStatistics] = field(default_factory=dict)

    @property
    def counted(self) -> CatalystStatistics | None:
        """The same if the row count is known."""
        return None if self.rows is None else CatalystStatistics(self.rows, self.bytes, self.columns)

    @classmethod
    def of(cls, known: CatalystStatistics) -> PlanSize:
        """What is known of a plan whose rows are counted."""
        return cls(known.bytes, known.rows, known.columns)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> PlanSize:
        """Decode the JVM's statistics of a plan."""
        if entry.get("bytes") is None or entry.get("error"):
            return cls(HUGE)
        columns = {
            int(bit): ColumnStatistics(
                _whole(c.get("ndv")), c.get("min"), c.get("max"), _whole(c.get("nulls")),
                _whole(c.get("avgLen")), _whole(c.get("maxLen")), _histogram(c),
            )
            for bit, c in (entry.get("columns") or {}).items()
        }  # fmt: skip
        return cls(int(entry["bytes"]), _whole(entry.get("rows")), columns)


def _histogram(column: Mapping[str, Any]) -> SparkHistogram | None:
    if not column.get("bins") or column.get("height") is None:
        return None
    return SparkHistogram(float(column["height"]), tuple(Bin(*bounds) for bounds in column["bins"]))


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
