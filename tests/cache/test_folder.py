"""The folder of the cache: bounded, of one user, and no trouble where it cannot be used."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from advisor_core.cache.folder import SUFFIX, CacheFolder, Held, rank_folder


def test_what_is_written_is_read(folder: CacheFolder) -> None:
    folder.write("one", [b"some ", b"bytes"])
    found = folder.read("one")
    assert found is not None
    assert bytes(found) == b"some bytes"
    assert folder.read("two") is None
    assert folder.held() == Held(1, 32 + 10)


def test_those_that_were_not_used_for_longest_go_first(folder: CacheFolder) -> None:
    few = CacheFolder(folder.path, 3 * 132)
    for number, name in enumerate(("first", "second", "third")):
        few.write(name, [bytes(100)])
        os.utime(few.path / f"{name}{SUFFIX}", (number, number))
    assert few.read("first") is not None, "and used just now"
    few.write("fourth", [bytes(100)])
    left = {file.name.removesuffix(SUFFIX) for file in few.path.iterdir()}
    assert left == {"first", "third", "fourth"}


def test_what_is_larger_than_the_folder_may_be_is_not_kept(
    folder: CacheFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write("small", [b"1"])
    CacheFolder(folder.path, 100).write("large", [bytes(100)])
    assert folder.held().files == 1
    assert "are not kept" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="rights of POSIX")
def test_the_folder_is_for_its_user_alone(folder: CacheFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("one", [b"1"])
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / f"one{SUFFIX}").stat().st_mode & 0o777 == 0o600
    folder.path.chmod(0o755)
    assert folder.read("one") is not None
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.path.chmod(0o770)
    assert folder.read("one") is None, "others may have put it there"
    folder.write("two", [b"2"])
    assert [file.name for file in folder.path.iterdir()] == [f"one{SUFFIX}"]
    assert "others may write to it" in capsys.readouterr().err


def test_a_full_or_read_only_folder_is_no_trouble(
    folder: CacheFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    folder.write("one", [b"1"])
    for name, module in (("mkstemp", tempfile), ("replace", Path), ("utime", os)):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, full)
            folder.write("two", [b"2"])
            found = folder.read("one")
            assert found is not None
            assert bytes(found) == b"1"
        assert "No space left" in capsys.readouterr().err
    assert sorted(file.suffix for file in folder.path.iterdir()) == [SUFFIX, SUFFIX], "nothing half-written is left"
    monkeypatch.delenv("ADVISOR_DEBUG")
    monkeypatch.setattr(tempfile, "mkstemp", full)
    folder.write("three", [b"3"])
    assert capsys.readouterr().err == ""


def test_a_file_in_its_place_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file")
    blocked = CacheFolder(tmp_path / "blocked" / "ranks", 1 << 20)
    blocked.write("one", [b"1"])
    assert blocked.read("one") is None


def test_runs_at_the_same_time_meet_whole_files_only(folder: CacheFolder) -> None:
    """Each finds what was written, or nothing where another took it away; the folder has room for two of five."""
    few = CacheFolder(folder.path, 2 * 100_100)
    wrong: list[str] = []

    def run() -> None:
        for number in range(60):
            name = f"name{number % 5}"
            found = few.read(name)
            if found is not None and bytes(found) != name.encode() * 20_000:
                wrong.append(name)
            few.write(name, [name.encode() * 20_000])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert {file.suffix for file in few.path.iterdir()} == {SUFFIX}


def test_what_an_ended_process_left_is_taken_away(folder: CacheFolder) -> None:
    folder.write("one", [b"1"])
    for name, then in ((".old.writing", 1), (".new.writing", None)):
        (folder.path / name).write_text("half")
        if then is not None:
            os.utime(folder.path / name, (then, then))
    folder.write("two", [b"2"])
    assert {file.name for file in folder.path.iterdir()} == {f"one{SUFFIX}", f"two{SUFFIX}", ".new.writing"}
    assert folder.clear() == Held()
    assert list(folder.path.iterdir()) == []


def test_nothing_is_kept_where_nothing_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert rank_folder(0) is None
    found = rank_folder(1 << 20)
    assert found is not None
    assert found.path == tmp_path / "npu-advisor" / "ranks"
    assert found.held() == Held()
