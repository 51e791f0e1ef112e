"""An empty shelf, and a cache directory of its own, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.remote.store import Shelf


@pytest.fixture(autouse=True)
def shelf() -> Iterator[type[Shelf]]:
    fsspec.register_implementation("shelf", Shelf, clobber=True)
    Shelf.clear()
    yield Shelf
    Shelf.clear()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder there for what is at URLs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "npu-advisor" / "advisor-remote"
