"""The sources that are built in, and the ladders that the option `statistics` chooses from.

    analyze          what `pyjoinopt.analyze` gathered of these very files
    catalog          the counts that ANALYZE, or somebody else, left in the catalog
    memory           rows that the session holds already: cached data, rows of an RDD that were counted
    footers          footers of Parquet and ORC files
    size / row width of text files: their size over the width of the first lines
    size             what Spark takes the size to be, over the width that the types have
    default          nothing is known

Rows that are part of the plan itself (VALUES, range) are no statistics: every ladder counts them.
Two questions to the JVM serve all of them: the first opens no file, the second those that the store does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.statistics.analysis import recall
from pyjoinopt.statistics.patience import Patience
from pyjoinopt.statistics.protocol import files_of, known_from, relation_of
from pyjoinopt.statistics.relation import DEFAULT_ROWS, row_width, unknown
from pyjoinopt.statistics.source import Column, Files, Known, Relation, StatisticsSource
from pyjoinopt.statistics.store import Store

Ask = Callable[..., dict[int, dict[str, Any]]]

#: Of a table with more columns than this only the needed ones are asked for.
WIDE = 64
_FOOTERS = frozenset({"parquet", "orc"})
_TEXT = frozenset({"csv", "json", "text"})
#: The option -> what the JVM is asked for, and whether which files there are.
_FIRST: dict[str, tuple[list[str], bool]] = {
    "auto": (["catalog", "memory"], True),
    "full": (["catalog", "memory"], True),
    "catalog": (["catalog"], False),
    "footers": ([], True),
}


class Leaves:
    """The leaves of a plan, and what the JVM says of them.

    Args:
        ask: see `Gateway.statistics`.
        leaves: which.
        option: `statistics`.
        needed, counted: sets of attributes, see `needed`.
        filters: number of a leaf -> filters on its partition columns.
        reading: called before the first file is opened.
        patience: how long files may be read; None for as long as the JVM likes.
        without: what the JVM is not asked for.
    """

    def __init__(
        self,
        ask: Ask,
        leaves: Sequence[LogicalPlan],
        option: str,
        needed: int,
        counted: int = -1,
        filters: Mapping[int, tuple[Expression, ...]] | None = None,
        reading: Callable[[], object] = lambda: None,
        patience: Patience | None = None,
        without: Collection[str] = (),
    ) -> None:
        self._ask = ask
        self._option = option
        self._needed = needed
        self._counted = counted
        self._filters = dict(filters or {})
        self._reading = reading
        self._patience = patience
        self._without = without
        self._leaves = {leaf.number: leaf for leaf in leaves if leaf.number is not None}
        self.first: dict[int, Known] = {}
        self.relations: dict[int, Relation] = {}

    def look(self, better_whole: Callable[[Files], bool] = lambda _: False) -> None:
        """Ask the first question.

        Args:
            better_whole: whether so much is known of these files that partitions are not looked at one by one.
        """
        answers: dict[int, dict[str, Any]] = {}
        if self._option in _FIRST:
            sources, identity = _FIRST[self._option]
            sources = [source for source in sources if source not in self._without]
            leaves = list(self._leaves.values())
            answers = self._ask(leaves, self._option, sources=sources, identity=identity, **self._details(leaves))
        for number, leaf in self._leaves.items():
            entry = answers.get(number, {})
            files, filters = entry.get("files"), self._filters.get(number, ())
            if filters and "whole" in entry and better_whole(files_of(entry["whole"])):
                files, entry = entry["whole"], {**entry, "pruned": False}
            if not entry.get("pruned"):
                filters = ()
                self._filters.pop(number, None)
            self.relations[number] = relation_of(leaf, self._needed, files, filters, self._counted)
            if entry and "error" not in entry:
                self.first[number] = known_from(entry, leaf.output)

    def told(self, relation: Relation) -> Known | None:
        """The first answer about a relation."""
        return self.first.get(relation.leaf.number) if relation.leaf and relation.leaf.number is not None else None

    def read(self, relations: Sequence[Relation], what: str) -> dict[int, tuple[Known, Files | None]]:
        """Ask for more, which may open files."""
        leaves = [relation.leaf for relation in relations if relation.leaf is not None]
        self._reading()
        limits = dict.fromkeys(("deadlineMs", "totalMs"), self._patience.left()) if self._patience is not None else {}
        distinct = {
            str(relation.leaf.number): [a.bit for a in relation.leaf.output if a.name in relation.counted]
            for relation in relations
            if relation.leaf is not None and what == "footers"
        }
        more = {"distinct": distinct} if distinct else {}
        answers = self._ask(leaves, self._option, sources=[what], **more, **limits, **self._details(leaves))
        found = {}
        for relation, leaf in zip(relations, leaves):
            entry = answers.get(leaf.number if leaf.number is not None else -1, {})
            if entry and "error" not in entry:
                found[id(relation)] = known_from(entry, leaf.output), relation_of(leaf, 0, entry.get("files")).files
        return found

    def _details(self, leaves: Sequence[LogicalPlan]) -> dict[str, Any]:
        """Which columns of wide tables, and which partitions."""
        columns = {
            str(leaf.number): [a.bit for a in leaf.output if self._needed >> a.bit & 1]
            for leaf in leaves
            if len(leaf.output) > WIDE
        }
        filters = {str(leaf.number): self._filters[leaf.number] for leaf in leaves if leaf.number in self._filters}
        return {**({"columns": columns} if columns else {}), **({"partitions": filters} if filters else {})}


class Told:
    """A source that the JVM's first answer holds already."""

    def __init__(self, name: str, leaves: Leaves, *says: str) -> None:
        self.name = name
        self._leaves = leaves
        self._says = says or (name,)

    def lookup(self, relation: Relation) -> Known | None:
        known = self._leaves.told(relation)
        if relation.partitions and self.name == "reported":
            return None  # said of all partitions
        if known is None or known.rows is None or known.source not in self._says:
            return None
        return replace(known, source=self.name) if known.source == "size" else known


class Written:
    """Rows that the plan itself tells the number of; nobody is asked."""

    name = "local"

    def lookup(self, relation: Relation) -> Known | None:
        rows = relation.leaf.info.get("rows") if relation.leaf is not None else None
        return None if rows is None else Known(float(rows), exact=True)


class FromFiles:
    """What files say of themselves: remembered in the store, else read now, all relations at once."""

    def __init__(self, name: str, leaves: Leaves, what: str, formats: frozenset[str], store: Store | None) -> None:
        self.name = name
        self._leaves = leaves
        self._what = what
        self._formats = formats
        self._store = store
        self._known: dict[tuple[str, str], Known] = {}
        self._asked: dict[tuple[str, str], frozenset[str] | None] = {}  # for which columns; None: for all

    def prepare(self, relations: Sequence[Relation]) -> None:
        wanted: dict[tuple[str, str], tuple[Files, list[Relation]]] = {}
        for relation in relations:
            if relation.files is not None and relation.format in self._formats:
                wanted.setdefault(_key(relation.files), (relation.files, []))[1].append(relation)
        stored = self._store.get(files for files, _ in wanted.values()) if self._store and wanted else {}
        missing: list[Relation] = []
        for key, (_, same) in wanted.items():
            if key in stored:
                self._known[key], self._asked[key] = stored[key]
            asked = self._asked.get(key, frozenset())
            if key not in stored or (asked is not None and any(self._wants(relation) - asked for relation in same)):
                missing += same
        if missing:
            self._read(missing)

    def lookup(self, relation: Relation) -> Known | None:
        return self._known.get(_key(relation.files)) if relation.files is not None else None

    def _wants(self, relation: Relation) -> frozenset[str]:
        """Columns that must have been asked for: of a wide table all that are needed, else those that are counted."""
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
                before_asked = self._asked.get(_key(files)) or frozenset()
                self._asked[_key(files)] = before_asked | self._wants(relation)
        if self._store is not None and new:
            asked = {files: self._asked[_key(files)] for files in new}
            self._store.put(new, names, {files: some for files, some in asked.items() if some is not None})


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

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves

    def lookup(self, relation: Relation) -> Known | None:
        told = self._leaves.told(relation)
        output = relation.leaf.output if relation.leaf is not None else ()
        size = told.bytes if told is not None and not relation.partitions else None
        guess = unknown(output, relation.bytes if size is None else size)
        if guess.source != self.name:
            return None
        return Known(guess.rows, guess.bytes)


class Default:
    """Something has to be assumed."""

    name = "default"

    def lookup(self, relation: Relation) -> Known:
        width = row_width(relation.leaf.output) if relation.leaf is not None and relation.leaf.output else 24.0
        return Known(DEFAULT_ROWS, DEFAULT_ROWS * width)


def ladder(
    option: str, leaves: Leaves, store: Store | None, without: Collection[str] = ()
) -> tuple[StatisticsSource, ...]:
    """The built-in sources of an option, the best first, without some of them.

    Args:
        option: `statistics`.
        leaves: what the JVM says of them.
        store: what was learnt earlier.
        without: rungs that "auto" and "full" leave out: "analyze", "catalog", "memory", "footers", "text".

    >>> nothing = Leaves(lambda *_: {}, [], "catalog", 0)
    >>> [source.name for source in ladder("catalog", nothing, None)]
    ['local', 'catalog', 'default']
    >>> [source.name for source in ladder("auto", Leaves(lambda *_: {}, [], "auto", 0), None, {"analyze", "text"})]
    ['local', 'catalog', 'memory', 'footers', 'reported', 'size', 'default']
    """
    local = Told("local", leaves)
    catalog = Told("catalog", leaves, "catalog", "catalyst")
    footers = FromFiles("footers", leaves, "footers", _FOOTERS, store)
    text = FromFiles("size / row width", leaves, "text", _TEXT, store)
    memory = Told("memory", leaves)
    reported = Told("reported", leaves, "catalyst", "size")
    rungs: dict[str, StatisticsSource]
    match option:
        case "none":
            return Written(), Size(leaves), Default()
        case "catalog":
            rungs = {"catalog": catalog}
        case "footers":
            rungs = {"footers": footers}
        case _:
            rungs = {
                "analyze": Analysed(store), "catalog": Told("catalog", leaves), "memory": memory, "footers": footers,
                "text": text, "reported": reported, "size": Size(leaves),
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
