"""A copy is whole and of the content that is at the URL now, or there is none."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from advisor_core.cache.fingerprint import files_of
from advisor_core.remote import copies, kept, stand_ins
from advisor_core.remote.copies import forget_unfinished, give_up, here
from advisor_core.remote.errors import CopyError, RemoteError
from advisor_core.remote.opened import SMALL_BYTES, opened
from advisor_core.remote.url import Url
from tests.remote.store import Shelf

MOST = 1 << 30
LARGE = b"x" * (SMALL_BYTES + 1)


def read(url: str = "shelf://job", name: str = "trace_view.json", most: int = MOST) -> bytes:
    with opened([Url(url)], most) as (path,):
        return here(path / name if name else path).read_bytes()


def left(cache: Path) -> list[str]:
    """The files that were not finished, and the number of files."""
    names = [file.name for file in (cache / "files").iterdir()]
    return [name for name in names if name.startswith(".")] + [str(len(names))]


def test_another_content_is_never_answered_from_an_older_copy(shelf: type[Shelf]) -> None:
    for content in (b"a" * 99_999, b"b" * 99_999, b"a" * 99_999, b"c" * 70_000):
        shelf.files["job/trace_view.json"] = content
        assert read() == content
    assert shelf.opened["job/trace_view.json"] == 3, "the first content came back"


def test_a_store_without_signs_is_asked_each_time(shelf: type[Shelf], tmp_path: Path) -> None:
    shelf.signed = False
    for content in (b"a" * 99_999, b"b" * 99_999):
        shelf.files["job/trace_view.json"] = content
        assert read() == content
    with opened([Url("shelf://job")], MOST) as (path,):
        files = files_of(path)
    assert files is not None and not files.settled(time.time_ns() + 10**12), "nothing that was read of it is kept"


def test_what_is_known_of_files_does_not_change_as_they_are_copied(shelf: type[Shelf]) -> None:
    shelf.files |= {"job/a/trace_view.json": LARGE, "job/b/trace_view.json": LARGE, "job/b/gone.json": LARGE}
    with opened([Url("shelf://job")], MOST) as (path,):
        known = files_of(path / "a"), files_of(path / "b")
        here(path / "a" / "trace_view.json")
        assert files_of(path / "a") == known[0]
    del shelf.files["job/b/gone.json"]
    with opened([Url("shelf://job/")], MOST) as (path,):
        assert files_of(path / "a") == known[0] != files_of(path / "b") != known[1]
        assert not (path / "b" / "gone.json").exists()


def test_a_file_that_becomes_a_folder_and_the_other_way_round(shelf: type[Shelf]) -> None:
    for files in ({"job/x.json": b"1"}, {"job/x.json/y": b"22"}, {"job": b"333"}, {"job/x.json": b"1"}):
        shelf.files = dict(files)
        with opened([Url("shelf://job")], MOST) as (path,):
            below = {file for file in [path, *path.rglob("*")] if file.is_file()}
            assert {here(file).read_bytes() for file in below} == set(files.values())


@pytest.mark.parametrize("after", [0, 10, SMALL_BYTES])
def test_nothing_is_left_of_a_copy_that_breaks_off(after: int, shelf: type[Shelf], cache: Path) -> None:
    shelf.files["job/trace_view.json"] = LARGE
    shelf.breaks_after = after
    with pytest.raises(CopyError, match=r"shelf://job/trace_view.json: ConnectionResetError: the server has gone"):
        read()
    assert left(cache) == ["0"]
    shelf.breaks_after = None
    assert read() == LARGE


def test_a_small_file_that_cannot_be_copied_is_told_at_once(shelf: type[Shelf], cache: Path) -> None:
    shelf.files["job/profiler_info_0.json"] = b"{}"
    shelf.breaks_after = 0
    with pytest.raises(RemoteError, match=r"profiler_info_0.json: ConnectionResetError"):
        read()
    assert left(cache) == ["0"]


@pytest.mark.parametrize("content", [LARGE[:-1], LARGE.swapcase()])
def test_a_file_that_changes_while_it_is_copied(content: bytes, shelf: type[Shelf], cache: Path) -> None:
    shelf.files["job/trace_view.json"] = LARGE

    def change(path: str) -> None:
        shelf.files[path] = content

    shelf.hook = staticmethod(change)
    with pytest.raises(CopyError, match=r"shelf://job/trace_view.json has changed"):
        read()
    assert left(cache) == ["0"]
    assert read() == content


def test_without_cache_nothing_is_there_afterwards(
    shelf: type[Shelf], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    shelf.files["job/trace_view.json"] = LARGE
    assert read(most=0) == LARGE
    assert not list((tmp_path / "tmp").iterdir())
    with opened([Url("shelf://job")], 0) as (path,):
        assert path.exists()
        give_up([])  # as where the command is ended before it hears of Ctrl-C
        assert not list((tmp_path / "tmp").iterdir())
    assert not cache.exists()


def test_what_an_ended_process_was_writing_goes(shelf: type[Shelf], cache: Path) -> None:
    shelf.files["job/trace_view.json"] = LARGE
    assert read() == LARGE
    for process in (os.getpid(), 77):
        (cache / "files" / f".{process}-abc.writing").write_bytes(b"half")
    forget_unfinished([77])
    assert left(cache) == [f".{os.getpid()}-abc.writing", "2"]


def test_copies_that_were_not_used_for_longest_make_room(shelf: type[Shelf], cache: Path) -> None:
    shelf.files |= {f"job/{name}.json": LARGE for name in "abcd"}
    most = 3 * len(LARGE)
    for name, hours in zip("abc", (3, 1, 2), strict=True):
        with opened([Url("shelf://job")], most) as (path,):
            then = time.time() - 3600 * hours
            os.utime(here(path / f"{name}.json"), (then, then))
    read(name="d.json", most=most)
    assert left(cache) == ["3"]
    shelf.opened.clear()
    for name in "bcd":
        read(name=f"{name}.json", most=most)
    assert not shelf.opened, "a was not used for longest"
    assert read(name="a.json", most=1) == LARGE, "what a run needs is copied, whatever the limit is"


def test_room_for_small_files_is_made_once(shelf: type[Shelf], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[int] = []
    monkeypatch.setattr(copies, "_make_room", lambda tree, size: wanted.append(size))
    shelf.files |= {f"job/{name}.json": b"{}" for name in "abc"}
    for _ in range(2):
        with opened([Url("shelf://job")], MOST) as (path,):
            here(path / "a.json")
    assert wanted == [6], "it looks at all copies each time"


def test_all_can_be_deleted(shelf: type[Shelf], cache: Path) -> None:
    assert kept.held() == (0, 0)
    kept.clear()
    shelf.files["job/a.json"] = LARGE
    read(name="a.json")
    assert kept.held() == (1, len(LARGE)) and cache.stat().st_mode & 0o077 == 0
    kept.clear()
    assert kept.held() == (0, 0) and read(name="a.json") == LARGE


def test_stand_ins_that_no_run_uses_go(shelf: type[Shelf], cache: Path) -> None:
    shelf.files |= {"old/x.json": LARGE, "new/x.json": LARGE}
    with opened([Url("shelf://old")], MOST) as (old,):
        pass
    then = time.time() - stand_ins._UNUSED_S - 1
    os.utime(old.parent.with_suffix(".json"), (then, then))
    with opened([Url("shelf://new")], MOST) as (new,):
        assert new.exists() and not old.parent.exists() and not old.parent.with_suffix(".json").exists()


def test_a_path_that_only_looks_like_a_stand_in_is_itself(tmp_path: Path) -> None:
    place = tmp_path.joinpath(stand_ins.FOLDER, "trees", "abc", "job", "file.json")
    place.parent.mkdir(parents=True)
    place.write_text("own")
    assert here(place) == place
    assert here(Path("nowhere")) == Path("nowhere")


def test_loaders_of_other_plugins_find_contents(shelf: type[Shelf]) -> None:
    shelf.files |= {"job/a/x.json": LARGE, "job/y.bin": b"1", "file.json": b"2"}
    with opened([Url("shelf://job"), Url("shelf://file.json")], MOST, whole=True) as (job, file):
        read = [(job / "a" / "x.json").read_bytes(), (job / "y.bin").read_bytes(), file.read_bytes()]
        assert read == [LARGE, b"1", b"2"] and (job.name, file.name) == ("job", "file.json")
        assert here(file) == file
    assert not job.exists()


def test_two_runs_at_once_do_not_disturb_each_other(shelf: type[Shelf]) -> None:
    shelf.files |= {"job/a.json": LARGE, "job/b.json": LARGE.upper()}
    with opened([Url("shelf://job")], MOST) as (first,), opened([Url("shelf://job")], MOST) as (second,):
        assert first == second
        for path, (name, content) in itertools.product((first, second), (("a.json", LARGE), ("b.json", LARGE.upper()))):
            assert here(path / name).read_bytes() == content
    assert sum(shelf.opened.values()) == 2
