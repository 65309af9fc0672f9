"""The query store: what recurring queries did, one row a run, in the file of statistics.

A query is known by its shape (`query_shape`) and the *conditions* under which it runs (settings, cluster). No constant
of a query is stored, and no value of a row: a shape and an instance are hashes, the changes are names of relations.

Of each plan of a query the latest `MOST_RUNS` runs are kept, and of each query the latest `MOST_OF_QUERY`. Of the whole
file the oldest go when it grows too large (`sqlite_file.trim`).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from pyjoinopt.estimation.store.store import Store

#: The plan of a query that runs as written.
AS_WRITTEN = ""
#: Runs of one plan of one query that are kept, and of all its plans.
MOST_RUNS = 16
MOST_OF_QUERY = 128
#: Queries to which the plan of one subquery may lead.
MOST_WHOLES = 8


@dataclass(frozen=True)
class Run:
    """One run of a query.

    Attributes:
        instance: a hash of the query with its constants.
        plan: a hash of the plan that ran; `AS_WRITTEN` if it was not changed.
        changes: what was changed, for people.
        driver: names the process of the driver.
        warm: whether this driver had run the query before; set by `QueryStore.add` if an earlier run is stored.
        cores: that Spark had.
        bytes: size of the files that it reads, by their listing; 0 if unknown.
        ended: seconds since the epoch.
        seconds: from the start to the end of the query; of one as written without our part of its planning.
        planning: seconds that Spark's optimizer and planner took, with our part as in `seconds`.
        rows: read from the leaves of the plan.
        spilled: bytes.
        task_seconds: that its tasks took together; 0 if unknown.
        skew: seconds by which the longest task of a stage exceeds the mean of the others, in the most uneven stage.
        failed: "memory" if it ran out of memory; empty if it ended well.
    """

    instance: str
    plan: str
    changes: str
    driver: str
    warm: bool
    cores: float
    bytes: float
    ended: float
    seconds: float
    planning: float = 0.0
    rows: float = 0.0
    spilled: float = 0.0
    failed: str = ""
    task_seconds: float = 0.0
    skew: float = 0.0


@dataclass(frozen=True)
class Entry:
    """What is known of a shape beside its runs.

    Attributes:
        wholes: shapes of the queries whose first plans have this shape: those of subqueries are planned first.
        explored: how often the query was to run as written, to know how long that takes.
    """

    wholes: tuple[str, ...] = ()
    explored: int = 0


@dataclass(frozen=True)
class StoredQuery:
    """A recurring query and its runs, the oldest first."""

    shape: str
    conditions: str
    tables: tuple[str, ...]
    runs: tuple[Run, ...]


_RUN = tuple(f.name for f in fields(Run))
_LISTED = ", ".join(_RUN)
_OF = "shape = ? AND conditions = ?"


class QueryStore:
    """The tables `query` and `run` of a store.

    >>> import tempfile
    >>> from pathlib import Path
    >>> queries = QueryStore(Store(Path(tempfile.mkdtemp()) / "statistics.sqlite"))
    >>> for _ in range(2):
    ...     queries.add("shape", "local", ("orders",), Run("x", "", "", "driver 1", False, 2.0, 100.0, 0.0, 1.5))
    >>> [(run.seconds, run.warm) for run in queries.runs("shape", "local")]
    [(1.5, False), (1.5, True)]
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def entry(self, shape: str, conditions: str) -> Entry:
        """What is known of a shape beside its runs."""

        def work(connection: sqlite3.Connection) -> Entry:
            if not _has_tables(connection):
                return Entry()
            row = connection.execute(f"SELECT wholes, explored FROM query WHERE {_OF}", (shape, conditions)).fetchone()
            return Entry() if row is None else Entry(tuple(json.loads(row[0])), row[1])

        return self._store.read(work, Entry())

    def lead(self, shape: str, conditions: str, whole: str) -> None:
        """Remember that the plan of a subquery leads to a query."""

        def work(connection: sqlite3.Connection) -> None:
            wholes = [known for known in self.entry(shape, conditions).wholes if known != whole]
            self._update(connection, shape, conditions, "wholes", json.dumps([*wholes, whole][-MOST_WHOLES:]))

        if self.entry(shape, conditions).wholes[-1:] != (whole,):
            self._store.write(work)

    def explore(self, shape: str, conditions: str) -> None:
        """Count one more run as written that was made to know how long it takes."""

        def work(connection: sqlite3.Connection) -> None:
            self._update(connection, shape, conditions, "explored", self.entry(shape, conditions).explored + 1)

        self._store.write(work)

    def add(self, shape: str, conditions: str, tables: Sequence[str], run: Run) -> None:
        """Add a run; the oldest go if there are too many."""

        def work(connection: sqlite3.Connection) -> None:
            key = (shape, conditions)
            self._update(connection, *key, "tables", json.dumps(list(tables)))
            same = f"SELECT 1 FROM run WHERE {_OF} AND driver = ? LIMIT 1"
            warm = run.warm or connection.execute(same, (*key, run.driver)).fetchone() is not None
            places = ", ".join("?" * (2 + len(_RUN)))
            values = (*key, *astuple(replace(run, warm=warm)))
            connection.execute(f"INSERT INTO run (shape, conditions, {_LISTED}) VALUES ({places})", values)
            for condition, more, most in ((f"{_OF} AND plan = ?", (run.plan,), MOST_RUNS), (_OF, (), MOST_OF_QUERY)):
                connection.execute(
                    f"DELETE FROM run WHERE id IN (SELECT id FROM run WHERE {condition} ORDER BY id DESC "
                    "LIMIT -1 OFFSET ?)", (*key, *more, most)
                )  # fmt: skip

        self._store.write(work)

    def runs(self, shape: str, conditions: str) -> tuple[Run, ...]:
        """The runs of a query, the oldest first."""

        def work(connection: sqlite3.Connection) -> tuple[Run, ...]:
            if not _has_tables(connection):
                return ()
            query = f"SELECT {_LISTED} FROM run WHERE {_OF} ORDER BY id"
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
            rows = connection.execute("SELECT shape, conditions, tables FROM query").fetchall()
            tables = {(shape, conditions): tuple(json.loads(names)) for shape, conditions, names in rows}
            latest = sorted(found.items(), key=lambda item: item[1][-1].ended)
            return tuple(StoredQuery(*key, tables.get(key, ()), tuple(runs)) for key, runs in latest)

        return self._store.read(work, ())

    @staticmethod
    def _update(connection: sqlite3.Connection, shape: str, conditions: str, column: str, value: Any) -> None:
        connection.execute(
            f"INSERT INTO query (shape, conditions, {column}, used) VALUES (?, ?, ?, ?) "
            f"ON CONFLICT DO UPDATE SET {column} = excluded.{column}, used = excluded.used",
            (shape, conditions, value, time.time()),
        )


def _has_tables(connection: sqlite3.Connection) -> bool:
    """False for a store of an earlier release that cannot be written."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(run)")}
    return columns.issuperset(_RUN) and bool(connection.execute("PRAGMA table_info(query)").fetchall())


def _run(row: Sequence[Any]) -> Run:
    values = dict(zip(_RUN, row, strict=True))
    return Run(**{**values, "warm": bool(values["warm"])})
