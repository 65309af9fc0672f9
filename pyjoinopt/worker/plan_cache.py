"""A cache of the answers to repeated plans, validated by repeating the requests for statistics.

A dashboard plans the same queries many times. An exported plan has its own numbering, so the same query has the same
export each time. The optimizer's answer depends only on the export, the options, the JVM's responses to requests about
files and tables, and the store. So the cache repeats these requests, which costs little. If every response is the same,
and nothing was written to the store since, the cached answer is valid.

An entry never counts as valid because it is recent: a changed file, a sample drawn since or a key proved since changes
a response, and the query is planned again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pyjoinopt.errors import BridgeError
from pyjoinopt.estimation.store.store import State, Store

#: Sends a request to the JVM and returns its response.
Request = Callable[[dict[str, Any]], dict[str, Any]]
_V = TypeVar("_V")


class RecordedRequests:
    """Sends requests, and records each with a digest of its response."""

    def __init__(self, send: Request) -> None:
        self._send = send
        self.requests: list[tuple[dict[str, Any], bytes]] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        response = self._send(request)
        self.requests.append((request, _digest_of_response(response)))
        return response


@dataclass(frozen=True)
class _Entry(Generic[_V]):
    requests: list[tuple[dict[str, Any], bytes]]
    store: Store | None
    state: State | None
    value: _V


class PlanCache(Generic[_V]):
    """The latest answers of one process, by the key of their request."""

    MOST = 256

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry[_V]] = {}

    def recall(self, key: bytes, send: Request) -> _V | None:
        """The cached answer to this request; None if there is none or if it is no longer valid."""
        entry = self._entries.pop(key, None)
        if entry is None or _state(entry.store) != entry.state:
            return None
        try:
            if any(_digest_of_response(send(request)) != digest for request, digest in entry.requests):
                return None
        except BridgeError:  # planning again may succeed without this response
            return None
        self._entries[key] = entry  # now the latest entry
        return entry.value

    def extend(self, key: bytes, requests: RecordedRequests, value: _V) -> None:
        """Replace an answer by one for which further requests were sent, unless the store has changed meanwhile."""
        entry = self._entries.get(key)
        if entry is not None and _state(entry.store) == entry.state:
            self._entries[key] = replace(entry, requests=entry.requests + requests.requests, value=value)

    def remember(
        self, key: bytes, requests: RecordedRequests, store: Store | None, before: State | None, value: _V
    ) -> None:
        """Add an answer, unless the store has changed meanwhile.

        Args:
            key: see `key_of`.
            requests: all requests that were sent for it.
            store: the store that was read.
            before: state of the store before the planning.
            value: the answer.
        """
        if (store is None) == (before is None) and _state(store) == before:
            self._entries[key] = _Entry(requests.requests, store, before, value)
            if len(self._entries) > self.MOST:
                del self._entries[next(iter(self._entries))]


def key_of(options: dict[str, Any], export: dict[str, Any]) -> bytes:
    """The key of a request: equal for the same query under the same settings.

    Leaves out numbers that Spark increments: the handle, and the expression IDs of columns, which the export renumbers.

    >>> one, two = ({"handle": i, "attributes": [[70 + i, "jvm", "k", 0, 1]]} for i in (1, 2))
    >>> key_of({}, one) == key_of({}, two) != key_of({"hints": False}, one)
    True
    """
    columns = [row[2:] for row in export["attributes"]]
    return _digest([options, {**export, "handle": 0, "attributes": columns}])


def _digest_of_response(response: dict[str, Any]) -> bytes:
    """Without the bytes that the session has read (`KeyProofs.read`), which say nothing about this plan."""
    return _digest({name: value for name, value in response.items() if name != "read"})


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(json.dumps(data).encode(), digest_size=16).digest()


def _state(store: Store | None) -> State | None:
    return None if store is None else store.state()
