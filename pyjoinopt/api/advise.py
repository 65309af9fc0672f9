"""The implementation of `pyjoinopt.advise`, and of the command `python -m pyjoinopt advise`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date, datetime, timezone
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pyjoinopt.advice.ranking import Ranking
from pyjoinopt.advice.result import Advice
from pyjoinopt.errors import EventLogError
from pyjoinopt.eventlog.executions import read_executions
from pyjoinopt.eventlog.files import LogFiles
from pyjoinopt.eventlog.history_server import is_address
from pyjoinopt.eventlog.lines import ReadingNotes
from pyjoinopt.eventlog.sources import Source, sources

T = TypeVar("T")
#: Notes that are kept; thousands of files may be no logs.
_NOTES = 1000
#: Ids of applications that an error lists.
_LISTED = 5


def advise(
    paths: str | Path | Iterable[str | Path],
    *,
    top: int | None = None,
    since: str | date | None = None,
    app: str | None = None,
    progress: bool = False,
) -> Advice:
    """Advice on queries that already ran, from Spark's event logs. Needs no Spark session, and runs nothing.

    Args:
        paths: event logs, or folders of them (`spark.eventLog.dir`): plain, rolling, in progress, and compressed with
            zstd, lz4, lzf, snappy or gzip. Compressed ones need the extra `advise`. Or the address of a History
            Server, such as `http://host:18080`.
        top: queries to return at most, those with most to win; None for all.
        since: leave out executions that started before this day (UTC), such as `"2026-01-31"`, or before a
            `datetime`.
        app: id of the only application to read.
        progress: show a progress bar on standard error, if it is a terminal and tqdm is installed.

    Returns:
        Queries with findings, ranked by the task hours that could be won.

    Raises:
        EventLogError: a path does not exist, or there is no event log in it; a History Server cannot be read; the
            package that a codec needs is missing.
        ValueError: `top` is less than 1, or `since` is no date.

    Example:
        `pyjoinopt.advise("/var/log/spark-events", top=20).to_pandas()`
    """
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise ValueError(f"top={top!r}: allowed are whole numbers from 1, or None for all queries")
    first = timestamp(since) if since is not None else 0.0
    day = datetime.fromtimestamp(first, timezone.utc).date().isoformat() if first else ""
    found = sources([paths] if isinstance(paths, (str, Path)) else paths, day, app or "")
    reading = _Reading(first, app or "")
    for source in _with_progress(found) if progress else found:
        with ExitStack() as stack:
            try:
                logs = stack.enter_context(source)
            except EventLogError as error:  # of one application of a History Server
                reading.notes.append(str(error))
                continue
            for log in logs:
                reading.add(log)
    _check_read(paths, found, reading)
    ranking = reading.ranking
    return Advice(
        tuple(ranking.ranked()[:top]), reading.logs, len(ranking.applications), ranking.executions, ranking.unfinished,
        ranking.task_ms / 3_600_000, tuple(reading.notes),
    )  # fmt: skip


class _Reading:
    """What was read so far.

    Args:
        first: executions that started before are left out, in seconds since 1970.
        app: the only application that is wanted; "" for all.
    """

    def __init__(self, first: float, app: str) -> None:
        self.first, self.app = first, app
        self.ranking = Ranking()
        self.notes: list[str] = []
        self.logs = 0
        self.seen: dict[str, None] = {}

    def add(self, log: LogFiles) -> None:
        """Read one log, unless it was last written to before the first day."""
        if log.newest < self.first:
            return
        own = ReadingNotes()
        for execution in read_executions(log, own, self.app):
            if execution.started >= 1000 * self.first:
                self.ranking.add(execution)
        self.logs += own.bytes_read > 0
        if own.application:
            self.seen[own.application] = None
        self.notes.extend(islice(own.texts, max(0, _NOTES - len(self.notes))))


def _check_read(paths: object, found: Sequence[Source], reading: _Reading) -> None:
    """Raise an error if nothing was read that was wanted."""
    if not reading.logs and not (found and (reading.first or reading.notes and is_address(paths))):
        raise EventLogError(
            f"there is no event log in {paths!s}. Spark writes them with spark.eventLog.enabled=true into "
            "spark.eventLog.dir; name that folder, or files in it"
        )
    known = list(reading.seen)
    if reading.app and known and reading.app not in known:
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        raise EventLogError(
            f"no log is of the application {reading.app!r}; there are {', '.join(known[:_LISTED])}{more}. Name one of "
            "them, or leave --app out"
        )


def timestamp(since: str | date) -> float:
    """Seconds since 1970 of a day or a time; UTC, if it has no time zone.

    Raises:
        ValueError: it is neither.

    >>> timestamp("2026-01-31"), timestamp("1970-01-01T00:01:00")
    (1769817600.0, 60.0)
    """
    if isinstance(since, str):
        try:
            since = datetime.fromisoformat(since)
        except ValueError:
            raise ValueError(f"since={since!r}: allowed is a date such as 2026-01-31, or 2026-01-31T18:00:00") from None
    elif not isinstance(since, datetime):
        since = datetime(since.year, since.month, since.day)
    return (since if since.tzinfo else since.replace(tzinfo=timezone.utc)).timestamp()


def _with_progress(logs: list[T]) -> Iterator[T]:
    """The logs, with a progress bar on standard error if it is a terminal and tqdm is installed."""
    if sys.stderr.isatty():
        try:
            tqdm = import_module("tqdm").tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(logs, desc="event logs", unit="log", file=sys.stderr, leave=False)
            return
    yield from logs


def write(path: Path, text: str) -> None:
    """Write a result to a file.

    Raises:
        EventLogError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EventLogError(
            f"the advice cannot be written to {path}: {error.strerror or error}. Name a file in a folder that exists "
            "and can be written to"
        ) from None
