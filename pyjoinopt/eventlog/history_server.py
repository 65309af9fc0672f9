"""Event logs from a History Server's REST interface, one application at a time.

`/api/v1/applications` lists the applications, and `/api/v1/applications/ID/logs` has the logs of one of them as a zip
file. It is written to a temporary folder, read and removed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any
from urllib.parse import quote, urlencode

from pyjoinopt.errors import EventLogError

#: [s] Without a byte from the server.
_TIMEOUT = 60.0
_PREFIXES = ("http://", "https://")


def is_address(path: object) -> bool:
    """Whether a path is the address of a History Server.

    >>> is_address("http://host:18080"), is_address("/var/log")
    (True, False)
    """
    return isinstance(path, str) and path.lower().startswith(_PREFIXES)


def applications(address: str, since: str = "") -> list[str]:
    """Ids of the applications that a server knows, the newest first.

    Args:
        address: such as `http://host:18080`.
        since: leave out those that had ended before this day, such as `2026-01-31`.

    Raises:
        EventLogError: the server cannot be read.
    """
    query = "?" + urlencode({"minEndDate": since}) if since else ""
    with _opened(address, f"/api/v1/applications{query}") as answer:
        text = answer.read()
    try:
        return [str(application["id"]) for application in json.loads(text)]
    except (ValueError, KeyError, TypeError):
        raise _cannot_be_read(address, "its answer is no list of applications") from None


@contextmanager
def downloaded(address: str, application: str) -> Iterator[Path]:
    """A folder with the logs of an application, which is removed at the end.

    Raises:
        EventLogError: the server cannot be read.
    """
    from zipfile import BadZipFile, ZipFile  # here and below: workers import this module, and use neither

    with TemporaryDirectory(prefix="pyjoinopt-logs-") as folder:
        packed = Path(folder) / "logs.zip"
        with _opened(address, f"/api/v1/applications/{quote(application, safe='')}/logs") as answer:
            with packed.open("wb") as file:
                shutil.copyfileobj(answer, file)
        content = Path(folder) / "logs"
        try:
            with ZipFile(packed) as archive:
                archive.extractall(content)  # names that lead out of the folder are changed by `zipfile`
        except BadZipFile:
            raise _cannot_be_read(address, "its answer is no zip file") from None
        packed.unlink()
        yield content


@contextmanager
def _opened(address: str, path: str) -> Iterator[IO[Any]]:
    """The answer of a server."""
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(address.rstrip("/") + path, headers={"Accept": "*/*"}), timeout=_TIMEOUT) as answer:
            yield answer
    except (OSError, ValueError) as error:  # of the connection, of HTTP, or of the address
        raise _cannot_be_read(address, str(getattr(error, "reason", error))) from None


def _cannot_be_read(address: str, cause: str) -> EventLogError:
    return EventLogError(
        f"the History Server at {address} cannot be read: {cause}. Give the address that its web page has, such as "
        "http://host:18080, or name the folder of the logs"
    )
