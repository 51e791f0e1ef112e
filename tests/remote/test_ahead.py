"""Several files are copied at the same time, and nothing is left of those that nobody waited for."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import pytest

from advisor_core.remote.ahead import copied_ahead
from advisor_core.remote.copies import here
from advisor_core.remote.errors import CopyError
from advisor_core.remote.opened import SMALL_BYTES, opened
from advisor_core.remote.temporary import temporary_folder
from advisor_core.remote.url import Url
from tests.remote.store import Shelf

MOST = 1 << 30
LARGE = b"x" * (SMALL_BYTES + 1)
NAMES = ("a.json", "b.csv")


@pytest.fixture
def job(shelf: type[Shelf]) -> type[Shelf]:
    shelf.files |= {f"job/{name}": LARGE + name.encode() for name in NAMES}
    return shelf


def test_files_are_copied_at_the_same_time_and_once(job: type[Shelf]) -> None:
    both = threading.Barrier(2, timeout=10)

    def meet(path: str) -> None:
        both.wait()

    job.hook = staticmethod(meet)
    with opened([Url("shelf://job")], MOST) as (path,):
        with copied_ahead([*(path / name for name in NAMES), path / "absent.json"]):
            assert [here(path / name).read_bytes() for name in NAMES] == list(job.files.values())
        assert set(job.opened.values()) == {1}
        with copied_ahead(path / name for name in NAMES):
            assert here(path / "a.json").stat().st_size == len(LARGE) + len("a.json")
    assert set(job.opened.values()) == {1}


def test_who_opens_a_file_is_told_why_it_cannot_be_copied(job: type[Shelf], cache: Path) -> None:
    job.breaks_after = 10
    with opened([Url("shelf://job")], MOST) as (path,), copied_ahead(path / name for name in NAMES):
        for name in NAMES:
            with pytest.raises(CopyError, match=rf"shelf://job/{name}: ConnectionResetError: the server has gone"):
                here(path / name)
    assert not list((cache / "files").iterdir())


def test_what_nobody_waits_for_any_more_is_given_up(job: type[Shelf], cache: Path) -> None:
    begun = threading.Event()

    def slow(path: str) -> None:
        begun.set()
        time.sleep(0.1)

    job.hook = staticmethod(slow)
    with (
        opened([Url("shelf://job")], MOST) as (path,),
        pytest.raises(RuntimeError, match="of a loader"),
        copied_ahead(path / name for name in NAMES),
    ):
        begun.wait(10)
        raise RuntimeError("of a loader")
    assert not list((cache / "files").iterdir())


def test_what_a_killed_process_left_is_deleted_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl", reason="locks as POSIX has them")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, other = tmp_path / "npu-advisor-left", tmp_path / "npu-advisor-other"
    for folder in (left, other):
        (folder / "advisor-remote").mkdir(parents=True)
    (left / ".in-use").touch()  # the lock is gone with its process
    with temporary_folder() as first, temporary_folder() as second:
        assert first.is_dir() and second.is_dir() and other.is_dir() and not left.exists()
    assert list(tmp_path.iterdir()) == [other]
