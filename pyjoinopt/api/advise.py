"""The implementation of `pyjoinopt.advise`, and of the command `python -m pyjoinopt advise`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from pyjoinopt.advice.result import Advice
from pyjoinopt.errors import EventLogError

T = TypeVar("T")


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
    from pyjoinopt.advice.read_logs import advise_on_logs  # workers import this package, and read no logs

    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    return advise_on_logs(given, first, app or "", top, _with_progress if progress else iter)


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


def _with_progress(logs: Sequence[T]) -> Iterator[T]:
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
