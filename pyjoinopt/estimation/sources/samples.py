"""What share of a relation's rows filters keep, counted over a sample of them.

Spark's own predicates are evaluated over the sampled rows, in the driver and without a Spark job: patterns, functions,
OR and columns that depend on each other need no theory. For each conjunct the JVM reports which rows fulfil it, as bits
of one int; the rows that fulfil several are their AND, so that the share of every combination is known after one
request. `sampled_selectivity` turns hits into shares.

**When a sample is drawn.** What the store or the JVM has is used whenever a relation is filtered. Drawing a new one
opens files, so it is done only where arithmetic is weak (patterns, functions, OR, text, more than one column) or the
relation is small, and where it may decide something: not if the plan has a single join and small files. A relation with
a filtered dimension (`star_joins`) is sampled for its joins, and the dimension is read whole. Drawing begins as soon as
it is known that footers have to be read too, and goes on beside that; how long a query waits for it is a matter of
`deadline`.

**Random samples.** Most samples are read from a few places, evenly spaced, of which only the first rows are read. They
give good estimates, but bound nothing, since rows elsewhere may differ. Where a bound may decide whether a side is
broadcast (`BoundLimits`), a random sample is drawn from many places instead, and replaces the other one.
"""

from __future__ import annotations

import base64
import binascii
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import or_
from typing import Any

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import (
    ColumnStatistics,
    FrequencyBound,
    LikelyBound,
    RelationStatistics,
    StatisticsOf,
    row_width,
)
from pyjoinopt.estimation.model.sample_bounds import share_bound
from pyjoinopt.estimation.sources.bound_limits import BoundLimits
from pyjoinopt.estimation.sources.clustering import is_clustered, may_be_clustered
from pyjoinopt.estimation.sources.column_lineage import ColumnLineage, PlanLeaves, is_countable, number_of
from pyjoinopt.estimation.sources.joined_sample import JoinedSample, from_hex, joined_sample, read_hashes
from pyjoinopt.estimation.sources.key_samples import find_key_joins, key_samples
from pyjoinopt.estimation.sources.partition_pruning import partition_columns
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Files, RelationOf
from pyjoinopt.estimation.sources.sample_request import SampleRequest, selects, with_dimensions
from pyjoinopt.estimation.sources.sampled_distinct import codes, left_after, most_frequent, nearly_unique
from pyjoinopt.estimation.sources.sampled_selectivity import Share, is_weak
from pyjoinopt.estimation.sources.sampled_values import SampledValues, values_among
from pyjoinopt.estimation.sources.star_joins import SMALL, Star, find_stars
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan

#: A request about some relations; see `Gateway.samples`.
RequestSamples = Callable[..., list[dict[str, Any]]]

#: [milliseconds] How long predicates may be evaluated: as long as a query waits for samples, but at least and at most.
_EVALUATE, _PATIENT = 500, 10_000
#: Kind of the store's blobs.
BLOB = "sample"
#: [share of a relation's values] What a random sample may read: so much of the time that the query takes to read it.
_RANDOM_PART = 0.25
#: [values] What it may read at least: half a second of one core.
_RANDOM_LEAST = 40_000_000
#: [rows] Of fewer rows no sample is drawn for the runs in them alone: groups of these are cheap in any order.
_RUNS_LEAST = 10_000
_log = logging.getLogger("pyjoinopt")


@dataclass(frozen=True, slots=True)
class Counted:
    """What is left of a join key by a filter.

    Attributes:
        ndv: different values.
        most: rows of the relation that share a value, at most; None if not all rows were read.
    """

    ndv: float
    most: float | None = None


@dataclass(slots=True)
class _Sample:
    """What is known of one leaf's sample: the bits of every conjunct requested so far, the values of key columns.

    Attributes:
        number: of the sample in the JVM; another one has other rows.
        distinct: conjuncts -> what was counted of join keys among the rows that fulfil all; of a whole relation.
        joined: its rows with their partners in the relation's dimensions.
        hashed: hashes of the values of columns that semi joins compare.
        starts: those of `JoinedSample`.
        runs: of key columns, how many rows after each other share a value on average, if more than one.
    """

    number: int
    rows: int
    complete: bool
    places: int
    draws: int | None = None
    stretch: float = 1.0
    refused: bool = False
    hits: dict[Any, int | None] = field(default_factory=dict)
    keys: dict[int, list[int]] = field(default_factory=dict)
    distinct: dict[frozenset[Any], dict[int, Counted]] = field(default_factory=dict)
    joined: JoinedSample | None = None
    hashed: dict[int, Sequence[int]] = field(default_factory=dict)
    starts: tuple[int, ...] = ()
    runs: dict[int, float] = field(default_factory=dict)


class Samples:
    """The samples of one plan's leaves.

    Args:
        request: see `Gateway.samples`.
        relation: leaf -> how it is described to sources, with its files; None if there are none.
        store: where samples are remembered.
        thorough: draw a sample of every relation that is filtered.
        deadline: how long to wait for samples that are drawn; None for as long as the JVM likes.
        limits: where random samples are drawn; None for nowhere.

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
        limits: BoundLimits | None = None,
    ) -> None:
        self._request = request
        self._limits = limits
        self._relation = relation
        self._store = store
        self._thorough = thorough
        self._deadline = deadline
        self._begun: set[tuple[str, str]] = set()
        self._keys: dict[int, int] = {}
        self._semi_keys: dict[int, int] = {}
        self._run_keys: dict[int, int] = {}
        self.drawing = True
        self._meanings = ColumnLineage()
        self._samples: dict[int, _Sample | None] = {}
        self._by_keys: dict[int, list[JoinedSample]] = {}
        self._requests: dict[int, SampleRequest] = {}

    # -- questions ---------------------------------------------------------------------------------------------

    def add_aliases(self, node: LogicalPlan) -> None:
        """Add the definitions of a projection's columns."""
        self._meanings.add_aliases(node)

    def conjuncts(self, condition: Expression) -> tuple[Expression, ...]:
        """The conjuncts of a condition, over the columns of leaves."""
        return self._meanings.conjuncts(condition)

    def meaning(self, e: Expression) -> Expression:
        """An expression over the columns of leaves."""
        return self._meanings.meaning(e)

    def prefetch(self, plan: LogicalPlan, known: StatisticsOf) -> None:
        """Send one request for all conjuncts of a plan that read one leaf, wherever they are.

        Args:
            plan: a plan; plans of subqueries are not entered.
            known: statistics of the leaves, to judge where arithmetic is weak.
        """
        read = self._of_leaves(plan)
        filtered = {number_of(leaf) for leaf, conjuncts in read.filtered if selects(conjuncts)} | set(read.semi_keys)
        stars = []
        if self.drawing:
            stars = find_stars(
                read.leaves, read.compared, lambda leaf: number_of(leaf) in filtered, lambda leaf: known(leaf).rows
            )
        compared: list[tuple[LogicalPlan, list[Expression]]]
        self._run_keys.update(self._with_runs(read, known))
        also = {*read.semi_keys, *self._run_keys}
        compared = [(leaf, []) for leaf in read.leaves if number_of(leaf) in also]
        self._question([*compared, *read.filtered], known, stars)
        joins = find_key_joins(read, known) if self.drawing else []
        if joins:
            conjuncts = {number_of(leaf): list({e.key: e for e in some}.values()) for leaf, some in read.filtered}
            found = key_samples(joins, conjuncts, self._files, partial(self._answers, give=False), self._store)
            self._by_keys.update(found)

    def begin(self, plan: LogicalPlan) -> None:
        """Let the JVM begin to draw what a plan needs whatever its columns hold, and wait for nothing."""
        entries = []
        for leaf, conjuncts in self._of_leaves(plan).filtered:
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

    def _of_leaves(self, plan: LogicalPlan) -> PlanLeaves:
        found = self._meanings.of_leaves(plan, lambda leaf: self._files(leaf) is not None)
        self._keys.update(found.keys)
        self._semi_keys.update(found.semi_keys)
        return found

    def _with_runs(self, read: PlanLeaves, known: StatisticsOf) -> dict[int, int]:
        """Number of a leaf whose rows make groups -> the columns that refer to other relations: they may have runs."""
        found = {}
        for leaf in read.leaves:
            number = number_of(leaf)
            if self.drawing and number in read.grouped and known(leaf).rows >= _RUNS_LEAST:
                columns = [a for a in leaf.output if read.keys.get(number, 0) >> a.bit & 1]
                referring = [a.mask for a in columns if known(leaf).column(a.bit).key_values is None]
                if referring:
                    found[number] = reduce(or_, referring)
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
        if not selects(conjuncts):
            return None
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
        return Share(
            together.bit_count(), sample.rows, sample.complete, tuple(unknown), sample.places, together, sample.draws,
            sample.stretch,
        )  # fmt: skip

    def random_share(
        self, leaf: LogicalPlan, conjuncts: Sequence[Expression], base: RelationStatistics, share: Share, rows: float
    ) -> Share:
        """The share in a random sample, if that is worth drawing and is there in time; or else the share given.

        Args:
            leaf, conjuncts: as of `share`.
            base: statistics of the leaf.
            share: their share in the present sample.
            rows: expected rows.
        """
        sample, files = self._samples.get(number_of(leaf)), self._files(leaf)
        if sample is None or files is None or share.complete or share.draws is not None or sample.refused:
            return share
        if self._limits is None or not (self.drawing or self._thorough) or not self._limits.matter(base, rows):
            return share
        sample.refused = True  # once a plan
        wanted, *dimensions = self._random_request(leaf, files, [e for e in conjuncts if is_countable(e)])
        entry = wanted.entry
        columns = len(entry["columns"]) + len(entry["keys"]) + 1
        entry["maxValues"] = int(max(_RANDOM_LEAST, _RANDOM_PART * base.upper_bound * columns))
        read = [a for a in leaf.output if a.bit in {*entry["columns"], *entry["keys"]}]
        entry["draws"] = self._limits.draws(base, rows, row_width(read, base.columns))
        answer, *_ = self._answers([entry, *(one.entry for one in dimensions)])
        drawn = self._store_answer(wanted, answer) and self.share(leaf, conjuncts, base)
        return drawn or share

    def _random_request(self, leaf: LogicalPlan, files: Files, conjuncts: Sequence[Expression]) -> list[SampleRequest]:
        """The request for a random sample of a leaf; of a star's centre it is joined with its dimensions, which follow.

        The rows of the present sample have their partners, and another sample has other rows.
        """
        number = number_of(leaf)
        before = self._requests.get(number)
        star = before.star if before is not None else None
        if before is not None and star is not None:
            conjuncts = list({e.key: e for e in (*before.conjuncts, *conjuncts)}.values())
        needed = self._run_keys.get(number, 0) | (star.columns[number] if star is not None else 0)
        entry = self._entry(leaf, files, conjuncts, needed)
        entry.update(keys=self._keys_of(leaf), read=True, random=True)
        center = SampleRequest(leaf, files, conjuncts, entry, joined=star is not None)
        if star is None:
            return [center]
        dimensions = [self._requests[number_of(d.leaf)].without_dimensions() for d in star.dimensions]
        return with_dimensions([center, *dimensions], [star])

    def likely_bound(self, share: Share, base: RelationStatistics) -> LikelyBound | None:
        """A bound of the rows that make a share of a relation; None if the sample gives none, or none is wanted."""
        if self._limits is None or share.draws is None or base.upper_bound == math.inf:
            return None
        return LikelyBound(math.ceil(base.upper_bound * share.likely_most), share.rows)

    def frequency_bounds(self, leaf: LogicalPlan, share: Share, base: RelationStatistics) -> dict[int, FrequencyBound]:
        """Of join keys, how many of the rows that make a share of a relation have the same value at most.

        None are bounded if the sample gives no bound, or none is wanted; see `model.sample_bounds`.
        """
        sample = self._samples.get(number_of(leaf))
        wanted = self._limits is not None and share.draws is not None and base.upper_bound < math.inf
        found: dict[int, FrequencyBound] = {}
        for bit, values in sample.keys.items() if sample is not None and wanted and share.rows == sample.rows else ():
            hits = most_frequent(values, share.together)
            most = share_bound(hits, share.rows, share.draws or 0, share.stretch, ASSUMPTIONS.sample_failure)
            if most < 1.0:
                found[bit] = FrequencyBound(math.ceil(base.upper_bound * most), math.inf, share.rows)
        return found

    def distinct(
        self, leaf: LogicalPlan, conjuncts: Sequence[Expression], share: Share, base: RelationStatistics, kept: float
    ) -> dict[int, Counted]:
        """Of the join keys of a leaf, how many different values are left among the rows that a filter keeps.

        Args:
            leaf: whose sample it is.
            conjuncts: the filter.
            share: the filter's share in the sample.
            base: statistics of the leaf.
            kept: rows that the filter keeps.
        """
        sample = self._samples.get(number_of(leaf))
        if sample is None:
            return {}
        counted = sample.distinct.get(frozenset(e.key for e in conjuncts))
        if counted is not None or share.rows != sample.rows:
            return counted or {}
        return {bit: Counted(ndv) for bit, ndv in self.distinct_among(leaf, share.together, base, kept).items()}

    def distinct_among(
        self, leaf: LogicalPlan, hits: int, base: RelationStatistics, kept: float
    ) -> dict[int, float]:
        """Of the join keys of a leaf, how many different values some of its rows have, where its sample shows that.

        Args:
            leaf: whose sample it is.
            hits: its sampled rows that are among them, as bits.
            base: statistics of the leaf.
            kept: how many these are of all rows.
        """
        sample = self._samples.get(number_of(leaf))
        found: dict[int, float] = {}
        for bit, values in sample.keys.items() if sample is not None else ():
            column = base.column(bit)
            if column.guessed and may_be_clustered(values, sample.starts if sample is not None else ()):
                continue  # nobody counted its values, so that the sample's cannot be checked
            if column.key_values is None or (column.guessed and not nearly_unique(values, base.rows)):
                ndv = left_after(values, hits, base.rows, kept, None if column.guessed else column.ndv)
                if ndv is not None:
                    found[bit] = ndv
        return found

    def joined(self, leaf: LogicalPlan) -> list[JoinedSample]:
        """The sampled rows of a leaf with their partners in small dimensions, and by its keys those in large ones."""
        sample = self._samples.get(number_of(leaf))
        found = []
        if sample is not None and (sample.joined is not None or sample.hashed):
            joined = sample.joined or JoinedSample(sample.rows, sample.complete, sample.starts, {}, {})
            found = [replace(joined, hits=sample.hits, hashed=sample.hashed)]
        return [*found, *self._by_keys.get(number_of(leaf), ())]

    def runs(self, leaf: LogicalPlan) -> Mapping[int, float]:
        """Of key columns of a leaf, how many rows after each other share a value on average, if more than one."""
        sample = self._samples.get(number_of(leaf))
        return sample.runs if sample is not None else {}

    def hits(self, leaf: LogicalPlan, conjuncts: Sequence[Expression]) -> int | None:
        """The sampled rows that fulfil all of some conjuncts, as bits; None if that is not known.

        `IS NOT NULL` does not count: Spark adds it to a plan that it has begun to optimise.
        """
        sample = self._samples.get(number_of(leaf))
        together = (1 << sample.rows) - 1 if sample is not None else None
        for e in conjuncts:
            bits = sample.hits.get(e.key) if sample is not None and e.kind != "IsNotNull" else together
            together = None if bits is None or together is None else together & bits
        return together

    def values_among(self, leaf: LogicalPlan, conjuncts: Sequence[Expression], column: int) -> SampledValues | None:
        """The values of a column that a semi join compares among the rows that fulfil some conjuncts."""
        sample, hits = self._samples.get(number_of(leaf)), self.hits(leaf, conjuncts)
        if sample is None or hits is None or column not in sample.hashed:
            return None
        (type,) = (a.type for a in leaf.output if a.bit == column)
        return values_among(sample.hashed[column], hits, type, sample.complete)

    def is_same_column(self, one: tuple[LogicalPlan, int | None], other: tuple[LogicalPlan, int | None]) -> bool:
        """Whether two columns of leaves are the same column of one relation, with the same sampled rows.

        Samples that were drawn for different columns may have different rows, so the values of the column are compared.
        """
        found = []
        for leaf, bit in (one, other):
            sample, files = self._samples.get(number_of(leaf)), self._files(leaf)
            name = next((a.name for a in leaf.output if a.bit == bit), None)
            if sample is None or files is None or name is None or bit not in sample.hashed:
                return False
            found.append((name, files.id, files.schema, sample.hashed[bit]))
        return found[0] == found[1]

    def is_clustered(self, leaf: LogicalPlan, column: int) -> bool:
        """Whether sampled rows that are stored together have the same values of a join key."""
        sample = self._samples.get(number_of(leaf))
        if sample is None or sample.joined is None or column not in sample.keys:
            return False
        return is_clustered(sample.keys[column], sample.joined.starts)

    def _question(
        self,
        wanted: Sequence[tuple[LogicalPlan, list[Expression]]],
        known: StatisticsOf,
        stars: Sequence[Star] = (),
    ) -> None:
        """Request first what the JVM has, then send what the store has; open files where that is worth it."""
        requested = self._wanted(wanted, stars)
        self._requests.update((number_of(one.leaf), one) for one in requested if one.joined)
        answers = self._answers([one.entry for one in requested])
        missing: dict[int, SampleRequest] = {}
        for one, answer in zip(requested, answers):
            if self._store_answer(one, answer) and not (self._thorough and answer.get("lacking")):
                continue
            read = one.joined or number_of(one.leaf) in self._run_keys
            read = read or self._reads(one.leaf, one.conjuncts, known(one.leaf))
            # A sample that the JVM has is what the store had, too, unless another process has stored more since: that
            # is worth a look only where files would be opened otherwise.
            may_help = read or "columns" not in answer
            blob = self._store.blob(one.files, BLOB) if self._store is not None and may_help else None
            if read or blob is not None:
                missing[number_of(one.leaf)] = one.again(read, blob)
        if not missing:
            return
        changed = [star for star in stars if star.columns.keys() & missing.keys()]
        again = {number for star in changed for number in star.columns}
        # Another query may have replaced a dimension's sample since: then it is read anew.
        second = [missing.get(number_of(one.leaf), one.again(True, None)) for one in requested]
        second = [one for one in second if number_of(one.leaf) in missing or number_of(one.leaf) in again]
        second = with_dimensions(second, changed)
        for one, answer in zip(second, self._answers([one.entry for one in second])):
            self._store_answer(one, answer)

    def _wanted(
        self, wanted: Sequence[tuple[LogicalPlan, list[Expression]]], stars: Sequence[Star]
    ) -> list[SampleRequest]:
        """What is requested of each leaf: those with conjuncts or columns of semi joins, and those of stars."""
        leaves = {number_of(leaf): (leaf, conjuncts) for leaf, conjuncts in wanted}
        needed: dict[int, int] = {}
        dimensions = {number_of(d.leaf) for star in stars for d in star.dimensions}
        for star in stars:
            for leaf in (star.center, *(d.leaf for d in star.dimensions)):
                leaves.setdefault(number_of(leaf), (leaf, []))
            for number, columns in star.columns.items():
                needed[number] = needed.get(number, 0) | columns
        requested = []
        for number, (leaf, conjuncts) in leaves.items():
            files = self._files(leaf)
            listed = number in needed or number in self._semi_keys or number in self._run_keys
            if files is None or not (listed or selects(conjuncts)):
                self._samples.setdefault(number, None)
                continue
            once = list({e.key: e for e in conjuncts}.values())
            entry = self._entry(leaf, files, once, needed.get(number, 0) | self._run_keys.get(number, 0))
            if number in dimensions:
                entry["whole"] = True
            requested.append(SampleRequest(leaf, files, once, entry, number in needed))
        return with_dimensions(requested, stars)

    def _reads(self, leaf: LogicalPlan, conjuncts: Sequence[Expression], known: RelationStatistics) -> bool:
        """Whether files may be opened to know what these conjuncts keep."""
        partitioned = partition_columns(leaf)
        own = [e for e in conjuncts if e.references & ~partitioned]
        small = known.rows <= SMALL and known.source == "footers" and selects(own)
        return bool(own) and (self._thorough or (self.drawing and (small or is_weak(own, known))))

    def _answers(self, entries: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        if not entries:
            return []
        try:
            if self._deadline is not None:
                wait = self._deadline.for_samples()
                evaluate = _PATIENT if self._thorough else min(max(wait, _EVALUATE), _PATIENT)
                request = {"deadlineMs": wait, "evaluateMs": evaluate, **request}
            if self._thorough:
                request = {"thorough": True, **request}
            return self._request(entries, **{"give": self._store is not None, **request})
        except Exception as error:
            _log.warning("no samples: %s", error)
            return [{} for _ in entries]

    def _store_answer(self, wanted: SampleRequest, answer: dict[str, Any]) -> bool:
        leaf, conjuncts = wanted.leaf, wanted.conjuncts
        number = number_of(leaf)
        if answer.get("note"):
            _log.info("sample of %s: %s", (leaf.info.get("rel") or {}).get("name"), answer["note"])
        if "hits" not in answer:
            self._samples.setdefault(number, None)
            return False
        sample = self._samples.get(number)
        if sample is None or sample.number != answer["sample"]:
            complete, places = bool(answer["complete"]), int(answer.get("pieces", 0))
            sample = self._samples[number] = _Sample(
                answer["sample"], answer["rows"], complete, places, answer.get("draws"),
                float(answer.get("stretch", 1.0)), starts=tuple(answer.get("starts", ())),
            )  # fmt: skip
        sample.refused = sample.refused or bool(answer.get("refused"))
        sample.keys.update((int(bit), codes(text)) for bit, text in (answer.get("keys") or {}).items())
        sample.hashed.update(read_hashes(answer))
        sample.runs.update((int(bit), float(run)) for bit, run in (answer.get("runs") or {}).items())
        for e, bits in zip(conjuncts, answer["hits"]):
            sample.hits[e.key] = from_hex(bits)
        if "distinct" in answer:
            left = {int(bit): Counted(float(n), most) for bit, (n, most) in answer["distinct"].items()}
            sample.distinct[frozenset(e.key for e in conjuncts)] = left
        if wanted.star is not None:
            sample.joined = joined_sample(wanted.star, wanted.predicates, answer) or sample.joined
        if self._store is not None and answer.get("blob"):
            try:
                self._store.put_blob(wanted.files, BLOB, base64.b64decode(answer["blob"]))
            except binascii.Error as error:
                _log.debug("a sample that is not remembered: %s", error)
        return True

    def _entry(
        self, leaf: LogicalPlan, files: Files, conjuncts: Sequence[Expression], columns: int = 0
    ) -> dict[str, Any]:
        references = reduce(or_, (e.references for e in conjuncts), columns)
        relation = self._relation(leaf)
        partitions = {"partitions": relation.partitions} if relation is not None and relation.partitions else {}
        semi_keys = [a.bit for a in leaf.output if self._semi_keys.get(number_of(leaf), 0) >> a.bit & 1]
        return {
            "node": leaf.number, "id": files.id, "schema": files.schema,
            "columns": [a.bit for a in leaf.output if references >> a.bit & 1], "predicates": conjuncts,
            "keys": self._key_columns(leaf), **partitions, **({"hashed": semi_keys} if semi_keys else {}),
        }  # fmt: skip

    def _key_columns(self, leaf: LogicalPlan) -> list[int]:
        """The join keys that are not known already."""
        sample = self._samples.get(number_of(leaf))
        known = sample.keys if sample is not None else {}
        return [bit for bit in self._keys_of(leaf) if bit not in known]

    def _keys_of(self, leaf: LogicalPlan) -> list[int]:
        keys = self._keys.get(number_of(leaf), 0)
        return [a.bit for a in leaf.output if keys >> a.bit & 1]


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
