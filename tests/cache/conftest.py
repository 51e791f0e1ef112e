"""A small rank whose files are old enough to be kept, and a folder to keep it in."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.cache.folder import CacheFolder
from tests.cache.rank import write_rank


@pytest.fixture
def rank(tmp_path: Path) -> Path:
    return write_rank(tmp_path / "rank0_ascend_pt")


@pytest.fixture
def folder(tmp_path: Path) -> CacheFolder:
    return CacheFolder(tmp_path / "cache" / "ranks", 1 << 24)


@pytest.fixture(autouse=True)
def _told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cache cannot do is said."""
    monkeypatch.setenv("ADVISOR_DEBUG", "1")
