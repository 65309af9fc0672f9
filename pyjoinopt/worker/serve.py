"""The optimizer as a process: `python -m pyjoinopt.worker`, started by the JVM of a Spark driver.

It reads requests from standard input and writes answers to standard output, one plan at a time, until its input ends.
A frame is the four bytes `PJO1`, the length as four bytes (big endian), and that many bytes of JSON. `Worker.scala` is
the JVM's side of the protocol; a change of the protocol increments `PROTOCOL` in both.

    worker -> JVM   {"protocol": 3, "version": "0.3.0"}                        once, at the start
    JVM -> worker   {"id": 7, "request": {"op": "plan", "milliseconds": 2000, "options": {}, "export": {...}}}
                    with "query": 5 in the request if its metrics will be sent after it has run, "part": 2 if it is the
                    second of its plans, "writer": "AppendData" if it is written, "description": "nightly 7" if the
                    settings depend on that of its job, and next to it
                    "heard": [{"query": 5, "ended": 1.7e9, "seconds": 2.5, "planning": 0.2, "operators": [...]}] with
                    metrics of such queries, also as a frame of its own; with "failed": "memory" instead of operators
                    of one that ran out of memory
    worker -> JVM   {"id": 7, "question": {"nodes": [0, 3], "sources": ["catalog"]}}    as often as needed
    JVM -> worker   {"id": 7, "answer": {"nodes": {...}}}    or    {"id": 7, "error": "..."}
    worker -> JVM   {"id": 7, "answer": {"edits": {...} or null, "summary": "...", "problem": null,
                                            "outcome": "changed", "refusals": ["pythonUdf"], "costs": [9.1, 2.5],
                                            "store": "/path"}}
                    the last four for `PlanMetrics.scala` and `PlanLog.scala`; costs and store may be null
                    with "expected": [{...}] of a query whose metrics will be sent, if joins of it have estimates
    worker -> JVM   {"id": 7, "report": {...}}            afterwards, when the query no longer waits

A request {"op": "queries", "store": "/path"}, or "baselines", has the answer {"rows": [{...}], "problem": null} and an
empty report.

It ends at the end of its input, and when the process that started it has ended, even in the middle of a plan.

All other output of this process goes to standard error, so that a print in a `sitecustomize` module is not written
between two frames.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import signal
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, BinaryIO

from pyjoinopt._version import __version__
from pyjoinopt.bridge.decode import Export, decoded
from pyjoinopt.bridge.gateway import RequestGateway
from pyjoinopt.config import Options, refused_keys, resolve
from pyjoinopt.errors import BridgeError
from pyjoinopt.estimation.sources.registry import registered
from pyjoinopt.estimation.store.store import State, Store, open_store
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.feedback.planned_query import PlannedQuery, planned_query
from pyjoinopt.feedback.query_shape import query_shape
from pyjoinopt.feedback.query_store import QueryStore
from pyjoinopt.optimizer.optimize import optimize
from pyjoinopt.optimizer.rollout import why_left_out
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.reason_keys import keys_of
from pyjoinopt.worker.guarded_planning import GuardedPlanning, PlannedPart, left_as_written
from pyjoinopt.worker.parent import driver_name, end_with_parent
from pyjoinopt.worker.plan_cache import PlanCache, RecordedRequests, Request, key_of
from pyjoinopt.worker.store_tables import BASELINES, QUERIES, store_table

PROTOCOL = 3
_log = logging.getLogger("pyjoinopt")
_HEAD = struct.Struct(">4sI")
_MARK = b"PJO1"
#: Reading files may take this share of the remaining time, and at most these milliseconds.
_SHARE = 0.6
_LIMITS = {"deadlineMs": 2_000, "totalMs": 10_000}
#: Garbage is collected between requests; a full collection runs after this many.
_FULL_COLLECTION = 64


class Pipe:
    """Frames in both directions."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink

    def write(self, message: dict[str, Any]) -> None:
        """Send one frame."""
        body = json.dumps(message, separators=(",", ":")).encode()
        self._sink.write(_HEAD.pack(_MARK, len(body)) + body)
        self._sink.flush()

    def read(self) -> dict[str, Any] | None:
        """The next frame; None at the end of the input.

        Raises:
            BridgeError: the input is not a frame.
        """
        head = self._source.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        mark, length = _HEAD.unpack(head)
        if mark != _MARK:
            raise BridgeError(f"a frame begins with {_MARK!r}, not with {mark!r}")
        body = self._source.read(length)
        return dict(json.loads(body)) if len(body) == length else None


class PipeGateway(RequestGateway):
    """Sends requests about one plan to the JVM over the pipe."""

    def __init__(self, export: Export, send: Request) -> None:
        super().__init__(export)
        self._send_to_jvm = send

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._send_to_jvm(request)


class DeadlineQuestions:
    """Sends questions about the plan of one request to the JVM, with limits by the remaining time."""

    def __init__(self, pipe: Pipe, request: int, until: float) -> None:
        self._pipe = pipe
        self._request = request
        self._until = until

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        left = max(1, int(_SHARE * 1000 * (self._until - perf_counter())))
        limits = {name: min(request.get(name, most), left) for name, most in _LIMITS.items()}
        self._pipe.write({"id": self._request, "question": {**request, **limits}})
        response = self._pipe.read()
        if response is None:
            raise SystemExit(0)
        if "error" in response:
            raise BridgeError(f"the JVM failed while reading statistics: {response['error']}")
        return dict(response["answer"])


def serve(pipe: Pipe) -> None:
    """Write the first frame, then answer requests until the input ends."""
    planner, learned, answered = Planner(), PendingFeedback(), 0
    pipe.write({"protocol": PROTOCOL, "version": __version__})
    while (message := pipe.read()) is not None:
        learned.learn(message.get("heard", ()))
        if "request" in message:
            number, request = int(message["id"]), message["request"]
            until = perf_counter() + request.get("milliseconds", 0) / 1000
            if request.get("op") in (QUERIES, BASELINES):
                parts: Iterable[dict[str, Any]] = ({"answer": store_table(request)}, {"report": {}})
            else:
                parts = planner.answer(DeadlineQuestions(pipe, number, until), request, learned)
            for part in parts:
                pipe.write({"id": number, **part})
            answered += 1
            gc.collect(1 if answered % _FULL_COLLECTION else 2)


class PendingFeedback:
    """Queries that were planned here and their join groups, by the number of the query, until its metrics arrive."""

    MOST = 256

    def __init__(self) -> None:
        self._expected: dict[int, tuple[list[ExpectedGroup], Store]] = {}
        self._planned: dict[int, tuple[PlannedQuery, Store]] = {}
        self._driver = driver_name()

    def planned(self, query: int) -> PlannedQuery | None:
        """The plans of a query that arrived so far; None before the first one."""
        found = self._planned.get(query)
        return None if found is None else found[0]

    def expect_run(self, query: int, planned: PlannedQuery, store: Store | None) -> None:
        """Add what is known of a query; its next plan replaces it."""
        if store is not None:
            self._planned.pop(query, None)
            self._planned[query] = planned, store
            if len(self._planned) > self.MOST:
                del self._planned[next(iter(self._planned))]

    def expect(self, query: int, watches: Sequence[ExpectedGroup], store: Store | None) -> None:
        """Add the groups of a query. Each subquery is planned separately, under the number of its query."""
        if store is None:
            return
        recognised = [watch for watch in watches if watch.fingerprint is not None]
        if not recognised:
            return
        known = self._expected.pop(query, ([], store))[0]
        self._expected[query] = (known + recognised, store)
        if len(self._expected) > self.MOST:
            del self._expected[next(iter(self._expected))]

    def learn(self, finished: Iterable[dict[str, Any]]) -> None:
        """Store the true rows and the times of finished queries. Never raises: a query may be waiting."""
        for run in finished:
            for learn in (self._learn_rows, self._learn_time):
                try:
                    learn(run)
                except Exception:
                    _log.exception("what a query did is not stored")

    def _learn_rows(self, run: dict[str, Any]) -> None:
        """Groups of a query that share columns cannot be distinguished."""
        watches, store = self._expected.get(run["query"], ([], None))
        readers = Counter(column for watch in watches for column in watch.owners)
        for watch in watches:
            if store is not None and all(readers[column] == 1 for column in watch.owners):
                watch.remember(watch.observe(run["operators"]), store)

    def _learn_time(self, run: dict[str, Any]) -> None:
        """Only the first run of a plan: a second one may find the results of its stages."""
        planned, store = self._planned.pop(run["query"], (None, None))
        if planned is not None and store is not None and "seconds" in run:
            planned.record(QueryStore(store), run, self._driver)


class Planner:
    """Answers requests; repeated requests from the cache."""

    def __init__(self) -> None:
        self._cache = PlanCache()

    def answer(
        self, send: Request, request: dict[str, Any], learned: PendingFeedback
    ) -> Iterator[dict[str, dict[str, Any]]]:
        """The two parts of a response: the answer, for which the query waits, then the report. Never raises."""
        started = perf_counter()
        until = started + request.get("milliseconds", 0) / 1000
        planning = Planning(request, RecordedRequests(send), until)
        try:
            described = {"description": request["description"]} if "description" in request else {}
            key = key_of({**request["options"], **described}, request["export"])
            cached = self._cache.recall(key, send)
            answer = cached[0] if cached is not None else planning.run(learned)
        except Exception as error:
            cached, answer = None, planning.failed(error)
        seconds = perf_counter() - started
        yield {"answer": answer}
        report = cached[1] if cached is not None else planning.report()
        if cached is None and planning.cacheable:
            self._cache.remember(key, planning.requests, planning.store, planning.before, (answer, report))
        yield {"report": {**report, "seconds": seconds}}


class Planning:
    """The planning of one request, whose query waits until `until` (by `perf_counter`)."""

    def __init__(self, request: dict[str, Any], requests: RecordedRequests, until: float) -> None:
        self.requests = requests
        self._until = until
        self.store: Store | None = None
        self.before: State | None = None
        self.cacheable = False
        self._request = request
        self._report = JoinReport()

    def run(self, learned: PendingFeedback) -> dict[str, Any]:
        """Plan the query, and return the answer."""
        request = self._request
        export = decoded(request["export"])
        options = resolve(request["options"], export.conf)
        self.store = open_store(options.store, options.store_folder)
        self.before = self.store.state() if self.store is not None else None
        gateway = PipeGateway(export, self.requests)
        watching = "query" in request and options.feedback

        def optimized(options: Options) -> PlannedPart:
            report = JoinReport()
            found = optimize(export, gateway, options, report, watching=watching, analysed=False)
            return PlannedPart(found.plan, report, found.expected)

        problem, outcome = None, ""
        left_out = why_left_out(options, export.root, request.get("description", ""))
        if watching and self.store is not None:
            own = query_shape(export.root, request.get("writer", ""))
            before = learned.planned(request["query"])
            query = planned_query(own, export.conf, export.spark, before, request.get("part", 1))
            planning = GuardedPlanning(query, QueryStore(self.store), options, export.root, optimized, self._until)
            chosen = planning.run() if left_out is None else planning.leave(left_out)
            learned.expect_run(request["query"], chosen.query, self.store)
            learned.expect(request["query"], chosen.part.expected, self.store)
            part, problem = chosen.part, chosen.warning
            outcome = "revoked" if problem is not None else ""
        elif left_out is not None:
            part = left_as_written(export.root, options.strategy, left_out)
        else:
            part = optimized(options)
        self._report = report = part.report
        for key, reason in refused_keys(export.conf).items():
            report.refuse(key, reason)
        edits = None
        if part.plan is not export.root:
            edits = gateway.edits(part.plan)
            report.changed = True
        outcome = outcome or ("changed" if report.changed else "unchanged" if left_out is None else "leftOut")
        # A user's source may answer differently next time, and an observed query must be registered each time.
        self.cacheable = not watching and not registered()
        expected = [group for watch in part.expected if watching and (group := watch.to_dict()) is not None]
        return {
            "edits": edits,
            "summary": summary(report),
            "problem": problem,
            "outcome": outcome,
            "refusals": keys_of(refusal.reason for refusal in report.refusals),
            "costs": _costs(report),
            "store": None if self.store is None else str(self.store.path.absolute()),
            **({"expected": expected} if expected else {}),
        }

    def failed(self, error: Exception) -> dict[str, Any]:
        """The answer after an internal error."""
        self.cacheable = False
        self._report = JoinReport(error=f"{type(error).__name__}: {error}")
        return {
            "edits": None, "summary": "", "problem": self._report.error, "outcome": "failed", "refusals": [],
            "costs": None, "store": None,
        }  # fmt: skip

    def report(self) -> dict[str, Any]:
        """The report as a dict, with its deferred sections."""
        try:
            self._report.complete()
        except Exception as error:  # the answer was sent already, and it is valid
            self._report.error = f"{type(error).__name__}: {error}"
            self.cacheable = False
        return self._report.to_dict()


def _costs(report: JoinReport) -> list[float] | None:
    """The costs of the written and the chosen orders; None if there are none, or if JSON has no number for them."""
    costs = report.costs
    return list(costs) if costs is not None and all(map(math.isfinite, costs)) else None


def summary(report: JoinReport) -> str:
    """The changes, in one line."""
    hints = (f"{h.strategy} {h.side} of {h.join}" for h in report.hints)
    spared = (*report.eliminated_outer_joins, *report.spared_joins)
    added = (*report.eager_aggregations, *report.prefilters)
    return "; ".join((*report.changes, *spared, *added, *hints))


def main() -> int:
    """Serve the process that started this one."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a shell is for the query
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    end_with_parent(source.fileno(), parent)
    gc.freeze()  # imported modules are never garbage
    gc.disable()  # garbage is collected between requests, while no query waits
    try:
        serve(Pipe(source, sink))
    except BrokenPipeError:
        pass
    return 0

