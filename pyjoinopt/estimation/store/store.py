"""The one store in which statistics outlive a session: an SQLite file that many processes read and write at once.

An entry belongs to *files*, not to a table's name: its key is the hash over paths, lengths and modification times, and
the hash over the schema. A table that changed has another key, so nothing in here is ever wrong, only unused; entries
that were not used for longest go when the file grows too large.

The store is a convenience. Whatever is wrong with it (read-only, locked, full, cut short, not ours) costs one warning,
and planning goes on without it. A file that SQLite finds broken is moved aside and a new one begun; the crash of a
writer leaves what was committed, SQLite's write-ahead log sees to that.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from pyjoinopt.estimation.sources.json import column_from, facts_of
from pyjoinopt.estimation.sources.registry import Column, Files, Known
from pyjoinopt.estimation.store.sqlite_file import (
    BROKEN,
    NotOurs,
    changes,
    default_path,
    is_broken,
    is_locked,
    open_file,
    set_aside,
    trim,
    warn_of,
)

T = TypeVar("T")
Key = tuple[str, str]
#: See `Store.state`.
State = tuple[int, int]

#: The file may grow to this.
MAX_BYTES = 256 << 20
#: After it was found locked the store is left alone for so many seconds.
PAUSE = 60.0
#: `used` is written anew only if it is older than this many seconds: a reader should not have to write.
DAY = 86400.0


class Store:
    """One store; opened when it is first needed, one connection a process.

    Args:
        path: the file. Only its owner can read it.
        max_bytes: see `MAX_BYTES`.
        folder: whether its folder is made.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "statistics.sqlite")
    >>> key = Files("id", "schema", 1, 100, 0.0)
    >>> store.put({key: Known(3.0, source="footers")}, {key: "t"})
    >>> store.get([key])["id", "schema"][0].rows
    3.0
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, folder: bool = True) -> None:
        self.path = path
        self.folder = folder
        self.max_bytes = max_bytes
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened = (0, 0)  # by which process, and which file (its inode)
        self._times_opened = 0
        self._writable = True
        self._not_before = 0.0

    # -- relations -----------------------------------------------------------------------------------------------

    def get(self, files: Iterable[Files]) -> dict[Key, tuple[Known, frozenset[str] | None]]:
        """What is remembered, by (id, schema): the statistics, and which columns were requested (None: all)."""
        keys = [(f.id, f.schema) for f in files]

        def work(connection: sqlite3.Connection) -> dict[Key, tuple[Known, frozenset[str] | None]]:
            found, stale = {}, []
            for key in keys:
                row = connection.execute(
                    "SELECT rows, bytes, exact, source, note, gathered, asked, columns, used FROM relation "
                    "WHERE id = ? AND schema = ?", key
                ).fetchone()  # fmt: skip
                if row is None:
                    continue
                known = Known(row[0], row[1], _columns(row[7]), bool(row[2]), row[3], row[5], row[4])
                found[key] = known, None if row[6] is None else frozenset(json.loads(row[6]))
                if row[8] < time.time() - DAY:
                    stale.append(key)
            if stale and self._writable:
                self._touch(connection, stale)
            return found

        return self.read(work, {})

    def put(
        self,
        known: Mapping[Files, Known],
        names: Mapping[Files, str],
        requested: Mapping[Files, frozenset[str]] | None = None,
    ) -> None:
        """Remember statistics; what was known of the same files is replaced.

        Args:
            known: what to remember.
            names: of the relations, for people.
            asked: where only some columns were requested, which.
        """
        now = time.time()
        rows = []
        for files, one in known.items():
            columns = json.dumps({name: facts_of(column) for name, column in one.columns.items()})
            only = (requested or {}).get(files)
            rows.append((
                files.id, files.schema, names.get(files, ""), one.rows, one.bytes, int(one.exact), one.source, one.note,
                one.gathered or now, now, None if only is None else json.dumps(sorted(only)), columns,
            ))  # fmt: skip
        self.write(
            lambda connection: connection.executemany(
                "INSERT OR REPLACE INTO relation (id, schema, name, rows, bytes, exact, source, note, gathered, used, "
                "asked, columns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )
        )  # fmt: skip

    def forget(self, files: Iterable[Files] | None = None) -> None:
        """Forget what is known of some files, whatever the schema; without an argument everything, runs included.

        Counts of join results go in both cases: which files they rest on is not written beside them.
        """

        def work(connection: sqlite3.Connection) -> None:
            for table in ("relation", "blob"):
                if files is None:
                    connection.execute(f"DELETE FROM {table}")
                else:
                    connection.executemany(f"DELETE FROM {table} WHERE id = ?", [(f.id,) for f in files])
            for table in ("feedback", "query", "run") if files is None else ("feedback",):
                connection.execute(f"DELETE FROM {table}")

        self.write(work)

    # -- samples, sketches, feedback -----------------------------------------------------------------------------

    def blob(self, files: Files, kind: str) -> bytes | None:
        """Something larger about some files, such as a sample."""
        found = self.dated_blob(files, kind)
        return None if found is None else found[0]

    def dated_blob(self, files: Files, kind: str) -> tuple[bytes, float] | None:
        """The same, and when it was gathered, in seconds since the epoch."""
        query = "SELECT content, gathered FROM blob WHERE id = ? AND schema = ? AND kind = ?"
        row = self.read(lambda c: c.execute(query, (files.id, files.schema, kind)).fetchone(), None)
        return None if row is None else (bytes(row[0]), float(row[1]))

    def put_blob(self, files: Files, kind: str, content: bytes) -> None:
        """Remember something larger about some files."""
        now = time.time()
        row = (files.id, files.schema, kind, content, now, now)
        self.write(lambda connection: connection.execute("INSERT OR REPLACE INTO blob VALUES (?, ?, ?, ?, ?, ?)", row))

    def has_feedback(self) -> bool:
        """True if any true row count is remembered."""
        return self.read(lambda c: c.execute("SELECT 1 FROM feedback LIMIT 1").fetchone() is not None, False)

    def feedback(self, group: str) -> dict[int, float]:
        """True row counts of a join group: set of relations, in the group's own numbers -> rows."""
        return {relations: rows for relations, (rows, _) in self.dated_feedback(group).items()}

    def dated_feedback(self, group: str) -> dict[int, tuple[float, float]]:
        """The same, each with when it was counted, in seconds since the epoch."""
        query = "SELECT fingerprint, rows, observed FROM feedback WHERE fingerprint >= ? AND fingerprint < ?"
        nothing: list[tuple[str, float, float]] = []
        found = self.read(lambda c: c.execute(query, (f"{group}:", f"{group};")).fetchall(), nothing)
        return {int(name.partition(":")[2], 16): (float(rows), float(seconds)) for name, rows, seconds in found}

    def put_feedback(self, group: str, rows: Mapping[int, float]) -> None:
        """Remember true row counts; the latest counts. Those that are known since today are not written again."""
        now = time.time()
        known = self.dated_feedback(group)
        news = {
            relations: count
            for relations, count in rows.items()
            if relations not in known or known[relations][0] != count or not 0 <= now - known[relations][1] <= DAY
        }
        if news:
            self.write(
                lambda connection: connection.executemany(
                    "INSERT INTO feedback VALUES (?, ?, ?, 1) ON CONFLICT (fingerprint) DO UPDATE SET "
                    "rows = excluded.rows, observed = excluded.observed, runs = runs + 1",
                    [(f"{group}:{relations:x}", count, now) for relations, count in news.items()],
                )
            )

    def state(self) -> State | None:
        """A value that changes with every write that plans depend on; None if the store cannot be read.

        A store that cannot be written does not change as long as it is open.
        """
        return self.read(lambda connection: (self._times_opened, changes(connection) or 0), None)

    # -- the file ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        with self._lock:
            if self._connection is not None and self._opened[0] == os.getpid():
                self._connection.close()
            self._connection = None

    def write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Do something in a transaction; nothing if the store cannot be written."""

        def transaction(connection: sqlite3.Connection) -> None:
            if self._writable:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    work(connection)
                    trim(connection, self.max_bytes)
                    connection.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise

        self.read(transaction, None)

    def _touch(self, connection: sqlite3.Connection, keys: list[Key]) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # whoever holds the lock is at work; another time, then
            marks = [(time.time(), *key) for key in keys]
            connection.executemany("UPDATE relation SET used = ? WHERE id = ? AND schema = ?", marks)

    def read(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """The result of `work`, or `otherwise` if the store fails.

        A broken file is replaced, and `work` tried once more.
        """
        with self._lock:
            if time.monotonic() < self._not_before:
                return otherwise
            for attempt in (1, 2):
                try:
                    return work(self._open())
                except (sqlite3.Error, OSError, ValueError, NotOurs) as error:
                    if attempt == 1 and isinstance(error, BROKEN) and self._replaced(error):
                        continue
                    self._give_up(error)
                    break
            return otherwise

    def _open(self) -> sqlite3.Connection:
        here = self._here()
        if self._connection is None or here != self._opened:
            if self._opened[0] == here[0]:
                self.close()  # the file was moved or deleted
            # A connection must not be used, nor closed, on the other side of a fork.
            self._connection, writable = open_file(self.path, self.folder)
            self._opened = self._here()
            self._times_opened += 1
            self._writable = self._writable and writable
        return self._connection

    def _here(self) -> tuple[int, int]:
        try:
            return os.getpid(), os.stat(self.path).st_ino
        except OSError:
            return os.getpid(), 0

    def _replaced(self, error: Exception) -> bool:
        if not is_broken(error):
            return False
        self.close()
        try:
            with FileLock(f"{self.path}.lock", timeout=5, mode=0o600):
                return set_aside(self.path, error)
        except (OSError, TimeoutError):
            return False

    def _give_up(self, error: Exception) -> None:
        self.close()
        warn_of(self.path, str(error))
        if "readonly" in str(error) or "read-only" in str(error):
            self._writable = False
        else:
            self._not_before = time.monotonic() + (PAUSE if is_locked(error) else float("inf"))


@lru_cache(maxsize=512)
def _columns(text: str) -> Mapping[str, Column]:
    """The columns of an entry. The same tables are read by query after query."""
    return {name: column_from(facts) for name, facts in json.loads(text).items()}


_stores: dict[Path, Store] = {}


def open_store(setting: str = "auto", folder: bool = True) -> Store | None:
    """The store of a setting (`spark.pyjoinopt.store`): a path, "off", or "auto" for the user's own. One a process.

    Args:
        setting: see above.
        folder: whether the folder of a path may be created; the user's own always may.

    >>> open_store("off") is None
    True
    """
    if setting == "off":
        return None
    is_default = setting in ("", "auto")
    path = default_path() if is_default else Path(setting).expanduser()
    store = _stores.setdefault(path, Store(path, folder=False))
    store.folder |= folder or is_default
    return store
