"""The framing of lz4-java's `LZ4BlockOutputStream`, which Spark's lz4 codec writes.

A block is the magic, a byte with the method, and three little-endian numbers of four bytes: compressed size, original
size, checksum. A block of size 0 ends a stream, and another stream may follow. The checksum (xxHash) is not verified:
the JSON of the events shows damage.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import IO

from pyjoinopt.eventlog.framing import DamagedLogError, exactly

MAGIC = b"LZ4Block"
_HEADER = struct.Struct("<BIII")
_RAW, _LZ4 = 0x10, 0x20
#: [bytes] lz4-java writes no larger block.
_LARGEST = 1 << 25


def chunks(file: IO[bytes], decompress: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    """The blocks of a file without compression.

    Args:
        file: at its beginning.
        decompress: a block of LZ4, and its original size.

    Raises:
        DamagedLogError: the file is cut off or damaged.
    """
    while magic := file.read(len(MAGIC)):
        if magic != MAGIC:
            raise DamagedLogError("a block of lz4 has no header")
        token, compressed, original, _ = _HEADER.unpack(exactly(file, _HEADER.size))
        if compressed > 2 * _LARGEST or original > _LARGEST:
            raise DamagedLogError("a block of lz4 has an impossible size")
        data = exactly(file, compressed)
        method = token & 0xF0
        if method == _RAW:
            yield data
        elif method != _LZ4:
            raise DamagedLogError("a block of lz4 has an unknown method")
        elif original:
            yield decompress(data, original)
