"""The chunks of Compress-LZF's `LZFOutputStream`, which Spark's lzf codec writes, and LZF itself.

A chunk is the magic, a byte with the type, its size, and for type 1 its original size; both are big-endian numbers of
two bytes. LZF is a sequence of literal runs (a byte below 32: one less than their length) and of copies of what is
already there (three bits of length, thirteen bits of distance; length 7 has another byte).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

from pyjoinopt.eventlog.framing import DamagedLogError, exactly

MAGIC = b"ZV"
_SIZE = struct.Struct(">H")
_STORED, _COMPRESSED = 0, 1


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """The chunks of a file without compression.

    Raises:
        DamagedLogError: the file is cut off or damaged.
    """
    while start := file.read(3):
        if len(start) < 3 or not start.startswith(MAGIC) or start[2] > _COMPRESSED:
            raise DamagedLogError("a chunk of lzf has no header")
        (size,) = _SIZE.unpack(exactly(file, 2))
        if start[2] == _STORED:
            yield exactly(file, size)
        else:
            (original,) = _SIZE.unpack(exactly(file, 2))
            yield decompress(exactly(file, size), original)


def decompress(data: bytes, original: int) -> bytes:
    """What a compressed chunk contains.

    Args:
        data: the chunk without its header.
        original: bytes of the result.

    Raises:
        DamagedLogError: it is no LZF, or has another size.

    >>> decompress(bytes([2]) + b"abc" + bytes([0x20, 2, 0x20, 2]), 9)
    b'abcabcabc'
    """
    out, at = bytearray(), 0
    try:
        while at < len(data):
            control = data[at]
            at += 1
            if control < 32:
                out += data[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += data[at]
                at += 1
            start = len(out) - ((control & 31) << 8) - data[at] - 1
            at += 1
            _copy(out, start, length + 2)
    except IndexError:
        raise DamagedLogError("a chunk of lzf is damaged") from None
    if len(out) != original:
        raise DamagedLogError("a chunk of lzf has another size than its header")
    return bytes(out)


def _copy(out: bytearray, start: int, length: int) -> None:
    """Append bytes of the output to it; they may overlap with those that are appended."""
    if start < 0:
        raise IndexError
    period = bytes(out[start : start + length])
    out += (period * (length // len(period) + 1))[:length]
