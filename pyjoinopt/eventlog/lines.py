"""The events of a log, one line of JSON each, with a note on each part that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyjoinopt.eventlog.codecs import chunks, codec_of
from pyjoinopt.eventlog.files import LogFiles
from pyjoinopt.eventlog.framing import DamagedLogError

#: [bytes] A longer line is passed over: it is no event, or a plan that nobody can read.
LONGEST_LINE = 1 << 28
_START = b'{"Event":"'
_EVENT = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([^"]+)"')


@dataclass
class ReadingNotes:
    """What could not be read of one log.

    Attributes:
        texts: of each cause once, with the file's name.
        bytes_read: of its files, without compression.
        application: id of the application.
    """

    texts: list[str] = field(default_factory=list)
    bytes_read: int = 0
    application: str = ""

    def add(self, text: str) -> None:
        """Note a cause, if it is new."""
        if text not in self.texts:
            self.texts.append(text)


def events(log: LogFiles, notes: ReadingNotes) -> Iterator[tuple[bytes, bytes]]:
    """Name and line of each event of a log, in order.

    Args:
        log: the files.
        notes: where damaged parts are noted.
    """
    for path in log.paths:
        try:
            with path.open("rb") as file:
                codec = codec_of(file.read(16))
        except OSError as error:
            notes.add(f"{path.name} cannot be read: {error.strerror or error}")
            continue
        if codec is None:
            if path.stat().st_size:
                notes.add(f"{path.name} is no event log")
            continue
        pieces = chunks(path, codec)
        try:
            for line in _lines(pieces, notes):
                name = _name(line)
                if name is not None:
                    yield name, line
                elif line.strip():
                    notes.add(f"{path.name} has lines that are no events")
        except DamagedLogError as error:
            notes.add(f"{path.name} was read up to a damaged place: {error}")


def _name(line: bytes) -> bytes | None:
    """The name of the event of a line; None if it has none."""
    if line.startswith(_START):
        end = line.find(b'"', len(_START))
        return line[len(_START) : end] if end > 0 else None
    match = _EVENT.match(line)
    return match[1] if match else None


def _lines(pieces: Iterator[bytes], notes: ReadingNotes) -> Iterator[bytes]:
    """The lines of a stream; the last one need not end with a line break."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        notes.bytes_read += len(piece)
        first, *rest = piece.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > LONGEST_LINE:
            notes.add("a line is longer than 256 MB and was passed over")
            parts, size = [], 0
        if rest:
            yield b"".join(parts)
            yield from rest[:-1]
            parts, size = [rest[-1]], len(rest[-1])
    if parts:
        yield b"".join(parts)
