"""Reads logs from their sources, and gives advice on the executions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

from pyjoinopt.advice.finding import hours
from pyjoinopt.advice.ranking import Ranking
from pyjoinopt.advice.result import Advice
from pyjoinopt.errors import EventLogError
from pyjoinopt.eventlog.executions import read_executions
from pyjoinopt.eventlog.files import LogFiles
from pyjoinopt.eventlog.history_server import is_address
from pyjoinopt.eventlog.lines import ReadingNotes
from pyjoinopt.eventlog.sources import Source, sources

#: Notes that are kept; thousands of files may be no logs.
_NOTES = 1000
#: Ids of applications that an error lists.
_LISTED = 5


def advise_on_logs(
    paths: Sequence[str | Path],
    first: float,
    app: str,
    top: int | None,
    progress: Callable[[Sequence[Source]], Iterable[Source]],
) -> Advice:
    """Advice on the executions of logs.

    Args:
        paths: files, folders, and addresses of History Servers.
        first: executions that started before are left out, in seconds since 1970; 0 for all.
        app: id of the only application to read; "" for all.
        top: queries to return at most; None for all.
        progress: passes the sources on, and shows how many are read.

    Raises:
        EventLogError: nothing was read, although something should be there.
    """
    day = datetime.fromtimestamp(first, timezone.utc).date().isoformat() if first else ""
    found = sources(paths, day, app)
    reading = Reading(first, app)
    for source in progress(found):
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
    ranked = ranking.ranked()
    return Advice(
        tuple(ranked[:top]), reading.logs, len(ranking.applications), ranking.executions, ranking.unfinished,
        hours(ranking.task_ms), sum(query.hours for query in ranked), len(ranked), tuple(reading.notes),
    )  # fmt: skip


class Reading:
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


def _check_read(paths: Sequence[str | Path], found: Sequence[Source], reading: Reading) -> None:
    """Raise an error if nothing was read that was wanted."""
    if not reading.logs and not (found and (reading.first or reading.notes and any(map(is_address, paths)))):
        where = ", ".join(map(str, paths[:_LISTED]))
        raise EventLogError(
            f"there is no event log in {where}. Spark writes them with spark.eventLog.enabled=true into "
            "spark.eventLog.dir; name that folder, or files in it"
        )
    known = list(reading.seen)
    if reading.app and known and reading.app not in known:
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        raise EventLogError(
            f"no log is of the application {reading.app!r}; there are {', '.join(known[:_LISTED])}{more}. Name one of "
            "them, or leave --app out"
        )
