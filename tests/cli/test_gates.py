"""``--fail-on``, ``--baseline`` and the formats for programs, from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor_core.cli.main import cli


@pytest.fixture(scope="module")
def profile(shared_sample: Callable[..., Path]) -> Path:
    return shared_sample("late-rank-and-swiglu")


@pytest.fixture(scope="module")
def report(profile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("report")
    assert run(profile, "-o", str(target)).exit_code == 0
    return target


def run(profile: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["run", str(profile), "-q", *options])


def test_formats_for_programs_are_written_on_request_only(profile: Path, report: Path, tmp_path: Path) -> None:
    assert {file.name for file in report.iterdir()} == {"report.html", "report.md", "report.json"}
    assert run(profile, "-o", str(tmp_path), "--format", "sarif,junit").exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"report.sarif", "report.junit.xml"}


def test_a_timeline_is_written_on_request_and_the_report_links_to_it(profile: Path, tmp_path: Path) -> None:
    assert run(profile, "-o", str(tmp_path), "--format", "html,trace,timeline", "--redact").exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"report.html", "report.trace.json", "timeline.html"}
    trace = json.loads((tmp_path / "report.trace.json").read_text(encoding="utf-8"))
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "s", "f"}
    assert 'href="timeline.html#F1' in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="report.html#f-' in (tmp_path / "timeline.html").read_text(encoding="utf-8")


def test_what_was_accepted_passes_and_what_is_new_fails(profile: Path, report: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.yaml"
    written = CliRunner().invoke(cli, ["baseline", "write", str(report / "report.json"), str(baseline)])
    assert written.exit_code == 0 and baseline.is_file()
    gate = ("-o", str(tmp_path / "out"), "--format", "json", "--baseline", str(baseline))
    same = run(profile, *gate, "--fail-on", "new low", "--fail-on", "step_time > baseline + 1 %")
    assert same.exit_code == 0, same.output
    stricter = run(profile, *gate, "--fail-on", "new low", "--fail-on", "idle > 0.01 %")
    assert stricter.exit_code == 1 and "'idle > 0.01 %' holds" in stricter.output and "new low" not in stricter.output


def test_a_baseline_of_another_vendor_is_refused(profile: Path, report: Path, tmp_path: Path) -> None:
    """Exit code 3: no condition holds, and one cannot be decided."""
    baseline = tmp_path / "baseline.yaml"
    written = CliRunner().invoke(cli, ["baseline", "write", str(report / "report.json"), str(baseline)])
    text = baseline.read_text(encoding="utf-8")
    assert written.exit_code == 0 and "vendor: ascend" in text
    baseline.write_text(text.replace("vendor: ascend", "vendor: gpu"), encoding="utf-8")
    gate = ("-o", str(tmp_path / "out"), "--format", "json", "--baseline", str(baseline))
    refused = run(profile, *gate, "--fail-on", "step_time > baseline + 1 %")
    assert refused.exit_code == 3 and "another vendor (gpu, now ascend)" in refused.output
    assert (tmp_path / "out" / "report.json").is_file()


def test_runs_are_added_to_a_history_and_what_is_accepted_stays(report: Path, tmp_path: Path) -> None:
    baseline, result = tmp_path / "baseline.yaml", report / "report.json"
    write = ["baseline", "write", str(result), str(baseline)]
    first = CliRunner().invoke(cli, [*write, "--history"])
    assert first.exit_code == 2 and "without --history" in first.output
    assert CliRunner().invoke(cli, write).exit_code == 0
    accepted = baseline.read_text(encoding="utf-8").partition("\nhistory:")[0]
    outputs = [CliRunner().invoke(cli, [*write, "--history"]).output for _ in range(2)]
    assert [output.rpartition(" ")[2].strip() for output in outputs] == ["2", "3"]
    assert baseline.read_text(encoding="utf-8").partition("\nhistory:")[0] == accepted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fail-on", "idel > 3 %"), "neither step_time nor a path"),
        (("--fail-on", "new high"), "needs --baseline"),
        (("--baseline", "{report}"), "there is none"),
        (("--baseline", "{report}", "--fail-on", "high"), "is no baseline"),
    ],
)
def test_mistakes_stop_before_the_run(profile: Path, report: Path, options: tuple[str, ...], said: str) -> None:
    found = run(profile, *(option.format(report=report / "report.json") for option in options))
    assert found.exit_code == 2 and said in found.output and "rank 0" not in found.output
