"""What is known about a relation: how many rows, how wide, and what its columns hold.

Three numbers are kept apart. `rows` is the best guess, for costs. `upper_bound` is what can be *proved*, for promises
(a broadcast hint is one); it is infinite where nothing is proved. `likely` is a bound that random samples support, for
hints alone. Columns are found by attribute number.

A column's `ndv` counts the distinct values that its rows are drawn from. A filter on the column itself makes it
smaller, a filter on another column does not; `RelationStatistics.distinct` is the count in the rows that are left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pyjoinopt.estimation.model import frequency_sketch
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.frequency_sketch import FrequencySketch
from pyjoinopt.estimation.model.histogram import Bin
from pyjoinopt.estimation.model.most_common_values import Heavy, read
from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import LogicalPlan

#: The source of rows that were counted when the query ran before.
FEEDBACK = "feedback"
#: [bytes] Spark has Long.MaxValue where it does not know a size; nearly as much means the same.
_UNKNOWN_BYTES = float(1 << 62)
#: Types whose values have neighbours one step away.
WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "date", "byte", "short", "long"})
_SIZES = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "integer": 4, "bigint": 8, "float": 4, "double": 8,
    "date": 4, "timestamp": 8, "timestamp_ntz": 8, "string": 20, "binary": 100, "void": 1, "variant": 2048,
    "interval": 16,
}  # fmt: skip
_TYPE_WORD = re.compile(r"(?:^|[<:,])\s*([a-z_]+)(?:\((\d+))?")
_MOST_VALUES = {"boolean": 2.0, "tinyint": 256.0, "smallint": 65536.0}


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What a column holds.

    Attributes:
        ndv: number of distinct values; see the module's text.
        min, max: as numbers: dates in days, timestamps in microseconds since the epoch.
        nulls: fraction of rows that are NULL.
        avg_len: bytes of a value.
        guessed: True if `ndv` is only bounded by min, max and the row count, not counted.
        key_values: set if no two rows are known to share a value, so that it may be a primary key: the number of
            values it has when nothing is filtered away.
        ndv_bound: proved upper bound of distinct values, NULL not counted.
        bins: an equi-height histogram, if there is one.
        mean: of a column of counts, such as rows in a group: their average; of a boolean column: the share of true.
        joined: of a column that came through a join: a number of the joined relation that it is from, and that
            relation's rows: all its columns together have no more different values.
        heavy: the most frequent values, each with its share of the rows that are not NULL.
        frequencies: how often values occur, by a sketch of all rows before filters on other columns.
        key_threshold: rows whose values have hashes below it are stored as a sample; see `key_samples`.
        domain: distinct values before filters on other columns, where `ndv` is those after them, infinite if unknown;
            None where `ndv` is those before.
        drawn: of a column by which rows were grouped, if known: the distinct values that those of the groups are drawn
            from. A filter on the column itself makes it smaller.
        run: rows that follow each other in the files and share a value, on average; see `plans.runs`.
    """

    ndv: float | None = None
    min: float | None = None
    max: float | None = None
    nulls: float | None = None
    avg_len: float | None = None
    guessed: bool = False
    key_values: float | None = None
    ndv_bound: float = math.inf
    bins: tuple[Bin, ...] = ()
    mean: float | None = None
    joined: tuple[int, float] | None = None
    heavy: Heavy = ()
    frequencies: FrequencySketch | None = None
    key_threshold: int | None = None
    domain: float | None = None
    drawn: float | None = None
    run: float = 1.0

    @property
    def values(self) -> float | None:
        """Distinct values before filters on other columns; None or infinite if unknown."""
        return self.ndv if self.domain is None else self.domain

    def with_ndv(self, ndv: float) -> ColumnStatistics:
        """The column where so many different values are left of it."""
        domain = math.inf if self.guessed or self.values is None else self.values
        return replace(self, ndv=ndv, guessed=False, domain=domain)


_NOTHING = ColumnStatistics()


@dataclass(frozen=True, slots=True)
class LikelyBound:
    """Rows that are not exceeded, but for a small chance (`ASSUMPTIONS.sample_failure`) for every sample behind it.

    Attributes:
        rows: the bound.
        sampled: rows of the sample; of several samples of the smallest.
        sketched: True if all of them are sketches, which have read all rows.
    """

    rows: float
    sampled: int
    sketched: bool = False


@dataclass(frozen=True, slots=True)
class FrequencyBound:
    """What the frequencies of a column's values do not exceed, but for the chance of a `LikelyBound`.

    Attributes:
        most: rows that share a value.
        norm: the l2 norm of the frequencies; infinite if nothing bounds it.
        sampled, sketched: those of `LikelyBound`.
    """

    most: float
    norm: float
    sampled: int
    sketched: bool = False


@dataclass(frozen=True, slots=True)
class RelationStatistics:
    """What is known about the rows of a relation or of any sub-plan.

    Attributes:
        rows: estimate, at least 0.
        bytes: estimated size in memory.
        source: where the row count came from ("footers", "catalog", "local", "memory", "size", "default", ...);
            of several inputs the weakest.
        exact: True if `rows` was counted, not estimated.
        columns: attribute number -> what is known of that column.
        upper_bound: rows that are proved not to be exceeded.
        unfiltered: rows before filters; the number of values that a primary key would have.
        filtered_by_text: True if a filter compares a text column with a constant.
        keys: sets of attributes (as bits) of which it is proved that no two rows share all values.
        max_rows_per_value: attribute number -> how many rows share a value of it (not NULL) at most; proved, too.
        likely: a bound by samples that is below `upper_bound`; None if there is none. Only hints may rest on it.
        frequency_bounds: attribute number -> what bounds the frequencies of its values; for hints alone.
        value_bounds: of a leaf: attribute number -> its least and its greatest value; proved.
    """

    rows: float
    bytes: float
    source: str = "default"
    exact: bool = False
    columns: Mapping[int, ColumnStatistics] = field(default_factory=dict)
    upper_bound: float = math.inf
    unfiltered: float | None = None
    filtered_by_text: bool = False
    keys: frozenset[int] = frozenset()
    max_rows_per_value: Mapping[int, float] = field(default_factory=dict)
    likely: LikelyBound | None = None
    frequency_bounds: Mapping[int, FrequencyBound] = field(default_factory=dict)
    value_bounds: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def base_rows(self) -> float:
        """Rows before filters, at least 1."""
        return max(1.0, self.rows if self.unfiltered is None else self.unfiltered)

    @property
    def width(self) -> float:
        """Bytes of a row; `bytes` is never less than one row's."""
        return self.bytes / self.rows if self.rows >= 1 else self.bytes

    @property
    def bytes_bound(self) -> float:
        """Bytes that the proved number of rows would take."""
        return max(self.upper_bound * self.width, self.width)

    @property
    def likely_bound(self) -> float:
        """Rows that are not exceeded, by a proof or by samples."""
        return self.upper_bound if self.likely is None else self.likely.rows

    def with_likely(self, likely: LikelyBound | None) -> RelationStatistics:
        """The same with this bound, if it is below what is known.

        >>> RelationStatistics(9.0, 72.0, upper_bound=50.0).with_likely(LikelyBound(20.0, 1000)).likely_bound
        20.0
        """
        return self if likely is None or likely.rows >= self.likely_bound else replace(self, likely=likely)

    def is_unique(self, columns: int) -> bool:
        """Is it proved that no two rows share the values of these columns (as bits)?

        >>> RelationStatistics(9.0, 72.0, keys=frozenset({0b11})).is_unique(0b111)
        True
        """
        return any(not key & ~columns for key in self.keys)

    def column(self, bit: int) -> ColumnStatistics:
        """What is known of a column, possibly nothing."""
        return self.columns.get(bit, _NOTHING)

    def distinct(self, bit: int) -> float | None:
        """Distinct values among the rows that are left, None if unknown."""
        ndv = self.column(bit).ndv
        return None if ndv is None else max(1.0, min(ndv, self.rows))

    def with_rows(self, rows: float, upper_bound: float | None = None) -> RelationStatistics:
        """The same rows, more or fewer of them; no longer counted."""
        bound = self.upper_bound if upper_bound is None else upper_bound
        rows = min(rows, bound)
        # A higher bound is that of an operator that gives more rows than it reads.
        likely = self.likely if self.likely is not None and bound <= self.upper_bound else None
        if likely is not None and likely.rows >= bound:
            likely = None
        size = max(1.0, rows) * self.width
        return replace(self, rows=rows, bytes=size, exact=False, upper_bound=bound, likely=likely)


def likely_of(inputs: Iterable[RelationStatistics], rows: float) -> LikelyBound | None:
    """The bound of a result by the samples of its inputs; None if none of these has one.

    Args:
        inputs: what the result is made of.
        rows: the bound, worked out from their `likely_bound`.
    """
    listed = list(inputs)
    bounds: list[LikelyBound | FrequencyBound] = [known.likely for known in listed if known.likely is not None]
    bounds += [bound for known in listed for bound in known.frequency_bounds.values()]
    if not bounds:
        return None
    return LikelyBound(rows, min(bound.sampled for bound in bounds), all(bound.sketched for bound in bounds))


@lru_cache(maxsize=1024)
def type_size(type: str) -> float:
    """Bytes that Spark assumes for a value of a type (`DataType.defaultSize`); parts of nested types are added up.

    >>> type_size("bigint"), type_size("string"), type_size("decimal(12,2)"), type_size("map<int,string>")
    (8.0, 20.0, 8.0, 24.0)
    """
    total = 0.0
    for word, argument in _TYPE_WORD.findall(type.lower()):
        if word == "decimal":
            total += 8 if int(argument or 10) <= 18 else 16
        elif word in ("char", "varchar"):
            total += int(argument or 20)
        else:
            total += _SIZES.get(word, 0)
    return total or 16.0


def row_width(output: Iterable[Attribute], columns: Mapping[int, ColumnStatistics] | None = None) -> float:
    """Bytes of a row as Spark counts them (`EstimationUtils.getSizePerRow`): 8, and per column its length."""
    width = 8.0
    for attribute in output:
        known = columns.get(attribute.bit) if columns else None
        if known is not None and known.avg_len is not None:
            width += known.avg_len + (12 if attribute.type == "string" else 0)
        else:
            width += type_size(attribute.type)
    return width


def unknown(output: Sequence[Attribute] = (), bytes: float | None = None) -> RelationStatistics:
    """A relation that was never counted: its bytes over the width of a row, or else a default.

    >>> unknown().source, unknown(bytes=2400.0).rows
    ('default', 100.0)
    """
    width = row_width(output) if output else ASSUMPTIONS.unknown_row_bytes
    if bytes is None or not 0 <= bytes < _UNKNOWN_BYTES:
        return RelationStatistics(ASSUMPTIONS.unknown_rows, ASSUMPTIONS.unknown_rows * width)
    rows = max(1.0, bytes / width)
    return RelationStatistics(rows, rows * width, "size")


def from_json(entry: Mapping[str, Any] | None, output: Sequence[Attribute] = ()) -> RelationStatistics:
    """Statistics of a relation as the shim reports them.

    Args:
        entry: `{"rows", "bytes", "source", "exact", "columns": {attribute number: {...}}}`, any part missing.
        output: the columns of the relation; their types give widths and which are whole numbers.

    >>> t = from_json({"rows": 100, "exact": True, "columns": {"0": {"min": 1, "max": 10}}})
    >>> t.rows, t.upper_bound, t.column(0).ndv, t.column(0).guessed
    (100.0, 100.0, 10.0, True)
    """
    entry = entry or {}
    rows, size = _number(entry.get("rows")), _number(entry.get("bytes"))
    if rows is None:
        return unknown(output, size)
    exact = bool(entry.get("exact"))
    source = str(entry.get("source") or "default")
    # The catalog's counts are what the owner of the table vouches for; Spark plans by them too. Not so if the files
    # have changed since.
    trusted = exact or (source == "catalog" and not entry.get("note"))
    types = {attribute.bit: attribute.type for attribute in output}
    columns: dict[int, ColumnStatistics] = {}
    for key, known in (entry.get("columns") or {}).items():
        columns[int(key)] = _column(known, rows, types.get(int(key)), trusted)
    for attribute in output:
        if attribute.type in _MOST_VALUES and attribute.bit not in columns:
            columns[attribute.bit] = _column({}, rows, attribute.type, trusted)
    if size and source == "footers":
        size = max(1.0, size - ASSUMPTIONS.bytes_per_column_chunk * len(output))
    _fill_lengths(columns, output, rows, size)
    if output:
        width = row_width(output, columns)
    else:
        width = size / rows if size and rows >= 1 else ASSUMPTIONS.unknown_row_bytes
    bound = rows if trusted else math.inf
    keys: frozenset[int] = frozenset()
    if exact and source == "local":  # counted value by value
        keys = frozenset(1 << bit for bit, c in columns.items() if not c.guessed and c.ndv == rows and not c.nulls)
    counts = {int(bit): _number(c.get("most")) for bit, c in (entry.get("columns") or {}).items() if exact}
    most = {bit: count for bit, count in counts.items() if count is not None}
    sketches = {bit: column.frequencies for bit, column in columns.items() if exact and column.frequencies is not None}
    bounds = {
        bit: FrequencyBound(sketch.norm_bound, sketch.norm_bound, int(rows), True)
        for bit, sketch in sketches.items()
    }
    return RelationStatistics(
        rows, max(1.0, rows) * width, source, exact, columns, bound, rows, keys=keys, max_rows_per_value=most,
        frequency_bounds=bounds,
    )  # fmt: skip


def _column(known: Mapping[str, Any], rows: float, type: str | None, trusted: bool) -> ColumnStatistics:
    low, high = _number(known.get("min")), _number(known.get("max"))
    ndv, nulls = _number(known.get("ndv")), _number(known.get("nulls"))
    whole = type in WHOLE_NUMBERS if type else all(isinstance(known.get(k), int) for k in ("min", "max"))
    bound = _MOST_VALUES.get(type or "", math.inf)
    span = bound
    if whole and low is not None and high is not None:
        span = min(span, max(0.0, high - low) + 1)
        if trusted:
            bound = min(bound, span)
    filled = rows - (nulls or 0.0)
    guessed = ndv is None
    if ndv is None and span < math.inf:
        ndv = max(1.0, min(filled, span))
    elif ndv is not None:
        ndv = min(ndv, span)  # a sketch, or the dictionaries of several row groups, may count too many
    repeats = guessed and trusted and filled > span  # more values than there are numbers in the range
    threshold = known.get("keyThreshold")
    unique = ndv is not None and ndv >= ASSUMPTIONS.nearly_unique * filled and not repeats
    return ColumnStatistics(
        ndv, low, high, nulls / rows if nulls is not None and rows else None, _number(known.get("avgLen")),
        guessed, ndv if unique else None, bound, _bins(known.get("bins")),
        heavy=read(known.get("heavy"), filled / rows if rows else 0.0),
        frequencies=frequency_sketch.read(known.get("frequencies")),
        key_threshold=threshold if isinstance(threshold, int) else None,
    )  # fmt: skip


def _bins(given: Any) -> tuple[Bin, ...]:
    read = [[_number(n) for n in row] for row in given or ()]
    bins = tuple(Bin(*row) for row in read if len(row) == 3 and None not in row)  # type: ignore[arg-type]
    return bins if len(bins) == len(read) else ()


def _fill_lengths(
    columns: dict[int, ColumnStatistics], output: Sequence[Attribute], rows: float, size: float | None
) -> None:
    """Columns without a length and of no fixed size share the relation's bytes: never less than Spark assumes."""
    if not size or rows < 1 or size >= _UNKNOWN_BYTES:
        return
    vague = [a for a in output if not _fixed(a.type) and columns.get(a.bit, _NOTHING).avg_len is None]
    for attribute in vague:
        length = max(type_size(attribute.type), ASSUMPTIONS.inflation * size / rows / len(vague))
        columns[attribute.bit] = replace(columns.get(attribute.bit, _NOTHING), avg_len=length)


def _fixed(type: str) -> bool:
    return type.startswith("decimal") or (type in _SIZES and type not in ("string", "binary", "variant"))


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, (str, bool)):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


#: A plan, or a leaf -> its statistics.
StatisticsOf = Callable[[LogicalPlan], RelationStatistics]
