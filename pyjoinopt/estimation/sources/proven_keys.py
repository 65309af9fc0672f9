"""Keys of files that are proved by reading them: what footers make likely, the values of the columns make certain.

A relation that is unique on what it is joined by multiplies no rows. That is what bounds of whole joins rest on (see
`joins.cardinality.upper_bounds`), and with them every hint to broadcast the result of a join. No file declares a key,
so the columns by which a relation is joined are read once, in the background, up to the first value that comes twice.
The answer is remembered for these very files.

Which columns: of two relations that are joined, the one column that may be a key by its counts, or else all columns by
which they are joined, together: the key of a table of facts has several.

A table may be too large to be read: a proof has limits of rows and bytes, a query and a session have a budget of bytes
(`ReadBudget`). The JVM keeps to them and returns the reason, which is reported but not remembered: another session may
have a larger budget. Declared keys and those of the catalog (`declared_keys`) hold for tables of any size.

Files may change between planning and running, so such a proof is the ground of estimates, bounds and hints, and never
of a rewriting of the plan.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, StatisticsOf
from pyjoinopt.estimation.sources.column_lineage import ColumnLineage, number_of
from pyjoinopt.estimation.sources.declared_keys import with_keys
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Files, Relation, RelationOf
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan

#: Kind of the store's blobs.
BLOB = "keys"
_log = logging.getLogger("pyjoinopt")

#: Names of columns.
Names = tuple[str, ...]


class Proofs(Protocol):
    """See `bridge.gateway.KeyProofs`."""

    @property
    def proofs(self) -> list[list[bool | str | None]]:
        """For each relation and set of columns, whether it is a key."""

    @property
    def read(self) -> int:
        """Bytes that were read for the session."""


#: A request about some relations; see `Gateway.keys`.
RequestKeys = Callable[..., Proofs]


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """How many bytes of columns may be read in the background, to prove keys.

    Attributes:
        query: for one query.
        session: for all queries of a session together.
    """

    query: int
    session: int


class ProvedKeys:
    """Callable: leaf -> its statistics, with the keys that are proved.

    Args:
        leaf: statistics of leaves without them.
        relation: leaf -> how it is described to sources, with its files; None if there are none.
        request: see `Gateway.keys`.
        store: where proofs are remembered.
        deadline: how long to wait for proofs that are not remembered.
        budget: how many bytes may be read; None for no limit.

    Attributes:
        read: bytes that were read for the session, as of the last request.
        notes: which keys are not proved, and why.
    """

    def __init__(
        self,
        leaf: StatisticsOf,
        relation: RelationOf,
        request: RequestKeys,
        store: Store | None = None,
        deadline: ReadDeadline | None = None,
        budget: ReadBudget | None = None,
    ) -> None:
        self._leaf = leaf
        self._relation = relation
        self._request = request
        self._store = store
        self._deadline = deadline
        self._budget = budget
        self.read = 0
        self.notes: list[str] = []
        self._meanings = ColumnLineage()
        self._proved: dict[int, set[Names]] = {}
        self._with_keys: dict[int, RelationStatistics] = {}

    def __call__(self, leaf: LogicalPlan) -> RelationStatistics:
        number = number_of(leaf)
        proved = self._proved.get(number)
        if not proved:
            return self._leaf(leaf)
        if number not in self._with_keys:
            self._with_keys[number] = with_proved(self._leaf(leaf), leaf.output, proved)
        return self._with_keys[number]

    def prove(self, nodes: Sequence[LogicalPlan]) -> None:
        """Prove what the joins of a plan can make use of, as far as there is time."""
        entries: list[tuple[LogicalPlan, Relation, Files, list[Names], dict[Names, bool]]] = []
        for leaf, sets in self._candidates(nodes):
            relation = self._relation(leaf)
            if relation is None or relation.files is None:
                continue
            remembered = _remembered(relation.files, self._store)
            self._take(leaf, remembered)
            unknown = [names for names in sets if names not in remembered]
            if unknown:
                entries.append((leaf, relation, relation.files, unknown, remembered))
        answers = self._answers([_entry(leaf, relation, sets) for leaf, relation, _, sets, _ in entries])
        for (leaf, relation, files, sets, remembered), answer in zip(entries, answers):
            new = {names: unique for names, unique in zip(sets, answer) if isinstance(unique, bool)}
            for names, reason in zip(sets, answer):
                note = f"the key ({', '.join(names)}) of {relation.name} is not proved: {reason}"
                if isinstance(reason, str) and note not in self.notes:
                    self.notes.append(note)
            self._take(leaf, new)
            if new and self._store is not None:
                self._store.put_blob(files, BLOB, _to_bytes({**remembered, **new}))

    def _candidates(self, nodes: Sequence[LogicalPlan]) -> Iterable[tuple[LogicalPlan, list[Names]]]:
        """Leaves of files, each with sets of columns that may be keys and are what it is joined by."""
        owner: dict[int, LogicalPlan] = {}
        for node in nodes:
            if not node.children and (found := self._relation(node)) is not None and found.files is not None:
                owner.update((attribute.bit, node) for attribute in node.output)
            self._meanings.add_aliases(node)
        compared: dict[tuple[int, int], dict[str, Attribute]] = {}
        leaves: dict[int, LogicalPlan] = {}
        for one, other in self._equalities(nodes):
            for column, partner in ((one, other), (other, one)):
                leaf = owner.get(column.bit) if column is not None else None
                if leaf is not None and column is not None:
                    of = owner.get(partner.bit) if partner is not None else None
                    if of is not leaf:
                        number = number_of(leaf)
                        leaves[number] = leaf
                        pair = number, -2 if of is None else number_of(of)
                        compared.setdefault(pair, {})[column.name] = column
        sets: dict[int, dict[Names, None]] = {}
        for (number, _), columns in compared.items():
            known = self._leaf(leaves[number])
            likely: list[Names] = [(name,) for name, column in columns.items() if _may_be_key(known, [column])]
            if not likely and len(columns) > 1 and _may_be_key(known, columns.values()):
                likely = [tuple(sorted(columns))]
            masks = {name: column.mask for name, column in columns.items()}
            unknown = [names for names in likely if not known.is_unique(sum(masks[name] for name in names))]
            sets.setdefault(number, {}).update(dict.fromkeys(unknown))
        return [(leaves[number], list(some)) for number, some in sets.items() if some]

    def _equalities(self, nodes: Iterable[LogicalPlan]) -> Iterable[tuple[Attribute | None, Attribute | None]]:
        for node in nodes:
            condition = node.condition if isinstance(node, (Filter, Join)) else None
            for left, right, null_safe in equalities(condition):
                one, other = self._column(left), self._column(right)
                if not null_safe and (one is not None or other is not None):
                    yield one, other

    def _column(self, e: Expression) -> Attribute | None:
        """The column of a leaf that an expression is, under whatever name."""
        meant = self._meanings.conjuncts(e)
        return column_of(meant[0]) if len(meant) == 1 else None

    def _take(self, leaf: LogicalPlan, answers_of: dict[Names, bool]) -> None:
        proved = {names for names, unique in answers_of.items() if unique}
        if proved:
            self._proved.setdefault(number_of(leaf), set()).update(proved)
            self._with_keys.pop(number_of(leaf), None)

    def _answers(self, entries: list[dict[str, Any]]) -> list[list[bool | str | None]]:
        if not entries:
            return []
        limit = {"deadlineMs": self._deadline.for_keys()} if self._deadline is not None else {}
        if self._budget is not None:
            limit |= {"mostOfQuery": self._budget.query, "mostOfSession": self._budget.session}
        try:
            answers = self._request(entries, **limit)
            self.read = answers.read
            return answers.proofs
        except Exception as error:
            _log.warning("no keys are proved: %s", error)
            return [[] for _ in entries]


def proved_keys(files: Files, store: Store | None) -> list[Names]:
    """The keys of some files that are proved according to the store."""
    return sorted(names for names, unique in _remembered(files, store).items() if unique)


def _remembered(files: Files, store: Store | None) -> dict[Names, bool]:
    content = store.blob(files, BLOB) if store is not None else None
    return {} if content is None else _from_bytes(content)


def with_proved(
    known: RelationStatistics, output: Sequence[Attribute], proved: Iterable[Names]
) -> RelationStatistics:
    """Statistics with keys that were proved, given by the names of their columns.

    >>> n = Attribute(0, 1, "n", "int")
    >>> with_proved(RelationStatistics(10.0, 80.0), [n], [("n",)]).keys
    frozenset({1})
    """
    return with_keys(known, output, proved)


def _may_be_key(known: RelationStatistics, columns: Iterable[Attribute]) -> bool:
    """Can there be as many values as rows? Where nothing is known of a column, there can."""
    values = 1.0
    for attribute in columns:
        column = known.column(attribute.bit)
        if column.ndv is None or column.key_values is not None:
            return True
        values *= column.ndv
    return values >= ASSUMPTIONS.nearly_unique * known.base_rows


def _entry(leaf: LogicalPlan, relation: Relation, sets: Sequence[Names]) -> dict[str, Any]:
    assert relation.files is not None
    bits = {attribute.name: attribute.bit for attribute in leaf.output}
    partitions = {"partitions": relation.partitions} if relation.partitions else {}
    return {
        "node": leaf.number, "id": relation.files.id, "schema": relation.files.schema,
        "sets": [[bits[name] for name in names] for names in sets], **partitions,
    }  # fmt: skip


def _to_bytes(answers_of: dict[Names, bool]) -> bytes:
    return json.dumps(sorted(answers_of.items())).encode()


def _from_bytes(content: bytes) -> dict[Names, bool]:
    """What the store kept; nothing if that cannot be understood.

    >>> _from_bytes(_to_bytes({("a", "b"): True}))
    {('a', 'b'): True}
    """
    try:
        return {tuple(map(str, names)): bool(unique) for names, unique in json.loads(content)}
    except (ValueError, TypeError):
        return {}
