"""The optimizer as a process: `python -m pyjoinopt.worker`, started by the JVM of a Spark driver.

It reads requests from standard input and writes answers to standard output, one plan at a time, until its input ends.
A frame is the four bytes `PJO1`, the length as four bytes (big endian), and that many bytes of JSON. `Worker.scala` is
the JVM's side of the protocol; a change of the protocol increments `PROTOCOL` in both.

    worker -> JVM   {"protocol": 3, "version": "0.3.0"}                        once, at the start
    JVM -> worker   {"id": 7, "request": {"op": "plan", "milliseconds": 2000, "options": {}, "export": {...}}}
                    with "query": 5 in the request if its metrics will be sent after it has run, "part": 2 if it is the
                    second of its plans, "writer": "AppendData" if it is written, "description": "nightly 7" if the
                    settings depend on that of its job, "record": false if only the guard needs the number, because
                    the session records no more (feedback = auto), "pictures": true if Spark's UI or an event log shows
                    the report, and next to it
                    "heard": [{"query": 5, "ended": 1.7e9, "seconds": 2.5, "planning": 0.2, "taskSeconds": 9.1,
                    "skew": 0.8, "operators": [...]}] with metrics of such queries, also as a frame of its own; with
                    "failed": "memory" instead of operators of one that ran out of memory
    worker -> JVM   {"id": 7, "question": {"nodes": [0, 3], "sources": ["catalog"]}}    as often as needed
    JVM -> worker   {"id": 7, "answer": {"nodes": {...}}}    or    {"id": 7, "error": "..."}
    worker -> JVM   {"id": 7, "answer": {"edits": {...} or null, "summary": "...", "problem": null,
                                            "outcome": "changed", "refusals": ["pythonUdf"], "costs": [9.1, 2.5],
                                            "store": "/path"}}
                    the last four for `PlanMetrics.scala` and `PlanLog.scala`; costs and store may be null
                    with "expected": [{...}] of a query whose metrics will be sent, if joins of it have estimates,
                    and "feedback": seconds that the guard and learning have taken since the last such answer
    worker -> JVM   {"id": 7, "report": {...}}            afterwards, when the query no longer waits
                    with "pictures": "..." (`packed_pictures`) and "expected": [{...}] if the report is shown

A request {"op": "queries", "store": "/path"}, or "baselines", has the answer {"rows": [{...}], "problem": null} and an
empty report.

It ends at the end of its input, and when the process that started it has ended, even in the middle of a plan.

All other output of this process goes to standard error, so that a print in a `sitecustomize` module is not written
between two frames.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import sys
from collections.abc import Iterable
from time import perf_counter
from typing import Any, BinaryIO

from pyjoinopt._version import __version__
from pyjoinopt.errors import BridgeError
from pyjoinopt.worker.parent import end_with_parent
from pyjoinopt.worker.pending_feedback import PendingFeedback
from pyjoinopt.worker.planning import Planner
from pyjoinopt.worker.store_tables import BASELINES, QUERIES, store_table

PROTOCOL = 3
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
