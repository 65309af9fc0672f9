"""Which files are event logs, and which of them are the parts of one log.

Spark writes a log as one file (`app-1`, `app-1.zstd`, with `.inprogress` while the application runs), or as a rolling
log: a folder `eventlog_v2_<application>` with files `events_<n>_<application>`. Where old parts were compacted into
`events_<n>_<application>.compact`, that file takes the place of all parts up to n.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyjoinopt.errors import EventLogError

_ROLLING = "eventlog_v2_"
_PART = re.compile(r"events_(\d+)_(.+)")
_IN_PROGRESS, _COMPACT = ".inprogress", ".compact"


@dataclass(frozen=True)
class LogFiles:
    """One log.

    Attributes:
        name: of the file, or of the folder of a rolling log.
        paths: its files, in the order in which they were written.
        in_progress: True if the application had not ended when its log was copied, by the name of the file.
    """

    name: str
    paths: tuple[Path, ...]
    in_progress: bool = False

    @property
    def newest(self) -> float:
        """When the log was last written to, in seconds since 1970; 0 if that is unknown."""
        try:
            return max(path.stat().st_mtime for path in self.paths)
        except (OSError, ValueError):
            return 0.0


def find_logs(paths: Iterable[str | Path]) -> Iterator[LogFiles]:
    """The logs in files and folders, folders with all that is below them, each log once.

    Raises:
        EventLogError: a path does not exist.
    """
    seen: set[Path] = set()
    for given in paths:
        path = Path(given).expanduser()
        if not path.exists():
            raise EventLogError(
                f"{str(given)!r} does not exist. Name event logs, or folders of them: spark.eventLog.dir of the "
                "applications, or spark.history.fs.logDirectory of the History Server"
            )
        for log in _logs_at(path):
            if log.paths and log.paths[0].resolve() not in seen:
                seen.add(log.paths[0].resolve())
                yield log


def _logs_at(path: Path) -> Iterator[LogFiles]:
    if path.is_file():
        part = _PART.fullmatch(path.name)
        if part is None or not path.parent.name.startswith(_ROLLING):
            yield LogFiles(path.name, (path,), path.name.endswith(_IN_PROGRESS))
        else:
            yield LogFiles(f"{path.parent.name}/{path.name}", (path,))
        return
    if path.name.startswith(_ROLLING):
        yield _rolling(path)
        return
    try:
        inside = sorted(path.iterdir())
    except OSError:
        return
    for each in inside:
        if not each.name.startswith((".", "appstatus_", "_")) and not (each.is_symlink() and each.is_dir()):
            yield from _logs_at(each)


def _rolling(folder: Path) -> LogFiles:
    """The parts of a rolling log, in order."""
    parts: list[tuple[int, bool, Path]] = []
    running = False
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        inside = []
    for path in inside:
        running |= path.name.startswith("appstatus_") and path.name.endswith(_IN_PROGRESS)
        match = _PART.fullmatch(path.name)
        if match:
            parts.append((int(match[1]), path.name.endswith(_COMPACT), path))
    last = max((n for n, compact, _ in parts if compact), default=-1)
    kept = sorted((n, path) for n, compact, path in parts if n > last or (n == last and compact))
    return LogFiles(folder.name, tuple(path for _, path in kept), running)
