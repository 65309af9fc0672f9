"""The bytes of a log file without its compression. The first bytes of a file decide which codec it has.

zstd is read by the package `zstandard`; the blocks of lz4 and snappy by `cramjam`, inside framings of their own
(`lz4_blocks`, `snappy_blocks`). `lzf_chunks` needs no package, and neither do gzip and plain text.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pyjoinopt.errors import EventLogError
from pyjoinopt.eventlog import lz4_blocks, lzf_chunks, snappy_blocks
from pyjoinopt.eventlog.framing import DamagedLogError

#: [bytes] Read at once.
CHUNK = 1 << 18
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
#: Of an event log without compression: each line is an object.
_PLAIN = b"{"


def codec_of(start: bytes) -> str | None:
    """The codec of a file, from its first bytes; "" for plain text, None if it is no event log.

    >>> codec_of(b'{"Event"'), codec_of(b"LZ4Block\\x25"), codec_of(b"PAR1")
    ('', 'lz4', None)
    """
    for magic, codec in (
        (_ZSTD, "zstd"), (lz4_blocks.MAGIC, "lz4"), (snappy_blocks.MAGIC, "snappy"), (lzf_chunks.MAGIC, "lzf"),
        (_GZIP, "gzip"), (_PLAIN, ""),
    ):  # fmt: skip
        if start.startswith(magic):
            return codec
    return None


def chunks(path: Path, codec: str) -> Iterator[bytes]:
    """The content of a file, a piece at a time.

    Args:
        path: of the file.
        codec: see `codec_of`.

    Raises:
        EventLogError: the package that the codec needs is not installed.
        DamagedLogError: the file is cut off or damaged; all pieces before that place were returned.
    """
    readers: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {
        "": _plain, "gzip": _gzip, "zstd": _zstd, "lzf": lzf_chunks.chunks, "lz4": _lz4, "snappy": _snappy,
    }  # fmt: skip
    try:
        with path.open("rb") as file:
            yield from readers[codec](file)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedLogError(str(error) or type(error).__name__) from None


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _gzip(file: IO[bytes]) -> Iterator[bytes]:
    import gzip

    with gzip.open(file, "rb") as content:
        while piece := content.read(CHUNK):
            yield piece


def _zstd(file: IO[bytes]) -> Iterator[bytes]:
    zstandard = _package("zstandard", "zstd")
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as content:
            while piece := content.read(CHUNK):
                yield piece
    except zstandard.ZstdError as error:
        raise DamagedLogError(str(error)) from None


def _lz4(file: IO[bytes]) -> Iterator[bytes]:
    cramjam = _package("cramjam", "lz4")

    def block(data: bytes, size: int) -> bytes:
        try:
            return bytes(cramjam.lz4.decompress_block(data, output_len=size))
        except cramjam.DecompressionError as error:
            raise DamagedLogError(str(error)) from None

    return lz4_blocks.chunks(file, block)


def _snappy(file: IO[bytes]) -> Iterator[bytes]:
    cramjam = _package("cramjam", "snappy")

    def block(data: bytes) -> bytes:
        try:
            return bytes(cramjam.snappy.decompress_raw(data))
        except cramjam.DecompressionError as error:
            raise DamagedLogError(str(error)) from None

    return snappy_blocks.chunks(file, block)


def _package(name: str, codec: str) -> Any:
    """The package that reads a codec.

    Raises:
        EventLogError: it is not installed.
    """
    try:
        return __import__(name)
    except ImportError:
        raise EventLogError(
            f"a log is compressed with {codec}, and the package {name}, which reads it, is not installed: "
            "pip install 'pyjoinopt[advise]'"
        ) from None
