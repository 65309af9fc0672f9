"""Statistics of a plan's leaves: sources are asked, the best first, until one knows the rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.statistics.needed import needed_columns
from pyjoinopt.statistics.protocol import entry_of
from pyjoinopt.statistics.relation import RelationStatistics, from_json, unknown
from pyjoinopt.statistics.source import Known, Relation, answer, prepare, registered
from pyjoinopt.statistics.sources import Ask, Leaves, ladder
from pyjoinopt.statistics.store import Store

_log = logging.getLogger("pyjoinopt")
_logged: set[str] = set()


class LeafStatistics:
    """Callable: leaf -> its statistics. The JVM is asked on the first call, never before.

    Args:
        ask: gives the protocol's JSON entries by node number; see `Gateway.statistics`.
        leaves: every leaf that may be asked about.
        source: the `statistics` option; see `sources.ladder`.
        nodes: all nodes of the plan, to know which columns matter; none: all columns do.
        store: what was learnt earlier, and where to remember what is learnt now.
    """

    def __init__(
        self,
        ask: Ask,
        leaves: Iterable[LogicalPlan],
        source: str,
        nodes: Iterable[LogicalPlan] = (),
        store: Store | None = None,
    ) -> None:
        self._ask = ask
        self._leaves = list(leaves)
        self._source = source
        self._nodes = list(nodes)
        self._store = store
        self._statistics: dict[int, RelationStatistics] | None = None
        self._relations: dict[int, Relation] = {}

    def __call__(self, leaf: LogicalPlan) -> RelationStatistics:
        if self._statistics is None:
            self._statistics = {
                relation.leaf.number: _statistics(known, relation.leaf)
                for relation, known in self.known()
                if relation.leaf is not None and relation.leaf.number is not None
            }
        number = leaf.number if leaf.number is not None else -1
        if number not in self._statistics:
            self._statistics[number] = unknown(leaf.output, (leaf.info.get("rel") or {}).get("bytes"))
        return self._statistics[number]

    def relation(self, leaf: LogicalPlan) -> Relation | None:
        """How a leaf is described to sources."""
        self(leaf)
        return self._relations.get(leaf.number if leaf.number is not None else -1)

    def identity(self, leaf: LogicalPlan) -> str | None:
        """What the leaf's files are recognised by; None if it reads none, or was not asked about."""
        relation = self.relation(leaf)
        files = relation.files if relation is not None else None
        return None if files is None else f"{files.id} {files.schema}"

    def known(self) -> list[tuple[Relation, Known]]:
        """Every leaf as it is described to sources, and what the best of them says."""
        leaves = self._look()
        self._relations = leaves.relations
        users = () if self._source == "none" else registered()
        found: dict[int, Known] = {}
        for source in (*users, *ladder(self._source, leaves, self._store)):
            waiting = {n: r for n, r in leaves.relations.items() if _asks(found.get(n), source.name, r)}
            if not waiting:
                continue
            prepare(source, list(waiting.values()))
            for number, relation in waiting.items():
                known = answer(source, relation)
                if known is not None:
                    found[number] = _together(found.get(number), replace(known, source=known.source or source.name))
        for number, known in found.items():
            _tell(leaves.relations[number].name, known.note)
        return [(leaves.relations[number], found[number]) for number in leaves.relations]

    def relations(self) -> list[Relation]:
        """Every leaf as it is described to sources. No file is opened."""
        return list(self._look().relations.values())

    def _look(self) -> Leaves:
        needed = needed_columns(self._nodes) if self._nodes else -1
        leaves = Leaves(self._ask, self._leaves, self._source, needed)
        leaves.look()
        return leaves


def _asks(known: Known | None, source: str, relation: Relation) -> bool:
    """Whether a source is needed: for the rows, or for columns that a better one said nothing of."""
    if known is None or known.rows is None:
        return True
    if source != "footers":
        return False
    if known.source == "analyze":
        return not relation.needed <= known.columns.keys()
    return known.source == "catalog" and not known.columns


def _together(better: Known | None, known: Known) -> Known:
    """Rows from one source, columns from both: of each column what the better one says."""
    if better is None:
        return known
    if better.rows is not None:
        return replace(better, columns={**known.columns, **better.columns})
    return replace(
        known,
        bytes=better.bytes if better.bytes is not None else known.bytes,
        columns={**known.columns, **better.columns},
        note="; ".join(filter(None, (better.note, known.note))),
    )


def _statistics(known: Known, leaf: LogicalPlan) -> RelationStatistics:
    if known.source in ("size", "default") and not known.columns:
        return unknown(leaf.output, known.bytes if known.source == "size" else None)
    return from_json(entry_of(known, leaf.output), leaf.output)


def _tell(name: str, note: str) -> None:
    """A weakness of what is known is logged once."""
    if note and (text := f"statistics of {name}: {note}") not in _logged and len(_logged) < 1000:
        _logged.add(text)
        _log.warning(text)
