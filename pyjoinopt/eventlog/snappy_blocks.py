"""The framing of snappy-java's `SnappyOutputStream`, which Spark's snappy codec writes.

A stream starts with the magic and two numbers of four bytes, the versions. Then each block is its size, a big-endian
number of four bytes, and raw snappy. Another stream may follow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import IO

from pyjoinopt.eventlog.framing import DamagedLogError, exactly

MAGIC = b"\x82SNAPPY\x00"
_VERSIONS = 8
_SIZE = struct.Struct(">I")
#: [bytes] Blocks are of 32 kB by default, and of 512 MB at most.
_LARGEST = 1 << 29


def chunks(file: IO[bytes], decompress: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The blocks of a file without compression.

    Args:
        file: at its beginning.
        decompress: a block of raw snappy.

    Raises:
        DamagedLogError: the file is cut off or damaged.
    """
    while start := file.read(_SIZE.size):
        if len(start) < _SIZE.size:
            raise DamagedLogError("the file ends in the middle of a compressed block")
        if MAGIC.startswith(start):
            exactly(file, len(MAGIC) - _SIZE.size + _VERSIONS)
            continue
        (size,) = _SIZE.unpack(start)
        if size > _LARGEST:
            raise DamagedLogError("a block of snappy has an impossible size")
        yield decompress(exactly(file, size))
