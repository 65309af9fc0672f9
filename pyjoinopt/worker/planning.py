"""The planning of one request of the JVM, with the plan cache and, in sessions with feedback, under the guard.

    the same request as before, nothing changed    the cached answer
    a query whose times are compared (feedback)    the guard chooses between plans, which may be cached, too
    any other                                      our plan
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any

from pyjoinopt.bridge.decode import Export, decoded
from pyjoinopt.bridge.gateway import RequestGateway
from pyjoinopt.config import Options, refused_keys, resolve
from pyjoinopt.estimation.sources.registry import registered
from pyjoinopt.estimation.store.store import State, Store, open_store
from pyjoinopt.feedback.changed_parts import changes_without_constants
from pyjoinopt.feedback.fingerprint import Fingerprint
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.feedback.planned_query import planned_query
from pyjoinopt.feedback.query_shape import QueryShape, query_shape
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore
from pyjoinopt.optimizer.optimize import optimize
from pyjoinopt.optimizer.rollout import why_left_out
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.render.spark_ui import packed_pictures
from pyjoinopt.worker.answer import plan_answer
from pyjoinopt.worker.guarded_planning import GuardedPlanning, PlannedPart
from pyjoinopt.worker.pending_feedback import PendingFeedback
from pyjoinopt.worker.plan_cache import PlanCache, RecordedRequests, Request, key_of

_log = logging.getLogger("pyjoinopt")


@dataclass(frozen=True)
class CachedPart:
    """A plan that was made for an earlier request, without the expression IDs of its columns.

    Attributes:
        options: by which it was made.
        text: its answer and what is sent after it, as JSON, which takes a tenth of the memory of the objects.
        shape, changes: see `PlannedPart`.
        expected: its join groups, with positions of columns in the export in place of their IDs.
        seconds: that its planning took.
    """

    options: Options
    text: str
    shape: str
    changes: tuple[str, ...]
    expected: tuple[ExpectedGroup, ...]
    seconds: float

    def of_columns(self, columns: Sequence[int]) -> PlannedPart:
        """The plan for a request whose export has these columns."""
        answer, deferred = json.loads(self.text)
        groups = tuple(_with_columns(group, columns) for group in self.expected)
        return PlannedPart(self.shape, answer, lambda: dict(deferred), self.changes, groups, self.seconds)


@dataclass(frozen=True)
class CachedPlans:
    """What the plan cache has of a request.

    Attributes:
        own: the shape of the plan as written; None if it is not needed.
        left_out: why settings leave the query as written; None if they do not.
        parts: the plans that were made, the first one by the options of the session; none of a query that is left out.
    """

    own: QueryShape | None
    left_out: str | None
    parts: tuple[CachedPart, ...]


class Planner:
    """Answers requests; repeated requests from the cache."""

    def __init__(self) -> None:
        self._cache: PlanCache[CachedPlans] = PlanCache()

    def answer(
        self, send: Request, request: dict[str, Any], learned: PendingFeedback
    ) -> Iterator[dict[str, dict[str, Any]]]:
        """The two parts of a response: the answer, for which the query waits, then the report. Never raises."""
        started = perf_counter()
        planning = Planning(request, RecordedRequests(send), started + request.get("milliseconds", 0) / 1000)
        cached = None
        try:
            names = ("description", "writer", "pictures")
            related: dict[str, Any] = {name: request[name] for name in names if name in request}
            key = key_of({**request["options"], **related, "guarded": "query" in request}, request["export"])
            cached = self._cache.recall(key, send)
            answer = planning.run(cached, learned)
        except Exception as error:
            answer = planning.failed(error)
        seconds = perf_counter() - started
        yield {"answer": answer}
        deferred = planning.deferred()
        try:
            if cached is None and (made := planning.cacheable()) is not None:
                self._cache.remember(key, planning.requests, planning.store, planning.before, made)
            elif cached is not None and (made := planning.cacheable()) is not None:
                more = replace(cached, parts=(*cached.parts, *made.parts))
                self._cache.extend(key, planning.requests, more)
        except Exception:  # the answer was sent already, and it is valid
            _log.exception("a plan is not cached")
        yield {**deferred, "report": {**deferred["report"], "seconds": seconds}}


class Planning:
    """The planning of one request, whose query waits until `until` (by `perf_counter`)."""

    def __init__(self, request: dict[str, Any], requests: RecordedRequests, until: float) -> None:
        self.requests = requests
        self.store: Store | None = None
        self.before: State | None = None
        self._request = request
        self._until = until
        self._own: QueryShape | None = None
        self._left_out: str | None = None
        self._chosen: PlannedPart | None = None
        self.made: list[tuple[Options, PlannedPart]] = []

    def run(self, cached: CachedPlans | None, learned: PendingFeedback) -> dict[str, Any]:
        """Plan the query, and return the answer."""
        request = self._request
        options = resolve(request["options"], self._conf)
        self.store = open_store(options.store, options.store_folder)
        self.before = self.store.state() if self.store is not None else None
        if "query" in request and options.feedback and self.store is not None:
            return self._guarded(options, self.store, cached, learned)
        self._left_out = cached.left_out if cached else why_left_out(options, self._export.root, self._description)
        if self._left_out is not None:
            part = replace(self._as_written(options, self._left_out), is_left_out=True)
        else:
            part = cached.parts[0].of_columns(self._columns) if cached else self._optimized(options)
        return self._answered(part)

    def deferred(self) -> dict[str, Any]:
        """The report as a dict, with its deferred sections; and what the UI shows beside it, if there is one."""
        assert self._chosen is not None
        deferred = self._chosen.deferred()
        expected = _expected(self._chosen.expected) if self._is_shown else []
        return {**deferred, "expected": expected} if expected else deferred

    def failed(self, error: Exception) -> dict[str, Any]:
        """The answer after an internal error."""
        self.made.clear()
        report = JoinReport(error=f"{type(error).__name__}: {error}")
        self._chosen = PlannedPart(AS_WRITTEN, plan_answer(report), _Deferred(report))
        return {**self._chosen.answer, "problem": report.error, "outcome": "failed", "store": None}

    def cacheable(self) -> CachedPlans | None:
        """What the cache needs to answer this request again; None if it would not hold.

        A user's source may answer differently next time. A plan whose report could not be written is not kept.
        """
        if registered() or not self.made and self._left_out is None:
            return None
        parts = []
        for options, part in self.made:
            deferred = part.deferred()
            if deferred["report"]["error"] is not None:
                return None
            groups = tuple(_by_position(group, self._columns, self._own is not None) for group in part.expected)
            text = json.dumps((part.answer, deferred))
            parts.append(CachedPart(options, text, part.shape, part.changes, groups, part.seconds))
        return CachedPlans(self._own, self._left_out, tuple(parts))

    def _guarded(
        self, options: Options, store: Store, cached: CachedPlans | None, learned: PendingFeedback
    ) -> dict[str, Any]:
        request, started = self._request, perf_counter()
        self._own = cached.own if cached else None
        if self._own is None:
            self._own = query_shape(self._export.root, request.get("writer", ""))
        number = request["query"]
        query = planned_query(
            self._own, self._conf, request["export"].get("spark", ""), learned.planned(number), request.get("part", 1)
        )
        known = {part.options: part for part in cached.parts} if cached else {}

        def optimized(options: Options) -> PlannedPart:
            nonlocal started
            if options in known:
                return known[options].of_columns(self._columns)
            before = perf_counter()
            part = self._optimized(options)
            started += perf_counter() - before
            return part

        leave = partial(self._as_written, options)
        runs = QueryStore(store)
        planning = GuardedPlanning(query, runs, options, optimized, leave, self._until, self._is_recorded)
        self._left_out = cached.left_out if cached else why_left_out(options, self._export.root, self._description)
        chosen = planning.run() if self._left_out is None else planning.leave(self._left_out)
        learned.expect_run(number, chosen.query, store, self._is_recorded)
        if self._is_recorded:
            learned.expect(number, chosen.part.expected, store)
        revoked = {"problem": chosen.warning, "outcome": "revoked"} if chosen.warning is not None else {}
        answer = {**self._answered(chosen.part), **revoked}
        return {**answer, "feedback": perf_counter() - started + learned.take_seconds()}

    def _answered(self, part: PlannedPart) -> dict[str, Any]:
        self._chosen = part
        expected = _expected(part.expected) if self._is_recorded else []
        return {
            **part.answer,
            "problem": None,
            "outcome": part.outcome,
            "store": None if self.store is None else str(self.store.path.absolute()),
            **({"expected": expected} if expected else {}),
        }

    def _optimized(self, options: Options) -> PlannedPart:
        """Our plan by these options."""
        export, is_guarded = self._export, "query" in self._request and bool(options.feedback)
        watching = is_guarded or self._is_shown
        gateway, report, started = QuestionGateway(export, self.requests), JoinReport(), perf_counter()
        found = optimize(export, gateway, options, report, watching=watching, analysed=False)
        self._add_refused_keys(report)
        report.changed = found.plan is not export.root
        edits = gateway.edits(found.plan) if report.changed else None
        shape, changes = AS_WRITTEN, tuple[str, ...]()
        if is_guarded and report.changed:
            shape, changes = query_shape(found.plan).shape, changes_without_constants(report, export.root)
        deferred = _Deferred(report, self._is_shown)
        answer, seconds = plan_answer(report, edits), perf_counter() - started
        part = PlannedPart(shape, answer, deferred, changes, found.expected, seconds)
        self.made.append((options, part))
        return part

    def _as_written(self, options: Options, reason: str) -> PlannedPart:
        """The plan as written, with the reason in its report."""
        report = JoinReport(strategy=options.strategy)
        report.refuse("the whole query", reason)
        self._add_refused_keys(report)
        return PlannedPart(AS_WRITTEN, plan_answer(report), _Deferred(report, self._is_shown))

    @property
    def _is_recorded(self) -> bool:
        """Whether the metrics of the query will be sent."""
        return "query" in self._request and bool(self._request.get("record", True))

    @property
    def _is_shown(self) -> bool:
        return bool(self._request.get("pictures"))

    def _add_refused_keys(self, report: JoinReport) -> None:
        for key, reason in refused_keys(self._conf).items():
            report.refuse(key, reason)

    @cached_property
    def _columns(self) -> list[int]:
        """The expression IDs of the export's columns."""
        return [row[0] for row in self._request["export"]["attributes"]]

    @cached_property
    def _export(self) -> Export:
        return decoded(self._request["export"])

    @property
    def _conf(self) -> dict[str, str]:
        return dict(self._request["export"].get("conf", {}))

    @property
    def _description(self) -> str:
        return str(self._request.get("description", ""))


class QuestionGateway(RequestGateway):
    """Sends requests about one plan to the JVM."""

    def __init__(self, export: Export, send: Request) -> None:
        super().__init__(export)
        self._send_to_jvm = send

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._send_to_jvm(request)


class _Deferred:
    """Writes a report with its deferred sections, and draws its pictures if it is shown; once."""

    def __init__(self, report: JoinReport, is_shown: bool = False) -> None:
        self._report, self._is_shown = report, is_shown

    def __call__(self) -> dict[str, Any]:
        return dict(self._written)

    @cached_property
    def _written(self) -> dict[str, Any]:
        try:
            self._report.complete()
        except Exception as error:  # the answer was sent already, and it is valid
            self._report.error = f"{type(error).__name__}: {error}"
        written: dict[str, Any] = {"report": self._report.to_dict()}
        try:
            return {**written, "pictures": packed_pictures(self._report)} if self._is_shown else written
        except Exception:
            _log.exception("the UI has no pictures of a query")
            return written


def _expected(groups: Sequence[ExpectedGroup]) -> list[dict[str, Any]]:
    """The join groups for `ExpectedJoins.scala`."""
    return [joins for group in groups if (joins := group.to_dict()) is not None]


def _by_position(group: ExpectedGroup, columns: Sequence[int], is_learned: bool) -> ExpectedGroup:
    """The group with positions of columns in the export in place of their IDs, and with its fingerprint alone.

    Args:
        group: of a plan.
        columns: IDs of columns, by their positions.
        is_learned: whether row counts of the group are stored, for which the fingerprint is needed.
    """
    positions = {column: at for at, column in enumerate(columns)}
    owners = {positions[column]: vertex for column, vertex in group.owners.items() if column in positions}
    return replace(group, owners=owners, recognise=partial(_known, group.fingerprint if is_learned else None))


def _with_columns(group: ExpectedGroup, columns: Sequence[int]) -> ExpectedGroup:
    return replace(group, owners={columns[at]: vertex for at, vertex in group.owners.items()})


def _known(fingerprint: Fingerprint | None) -> Fingerprint | None:
    return fingerprint
