"""The query store: what recurring queries did, one row a run, in the file of statistics.

A query is known by its shape (`query_shape`) and the *conditions* under which it runs (settings, cluster). No constant
of a query is stored, and no value of a row: a shape and an instance are hashes, the changes are names of relations.

Of each plan of a query the latest `MOST_RUNS` runs are kept. Of the whole file the oldest go when it grows too large
(`sqlite_file.trim`).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from pyjoinopt.estimation.store.store import Store

#: The plan of a query that runs as written.
AS_WRITTEN = ""
#: Runs of one plan of one query that are kept.
MOST_RUNS = 16


@dataclass(frozen=True)
class Run:
    """One run of a query.

    Attributes:
        instance: a hash of the query with its constants.
        plan: a hash of the plan that ran; `AS_WRITTEN` if it was not changed.
        changes: what was changed, for people.
        warm: whether the same process had run the query before.
        cores: that Spark had.
        bytes: size of the files that it reads, by their listing; 0 if unknown.
        ended: seconds since the epoch.
        seconds: from the start to the end of the query.
        planning: seconds of these that Spark's optimizer and planner took, this one included.
        rows: read from the leaves of the plan.
        spilled: bytes.
        failed: "memory" if it ran out of memory; empty if it ended well.
    """

    instance: str
    plan: str
    changes: str
    warm: bool
    cores: float
    bytes: float
    ended: float
    seconds: float
    planning: float = 0.0
    rows: float = 0.0
    spilled: float = 0.0
    failed: str = ""


@dataclass(frozen=True)
class Outlook:
    """What is to be done when a query comes again.

    Attributes:
        slower: plan -> plans than which it is slower (`AS_WRITTEN` among them), each with the reason for people.
        explore: whether the next run should be one as written.
        last: the plan of the last run that was not one as written; of a query with subqueries, which are planned
            before it, it is the plan that the next run is expected to have.
        whole: the shape of the whole query, if this is the entry of subqueries that are planned before it.
        bytes: what the runs read; another size is another query.
    """

    slower: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    explore: bool = False
    last: str = AS_WRITTEN
    whole: str = ""
    bytes: float = 0.0

    def reason(self, plan: str) -> str | None:
        """Why this plan is not used but the written one; None if it may be used."""
        return self.slower.get(plan, {}).get(AS_WRITTEN)


@dataclass(frozen=True)
class StoredQuery:
    """A recurring query and its runs, the oldest first."""

    shape: str
    conditions: str
    tables: tuple[str, ...]
    outlook: Outlook
    runs: tuple[Run, ...]


_RUN = tuple(f.name for f in fields(Run))
_LISTED = ", ".join(_RUN)


class QueryStore:
    """The tables `query` and `run` of a store.

    >>> import tempfile
    >>> from pathlib import Path
    >>> queries = QueryStore(Store(Path(tempfile.mkdtemp()) / "statistics.sqlite"))
    >>> queries.add("shape", "local", ("orders",), Run("x", "", "", False, 2.0, 100.0, 0.0, 1.5))
    >>> [run.seconds for run in queries.runs("shape", "local")], queries.outlook("shape", "local")
    ([1.5], None)
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def outlook(self, shape: str, conditions: str) -> Outlook | None:
        """What to do with this query; None if nothing was decided."""

        def work(connection: sqlite3.Connection) -> Outlook | None:
            if not _has_tables(connection):
                return None
            query = "SELECT outlook FROM query WHERE shape = ? AND conditions = ?"
            row = connection.execute(query, (shape, conditions)).fetchone()
            return _outlook(row[0]) if row is not None and row[0] else None

        return self._store.read(work, None)

    def set_outlook(self, shape: str, conditions: str, outlook: Outlook) -> None:
        """Decide what to do with this query when it comes again."""
        text = json.dumps({name: getattr(outlook, name) for name in ("slower", "explore", "last", "whole", "bytes")})
        row = (shape, conditions, "[]", text, time.time())
        self._store.write(
            lambda connection: connection.execute(
                "INSERT INTO query (shape, conditions, tables, outlook, used) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET outlook = excluded.outlook, used = excluded.used", row
            )
        )  # fmt: skip

    def add(self, shape: str, conditions: str, tables: Sequence[str], run: Run) -> None:
        """Add a run; the oldest of its plan goes if there are too many."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO query (shape, conditions, tables, used) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET tables = excluded.tables, used = excluded.used",
                (shape, conditions, json.dumps(list(tables)), time.time()),
            )
            places = ", ".join("?" * (2 + len(_RUN)))
            connection.execute(
                f"INSERT INTO run (shape, conditions, {_LISTED}) VALUES ({places})", (shape, conditions, *astuple(run))
            )
            connection.execute(
                "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE shape = ? AND conditions = ? AND plan = ? "
                "ORDER BY id DESC LIMIT -1 OFFSET ?)",
                (shape, conditions, run.plan, MOST_RUNS),
            )

        self._store.write(work)

    def runs(self, shape: str, conditions: str) -> tuple[Run, ...]:
        """The runs of a query, the oldest first."""

        def work(connection: sqlite3.Connection) -> tuple[Run, ...]:
            if not _has_tables(connection):
                return ()
            query = f"SELECT {_LISTED} FROM run WHERE shape = ? AND conditions = ? ORDER BY id"
            return tuple(_run(row) for row in connection.execute(query, (shape, conditions)))

        return self._store.read(work, ())

    def queries(self) -> tuple[StoredQuery, ...]:
        """All queries that ran, the latest last."""

        def work(connection: sqlite3.Connection) -> tuple[StoredQuery, ...]:
            if not _has_tables(connection):
                return ()
            found: dict[tuple[str, str], list[Run]] = {}
            listed = connection.execute(f"SELECT shape, conditions, {_LISTED} FROM run ORDER BY id")
            for shape, conditions, *row in listed:
                found.setdefault((shape, conditions), []).append(_run(row))
            rows = connection.execute("SELECT shape, conditions, tables, outlook FROM query ORDER BY used").fetchall()
            return tuple(
                StoredQuery(
                    shape, conditions, tuple(json.loads(tables)), _outlook(text) if text else Outlook(),
                    tuple(found[shape, conditions]),
                )
                for shape, conditions, tables, text in rows
                if (shape, conditions) in found
            )  # fmt: skip

        return self._store.read(work, ())


def _has_tables(connection: sqlite3.Connection) -> bool:
    """False for a store of an earlier release that cannot be written."""
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('query', 'run')"
    return int(connection.execute(query).fetchone()[0]) == 2


def _run(row: Sequence[Any]) -> Run:
    values = dict(zip(_RUN, row, strict=True))
    return Run(**{**values, "warm": bool(values["warm"])})


def _outlook(text: str) -> Outlook:
    known = json.loads(text)
    return Outlook(**{f.name: known[f.name] for f in fields(Outlook) if f.name in known})
