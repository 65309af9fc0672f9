"""Plans that come again: what was answered once is answered again while all that it rested on is as it was.

A dashboard plans the same queries all day. An exported plan numbers what is in it, so the same query exports the
same each time; and what the optimizer answers follows from the export, the options, the answers to the questions
that it asks about files and tables, and the store. So the questions are asked again, which costs little, and if every
answer is what it was, and nobody has written to the store since, the whole answer is what it was.

Nothing is ever taken for granted because it is recent: a file that changed, a sample that has been drawn by now or a
key that has been proved by now is another answer, and the query is planned anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyjoinopt.errors import BridgeError
from pyjoinopt.estimation.store.store import State, Store

#: A question to the JVM and what it answers.
Ask = Callable[[dict[str, Any]], dict[str, Any]]
#: An answer and its report.
Answer = tuple[dict[str, Any], dict[str, Any]]


class Questions:
    """Asks, and keeps what was asked, with a digest of what was answered."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.asked: list[tuple[dict[str, Any], bytes]] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._ask(request)
        self.asked.append((request, _digest(answer)))
        return answer


@dataclass(frozen=True)
class _Planned:
    asked: list[tuple[dict[str, Any], bytes]]
    store: Store | None
    state: State | None
    answer: str  # and report, as JSON: as objects they would take ten times the memory


class Recurring:
    """The latest answers of one process, by what was asked for."""

    MOST = 256

    def __init__(self) -> None:
        self._planned: dict[bytes, _Planned] = {}

    def recall(self, key: bytes, ask: Ask) -> Answer | None:
        """The answer to the same request and its report, if they would come out the same again."""
        planned = self._planned.pop(key, None)
        if planned is None or _state(planned.store) != planned.state:
            return None
        try:
            if any(_digest(ask(request)) != answer for request, answer in planned.asked):
                return None
        except BridgeError:  # it may be answered without, then
            return None
        self._planned[key] = planned  # the latest again
        answer, report = json.loads(planned.answer)
        return answer, report

    def remember(
        self, key: bytes, questions: Questions, store: Store | None, before: State | None, answer: Answer
    ) -> None:
        """Keep an answer.

        Args:
            key: see `key_of`.
            questions: all that were asked for it.
            store: what else was read.
            before: its state before anything was.
            answer: what was made of it, and its report.
        """
        if (store is None) == (before is None) and _state(store) == before:
            self._planned[key] = _Planned(questions.asked, store, before, json.dumps(answer))
            if len(self._planned) > self.MOST:
                del self._planned[next(iter(self._planned))]


def key_of(options: dict[str, Any], export: dict[str, Any]) -> bytes:
    """The same for the same query under the same settings.

    Left out is what Spark counts up: the handle, and the identifiers of columns, which the export numbers itself.

    >>> one, two = ({"handle": i, "attributes": [[70 + i, "jvm", "k", 0, 1]]} for i in (1, 2))
    >>> key_of({}, one) == key_of({}, two) != key_of({"hints": False}, one)
    True
    """
    columns = [row[2:] for row in export["attributes"]]
    told = {**export, "handle": 0, "attributes": columns}
    return _digest([options, told])


def _digest(told: Any) -> bytes:
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).digest()


def _state(store: Store | None) -> State | None:
    return None if store is None else store.state()
