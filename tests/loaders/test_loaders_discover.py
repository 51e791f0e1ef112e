from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover

KERNELS = "Name,Start Time(us),Duration(us)\nk,1.000\t,2\n"


def make(directory: Path, info: str | None = None, content: str = KERNELS) -> Path:
    output = directory / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text(content)
    if info:
        (directory / info).write_text("{}")
    return directory


def found(path: Path) -> list[RankInput]:
    return discover([AscendPytorchLoader()], path)


def test_all_kinds_of_path(tmp_path: Path) -> None:
    profile = make(tmp_path / "job" / "a_ascend_pt", "profiler_info_3.json")
    output = profile / "ASCEND_PROFILER_OUTPUT"
    for path in (profile, output, output / "kernel_details.csv", tmp_path, tmp_path / "job"):
        (source,) = found(path)
        assert (source.rank, source.directory, source.root) == (3, profile, path)
        assert source.bytes == len(KERNELS) and source.loader == "ascend_pytorch"
        loaded = AscendPytorchLoader().load(source)
        assert loaded.tables["kernels"].frame["name"].tolist() == ["k"]
        assert loaded.path == ("job/a_ascend_pt" if path == tmp_path else "a_ascend_pt")
        relative = loaded.tables["kernels"].source.file
        assert (path if path.is_dir() else path.parent) / relative == output / "kernel_details.csv"
        assert [file.name for file in loaded.files if "kernel" in file.name] == [
            "ASCEND_PROFILER_OUTPUT/kernel_details.csv"
        ]


def test_files_without_their_directory(tmp_path: Path) -> None:
    (tmp_path / "kernel_details.csv").write_text(KERNELS)
    (source,) = found(tmp_path)
    assert source.directory == tmp_path and source.rank == 0
    assert list(AscendPytorchLoader().load(source).tables) == ["kernels"]


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = make(tmp_path / "a_ascend_pt")
    for folder, path in ((profile, "."), (profile / "ASCEND_PROFILER_OUTPUT", "."), (tmp_path, "a_ascend_pt")):
        monkeypatch.chdir(folder)
        (source,) = found(Path(path))
        assert AscendPytorchLoader().load(source).path == "a_ascend_pt"
    monkeypatch.chdir(profile / "ASCEND_PROFILER_OUTPUT")
    assert found(Path("kernel_details.csv"))[0].bytes == len(KERNELS)


def test_ranks_and_order(tmp_path: Path) -> None:
    for name, info in (("b", "profiler_info_0.json"), ("deep/er/a", None), ("c", "profiler_info_10.json"), ("z", None)):
        make(tmp_path / f"{name}_ascend_pt", info)
    assert [(s.rank, s.directory.name) for s in found(tmp_path)] == [
        (0, "b_ascend_pt"),
        (1, "a_ascend_pt"),
        (2, "z_ascend_pt"),
        (10, "c_ascend_pt"),
    ]


def test_links_in_a_circle(tmp_path: Path) -> None:
    make(tmp_path / "x" / "a_ascend_pt")
    (tmp_path / "x" / "again").symlink_to(tmp_path)
    (tmp_path / "also").symlink_to(tmp_path / "x")
    assert len(found(tmp_path)) == 1


def test_duplicate_rank_names_both(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / f"{name}_ascend_pt", "profiler_info_1.json")
    with pytest.raises(InputError, match=r"rank 1 .*one_ascend_pt.*two_ascend_pt"):
        found(tmp_path)


def test_not_a_profile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone: no such file"):
        found(tmp_path / "gone")
    with pytest.raises(InputError, match="is empty"):
        found(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match="no profile in it"):
        found(tmp_path)
    with pytest.raises(InputError, match="not a file of a known kind"):
        found(tmp_path / "notes.txt")


def test_profiles_that_cannot_be_used(tmp_path: Path) -> None:
    output = tmp_path / "a_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    with pytest.raises(InputError, match="the profile is empty"):
        found(tmp_path)
    (output / "cluster_analysis.db").write_text("")
    with pytest.raises(InputError, match="none of the expected files"):
        found(tmp_path / "a_ascend_pt")
    raw = tmp_path / "raw" / "b_ascend_pt"
    (raw / "PROF_000001_20250101000000000_ABC").mkdir(parents=True)
    with pytest.raises(InputError, match="analyse"):
        found(raw)
    (tmp_path / "m_ascend_ms" / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    with pytest.raises(InputError, match="MindSpore"):
        found(tmp_path / "m_ascend_ms")


def test_text_and_db_are_one_profile(tmp_path: Path) -> None:
    profile = make(tmp_path / "a_ascend_pt")
    (profile / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_4.db").write_text("")
    (source,) = found(profile)
    assert source.rank == 4
    loaded = AscendPytorchLoader().load(source)  # the empty database is said, and costs nothing that the text has
    assert list(loaded.tables) == ["kernels"]
    assert [d.message.en for d in loaded.diagnostics if d.severity == "error"] == [
        "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_4.db is empty"
    ]


def test_a_directory_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> object:
        raise PermissionError(13, "Permission denied", str(self))

    make(tmp_path / "a_ascend_pt")
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        found(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_no_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trace_view.json")
    (source,) = found(tmp_path / "trace_view.json")
    with pytest.raises(InputError, match=r"nothing in this profile can be used.*not a regular file"):
        AscendPytorchLoader().load(source)
