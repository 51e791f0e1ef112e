"""The command line as a user meets it: output, exit codes, and that the input is left alone."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from advisor_core.result.run import RunResult


def advisor(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "advisor_core", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def report(advisor_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = contents(advisor_sample)
    target = tmp_path_factory.mktemp("report")
    done = advisor("run", advisor_sample, "-o", target)
    assert done.returncode == 0, done.stderr
    assert str(target / "report.html") in done.stdout
    assert contents(advisor_sample) == before
    return target


def test_run_writes_three_files_and_the_result_fits_its_schema(report: Path) -> None:
    assert {path.name for path in report.iterdir()} == {"report.html", "report.md", "report.json"}
    result = json.loads((report / "report.json").read_text(encoding="utf-8"))
    jsonschema.validate(result, json.loads(advisor("result-schema").stdout))
    assert RunResult.model_validate(result).findings


def test_the_ledger_of_the_sample_sums_to_the_step(report: Path) -> None:
    result = RunResult.model_validate_json((report / "report.json").read_bytes())
    assert result.ledger
    for step in result.ledger:
        assert sum(entry.ns for entry in step.entries) == step.wall_ns
        assert all(entry.ns > 0 for entry in step.entries)


def test_impacts_of_a_rank_never_exceed_its_step(report: Path) -> None:
    result = RunResult.model_validate_json((report / "report.json").read_bytes())
    for rank in result.profile.ranks:
        walls = [step.wall_ns for step in result.ledger if step.rank == rank]
        claimed = sum(f.impact.ns_per_step for f in result.findings if f.rank == rank)
        assert claimed <= sum(walls) / len(walls)


def test_jobs_do_not_change_a_byte(advisor_sample: Path, tmp_path: Path) -> None:
    results = []
    for jobs in (1, 2):
        target = tmp_path / str(jobs)
        assert advisor("run", advisor_sample, "-o", target, "--format", "json", "--jobs", jobs).returncode == 0
        result = json.loads((target / "report.json").read_text(encoding="utf-8"))
        del result["timings"]
        results.append(json.dumps(result))
    assert results[0] == results[1]


def test_explain_finding_rule_and_ledger_entry(report: Path) -> None:
    result = RunResult.model_validate_json((report / "report.json").read_bytes())
    finding = result.findings[0]
    told = advisor("explain", report / "report.json", finding.fingerprint)
    assert told.returncode == 0 and finding.condition in told.stdout
    assert advisor("explain", report / "report.json", result.rules[0].rule).returncode == 0
    ledger = advisor("explain", report / "report.json", "idle")
    assert ledger.returncode == 0 and "ended by" in ledger.stdout
    assert advisor("explain", report / "report.json", "nonsense").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "nowhere"], 3, "nowhere"),
        (["run", "s3://bucket/job"], 3, "URLs are not read"),
        (["run", "empty"], 3, "empty"),
        (["run", "sample", "--format", "pdf"], 2, "pdf"),
        (["run", "sample", "--select", "QQ999"], 2, "QQ999"),
        (["run", "sample", "--set", "nonsense"], 2, "ID.param=VALUE"),
        (["run", "sample", "--rank", "77"], 2, "77"),
        (["run", "sample", "--step", "77"], 2, "77"),
        (["run", "sample", "-o", "sample/report"], 2, "inside"),
        (["run"], 2, "PATH"),
        (["sample", "sample"], 2, "not empty"),
        (["sample", "new", "--scenario", "nonsense"], 2, "transformer-training"),
    ],
)
def test_wrong_use_says_what_is_wrong(
    advisor_sample: Path, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "sample").symlink_to(advisor_sample)
    done = advisor(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_fail_on_is_a_gate(advisor_sample: Path, tmp_path: Path) -> None:
    assert advisor("run", advisor_sample, "-o", tmp_path, "--fail-on", "high").returncode == 1


def test_help_needs_no_pandas() -> None:
    code = "import sys, advisor_core.cli.main; sys.exit('pandas' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rules_and_plugins(tmp_path: Path) -> None:
    listed = advisor("rules", "list")
    assert listed.returncode == 0 and "HD001" in listed.stdout
    assert "params." in advisor("rules", "show", "HD001").stdout
    schema = json.loads(advisor("rules", "schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    plugins = json.loads(advisor("plugins", "--json").stdout)
    assert {"ascend", "advisors", "rulesets", "reports"} <= {plugin["name"] for plugin in plugins}
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("id: HD900\nname: x\nadvisor: host_dispatch.idle\nwhen: idel_share > 1\n", encoding="utf-8")
    checked = advisor("rules", "check", wrong)
    assert checked.returncode == 1 and "wrong.yaml:" in checked.stderr


def test_advisors_are_listed_with_their_columns() -> None:
    listed = advisor("advisors", "list")
    assert listed.returncode == 0 and "host_dispatch.idle" in listed.stdout
    shown = advisor("advisors", "show", "host_dispatch.sync_calls")
    assert "* operator" in shown.stdout and "saved_ns" in shown.stdout and "needs: steps" in shown.stdout
    unknown = advisor("advisors", "show", "host_dispatch.idel")
    assert unknown.returncode == 2 and "did you mean 'host_dispatch.idle'?" in unknown.stderr


def test_problems_of_rule_files_for_programs(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("override: HD999\n", encoding="utf-8")
    done = advisor("rules", "check", tmp_path, "--format", "json")
    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)
    assert problem["line"] == 1 and "HD999" in problem["message"] and problem["severity"] == "error"


def test_one_format_to_stdout(advisor_sample: Path, tmp_path: Path) -> None:
    done = advisor("run", advisor_sample, "-o", "-", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert RunResult.model_validate_json(done.stdout).findings
    assert "Rules:" in done.stderr and "Report:" not in done.stderr
    assert not list(tmp_path.iterdir())
    several = advisor("run", advisor_sample, "-o", "-", cwd=tmp_path)
    assert several.returncode == 2 and "--format" in several.stderr and not several.stdout


def test_a_folder_may_have_the_name_of_stdout(advisor_sample: Path, tmp_path: Path) -> None:
    assert advisor("run", advisor_sample, "-o", "./-", "--format", "md", cwd=tmp_path).returncode == 0
    assert (tmp_path / "-" / "report.md").is_file()


def test_quiet_and_verbose(advisor_sample: Path, tmp_path: Path) -> None:
    quiet = advisor("run", advisor_sample, "-o", tmp_path, "--format", "md", "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert (tmp_path / "report.md").is_file()
    verbose = advisor("run", advisor_sample, "-o", tmp_path, "--format", "md", "-v", "--no-cache")
    assert verbose.returncode == 0 and "total: " in verbose.stderr and "rank 0: " in verbose.stderr
    assert advisor("run", advisor_sample, "-q", "-v").returncode == 2


def test_quiet_still_says_what_is_wrong(tmp_path: Path) -> None:
    done = advisor("run", tmp_path, "-q")
    assert done.returncode == 3 and str(tmp_path) in done.stderr


def test_reports_of_an_earlier_run_are_named(advisor_sample: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("of before", encoding="utf-8")
    done = advisor("run", advisor_sample, "-o", tmp_path, "--format", "md")
    assert done.returncode == 0 and f"{tmp_path / 'report.html'} is of an earlier run" in done.stderr


def test_input_that_can_be_read_but_not_judged(tmp_path: Path) -> None:
    """A recording that lost all but the sums of its communication: the message says what is there and what is not."""
    profile = tmp_path / "node_1_20250109074803600_ascend_pt"
    output = profile / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    with sqlite3.connect(output / "analysis.db") as database:
        database.execute("CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT)")
    database.close()
    done = advisor("run", profile, "-o", tmp_path / "report")
    assert done.returncode == 3
    assert "analysis.db" in done.stderr and "ascend_pytorch_profiler_*.db" in done.stderr
    assert not (tmp_path / "report").exists()


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "advisor_core", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("advisor, version ")
