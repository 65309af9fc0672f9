"""Baselines in the file of statistics: one row each, by name. Only `drop` deletes them.

A baseline is somebody's decision, and no measurement that could be made again. Where a file must not be trusted to
keep it, such as in a cache folder, export it (`pyjoinopt.baselines.export`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable

from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.baseline import Baseline


class BaselineStore:
    """The table `baseline` of a store.

    >>> import tempfile
    >>> from pathlib import Path
    >>> baselines = BaselineStore(Store(Path(tempfile.mkdtemp()) / "statistics.sqlite"))
    >>> baselines.get("daily") is None, baselines.names()
    (True, ())
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, baseline: Baseline) -> bool:
        """Add a baseline, or replace the one of its name; False if the store cannot be written."""
        text, now = baseline.to_json(), time.time()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO baseline VALUES (?, ?, ?)", (baseline.name, text, now))

        self._store.write(work)
        return self._text(baseline.name) == text

    def drop(self, name: str) -> bool:
        """Delete a baseline; False if it is still there, because the store cannot be written."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM baseline WHERE name = ?", (name,))

        self._store.write(work)
        return self._text(name) is None

    def get(self, name: str) -> Baseline | None:
        """A baseline; None if there is none of this name.

        Raises:
            ValueError: what the store has under this name is no baseline that this release can read.
        """
        text = self._text(name)
        return None if text is None else Baseline.from_json(text)

    def names(self) -> tuple[str, ...]:
        """The names of all baselines, sorted."""
        return tuple(self.pinned())

    def pinned(self) -> dict[str, float]:
        """Name -> when the baseline was stored, in seconds since the epoch, by name."""

        def work(connection: sqlite3.Connection) -> dict[str, float]:
            if not _has_table(connection):
                return {}
            return dict(connection.execute("SELECT name, pinned FROM baseline ORDER BY name").fetchall())

        return self._store.read(work, {}) if self._store.path.exists() else {}

    def _text(self, name: str) -> str | None:
        def work(connection: sqlite3.Connection) -> str | None:
            if not _has_table(connection):
                return None
            row = connection.execute("SELECT content FROM baseline WHERE name = ?", (name,)).fetchone()
            return None if row is None else str(row[0])

        return self._store.read(work, None) if self._store.path.exists() else None


def read_baselines(names: Iterable[str], store: Store | None) -> tuple[list[Baseline], list[tuple[str, str]]]:
    """The baselines of some names, and those that cannot be used, each with the reason."""
    found, missing = [], []
    for name in names:
        try:
            baseline = None if store is None else BaselineStore(store).get(name)
        except ValueError as error:
            missing.append((name, f"the store has a baseline of this name that cannot be read: {error}"))
            continue
        if baseline is None:
            missing.append((name, "the store has no baseline of this name"))
        else:
            found.append(baseline)
    return found, missing


def _has_table(connection: sqlite3.Connection) -> bool:
    """False for a store of an earlier release that cannot be written."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'baseline'"
    return connection.execute(query).fetchone() is not None
