"""Statistics of a plan's leaves: sources are queried, the best first, until one has the rows."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, from_json, unknown
from pyjoinopt.estimation.sources.analyzed_tables import recall
from pyjoinopt.estimation.sources.builtin_sources import ladder
from pyjoinopt.estimation.sources.columns_of_interest import counted_columns, needed_columns
from pyjoinopt.estimation.sources.declared_keys import declared_keys, with_keys, without_effect
from pyjoinopt.estimation.sources.json import entry_of
from pyjoinopt.estimation.sources.json import number as as_number
from pyjoinopt.estimation.sources.jvm_questions import FirstDraw, LeafFacts, RequestStatistics
from pyjoinopt.estimation.sources.partition_pruning import partition_columns, partition_filters
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Known, Relation, answer, prepare, registered
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.util.warn_once import log_once

#: Sources whose statistics are of the partitions that are left; those of others are of the whole table.
_OF_PARTITIONS = frozenset({"footers", "size / row width", "size"})
#: Settings under which what `pyjoinopt.analyze` gathered is used.
_ANALYSED = frozenset({"auto", "full"})
_NUMBER = re.compile(r"tinyint|smallint|int|bigint|decimal\(.*\)")
_log = logging.getLogger("pyjoinopt")


class LeafStatistics:
    """Callable: leaf -> its statistics. The request is sent on the first call, never before.

    Args:
        request: gives the protocol's JSON entries by node number; see `Gateway.statistics`.
        leaves: every leaf that may be looked up.
        source: the `statistics` option; see `sources.ladder`.
        nodes: all nodes of the plan, to know which columns matter; none: all columns do.
        store: what was learnt earlier, and where to remember what is learnt now.
        deadline: how long files may be read; None for as long as the JVM likes.
        without: sources that are not queried; see `statistics_without`.

    Attributes:
        applied: keys of filters on partition columns that the statistics take into account: they keep every row.
    """

    def __init__(
        self,
        request: RequestStatistics,
        leaves: Iterable[LogicalPlan],
        source: str,
        nodes: Iterable[LogicalPlan] = (),
        store: Store | None = None,
        deadline: ReadDeadline | None = None,
        without: Collection[str] = (),
    ) -> None:
        self._request = request
        self._leaves = list(leaves)
        self._source = source
        self._nodes = list(nodes)
        self._store = store
        self._deadline = deadline
        self._without = without
        self._statistics: dict[int, RelationStatistics] = {}
        self._footers: dict[int, Known] = {}
        self._relations: dict[int, Relation] = {}
        self._filters: dict[int, tuple[Expression, ...]] = {}
        self._expected: set[int] = set()
        self.applied: set[object] = set()
        self._first_draw: FirstDraw | None = None

    def use_partition_filters(self, nodes: Iterable[LogicalPlan], first_draw: FirstDraw | None = None) -> None:
        """Take the partitions that these nodes leave of their leaves, instead of all, before the first request.

        Leaves that were not expected are requested later: their own plan may leave out partitions too.

        Args:
            nodes: of one plan.
            first_draw: samples that the JVM may begin to draw while footers are read.
        """
        self._first_draw = first_draw
        listed = list(nodes)
        if any(partition_columns(leaf) for leaf in self._leaves):
            self._expected.update(n.number for n in listed if n.number is not None)
            for number, filters in partition_filters(listed).items():
                if number not in self._relations:
                    self._filters[number] = filters

    def __call__(self, leaf: LogicalPlan) -> RelationStatistics:
        number = leaf.number
        if number is None:  # a rule made it, so the JVM does not know it
            return unknown(leaf.output)
        if number not in self._statistics:
            rest = [one for one in self._leaves if one.number not in self._statistics]
            if number in self._expected:
                rest = [one for one in rest if one.number in self._expected]
            self._learn(rest)
        if number not in self._statistics:
            self._statistics[number] = unknown(leaf.output, (leaf.info.get("rel") or {}).get("bytes"))
        return self._statistics[number]

    def relation(self, leaf: LogicalPlan) -> Relation | None:
        """How a leaf is described to sources."""
        if leaf.number is None:
            return None
        if leaf.number not in self._relations:
            self(leaf)
        return self._relations.get(leaf.number)

    def identity(self, leaf: LogicalPlan) -> str | None:
        """What the leaf's files are recognised by; None if it reads none, or was not requested."""
        relation = self.relation(leaf)
        files = relation.files if relation is not None else None
        return None if files is None else f"{files.id} {files.schema}"

    def known(self) -> list[tuple[Relation, Known]]:
        """Every leaf as it is described to sources, and the best statistics."""
        return self._known(self._leaves)

    def relations(self) -> list[Relation]:
        """Every leaf as it is described to sources. No file is opened."""
        return list(self._look(self._leaves).relations.values())

    def notes(self) -> list[str]:
        """What was declared and matches none of the relations that were requested; empty if none was."""
        requested = {relation.name: relation.columns for relation in self._relations.values()}
        return without_effect(requested) if requested else []

    def _learn(self, some: Sequence[LogicalPlan]) -> None:
        if not some:
            return
        for relation, known in self._known(some):
            if relation.leaf is not None and relation.leaf.number is not None:
                statistics = _statistics(known, relation.leaf, relation.needed)
                if "bounds" in self._without:
                    statistics = replace(statistics, frequency_bounds={})
                read = self._footers.get(relation.leaf.number)
                if read is not None:
                    statistics = replace(statistics, value_bounds=_value_bounds(read, relation.leaf))
                keys = (*known.keys, *declared_keys(relation.name))
                self._statistics[relation.leaf.number] = with_keys(statistics, relation.leaf.output, keys)
                if relation.partitions and known.source in _OF_PARTITIONS:
                    self.applied.update(e.key for e in relation.partitions)

    def _known(self, some: Sequence[LogicalPlan]) -> list[tuple[Relation, Known]]:
        leaves = self._look(some)
        self._relations.update(leaves.relations)
        users = () if self._source == "none" else registered()
        found: dict[int, Known] = {}
        for source in (*users, *ladder(self._source, leaves, self._store, self._without)):
            waiting = {n: r for n, r in leaves.relations.items() if _is_needed(found.get(n), source.name, r)}
            if not waiting:
                continue
            prepare(source, list(waiting.values()))
            for number, relation in waiting.items():
                known = answer(source, relation)
                if known is not None and known.exact and source.name == "footers":
                    self._footers[number] = known
                if known is not None:
                    found[number] = _together(found.get(number), replace(known, source=known.source or source.name))
        for number, known in found.items():
            reported = leaves.first.get(number)
            if reported is not None and reported.keys and not known.keys:
                known = found[number] = replace(known, keys=reported.keys)
            if reported is not None and reported.rows is None and reported.note and reported.note not in known.note:
                known = found[number] = replace(known, note="; ".join(filter(None, (reported.note, known.note))))
            if known.note:
                log_once(_log, "statistics", f"statistics of {leaves.relations[number].name}: {known.note}")
        return [(leaves.relations[number], found[number]) for number in leaves.relations]

    def _look(self, some: Sequence[LogicalPlan]) -> LeafFacts:
        needed = needed_columns(self._nodes) if self._nodes else -1
        counted = counted_columns(self._nodes) if self._nodes else -1
        leaves = LeafFacts(
            self._request, some, self._source, needed, counted, self._filters, self._first_draw, self._deadline,
            self._without,
        )  # fmt: skip
        analysed = self._source in _ANALYSED and "analyze" not in self._without
        leaves.request_known(lambda files: analysed and recall(files, self._store) is not None)
        return leaves


def _is_needed(known: Known | None, source: str, relation: Relation) -> bool:
    """Whether a source is needed: for the rows, or for columns that a better one has nothing about."""
    if known is None or known.rows is None:
        return True
    if source != "footers":
        return False
    if known.source == "analyze":
        return not relation.needed <= known.columns.keys()
    return known.source == "catalog" and not known.columns


def _together(better: Known | None, known: Known) -> Known:
    """Rows from one source, columns from both: of each column those of the better one."""
    if better is None:
        return known
    keys = (*better.keys, *known.keys)
    if better.rows is not None:
        return replace(better, columns={**known.columns, **better.columns}, keys=keys)
    return replace(
        known,
        bytes=better.bytes if better.bytes is not None else known.bytes,
        columns={**known.columns, **better.columns},
        note="; ".join(filter(None, (better.note, known.note))),
        keys=keys,
    )


def _value_bounds(footers: Known, leaf: LogicalPlan) -> dict[int, tuple[float, float]]:
    """Attribute number -> the bounds of a number's values, in the footers of all files."""
    found = {}
    for attribute in leaf.output:
        column = footers.columns.get(attribute.name)
        if column is None or not _NUMBER.fullmatch(attribute.type):
            continue
        low, high = as_number(column.min), as_number(column.max)
        if low is not None and high is not None:
            found[attribute.bit] = (low, high)
    return found


def _statistics(known: Known, leaf: LogicalPlan, needed: Collection[str]) -> RelationStatistics:
    if known.source in ("size", "default") and not known.columns:
        return unknown(leaf.output, known.bytes if known.source == "size" else None)
    return from_json(entry_of(known, leaf.output, None if known.source == "local" else needed), leaf.output)
