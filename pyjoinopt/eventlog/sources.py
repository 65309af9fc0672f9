"""Where logs come from: files and folders, and the applications of a History Server, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from pyjoinopt.eventlog.files import LogFiles, find_logs
from pyjoinopt.eventlog.history_server import applications, downloaded, is_address

#: Opened, it gives logs, which are there until it is closed.
Source = AbstractContextManager[list[LogFiles]]


def sources(paths: Iterable[str | Path], since: str = "", application: str = "") -> list[Source]:
    """The sources of logs that paths and addresses name.

    Args:
        paths: files, folders, and addresses such as `http://host:18080`.
        since: a day; applications of servers that had ended before are left out.
        application: the only one that is wanted.

    Raises:
        EventLogError: a path does not exist, or a server cannot be read. An application whose logs cannot be downloaded
            raises it when its source is opened.
    """
    found: list[Source] = []
    for path in paths:
        if isinstance(path, str) and is_address(path):
            wanted = [application] if application else applications(path, since)
            found += [_of_server(path, each) for each in wanted]
        else:
            found += [nullcontext([log]) for log in find_logs([path])]
    return found


@contextmanager
def _of_server(address: str, application: str) -> Iterator[list[LogFiles]]:
    with downloaded(address, application) as folder:
        yield list(find_logs([folder]))
