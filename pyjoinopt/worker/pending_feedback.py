"""What this worker expects of the queries that it planned, until Spark has run them.

    planned here   query 5: its shape, its plan, the join groups with their estimated rows
    run by Spark   query 5: seconds, operators with their counted rows     -> true rows and a run for the store

A session may also have queries planned whose runs it does not record (`feedback = auto`). Of these a run is reported
only if it fails for lack of memory. The plans of their subqueries must be known when the plan of the query arrives.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.feedback.planned_query import PlannedQuery, process_name
from pyjoinopt.feedback.query_store import QueryStore

_log = logging.getLogger("pyjoinopt")
_V = TypeVar("_V")


class _Latest(Generic[_V]):
    """By the number of a query; of many queries only the latest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[int, _V] = {}

    def put(self, query: int, value: _V) -> None:
        self._entries.pop(query, None)
        self._entries[query] = value
        if len(self._entries) > self._most:
            del self._entries[next(iter(self._entries))]

    def get(self, query: int) -> _V | None:
        return self._entries.get(query)

    def pop(self, query: int) -> _V | None:
        return self._entries.pop(query, None)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, query: int) -> bool:
        return query in self._entries


class PendingFeedback:
    """Queries that were planned here and their join groups, by the number of the query, until its metrics arrive."""

    MOST = 256

    def __init__(self) -> None:
        self._expected: _Latest[tuple[list[ExpectedGroup], Store]] = _Latest(self.MOST)
        self._planned: _Latest[tuple[PlannedQuery, Store]] = _Latest(self.MOST)
        self._unrecorded: _Latest[tuple[PlannedQuery, Store]] = _Latest(self.MOST)
        self._driver = process_name(os.getppid())
        self._seconds = 0.0

    def planned(self, query: int) -> PlannedQuery | None:
        """The plans of a query that arrived so far; None before the first one."""
        found = self._planned.get(query) or self._unrecorded.get(query)
        return None if found is None else found[0]

    def expect_run(self, query: int, planned: PlannedQuery, store: Store, recorded: bool = True) -> None:
        """Add what is known of a query; its next plan replaces it.

        Args:
            query: its number.
            planned: its plans so far.
            store: where its run is recorded.
            recorded: whether it is if it succeeds.
        """
        (self._planned if recorded else self._unrecorded).put(query, (planned, store))

    def expect(self, query: int, groups: Sequence[ExpectedGroup], store: Store) -> None:
        """Add the groups of a query. Each subquery is planned separately, under the number of its query."""
        recognised = [group for group in groups if group.fingerprint is not None]
        if recognised:
            known = self._expected.get(query)
            self._expected.put(query, ((known[0] if known is not None else []) + recognised, store))

    def learn(self, finished: Iterable[dict[str, Any]]) -> None:
        """Store the true rows and the times of finished queries. Never raises: a query may be waiting."""
        started = perf_counter()
        for run in finished:
            for learn in (self._learn_rows, self._learn_time):
                try:
                    learn(run)
                except Exception:
                    _log.exception("what a query did is not stored")
        self._seconds += perf_counter() - started

    def take_seconds(self) -> float:
        """How long learning took since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def _learn_rows(self, run: dict[str, Any]) -> None:
        """Groups of a query that share columns cannot be distinguished."""
        groups, store = self._expected.get(run["query"]) or ([], None)
        readers = Counter(column for group in groups for column in group.owners)
        for group in groups:
            if store is not None and all(readers[column] == 1 for column in group.owners):
                group.remember(group.observe(run["operators"]), store)

    def _learn_time(self, run: dict[str, Any]) -> None:
        """Only the first run of a plan: a second one may find the results of its stages."""
        planned, store = self._planned.pop(run["query"]) or self._unrecorded.pop(run["query"]) or (None, None)
        if planned is not None and store is not None and "seconds" in run:
            planned.record(QueryStore(store), run, self._driver)
