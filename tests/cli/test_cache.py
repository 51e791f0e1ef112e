"""``advisor cache``, ``--no-cache`` and ``cache_gib``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor_core.cache import folder
from advisor_core.cli.main import cli
from advisor_core.run import kept_ranks
from tests.cache.rank import write_rank


@pytest.fixture
def rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_ranks, "rank_folder", folder.rank_folder)
    monkeypatch.chdir(tmp_path)
    return write_rank(tmp_path / "rank0_ascend_pt")


def advisor(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def files() -> int:
    (line,) = (line for line in advisor("cache", "info").output.splitlines() if line.startswith("files: "))
    return int(line.removeprefix("files: ").partition(",")[0])


def test_what_is_kept_is_told_and_deleted(rank: Path, tmp_path: Path) -> None:
    told = advisor("cache", "info")
    assert told.exit_code == 0
    assert told.output.splitlines() == [
        f"folder: {tmp_path / 'cache' / 'npu-advisor' / 'ranks'}",
        "files: 0, 0.0 MiB",
        "copies of files: 0, 0.0 MiB, from URLs",
        "limit: 2 GiB",
    ]
    assert advisor("run", rank, "-q").exit_code == 0
    assert files() == 3, "tables, what was measured, and the result"
    assert advisor("what-if", rank, "-q").exit_code == 2, "nothing can be replayed"
    assert files() == 3
    cleared = advisor("cache", "clear")
    assert cleared.output.startswith("deleted: files: 3, ")
    assert files() == 0


def test_nothing_is_kept_without_a_cache(rank: Path, tmp_path: Path) -> None:
    assert advisor("run", rank, "-q", "--no-cache").exit_code == 0
    assert advisor("compare", rank, rank, "-q", "--no-cache").exit_code == 0
    (tmp_path / "advisor.toml").write_text("cache_gib = 0\n")
    assert advisor("run", rank, "-q").exit_code == 0
    assert files() == 0
    assert "limit: 0, nothing is kept" in advisor("cache", "info").output
    assert "cache_gib" in advisor("config", "show").output
    (tmp_path / "advisor.toml").write_text("cache_gib = 0.5\n")
    assert "limit: 0.5 GiB" in advisor("cache", "info").output
    (tmp_path / "advisor.toml").write_text("cache_gib = -1\n")
    refused = advisor("cache", "info")
    assert refused.exit_code == 2
    assert "advisor.toml:1" in refused.output


def test_a_run_says_that_its_answer_was_kept(rank: Path) -> None:
    first, again = (advisor("run", rank, "-v") for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    assert ["--no-cache asks anew" in told.output for told in (first, again)] == [False, True]


def test_the_report_is_the_same_from_the_cache(rank: Path, tmp_path: Path) -> None:
    written = []
    for options in (["--no-cache"], [], []):
        assert advisor("run", rank, "-q", "--format", "html,md", "-o", tmp_path / "report", *options).exit_code == 0
        written.append([(tmp_path / "report" / name).read_bytes() for name in ("report.html", "report.md")])
    assert written[0] == written[1] == written[2]
    assert files() == 3


def test_a_folder_that_cannot_be_listed_is_told(rank: Path, tmp_path: Path) -> None:
    (tmp_path / "cache" / "npu-advisor").mkdir(parents=True)
    (tmp_path / "cache" / "npu-advisor" / "ranks").write_text("a file")
    assert advisor("run", rank, "-q").exit_code == 0
    for command in ("info", "clear"):
        told = advisor("cache", command)
        assert told.exit_code == 2
        assert "Not a directory" in told.output
