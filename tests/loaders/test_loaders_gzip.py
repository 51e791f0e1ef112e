"""Compressed files: read forward in pieces, and again from a place in the middle."""

from __future__ import annotations

import gzip
import hashlib
import random
from pathlib import Path

import pytest

from advisor_core.loaders.readers import gzip_file
from advisor_core.loaders.readers.gzip_file import GzipFile, is_gzip

CONTENT = random.Random(7).randbytes(300_000) + b"a" * 700_000 + random.Random(8).randbytes(200_000)


def contents(file: GzipFile, size: int) -> bytes:
    parts = []
    while part := file.read(size):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("size", [1000, 99_991, 1 << 30])
def test_forward(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file.gz"
    half = len(CONTENT) // 2  # a file of two members, padded as tapes are
    path.write_bytes(gzip.compress(CONTENT[:half]) + gzip.compress(CONTENT[half:]) + b"\0" * 100)
    assert is_gzip(path)
    with GzipFile(path) as file:
        assert contents(file, size) == CONTENT and file.damage == ""
        read = file.finish("file.gz")
    assert (read.bytes, read.sha256) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


def test_again_from_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_file, "_APART", 50_000)
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(CONTENT))
    with GzipFile(path) as file:
        contents(file, 10_000)
    assert len(file.points.points) > 10
    for offset in (0, 1, 49_999, 300_000, 777_777, len(CONTENT) - 5):
        assert file.points.read_at(path, offset, 100) == CONTENT[offset : offset + 100]
    assert file.points.read_at(path, len(CONTENT) + 1, 100) == b""


def test_what_precedes_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    data = gzip.compress(CONTENT)
    path.write_bytes(data[: len(data) // 2])
    with GzipFile(path) as file:
        got = contents(file, 10_000)
        assert file.damage == "cut_off" and len(got) > 200_000 and CONTENT.startswith(got)
    path.write_bytes(data[:-8] + b"12345678")
    with GzipFile(path) as file:
        assert contents(file, 10_000) == CONTENT and file.damage == "damaged"
