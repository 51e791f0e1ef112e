"""Commands on URLs: the same report as of a folder, and errors that name the URL."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor_core.cache.folder import rank_folder
from advisor_core.cli.console import EXIT_INPUT, EXIT_USAGE
from advisor_core.cli.main import cli
from advisor_core.run import kept_ranks
from tests.cache.rank import write_rank
from tests.remote.store import Shelf


def advisor(*arguments: str | Path) -> Result:
    command = [str(argument) for argument in arguments]
    return CliRunner().invoke(cli, [command[0], "--no-config", *command[1:]])


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for rank in range(2):
        write_rank(tmp_path / "job" / f"rank{rank}_ascend_pt")
    return tmp_path / "job"


def test_the_report_of_a_url_is_that_of_a_folder(
    job: Path, tmp_path: Path, shelf: type[Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_ranks, "rank_folder", rank_folder)
    url = shelf.put_all(job, "bucket/job")
    told = {}
    for name, place in (("disk", str(job)), ("url", url), ("again", f"{url}/")):
        done = advisor("run", place, "-o", tmp_path / name, "--jobs", "1")
        assert done.exit_code == 0, done.output
        report = json.loads((tmp_path / name / "report.json").read_bytes())
        told[name] = {**report, "timings": {}}, (tmp_path / name / "report.html").read_bytes(), done.output
        assert str(tmp_path / "cache") not in done.output + json.dumps(report)
    assert told["disk"][:2] == told["url"][:2] == told["again"][:2]
    assert f"rank 0: {url}/rank0_ascend_pt" in told["url"][2]
    assert set(shelf.opened.values()) == {1} and "rank0_ascend_pt\n" not in told["again"][2], "nothing is read"
    shelf.files["bucket/report.json"] = (tmp_path / "disk" / "report.json").read_bytes()
    done = advisor("compare", "shelf://bucket/report.json", url, "-o", "-", "--format", "md")
    assert done.exit_code == 0 and "`report.json`" in done.stdout and "advisor-remote" not in done.output


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["run", "shelf://nothing"], EXIT_INPUT, "shelf://nothing: no such file or directory"),
        (["run", "shelf://other"], EXIT_INPUT, "shelf://other: no profile in it or below it"),
        (["what-if", "shelf://unread_ascend_pt"], EXIT_INPUT, "analyse('shelf://unread_ascend_pt')"),
        (["compare", "shelf://report.json", "shelf://other"], EXIT_INPUT, "shelf://report.json is not a report.json"),
        (["compare", "shelf://other/b.yaml", "shelf://other"], EXIT_INPUT, "shelf://other/b.yaml"),
    ],
)
def test_errors_name_the_url(
    arguments: list[str], code: int, told: str, shelf: type[Shelf], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shelf.files |= {"other/x.txt": b"", "other/b.yaml": b"a: [", "unread_ascend_pt/profiler_info.json": b"{}"}
    shelf.files["report.json"] = b'{"schema_version": 1'
    done = advisor(*arguments)
    assert done.exit_code == code and told in done.output and "advisor-remote" not in done.output


def test_a_rank_that_cannot_be_copied_is_a_diagnostic(job: Path, tmp_path: Path, shelf: type[Shelf]) -> None:
    url = shelf.put_all(job, "bucket/job")
    large = "bucket/job/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
    shelf.files[large] += b" " * 100_000
    shelf.breaks_after = 99_000
    done = advisor("run", url, "-o", tmp_path / "report", "--jobs", "1")
    assert done.exit_code == 0 and "trace_view.json" in done.output and "the server has gone" in done.output
    done = advisor("run", url, "-o", tmp_path / "report", "--jobs", "1", "--redact")
    report = (tmp_path / "report" / "report.json").read_text()
    assert "shelf://host1/job/rank1_ascend_pt" in report and "bucket/job" not in report
    shelf.files = {large: shelf.files[large]}
    done = advisor("run", url, "-o", tmp_path / "nothing", "--no-cache")
    assert done.exit_code == EXIT_INPUT and "the server has gone" in done.output
    assert not (tmp_path / "nothing").exists() and "advisor-remote" not in done.output


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    done = advisor("run", "s3://bucket/job")
    assert done.exit_code == EXIT_USAGE and 'pip install "npu-advisor[remote]"' in done.output
