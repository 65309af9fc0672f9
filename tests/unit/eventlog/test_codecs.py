"""Compressed logs: every framing round trip, at every place where a file may be cut off, and damaged bytes."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.errors import EventLogError
from pyjoinopt.eventlog.codecs import chunks, codec_of
from pyjoinopt.eventlog.framing import DamagedLogError
from pyjoinopt.eventlog.lzf_chunks import decompress
from tests.support.made_up_logs import compressed

pytest.importorskip("cramjam")
pytest.importorskip("zstandard")
CODECS = ("zstd", "lz4", "snappy", "lzf")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("codecs")


def content(path: Path, codec: str) -> tuple[bytes, bool]:
    """What can be read of a file, and whether it was read to its end."""
    found = b""
    try:
        for piece in chunks(path, codec):
            found += piece
    except DamagedLogError:
        return found, False
    return found, True


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(min_size=1, max_size=5000), block=st.integers(1, 3000))
def test_a_file_is_read_as_it_was_written(folder: Path, codec: str, data: bytes, block: int) -> None:
    packed = compressed(codec, data, max(block, 33))
    path = folder / codec
    path.write_bytes(packed)
    assert codec_of(packed[:16]) == codec
    assert content(path, codec) == (data, True)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(min_size=1, max_size=5000), cut=st.integers(0, 6000))
def test_a_file_that_is_cut_off_gives_what_is_before(folder: Path, codec: str, data: bytes, cut: int) -> None:
    path = folder / f"{codec}-cut"
    path.write_bytes(compressed(codec, data)[:cut])
    assert data.startswith(content(path, codec)[0])


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(min_size=100, max_size=3000), at=st.integers(0, 5000), byte=st.integers(0, 255))
def test_damage_is_never_an_error_of_another_kind(folder: Path, codec: str, data: bytes, at: int, byte: int) -> None:
    packed = bytearray(compressed(codec, data))
    packed[at % len(packed)] = byte
    path = folder / f"{codec}-damaged"
    path.write_bytes(packed)
    content(path, codec)


@given(st.binary(max_size=300), st.integers(0, 1000))
def test_lzf_never_fails_in_another_way(data: bytes, size: int) -> None:
    try:
        assert len(decompress(data, size)) == size
    except DamagedLogError:
        pass


def test_copies_of_lzf_may_overlap() -> None:
    assert decompress(b"\x00a\xe0\x05\x00", 15) == b"a" * 15


@pytest.mark.parametrize(("codec", "package"), [("zstd", "zstandard"), ("lz4", "cramjam"), ("snappy", "cramjam")])
def test_a_missing_package_is_named(tmp_path: Path, codec: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(compressed(codec, b"abc"))
    normal = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return normal(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EventLogError, match=rf"{package}.*pip install 'pyjoinopt\[advise\]'"):
        list(chunks(path, codec))
