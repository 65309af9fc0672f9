"""What share of a relation's rows filters keep, counted over a sample of them.

Spark's own predicates are evaluated over the sampled rows, in the driver and without a Spark job: patterns, functions,
OR and columns that depend on each other need no theory. For each conjunct the JVM reports which rows fulfil it, as bits
of one int; the rows that fulfil several are their AND, so that the share of every combination is known after one
request. `sampled_selectivity` turns hits into shares.

**When a sample is drawn.** What the store or the JVM has is used whenever a relation is filtered. Drawing a new one
opens files, so it is done only where arithmetic is weak (patterns, functions, OR, text, more than one column) and
where it may decide something: not if the plan has a single join. Drawing begins as soon as it is known that footers
have to be read too, and goes on beside that; how long a query waits for it is a matter of `deadline`.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics, StatisticsOf
from pyjoinopt.estimation.sources.column_lineage import ColumnLineage, is_countable, number_of
from pyjoinopt.estimation.sources.partition_pruning import partition_columns
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Files, RelationOf
from pyjoinopt.estimation.sources.sampled_distinct import codes, left_after
from pyjoinopt.estimation.sources.sampled_selectivity import Share, is_weak
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan

#: A request about some relations; see `Gateway.samples`.
RequestSamples = Callable[..., list[dict[str, Any]]]

#: Kind of the store's blobs.
BLOB = "sample"
_log = logging.getLogger("pyjoinopt")


@dataclass(slots=True)
class _Sample:
    """What is known of one leaf's sample: the bits of every conjunct requested so far, the values of key columns."""

    rows: int
    complete: bool
    places: int
    hits: dict[Any, int | None]
    keys: dict[int, list[int]]


class Samples:
    """The samples of one plan's leaves.

    Args:
        request: see `Gateway.samples`.
        relation: leaf -> how it is described to sources, with its files; None if there are none.
        store: where samples are remembered.
        thorough: draw a sample of every relation that is filtered.
        deadline: how long to wait for samples that are drawn; None for as long as the JVM likes.

    Attributes:
        drawing: False if no new samples are drawn.
    """

    def __init__(
        self,
        request: RequestSamples,
        relation: RelationOf,
        store: Store | None = None,
        thorough: bool = False,
        deadline: ReadDeadline | None = None,
    ) -> None:
        self._request = request
        self._relation = relation
        self._store = store
        self._thorough = thorough
        self._deadline = deadline
        self._begun: set[tuple[str, str]] = set()
        self._keys: dict[int, int] = {}
        self.drawing = True
        self._meanings = ColumnLineage()
        self._samples: dict[int, _Sample | None] = {}

    # -- questions ---------------------------------------------------------------------------------------------

    def add_aliases(self, node: LogicalPlan) -> None:
        """Add the definitions of a projection's columns."""
        self._meanings.add_aliases(node)

    def conjuncts(self, condition: Expression) -> tuple[Expression, ...]:
        """The conjuncts of a condition, over the columns of leaves."""
        return self._meanings.conjuncts(condition)

    def prefetch(self, plan: LogicalPlan, known: StatisticsOf) -> None:
        """Send one request for all conjuncts of a plan that read one leaf, wherever they are.

        Args:
            plan: a plan; plans of subqueries are not entered.
            known: statistics of the leaves, to judge where arithmetic is weak.
        """
        self._question(self._of_leaves(plan), known)

    def begin(self, plan: LogicalPlan) -> None:
        """Let the JVM begin to draw what a plan needs whatever its columns hold, and wait for nothing."""
        entries = []
        for leaf, conjuncts in self._of_leaves(plan):
            files = self._files(leaf)
            if files is None or (files.id, files.schema) in self._begun:
                continue
            if not self._reads(leaf, conjuncts, _clear(leaf)):
                continue
            self._begun.add((files.id, files.schema))
            entry = self._entry(leaf, files, conjuncts)
            if self._store is None or self._store.blob(files, BLOB) is None:
                entries.append({**entry, "read": True})
        self._answers(entries, give=False, deadlineMs=0, evaluateMs=0)

    def _of_leaves(self, plan: LogicalPlan) -> list[tuple[LogicalPlan, list[Expression]]]:
        found, keys = self._meanings.of_leaves(plan, lambda leaf: self._relation(leaf) is not None)
        self._keys.update(keys)
        return found

    def _files(self, leaf: LogicalPlan) -> Files | None:
        relation = self._relation(leaf)
        return relation.files if relation is not None else None

    # -- answers -----------------------------------------------------------------------------------------------

    def share(
        self, leaf: LogicalPlan, conjuncts: Sequence[Expression], known: RelationStatistics
    ) -> Share | None:
        """How many of a leaf's sampled rows fulfil all of some conjuncts; None without a sample."""
        number = number_of(leaf)
        countable = [e for e in conjuncts if is_countable(e)]
        sample = self._samples.get(number)
        if sample is None and (number in self._samples or not countable):
            return None
        if sample is None or any(e.key not in sample.hits for e in countable):
            self._question([(leaf, countable)], lambda _: known)
            sample = self._samples.get(number)
        if sample is None or not sample.rows:
            return None
        together, unknown = (1 << sample.rows) - 1, []
        partitioned = partition_columns(leaf) if sample.places else 0
        for e in conjuncts:
            bits = sample.hits.get(e.key) if is_countable(e) and e.references & ~partitioned else None
            if bits is None:
                unknown.append(e)
            else:
                together &= bits
        if len(unknown) == len(conjuncts):
            return None
        return Share(together.bit_count(), sample.rows, sample.complete, tuple(unknown), sample.places, together)

    def distinct(
        self, leaf: LogicalPlan, share: Share, base: RelationStatistics, kept: float
    ) -> dict[int, float]:
        """Of the join keys of a leaf, how many different values are left among the rows that a filter keeps.

        Args:
            leaf: whose sample it is.
            share: the filter's share in the sample.
            base: statistics of the leaf.
            kept: rows that the filter keeps.
        """
        sample = self._samples.get(number_of(leaf))
        found: dict[int, float] = {}
        for bit, values in sample.keys.items() if sample is not None and share.rows == sample.rows else ():
            column = base.column(bit)
            if column.key_values is None or column.guessed:
                ndv = left_after(values, share.together, base.rows, kept, None if column.guessed else column.ndv)
                if ndv is not None:
                    found[bit] = ndv
        return found

    def _question(
        self,
        wanted: Sequence[tuple[LogicalPlan, list[Expression]]],
        known: StatisticsOf,
    ) -> None:
        """Request first what the JVM has, then send what the store has; open files where that is worth it."""
        requested = []
        for leaf, conjuncts in wanted:
            files = self._files(leaf)
            if files is None or all(e.kind == "IsNotNull" for e in conjuncts):
                self._samples.setdefault(number_of(leaf), None)
            else:
                requested.append((leaf, files, list({e.key: e for e in conjuncts}.values())))
        missing = []
        for (leaf, files, conjuncts), answer in zip(requested, self._answers([self._entry(*one) for one in requested])):
            if not self._store_answer(leaf, files, conjuncts, answer):
                entry = self._entry(leaf, files, conjuncts)
                entry["read"] = self._reads(leaf, conjuncts, known(leaf))
                # A sample that the JVM has is what the store had, too, unless another process has stored more since:
                # that is worth a look only where files would be opened otherwise.
                may_help = entry["read"] or "columns" not in answer
                blob = self._store.blob(files, BLOB) if self._store is not None and may_help else None
                if blob is not None:
                    entry["blob"] = base64.b64encode(blob).decode("ascii")
                if entry["read"] or blob is not None:
                    missing.append((leaf, files, conjuncts, entry))
        for (leaf, files, conjuncts, _), answer in zip(missing, self._answers([entry for *_, entry in missing])):
            self._store_answer(leaf, files, conjuncts, answer)

    def _reads(self, leaf: LogicalPlan, conjuncts: Sequence[Expression], known: RelationStatistics) -> bool:
        """Whether files may be opened to know what these conjuncts keep."""
        partitioned = partition_columns(leaf)
        own = [e for e in conjuncts if e.references & ~partitioned]
        return bool(own) and (self._thorough or (self.drawing and is_weak(own, known)))

    def _answers(self, entries: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        if not entries:
            return []
        try:
            if self._deadline is not None:
                request = {"deadlineMs": self._deadline.for_samples(), **request}
            return self._request(entries, **{"give": self._store is not None, **request})
        except Exception as error:
            _log.warning("no samples: %s", error)
            return [{} for _ in entries]

    def _store_answer(
        self, leaf: LogicalPlan, files: Files, conjuncts: list[Expression], answer: dict[str, Any]
    ) -> bool:
        number = number_of(leaf)
        if answer.get("note"):
            _log.info("sample of %s: %s", (leaf.info.get("rel") or {}).get("name"), answer["note"])
        if "hits" not in answer:
            self._samples.setdefault(number, None)
            return False
        sample = self._samples.get(number)
        if sample is None or sample.rows != answer["rows"]:
            complete, places = bool(answer["complete"]), int(answer.get("pieces", 0))
            sample = self._samples[number] = _Sample(answer["rows"], complete, places, {}, {})
        sample.keys.update((int(bit), codes(text)) for bit, text in (answer.get("keys") or {}).items())
        for e, bits in zip(conjuncts, answer["hits"]):
            sample.hits[e.key] = None if bits is None else int.from_bytes(bytes.fromhex(bits), "little")
        if self._store is not None and answer.get("blob"):
            try:
                self._store.put_blob(files, BLOB, base64.b64decode(answer["blob"]))
            except binascii.Error as error:
                _log.debug("a sample that is not remembered: %s", error)
        return True


    def _entry(self, leaf: LogicalPlan, files: Files, conjuncts: list[Expression]) -> dict[str, Any]:
        references = 0
        for e in conjuncts:
            references |= e.references
        relation = self._relation(leaf)
        partitions = {"partitions": relation.partitions} if relation is not None and relation.partitions else {}
        columns = [attribute.bit for attribute in leaf.output if references >> attribute.bit & 1]
        return {
            "node": leaf.number, "id": files.id, "schema": files.schema, "columns": columns, "predicates": conjuncts,
            "keys": self._key_columns(leaf), **partitions,
        }  # fmt: skip


    def _key_columns(self, leaf: LogicalPlan) -> list[int]:
        """The join keys that are not known already."""
        sample, keys = self._samples.get(number_of(leaf)), self._keys.get(number_of(leaf), 0)
        known = sample.keys if sample is not None else {}
        return [a.bit for a in leaf.output if keys >> a.bit & 1 and a.bit not in known]


@dataclass(frozen=True)
class SamplesOfPlan:
    """The samples of one plan; see `jvm_questions.FirstDraw`."""

    samples: Samples
    plan: LogicalPlan

    def begin(self) -> None:
        """Let the JVM draw those that are needed whatever the files hold, and wait for nothing."""
        self.samples.begin(self.plan)


def _clear(leaf: LogicalPlan) -> RelationStatistics:
    """A relation with as much about its columns as footers can hold."""
    columns = {attribute.bit: ColumnStatistics(ndv=1.0, min=0.0, max=0.0) for attribute in leaf.output}
    return RelationStatistics(1.0, 1.0, columns=columns)
