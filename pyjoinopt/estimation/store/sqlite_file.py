"""The store's file: where it is, who can read it, how it is opened, and what happens to one that is broken.

It holds values of the tables' rows, so nobody but its owner may read it: neither the file nor those that SQLite keeps
beside it, which get the mode of the file when they are made.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import platformdirs
from filelock import FileLock

from pyjoinopt.util.warn_once import warn_once

#: Of the tables below. A store of a later version is left alone.
VERSION = 1
#: Marks the file as ours: "pyjo".
APPLICATION = 0x70796A6F
#: Its owner reads and writes it, and nobody else.
_MODE = 0o600
#: Seconds to wait for another process that is writing.
PATIENCE = 1.0

_TABLES = (
    """
CREATE TABLE relation (
    id TEXT, schema TEXT, name TEXT, rows REAL, bytes REAL, exact INTEGER, source TEXT, note TEXT,
    gathered REAL, used REAL, asked TEXT, columns TEXT, PRIMARY KEY (id, schema))""",
    "CREATE INDEX relation_used ON relation (used)",
    """
CREATE TABLE blob (
    id TEXT, schema TEXT, kind TEXT, content BLOB, gathered REAL, used REAL, PRIMARY KEY (id, schema, kind))""",
    "CREATE INDEX blob_used ON blob (used)",
    "CREATE TABLE feedback (fingerprint TEXT PRIMARY KEY, rows REAL, observed REAL, runs INTEGER)",
)

#: What plans depend on: tables, and those of their columns in which an entry may change. Triggers count every write to
#: these, by any process and any release (`changes`).
_PLANNED_WITH = {
    "relation": "rows, bytes, exact, columns",
    "blob": "content",
    "feedback": "rows, observed",
    "baseline": "content",
}

_TRIGGERS = {
    f"{table}_{event.split()[0].lower()}": f"{event} ON {table}"
    for table, columns in _PLANNED_WITH.items()
    for event in ("INSERT", "DELETE", f"UPDATE OF {columns}")
}

#: Tables that a store may lack, because an earlier release made it; that release ignores them.
_ADDED = (
    """
CREATE TABLE IF NOT EXISTS query (
    shape TEXT, conditions TEXT, tables TEXT DEFAULT '[]', wholes TEXT DEFAULT '[]', explored INTEGER DEFAULT 0,
    used REAL, PRIMARY KEY (shape, conditions))""",
    "CREATE INDEX IF NOT EXISTS query_used ON query (used)",
    """
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY, shape TEXT, conditions TEXT, instance TEXT, plan TEXT, changes TEXT, driver TEXT,
    warm INTEGER, cores REAL, bytes REAL, ended REAL, seconds REAL, planning REAL, rows REAL, spilled REAL,
    failed TEXT, task_seconds REAL DEFAULT 0, skew REAL DEFAULT 0)""",
    "CREATE INDEX IF NOT EXISTS run_shape ON run (shape, conditions, id)",
    "CREATE TABLE IF NOT EXISTS baseline (name TEXT PRIMARY KEY, content TEXT, pinned REAL)",
    "CREATE TABLE IF NOT EXISTS changes (number INTEGER)",
    "INSERT INTO changes SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM changes)",
    *(
        f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} BEGIN UPDATE changes SET number = number + 1; END"
        for name, event in _TRIGGERS.items()
    ),
)
#: Whether all of these are there is seen from these names.
_NAMES_ADDED = frozenset({"query", "run", "baseline", "changes", *_TRIGGERS})

#: Columns of `run` that a store of an earlier release may lack.
_ADDED_COLUMNS = ("task_seconds", "skew")

BROKEN = (sqlite3.Error, ValueError)


class NotOurs(Exception):
    """The file is a database of something else, or of a later version."""


def default_path() -> Path:
    """`PYJOINOPT_STORE`, or a file in the user's cache folder."""
    chosen = os.environ.get("PYJOINOPT_STORE")
    if chosen:
        return Path(chosen)
    folder = os.environ.get("PYJOINOPT_CACHE_DIR") or platformdirs.user_cache_path("pyjoinopt", appauthor=False)
    return Path(folder) / "statistics.sqlite"


def open_file(path: Path, folder: bool = True) -> tuple[sqlite3.Connection, bool]:
    """A connection, and whether it may write.

    Args:
        path: the file.
        folder: whether its folder is made where there is none.

    Raises:
        sqlite3.Error, OSError: the file cannot be opened, or is broken.
        NotOurs: another application's database.
    """
    if not folder and not path.parent.is_dir():
        raise OSError(f"there is no folder {path.parent}, and no session may create one; the application may")
    with contextlib.suppress(OSError):  # if the folder is missing then, opening the file will fail
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE))
    try:
        return _open(path), True
    except sqlite3.OperationalError as error:
        if is_locked(error) or is_broken(error) or not path.is_file():
            raise
        # A write-ahead log needs a folder that can be written, even to read.
        connection = _connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1")
        _check(connection)
        warn_of(path, f"it is read-only ({error})")
        return connection, False


def _open(path: Path) -> sqlite3.Connection:
    connection = _connect(f"{path.absolute().as_uri()}?mode=rwc")
    try:
        if not _check(connection):
            with FileLock(f"{path}.lock", timeout=5, mode=_MODE):
                _create(connection)
        _add_tables(connection)
        _keep_private(path)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {16 << 20}")
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_private(path: Path) -> None:
    """Take from others what they may do with a store that is ours, and was made by an earlier version perhaps."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError, AttributeError):  # Windows has no such owners
            found = os.stat(f"{path}{suffix}")
            if found.st_uid == os.geteuid() and found.st_mode & 0o077:
                os.chmod(f"{path}{suffix}", _MODE)


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _check(connection: sqlite3.Connection) -> bool:
    """Whether there are tables in it already.

    One transaction, hence one state of the file: between two reads another process might create the tables.
    """
    with _transaction(connection, "BEGIN"):
        return _has_tables(connection)


def _has_tables(connection: sqlite3.Connection) -> bool:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if version == 0 and application == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise NotOurs("it is the database of another program")
        return False
    if application != APPLICATION:
        raise NotOurs("it is the database of another program")
    if version != VERSION:
        raise NotOurs(f"it has version {version}, this pyjoinopt writes version {VERSION}")
    return True


def _create(connection: sqlite3.Connection) -> None:
    """Create the tables, unless another process did meanwhile."""
    connection.execute("PRAGMA journal_mode = WAL")
    with _transaction(connection, "BEGIN IMMEDIATE"):
        if not _has_tables(connection):
            for statement in (*_TABLES, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}"):
                connection.execute(statement)


def _add_tables(connection: sqlite3.Connection) -> None:
    """Add the tables and columns that a later release brought, if this store lacks them."""
    if not _NAMES_ADDED <= _names(connection) or changes(connection) is None or _lacking_columns(connection):
        with _transaction(connection, "BEGIN IMMEDIATE"):
            for statement in _ADDED:
                connection.execute(statement)
            for name in _lacking_columns(connection):
                connection.execute(f"ALTER TABLE run ADD COLUMN {name} REAL DEFAULT 0")


def changes(connection: sqlite3.Connection) -> int | None:
    """The number of writes that plans depend on; None in a store that does not count them."""
    if "changes" not in _names(connection):
        return None
    found = connection.execute("SELECT max(number) FROM changes").fetchone()[0]
    return None if found is None else int(found)


def _names(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_master"))


def _lacking_columns(connection: sqlite3.Connection) -> list[str]:
    known = {row[1] for row in connection.execute("PRAGMA table_info(run)")}
    return [name for name in _ADDED_COLUMNS if name not in known]


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def trim(connection: sqlite3.Connection, most: int) -> None:
    """The oldest quarter of everything goes until the rest fits into so many bytes."""

    def pragma(name: str) -> int:
        return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

    for _ in range(20):
        if (pragma("page_count") - pragma("freelist_count")) * pragma("page_size") <= most:
            return
        for table, age in (
            ("blob", "used"), ("relation", "used"), ("feedback", "observed"), ("query", "used"), ("run", "id"),
        ):
            connection.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} ORDER BY {age} "
                f"LIMIT (SELECT (COUNT(*) + 3) / 4 FROM {table}))"
            )


def is_locked(error: Exception) -> bool:
    """Another process is writing, and takes long."""
    return isinstance(error, (sqlite3.OperationalError, TimeoutError)) and (
        "locked" in str(error) or "busy" in str(error) or isinstance(error, TimeoutError)
    )


def is_broken(error: Exception) -> bool:
    """The file is no database, or a damaged one."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        return "no such table" in text or "no such column" in text or "disk I/O error" in text
    return isinstance(error, (sqlite3.DatabaseError, ValueError))


def set_aside(path: Path, error: Exception) -> bool:
    """Move a broken file out of the way, so that a new one can be begun; to be called under the lock.

    Returns:
        True if it is worth to try again: also if another process was faster.
    """
    if not _is_sound(path):
        aside = path.with_name(f"{path.name}.broken")
        os.replace(path, aside)
        _keep_private(aside)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(f"{path}{suffix}")
        warn_of(path, f"it is broken ({error}); it was moved to {aside.name}, and a new one is begun", broken=True)
    return True


def _is_sound(path: Path) -> bool:
    if not path.exists():
        return True
    try:
        connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
        try:
            return _check(connection) and connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        return not is_broken(error)
    except sqlite3.Error:
        return False
    except NotOurs:
        return True


def warn_of(path: Path, problem: str, broken: bool = False) -> None:
    """Warn of a problem of the file: once for each file and process, but of each broken file that is replaced."""
    cause = f"{path}{time.time() if broken else ''}"
    remedy = "" if broken else "; nothing is remembered (spark.pyjoinopt.store names another file, or 'off')"
    warn_once("store", cause, f"the store of statistics {path}: {problem}{remedy}", stacklevel=3)
