"""Where counts come from: the Protocol of every source of statistics, and users' own sources.

A source is queried for one relation at a time and returns its statistics, or None. `leaf_statistics` queries one source
after the other, the best first, until one has the number of rows. Your own sources come before the built-in ones:

    class OurCatalogue:
        name = "our catalogue"

        def lookup(self, relation):
            entry = catalogue_entry(relation.name)
            return Known(rows=entry.count, columns={"id": Column(ndv=entry.count)}) if entry else None

    pyjoinopt.statistics.register(OurCatalogue())

It is queried under every setting of the option `statistics` but "none". An exception of it gives one warning, and the
other sources are used.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.util.warn_once import warn_once

#: A bound as people have it; text has no bounds here.
Bound = int | float | Decimal | datetime.date | datetime.datetime | bool


@dataclass(frozen=True, slots=True)
class Column:
    """What is known of a column's values; None where something is not known.

    Attributes:
        ndv: number of distinct values, NULL not counted.
        min, max: bounds: numbers, dates or timestamps (without a zone: UTC).
        nulls: number of rows in which the column is NULL.
        avg_len: bytes of a value in memory.
        details: whatever else a built-in source has, such as a histogram.
    """

    ndv: float | None = None
    min: Bound | None = None
    max: Bound | None = None
    nulls: float | None = None
    avg_len: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Files:
    """Which files a relation reads.

    Attributes:
        id: a hash over path, length and modification time of every file: another one as soon as a file changes.
        schema: a hash over format, columns and reader options.
        count, bytes: how many there are, and their size.
        newest: the latest modification time, in seconds since the epoch.
    """

    id: str
    schema: str
    count: int
    bytes: int
    newest: float


@dataclass(frozen=True)
class Relation:
    """A relation of a plan, as it is described to a source.

    Attributes:
        name: of the table, or the last part of the path; not necessarily unique.
        kind: "file", "hive", "v2", "jdbc", "memory", "rdd", or Spark's class name of the leaf.
        format: of files: "parquet", "orc", "csv", ...; otherwise empty.
        columns: name -> Spark's type, in order.
        needed: names of the columns that the query computes with; to know more is no use.
        bytes: what Spark takes its size to be, if it has an idea.
        files: which files it reads; None where that is unknown or was not requested.
        leaf: the plan's node.
        partitions: filters on its partition columns that `files` takes into account; without them it reads more.
        counted: names of those needed columns whose different values matter.
    """

    name: str
    kind: str = ""
    format: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    bytes: float | None = None
    files: Files | None = None
    leaf: LogicalPlan | None = field(default=None, repr=False, compare=False)
    partitions: tuple[Expression, ...] = field(default=(), repr=False, compare=False)
    counted: frozenset[str] = frozenset()


#: A leaf -> how it is described to sources, with its files; None if there are none.
RelationOf = Callable[[LogicalPlan], "Relation | None"]


@dataclass(frozen=True)
class Known:
    """The statistics that a source has of a relation.

    Attributes:
        rows: how many; None if only columns or bytes are known: then another source is queried for the rows.
        bytes: size in memory or on disk.
        columns: by name; any subset.
        exact: the rows were counted and are the present ones. An exact count may be the ground of a broadcast hint.
        source: where it is from; empty for the source's own name.
        gathered: when, in seconds since the epoch; None for now.
        note: a weakness, for people.
        keys: of each key, which is declared or otherwise known to be one, the names of its columns.
    """

    rows: float | None = None
    bytes: float | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    exact: bool = False
    source: str = ""
    gathered: float | None = None
    note: str = ""
    keys: tuple[tuple[str, ...], ...] = ()


@runtime_checkable
class StatisticsSource(Protocol):
    """Something that may know how many rows a relation has.

    A source may also have a method `prepare(relations: Sequence[Relation]) -> None`. It is called once a plan, before
    any `lookup`, with all relations of which no better source has the rows, so that one request can be sent for all.
    """

    name: str

    def lookup(self, relation: Relation) -> Known | None:
        """What is known of a relation, or None. Should take milliseconds: a query is being planned."""
        ...


_registered: list[StatisticsSource] = []


def register(source: StatisticsSource) -> None:
    """Query this source before all others, from now on and in this process; the last one registered comes first.

    One of the same name is replaced.

    Raises:
        TypeError: it has no `name`, or no method `lookup`.
    """
    name = getattr(source, "name", None)
    if not isinstance(name, str) or not name or not callable(getattr(source, "lookup", None)):
        raise TypeError(f"a source has a name (str) and a method lookup(relation), {type(source).__name__} has not")
    unregister(name)
    _registered.insert(0, source)


def unregister(source: StatisticsSource | str) -> bool:
    """Remove a source, or the one of this name. True if there was one.

    Raises:
        TypeError: it is neither a source nor a name.
    """
    if not isinstance(source, str) and not hasattr(source, "name"):
        raise TypeError(f"a source, or its name (str), is expected, not {source!r}; registered() lists them")
    before = len(_registered)
    _registered[:] = [known for known in _registered if known is not source and known.name != source]
    return len(_registered) < before


def registered() -> tuple[StatisticsSource, ...]:
    """The sources of users, in the order in which they are queried."""
    return tuple(_registered)


def prepare(source: StatisticsSource, relations: Sequence[Relation]) -> None:
    """Call the `prepare` of a source, if it has one, with the relations that it will be queried for."""
    hook = getattr(source, "prepare", None)
    if hook is None:
        return
    try:
        hook(relations)
    except Exception as error:
        _warn(source, error)


def answer(source: StatisticsSource, relation: Relation) -> Known | None:
    """The statistics of a source, checked. An error in them gives one warning."""
    try:
        known = source.lookup(relation)
        if known is not None:
            _check(known)
    except Exception as error:
        _warn(source, error)
        return None
    return known


def _check(known: Known) -> None:
    if not isinstance(known, Known):
        raise TypeError(f"lookup gives a pyjoinopt.statistics.Known or None, not {type(known).__name__}")
    for value in (known.rows, known.bytes):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{value!r} is no number of rows or bytes")
    if not isinstance(known.columns, Mapping) or not all(isinstance(c, Column) for c in known.columns.values()):
        raise TypeError("columns is a mapping from names to pyjoinopt.statistics.Column")


def _warn(source: StatisticsSource, error: Exception) -> None:
    problem = f"{type(error).__name__}: {error}"
    text = f"the statistics source {source.name!r} failed and is passed over: {problem}"
    warn_once("source", source.name, text, stacklevel=2)
