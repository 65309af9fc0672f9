"""What the framings of compressed streams share: reading exactly so many bytes, and the error of a damaged file."""

from __future__ import annotations

from typing import IO


class DamagedLogError(Exception):
    """A file is cut off or damaged. It is caught where logs are read, and becomes a note."""


def exactly(file: IO[bytes], size: int) -> bytes:
    """The next bytes of a file.

    Raises:
        DamagedLogError: it ends before.
    """
    data = file.read(size)
    if len(data) < size:
        raise DamagedLogError("the file ends in the middle of a compressed block")
    return data
