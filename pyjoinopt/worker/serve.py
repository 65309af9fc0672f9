"""The optimizer as a process: `python -m pyjoinopt.worker`, started and spoken to by the JVM of a Spark driver.

It reads requests from standard input and writes answers to standard output, one plan at a time, until its input ends.
A frame is the four bytes `PJO1`, the length as four bytes (big endian), and that many bytes of JSON. The JVM's side is
`Worker.scala`; both count `PROTOCOL` up when they change.

    worker -> JVM   {"protocol": 2, "version": "0.3.0"}                        once, as a greeting
    JVM -> worker   {"id": 7, "request": {"op": "plan", "milliseconds": 2000, "options": {}, "export": {...}}}
                    with "query": 5 in the request if it is to be known again when it has run, and beside it
                    "heard": [{"query": 5, "operators": [...]}] of queries that have; "heard" may also come alone
    worker -> JVM   {"id": 7, "question": {"nodes": [0, 3], "sources": ["catalog"]}}    as often as needed
    JVM -> worker   {"id": 7, "answer": {"nodes": {...}}}    or    {"id": 7, "error": "..."}
    worker -> JVM   {"id": 7, "answer": {"edits": {...} or null, "summary": "...", "problem": null}}
    worker -> JVM   {"id": 7, "report": {...}}            soon after, when no query waits any more

It ends with its input, and when the process that started it has gone, be it in the middle of a plan.

Whatever else is printed here goes to standard error: a print in somebody's `sitecustomize` must not end up between
two frames.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, BinaryIO

from pyjoinopt._version import __version__
from pyjoinopt.bridge.decode import Export, decoded
from pyjoinopt.bridge.gateway import AskingGateway
from pyjoinopt.config import refused_keys, resolve
from pyjoinopt.errors import BridgeError
from pyjoinopt.estimation.sources.registry import registered
from pyjoinopt.estimation.store.store import State, Store, open_store
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.optimizer.optimize import optimize
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.worker.parent import end_with_parent
from pyjoinopt.worker.plan_cache import Ask, Questions, Recurring, key_of

PROTOCOL = 2
_HEAD = struct.Struct(">4sI")
_MARK = b"PJO1"
#: Reading files may take this part of the time that is left, and never longer than this (milliseconds).
_SHARE = 0.6
_LIMITS = {"deadlineMs": 2_000, "totalMs": 10_000}
#: Garbage is collected between requests, old garbage after so many.
_WHOLE = 64


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
            BridgeError: what came is no frame.
        """
        head = self._source.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        mark, length = _HEAD.unpack(head)
        if mark != _MARK:
            raise BridgeError(f"a frame begins with {_MARK!r}, not with {mark!r}")
        body = self._source.read(length)
        return dict(json.loads(body)) if len(body) == length else None


class PipeGateway(AskingGateway):
    """Questions about the plan of one request, asked back over the pipe."""

    def __init__(self, export: Export, ask: Ask) -> None:
        super().__init__(export)
        self._ask_jvm = ask

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._ask_jvm(request)


class DeadlineQuestions:
    """Asks the JVM about the plan of one request, within the time that is left."""

    def __init__(self, pipe: Pipe, request: int, until: float) -> None:
        self._pipe = pipe
        self._request = request
        self._until = until

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        left = max(1, int(_SHARE * 1000 * (self._until - perf_counter())))
        limits = {name: min(request.get(name, most), left) for name, most in _LIMITS.items()}
        self._pipe.write({"id": self._request, "question": {**request, **limits}})
        told = self._pipe.read()
        if told is None:
            raise SystemExit(0)
        if "error" in told:
            raise BridgeError(f"the JVM failed while reading statistics: {told['error']}")
        return dict(told["answer"])


def serve(pipe: Pipe) -> None:
    """Greet, then answer until the input ends."""
    planner, learned, answered = Planner(), PendingFeedback(), 0
    pipe.write({"protocol": PROTOCOL, "version": __version__})
    while (message := pipe.read()) is not None:
        learned.add_aliases(message.get("heard", ()))
        if "request" in message:
            number, request = int(message["id"]), message["request"]
            until = perf_counter() + request.get("milliseconds", 0) / 1000
            ask = DeadlineQuestions(pipe, number, until)
            for part in planner.answer(ask, request, learned):
                pipe.write({"id": number, **part})
            answered += 1
            gc.collect(1 if answered % _WHOLE else 2)


class PendingFeedback:
    """Join groups that were planned here, by the number of their query, until it is heard what they did."""

    MOST = 256

    def __init__(self) -> None:
        self._expected: dict[int, tuple[list[ExpectedGroup], Store]] = {}

    def expect(self, query: int, watches: list[ExpectedGroup], store: Store | None) -> None:
        """These groups are of this query; a query comes once more for each of its subqueries."""
        recognised = [watch for watch in watches if watch.fingerprint is not None]
        if store is None or not recognised:
            return
        known = self._expected.pop(query, ([], store))[0]
        self._expected[query] = (known + recognised, store)
        if len(self._expected) > self.MOST:
            del self._expected[next(iter(self._expected))]

    def add_aliases(self, heard: Iterable[dict[str, Any]]) -> None:
        """Remember the true rows of these queries; groups of one query with columns in common cannot be told apart."""
        for told in heard:
            watches, store = self._expected.get(told["query"], ([], None))
            readers = Counter(column for watch in watches for column in watch.owners)
            for watch in watches:
                if store is not None and all(readers[column] == 1 for column in watch.owners):
                    watch.remember(watch.observe(told["operators"]), store)


class Planner:
    """Answers requests, those that come again from memory."""

    def __init__(self) -> None:
        self._recurring = Recurring()

    def answer(
        self, ask: Ask, request: dict[str, Any], learned: PendingFeedback
    ) -> Iterator[dict[str, dict[str, Any]]]:
        """What is to be written about one request: an answer, for which a query waits, then a report. Never raises."""
        started = perf_counter()
        planning = Planning(request, Questions(ask))
        try:
            key = key_of(request["options"], request["export"])
            known = self._recurring.recall(key, ask)
            answer = known[0] if known is not None else planning.run(learned)
        except Exception as error:
            known, answer = None, planning.failed(error)
        seconds = perf_counter() - started
        yield {"answer": answer}
        report = known[1] if known is not None else planning.told()
        if known is None and planning.may_come_again:
            self._recurring.remember(key, planning.ask, planning.store, planning.before, (answer, report))
        yield {"report": {**report, "seconds": seconds}}


class Planning:
    """One request on its way."""

    def __init__(self, request: dict[str, Any], ask: Questions) -> None:
        self.ask = ask
        self.store: Store | None = None
        self.before: State | None = None
        self.may_come_again = False
        self._request = request
        self._report = JoinReport()

    def run(self, learned: PendingFeedback) -> dict[str, Any]:
        """The answer."""
        request, report = self._request, self._report
        export = decoded(request["export"])
        options = resolve(request["options"], export.conf)
        for key in refused_keys(export.conf):
            report.refuse(key, "it belongs to the application, so the value that this session has set is not used")
        self.store = open_store(options.store, options.store_folder)
        self.before = self.store.state() if self.store is not None else None
        gateway = PipeGateway(export, self.ask)
        watches: list[ExpectedGroup] | None = [] if "query" in request and options.feedback else None
        plan = optimize(export, gateway, options, report, watches, analysed=False)
        edits = None
        if plan is not export.root:
            edits = gateway.edits(plan)
            report.changed = True
        if watches is not None:
            learned.expect(request["query"], watches, self.store)
        # Who knows what a source of the user's will say next time, and what a watched query is going to do?
        self.may_come_again = watches is None and not registered()
        return {"edits": edits, "summary": summary(report), "problem": None}

    def failed(self, error: Exception) -> dict[str, Any]:
        """The answer when something went wrong."""
        self.may_come_again = False
        self._report = JoinReport(error=f"{type(error).__name__}: {error}")
        return {"edits": None, "summary": "", "problem": self._report.error}

    def told(self) -> dict[str, Any]:
        """The report, with what was put off."""
        try:
            self._report.complete()
        except Exception as error:  # the query has its order by now, and it is a right one
            self._report.error = f"{type(error).__name__}: {error}"
            self.may_come_again = False
        return self._report.to_dict()


def summary(report: JoinReport) -> str:
    """What was changed, in one line."""
    hints = (f"{h.strategy} {h.side} of {h.join}" for h in report.hints)
    return "; ".join((*report.changes, *report.eliminated_outer_joins, *report.spared_joins, *hints))


def main() -> int:
    """Serve the process that started this one."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a shell is meant for the query, not for us
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    end_with_parent(source.fileno(), parent)
    gc.freeze()  # what was imported is never garbage
    gc.disable()  # a query that waits need not wait for that as well
    try:
        serve(Pipe(source, sink))
    except BrokenPipeError:
        pass
    return 0

