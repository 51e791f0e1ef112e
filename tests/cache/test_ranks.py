"""A rank is taken from the cache as it was read, and read anew whenever anything of it may have changed."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.cache import fingerprint, names
from advisor_core.cache.folder import SUFFIX, CacheFolder
from advisor_core.cache.ranks import kept_rank
from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.loaders.ascend_pytorch import text
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.plugins.guarded_loaders import loaders
from advisor_core.run.prepared import installed_host
from tests.cache.rank import KERNELS, TRACE, write

REAL = (
    *("ascend/alexnet-ddp-text-level1", "ascend/alexnet-ddp-db-level1", "ascend/msprof-op-summary"),
    *("ascend/mindspore-alexnet-2-ranks-msprof", "kineto/trace-diff", "kineto/resnet50-workers-4"),
)
"""Recordings of each kind."""


class Counting:
    """A loader that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, source: RankInput) -> Profile:
        self.asked += 1
        return AscendPytorchLoader().load(source)


def source_of(directory: Path) -> RankInput:
    (source,) = AscendPytorchLoader().discover(directory)
    return source


def asked_again(folder: CacheFolder, directory: Path) -> int:
    """How often the rank is read when it is asked for."""
    load = Counting()
    kept_rank(folder, source_of(directory), load)
    return load.asked


def same(one: Profile, other: Profile) -> None:
    """Both are the same to the last bit, dtype and order of categories."""
    assert list(one.tables) == list(other.tables)
    for name, table in one.tables.items():
        again = other.tables[name]
        pd.testing.assert_frame_equal(table.frame, again.frame, check_exact=True)
        assert table.frame.columns.dtype == again.frame.columns.dtype == object
        for column, values in table.frame.items():
            if isinstance(values.dtype, pd.CategoricalDtype):
                assert again.frame[column].cat.codes.dtype == values.cat.codes.dtype
                assert again.frame[column].cat.categories.tolist() == values.cat.categories.tolist()
        rows = np.unique(np.linspace(0, max(len(table.frame) - 1, 0), 20).astype(np.int64))[: len(table.frame)]
        assert again.positions(rows).tolist() == table.positions(rows).tolist()
        assert list(again.tables(rows)) == list(table.tables(rows))
        assert (again.source.file, again.source.sha256) == (table.source.file, table.source.sha256)
    plain = [name for name in Profile.__dataclass_fields__ if name not in ("tables", "vocabulary")]
    assert [getattr(one, name) for name in plain] == [getattr(other, name) for name in plain]


def test_a_rank_is_read_once(folder: CacheFolder, rank: Path) -> None:
    load, source = Counting(), source_of(rank)
    first = kept_rank(folder, source, load).profile
    again = kept_rank(folder, source, load).profile
    assert load.asked == 1
    assert {"kernels", "host_events"} <= again.tables.keys()
    same(first, again)
    numbers = again.tables["kernels"].frame["duration_ns"].to_numpy()
    assert not numbers.flags.owndata, "mapped, not copied"


def test_what_was_mapped_stays_when_its_file_is_evicted(folder: CacheFolder, rank: Path) -> None:
    kept_rank(folder, source_of(rank), Counting())
    again = kept_rank(folder, source_of(rank), Counting()).profile
    assert folder.clear().files == 0
    assert again.tables["kernels"].frame["duration_ns"].tolist() == [5125, 6125, 7125]
    assert asked_again(folder, rank) == 1


def grown(rank: Path) -> None:
    write(rank / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", KERNELS + "add,Add,AI_CORE,2000.000,1.000,\n")


def touched(rank: Path) -> None:
    write(rank / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", KERNELS, seconds=20)


def replaced(rank: Path) -> None:
    """By another file of the same size, whose time is set to that of the first to the nanosecond."""
    file = rank / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    before = file.stat()
    file.with_suffix(".new").write_text(KERNELS.replace("5.125", "9.125"))
    file.with_suffix(".new").replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def added(rank: Path) -> None:
    write(rank / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv", "Step,Computing\n1,20\n")


def described(rank: Path) -> None:
    """Three levels down, where the driver describes the device."""
    (rank / "PROF_000001_2024_AB" / "device_0").mkdir(parents=True)
    write(rank / "PROF_000001_2024_AB" / "device_0" / "info.json.0", "{}")


def taken_away(rank: Path) -> None:
    (rank / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()


def without_leave(rank: Path) -> None:
    (rank / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").chmod(0)


@pytest.mark.parametrize("change", [grown, touched, replaced, added, described, taken_away, without_leave])
def test_a_changed_rank_is_read_anew(folder: CacheFolder, rank: Path, change: Callable[[Path], None]) -> None:
    assert [asked_again(folder, rank) for _ in range(2)] == [1, 0]
    change(rank)
    assert asked_again(folder, rank) == 1


def test_a_file_that_is_being_written_is_not_kept(folder: CacheFolder, rank: Path) -> None:
    """Half of it was read; the rest may follow within the same tick of the clock of its file system."""
    half = TRACE[: len(TRACE) // 2]
    write(rank / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", half, seconds=0)
    assert [asked_again(folder, rank) for _ in range(2)] == [1, 1]
    write(rank / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", TRACE, seconds=0)
    whole = kept_rank(folder, source_of(rank), Counting()).profile
    assert len(whole.tables["host_events"].frame) == 2


def test_a_file_that_changes_while_it_is_read_is_not_kept(folder: CacheFolder, rank: Path) -> None:
    def load(source: RankInput) -> Profile:
        profile = AscendPytorchLoader().load(source)
        grown(rank)
        return profile

    kept_rank(folder, source_of(rank), load)
    assert asked_again(folder, rank) == 1


def test_a_file_that_could_not_be_read_is_asked_for_again(
    folder: CacheFolder, rank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that did not answer may do so the next time, though nothing of the file changes."""

    def fails_for_the_trace(path: Path) -> HashedFile:
        if path.name == "trace_view.json":
            raise OSError(5, "Input/output error")
        return HashedFile(path)

    with monkeypatch.context() as patched:
        patched.setattr(text, "HashedFile", fails_for_the_trace)
        profile = kept_rank(folder, source_of(rank), Counting()).profile
    assert "host_events" not in profile.tables
    assert asked_again(folder, rank) == 1


def test_other_code_and_other_libraries_read_anew(
    folder: CacheFolder, rank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked_again(folder, rank) == 1
    monkeypatch.setattr(names, "code_digest", lambda: "another")
    assert asked_again(folder, rank) == 1


def test_the_code_is_told_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "loaders").mkdir()
    write(tmp_path / "loaders" / "words.yaml", "one")
    before = fingerprint._sources(tmp_path, "")
    write(tmp_path / "loaders" / "words.yaml", "two", seconds=20)
    assert fingerprint._sources(tmp_path, "") != before
    ours = fingerprint._sources(Path(names.__file__).parents[1], "")
    assert any(line.startswith(b"loaders/readers/csv_file.py ") for line in ours)


def test_a_rank_is_kept_as_the_user_called_it(folder: CacheFolder, rank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of files in a report are relative to the path that was given."""
    assert asked_again(folder, rank) == 1
    assert asked_again(folder, rank.parent) == 1
    monkeypatch.chdir(rank.parent)
    assert asked_again(folder, Path(rank.name)) == 1
    assert asked_again(folder, Path(rank.name)) == 0


@pytest.mark.parametrize("part", [0, 0.1, 0.3, 0.6, 0.9, 1])
def test_a_damaged_file_is_dropped(folder: CacheFolder, rank: Path, part: float) -> None:
    asked_again(folder, rank)
    (file,) = folder.path.iterdir()
    whole = file.read_bytes()
    at = min(int(part * len(whole)), len(whole) - 1)
    for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
        file.write_bytes(damaged)
        assert asked_again(folder, rank) == 1
        assert file.read_bytes() == whole, "and written anew"


def test_a_whole_file_of_something_else_is_dropped(folder: CacheFolder, rank: Path) -> None:
    asked_again(folder, rank)
    (file,) = folder.path.iterdir()
    for other in (b"no pickle", pickle.dumps("nothing"), pickle.dumps((1, {"no table": 2}, {}))):
        folder.write(file.name.removesuffix(SUFFIX), [other, len(other).to_bytes(8, "little")])
        assert asked_again(folder, rank) == 1


def test_a_directory_of_too_many_files_is_read_each_time(
    folder: CacheFolder, rank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "MOST_ENTRIES", 1)
    assert [asked_again(folder, rank) for _ in range(2)] == [1, 1]
    assert not folder.path.exists()


def test_links_are_followed_and_may_lead_nowhere_or_in_a_circle(
    folder: CacheFolder, rank: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere"
    (rank / "ASCEND_PROFILER_OUTPUT").rename(moved)
    (rank / "ASCEND_PROFILER_OUTPUT").symlink_to(moved)
    (rank / "nowhere").symlink_to(tmp_path / "absent")
    os.utime(rank / "nowhere", (1, 1), follow_symlinks=False)
    (rank / "circle").symlink_to(rank)
    assert [asked_again(folder, rank) for _ in range(2)] == [1, 0]
    write(moved / "kernel_details.csv", KERNELS, seconds=30)
    assert asked_again(folder, rank) == 1


def test_every_file_that_a_loader_opens_is_looked_at(profiles: Path) -> None:
    """Of real recordings of each kind: a file that is not looked at could change unseen."""
    opened: list[Path] = []
    listening = True

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event in ("open", "sqlite3.connect") and isinstance(arguments[0], str | os.PathLike):
            opened.append(Path(os.fspath(arguments[0]).removeprefix("file://").partition("?")[0]))

    host = installed_host()
    sys.addaudithook(listen)  # which cannot be taken away again
    try:
        for name in REAL:
            for source in discover(loaders(host), profiles / name):
                opened.clear()
                host.loaders[source.loader].load(source)
                above = source.directory if source.directory.is_dir() else source.directory.parent
                known = {above / name for name, _ in fingerprint._entries(source.directory)}
                own = {path for path in opened if path.is_relative_to(above)}
                assert own
                assert own <= known
                assert not {path for path in opened if path.is_relative_to(profiles)} - own
    finally:
        listening = False


def test_real_recordings_come_back_as_they_were_read(profiles: Path, tmp_path: Path) -> None:
    host = installed_host()
    folder = CacheFolder(tmp_path / "cache", 1 << 30)
    for name in REAL:
        for source in discover(loaders(host), profiles / name):
            load = host.loaders[source.loader].load
            first = kept_rank(folder, source, load).profile
            same(first, kept_rank(folder, source, _never).profile)


def _never(source: RankInput) -> Profile:
    raise AssertionError(f"{source.directory} is read again")


def test_the_time_of_this_machine_counts(rank: Path) -> None:
    files = fingerprint.files_of(rank)
    assert files is not None
    assert files.settled(time.time_ns())
    assert not files.settled(files.newest_ns + fingerprint.SETTLED_NS)
