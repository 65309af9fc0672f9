"""The sources that are built in, and the ladders that the option `statistics` chooses from.

    analyze          what `pyjoinopt.analyze` gathered of these very files
    catalog          the counts that ANALYZE, or somebody else, left in the catalog
    database         what the PostgreSQL server of a JDBC relation has gathered of the table
    memory           rows that the session holds already: cached data, rows of an RDD that were counted
    footers          footers of Parquet and ORC files
    size / row width of text files: their size over the width of the first lines
    size             what Spark takes the size to be, over the width that the types have
    default          nothing is known

Rows that are part of the plan itself (VALUES, range) are no statistics: every ladder counts them.
Two questions to the JVM serve all of them: the first opens no file, the second those that the store does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import row_width, unknown
from pyjoinopt.estimation.sources.analyzed_tables import recall
from pyjoinopt.estimation.sources.jvm_questions import WIDE, LeafFacts
from pyjoinopt.estimation.sources.registry import Column, Files, Known, Relation, StatisticsSource
from pyjoinopt.estimation.store.store import Store

_FOOTERS = frozenset({"parquet", "orc"})
_TEXT = frozenset({"csv", "json", "text"})


class ReportedByJvm:
    """A source that the JVM's first answer holds already."""

    def __init__(self, name: str, leaves: LeafFacts, *sources: str) -> None:
        self.name = name
        self._leaves = leaves
        self._sources = sources or (name,)

    def lookup(self, relation: Relation) -> Known | None:
        known = self._leaves.reported(relation)
        if relation.partitions and self.name == "reported":
            return None  # it is about all partitions
        if known is None or known.rows is None or known.source not in self._sources:
            return None
        return replace(known, source=self.name) if known.source == "size" else known


class LiteralRows:
    """Rows of which the plan itself holds the number; no request is sent."""

    name = "local"

    def lookup(self, relation: Relation) -> Known | None:
        rows = relation.leaf.info.get("rows") if relation.leaf is not None else None
        return None if rows is None else Known(float(rows), exact=True)


class FromFiles:
    """Statistics in files: remembered in the store, else read now, all relations at once."""

    def __init__(self, name: str, leaves: LeafFacts, what: str, formats: frozenset[str], store: Store | None) -> None:
        self.name = name
        self._leaves = leaves
        self._what = what
        self._formats = formats
        self._store = store
        self._known: dict[tuple[str, str], Known] = {}
        self._requested: dict[tuple[str, str], frozenset[str] | None] = {}  # for which columns; None: for all

    def prepare(self, relations: Sequence[Relation]) -> None:
        wanted: dict[tuple[str, str], tuple[Files, list[Relation]]] = {}
        for relation in relations:
            if relation.files is not None and relation.format in self._formats:
                wanted.setdefault(_key(relation.files), (relation.files, []))[1].append(relation)
        stored = self._store.get(files for files, _ in wanted.values()) if self._store and wanted else {}
        missing: list[Relation] = []
        for key, (_, same) in wanted.items():
            if key in stored:
                self._known[key], self._requested[key] = stored[key]
            done = self._requested.get(key, frozenset())
            if key not in stored or (done is not None and any(self._wants(relation) - done for relation in same)):
                missing += same
        if missing:
            self._read(missing)

    def lookup(self, relation: Relation) -> Known | None:
        return self._known.get(_key(relation.files)) if relation.files is not None else None

    def _wants(self, relation: Relation) -> frozenset[str]:
        """Columns that must have been requested: of a wide table all that are needed, else those that are counted."""
        if len(relation.columns) > WIDE:
            return relation.needed
        return relation.counted if relation.format in _FOOTERS else frozenset()

    def _read(self, relations: Sequence[Relation]) -> None:
        found = self._leaves.read(relations, self._what)
        new: dict[Files, Known] = {}
        names: dict[Files, str] = {}
        for relation in relations:
            known, files = found.get(id(relation), (None, None))
            if known is None or relation.files is None:
                continue
            if known.rows is None:
                self._known.setdefault(_key(relation.files), Known(note=known.note))
                continue
            before = self._known.get(_key(relation.files))
            columns = _merged(before.columns if before else {}, known.columns)
            known = Known(known.rows, known.bytes, columns, known.exact, known.source, None, known.note)
            self._known[_key(relation.files)] = known
            # What was late or broken may be better next time. What was listed anew in between is something else.
            if not known.note and files is not None and _key(files) == _key(relation.files):
                new[relation.files], names[relation.files] = known, relation.name
                before_requested = self._requested.get(_key(files)) or frozenset()
                self._requested[_key(files)] = before_requested | self._wants(relation)
        if self._store is not None and new:
            requested = {files: self._requested[_key(files)] for files in new}
            self._store.put(new, names, {files: some for files, some in requested.items() if some is not None})


class Analysed:
    """What was gathered of these very files on demand."""

    name = "analyze"

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def lookup(self, relation: Relation) -> Known | None:
        return recall(relation.files, self._store) if relation.files is not None else None


class Size:
    """What Spark takes the size to be, over the width of a row."""

    name = "size"

    def __init__(self, leaves: LeafFacts) -> None:
        self._leaves = leaves

    def lookup(self, relation: Relation) -> Known | None:
        reported = self._leaves.reported(relation)
        output = relation.leaf.output if relation.leaf is not None else ()
        size = reported.bytes if reported is not None and not relation.partitions else None
        guess = unknown(output, relation.bytes if size is None else size)
        if guess.source != self.name:
            return None
        return Known(guess.rows, guess.bytes)


class Default:
    """The assumption for a relation without any statistics."""

    name = "default"

    def lookup(self, relation: Relation) -> Known:
        output = relation.leaf.output if relation.leaf is not None else ()
        width = row_width(output) if output else ASSUMPTIONS.unknown_row_bytes
        return Known(ASSUMPTIONS.unknown_rows, ASSUMPTIONS.unknown_rows * width)


def ladder(
    option: str, leaves: LeafFacts, store: Store | None, without: Collection[str] = ()
) -> tuple[StatisticsSource, ...]:
    """The built-in sources of an option, the best first, without some of them.

    Args:
        option: `statistics`.
        leaves: what the JVM reports of them.
        store: what was learnt earlier.
        without: rungs that "auto" and "full" leave out: "analyze", "catalog", "database", "memory", "footers", "text".

    >>> nothing = LeafFacts(lambda *_: {}, [], "catalog", 0)
    >>> [source.name for source in ladder("catalog", nothing, None)]
    ['local', 'catalog', 'default']
    >>> [source.name for source in ladder("auto", LeafFacts(lambda *_: {}, [], "auto", 0), None, {"analyze", "text"})]
    ['local', 'catalog', 'pg_stats', 'memory', 'footers', 'reported', 'size', 'default']
    """
    local = ReportedByJvm("local", leaves)
    catalog = ReportedByJvm("catalog", leaves, "catalog", "catalyst")
    footers = FromFiles("footers", leaves, "footers", _FOOTERS, store)
    text = FromFiles("size / row width", leaves, "text", _TEXT, store)
    memory = ReportedByJvm("memory", leaves)
    reported = ReportedByJvm("reported", leaves, "catalyst", "size", "iceberg snapshot")
    rungs: dict[str, StatisticsSource]
    match option:
        case "none":
            return LiteralRows(), Size(leaves), Default()
        case "catalog":
            rungs = {"catalog": catalog}
        case "footers":
            rungs = {"footers": footers}
        case _:
            rungs = {
                "analyze": Analysed(store), "catalog": ReportedByJvm("catalog", leaves),
                "database": ReportedByJvm("pg_stats", leaves), "memory": memory, "footers": footers, "text": text,
                "reported": reported, "size": Size(leaves),
            }  # fmt: skip
    return local, *(source for rung, source in rungs.items() if rung not in without), Default()


def _merged(before: Mapping[str, Column], now: Mapping[str, Column]) -> dict[str, Column]:
    """What is known of columns now; different values may have been counted before."""
    columns = {**before, **now}
    for name, column in now.items():
        if column.ndv is None and name in before:
            columns[name] = replace(column, ndv=before[name].ndv)
    return columns


def _key(files: Files) -> tuple[str, str]:
    return files.id, files.schema
