"""What was read is kept, and never stands for anything else than what reading would give."""

from __future__ import annotations

import datetime
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor_core.text import kept as kept_module
from advisor_core.text.kept import VERSIONS_KEPT, cache_folder, kept

VALUE = {"name": "规则", "params": [{"value": 0.2, "on": True}, None, -3], 7: "seven"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, which is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "npu-advisor"


class Reader:
    """Gives a value, and counts how often it was asked."""

    def __init__(self, value: object = VALUE) -> None:
        self.value, self.asked = value, 0

    def __call__(self) -> object:
        self.asked += 1
        return self.value


def ask(read: Callable[[], object], *contents: bytes, code: str = __file__) -> Any:
    return kept("some", contents, code, read)


def test_what_was_read_once_is_not_read_again() -> None:
    read = Reader()
    assert repr(ask(read, b"one", b"two")) == repr(ask(read, b"one", b"two")) == repr(VALUE)
    assert read.asked == 1


def test_a_value_is_not_shared_between_those_who_ask() -> None:
    ask(Reader(), b"one")
    ask(Reader(), b"one")["params"].clear()
    assert ask(Reader(), b"one") == VALUE


@pytest.mark.parametrize("others", [(b"one", b"too"), (b"onet", b"wo"), (b"two", b"one"), (b"one",), ()])
def test_other_contents_are_read(others: tuple[bytes, ...]) -> None:
    ask(Reader(), b"one", b"two")
    assert ask(Reader("other"), *others) == "other"


def test_other_code_reads_anew(tmp_path: Path) -> None:
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    shutil.copy(__file__, before)
    after.write_bytes(before.read_bytes() + b"\n")
    ask(Reader(), b"one", code=str(before))
    assert ask(Reader("other"), b"one", code=str(after)) == "other"


def test_another_parser_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(Reader(), b"one")
    monkeypatch.setattr(kept_module, "_LIBRARIES", b"another")
    assert ask(Reader("other"), b"one") == "other"


def test_a_damaged_file_is_never_used(folder: Path) -> None:
    ask(Reader(), b"one")
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    cut = [whole[:length] for length in range(len(whole))]
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for damaged in [*cut, *changed, whole + b"\0"]:
        file.write_bytes(damaged)
        assert ask(Reader("other"), b"one") == "other"
    assert ask(Reader(), b"one") == "other", "what was read instead is kept"


def test_dates_and_what_else_does_not_come_back_are_read_each_time(folder: Path) -> None:
    for value in (datetime.date(2026, 1, 2), (1, 2), {"at": [datetime.date(2026, 1, 2)]}, object(), 1 << 80, "\ud800"):
        read = Reader(value)
        assert ask(read, repr(value).encode()) is value
        assert ask(read, repr(value).encode()) is value
        assert read.asked == 2
    assert not folder.exists()


def test_no_place_for_a_cache_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert ask(Reader(), b"one") == ask(Reader(), b"one") == VALUE
    monkeypatch.setattr(kept_module, "cache_folder", lambda: None)
    assert ask(Reader("other"), b"one") == "other"


def test_what_cannot_be_written_is_given_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert ask(Reader(), b"one") == VALUE
    assert list(folder.iterdir()) == []


def test_the_place_is_that_of_the_desktop_specification(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / ".cache" / "npu-advisor"


def test_runs_at_the_same_time_leave_whole_files(folder: Path) -> None:
    wrong: list[object] = []

    def run() -> None:
        for number in range(40):
            value = {"number": number, "text": "x" * 10_000}
            if ask(Reader(value), str(number).encode()) != value:
                wrong.append(number)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]


def test_a_few_versions_stay(folder: Path) -> None:
    kept("other", [b"one"], __file__, Reader())
    for number in range(VERSIONS_KEPT + 4):
        ask(Reader(number), str(number).encode())
    names = [file.name for file in folder.iterdir()]
    assert len([name for name in names if name.startswith("some-")]) == VERSIONS_KEPT
    assert len([name for name in names if name.startswith("other-")]) == 1
    read = Reader()
    assert ask(read, str(VERSIONS_KEPT + 3).encode()) == VERSIONS_KEPT + 3
    assert read.asked == 0
