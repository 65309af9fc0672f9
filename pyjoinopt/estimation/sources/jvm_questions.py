"""The two questions to the JVM that all built-in sources share: one that opens no file, and one for the files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from pyjoinopt.estimation.sources.json import files_of, known_from, relation_of
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Files, Known, Relation
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


class FirstDraw(Protocol):
    """Samples that are needed whatever the files hold."""

    def begin(self) -> None:
        """Let the JVM draw them, and wait for nothing."""


RequestStatistics = Callable[..., dict[int, dict[str, Any]]]

#: Of a table with more columns than this only the needed ones are requested.
WIDE = 64
#: Kinds of relations that may be tables of a database.
_REMOTE = frozenset({"jdbc", "v2"})
#: The option -> the sources that are requested from the JVM, and whether the identity of files is.
_FIRST: dict[str, tuple[list[str], bool]] = {
    "auto": (["catalog", "memory", "database"], True),
    "full": (["catalog", "memory", "database"], True),
    "catalog": (["catalog"], False),
    "footers": ([], True),
}


class LeafFacts:
    """The leaves of a plan, and what the JVM reports of them, by at most two requests.

    `request_known` sends the first, for what needs no file. It fills `first` (number of a leaf -> statistics) and
    `relations` (number -> how the leaf is described to sources); both are empty before. `read` sends the second, for
    some relations, and may open files. Errors of the request pass through; an error about one leaf leaves it out.

    Args:
        request: see `Gateway.statistics`.
        leaves: which.
        option: `statistics`.
        needed, counted: sets of attributes, see `needed`.
        filters: number of a leaf -> filters on its partition columns.
        first_draw: begun before the first file is opened.
        deadline: how long files may be read; None for as long as the JVM likes.
        without: sources that are not requested.
    """

    def __init__(
        self,
        request: RequestStatistics,
        leaves: Sequence[LogicalPlan],
        option: str,
        needed: int,
        counted: int = -1,
        filters: Mapping[int, tuple[Expression, ...]] | None = None,
        first_draw: FirstDraw | None = None,
        deadline: ReadDeadline | None = None,
        without: Collection[str] = (),
    ) -> None:
        self._request = request
        self._option = option
        self._needed = needed
        self._counted = counted
        self._filters = dict(filters or {})
        self._first_draw = first_draw
        self._deadline = deadline
        self._without = without
        self._leaves = {leaf.number: leaf for leaf in leaves if leaf.number is not None}
        self.first: dict[int, Known] = {}
        self.relations: dict[int, Relation] = {}

    def request_known(self, better_whole: Callable[[Files], bool] = lambda _: False) -> None:
        """Send the first request.

        Args:
            better_whole: whether so much is known of these files that partitions are not looked at one by one.
        """
        answers: dict[int, dict[str, Any]] = {}
        if self._option in _FIRST:
            sources, identity = _FIRST[self._option]
            sources = [source for source in sources if source not in self._without]
            leaves = list(self._leaves.values())
            kinds = {(leaf.info.get("rel") or {}).get("kind") for leaf in leaves}
            limits = {"databaseMs": self._deadline.left()} if self._deadline is not None and kinds & _REMOTE else {}
            answers = self._request(
                leaves, self._option, sources=sources, identity=identity, **limits, **self._details(leaves)
            )
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

    def reported(self, relation: Relation) -> Known | None:
        """The answer to the first request about a relation."""
        return self.first.get(relation.leaf.number) if relation.leaf and relation.leaf.number is not None else None

    def read(self, relations: Sequence[Relation], what: str) -> dict[int, tuple[Known, Files | None]]:
        """Send the second request, which may open files."""
        leaves = [relation.leaf for relation in relations if relation.leaf is not None]
        if self._first_draw is not None:
            self._first_draw.begin()
        limits = dict.fromkeys(("deadlineMs", "totalMs"), self._deadline.left()) if self._deadline is not None else {}
        distinct = {
            str(relation.leaf.number): [a.bit for a in relation.leaf.output if a.name in relation.counted]
            for relation in relations
            if relation.leaf is not None and what == "footers"
        }
        more = {"distinct": distinct} if distinct else {}
        answers = self._request(leaves, self._option, sources=[what], **more, **limits, **self._details(leaves))
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
