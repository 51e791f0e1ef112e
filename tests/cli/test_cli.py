"""The command line as a user meets it: output, exit codes, and that the input is left alone."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from advisor_core.result.run import RunResult
from tests.robustness.command import Done, advise


def advisor(*arguments: object, cwd: Path | None = None) -> Done:
    """The command in this process: one of its own takes a second more to begin."""
    with contextlib.chdir(cwd or Path.cwd()):
        return advise(*arguments)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


FEW = ("--select", "HD,CO")
"""Which rules are judged makes no difference to where and how reports are written."""


@pytest.fixture(scope="module")
def report(advisor_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = contents(advisor_sample)
    target = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "advisor_core", "run", str(advisor_sample), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(target / "report.html") in done.stdout
    assert contents(advisor_sample) == before
    return target


def test_run_writes_three_files_and_the_result_fits_its_schema(report: Path) -> None:
    assert {path.name for path in report.iterdir()} == {"report.html", "report.md", "report.json"}
    result = json.loads((report / "report.json").read_text(encoding="utf-8"))
    jsonschema.validate(result, json.loads(advisor("result-schema").out))
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


def test_jobs_do_not_change_a_byte(short_job: Path, tmp_path: Path) -> None:
    results = []
    for jobs in (1, 2):
        target = tmp_path / str(jobs)
        assert advisor("run", short_job, *FEW, "-o", target, "--format", "json", "--jobs", jobs).code == 0
        result = json.loads((target / "report.json").read_text(encoding="utf-8"))
        del result["timings"]
        results.append(json.dumps(result))
    assert results[0] == results[1]


def test_explain_finding_rule_and_ledger_entry(report: Path) -> None:
    result = RunResult.model_validate_json((report / "report.json").read_bytes())
    finding = result.findings[0]
    told = advisor("explain", report / "report.json", finding.fingerprint)
    assert told.code == 0 and finding.condition in told.out
    assert advisor("explain", report / "report.json", result.rules[0].rule).code == 0
    ledger = advisor("explain", report / "report.json", "idle")
    assert ledger.code == 0 and "ended by" in ledger.out
    assert advisor("explain", report / "report.json", "nonsense").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "nowhere"], 3, "nowhere"),
        (["run", "strange://bucket/job"], 3, "strange://bucket/job: ValueError: Protocol not known"),
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
    assert done.code == code, done.err
    assert words in done.err
    assert "Traceback" not in done.err


def test_fail_on_is_a_gate(short_job: Path, tmp_path: Path) -> None:
    assert advisor("run", short_job, *FEW, "-o", tmp_path, "--fail-on", "low").code == 1


def test_help_needs_no_pandas() -> None:
    code = "import sys, advisor_core.cli.main; sys.exit('pandas' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rules_and_plugins(tmp_path: Path) -> None:
    listed = advisor("rules", "list")
    assert listed.code == 0 and "HD001" in listed.out
    assert "params." in advisor("rules", "show", "HD001").out
    schema = json.loads(advisor("rules", "schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    plugins = json.loads(advisor("plugins", "--json").out)
    assert {"ascend", "advisors", "rulesets", "reports"} <= {plugin["name"] for plugin in plugins}
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("id: HD900\nname: x\nadvisor: host_dispatch.idle\nwhen: idel_share > 1\n", encoding="utf-8")
    checked = advisor("rules", "check", wrong)
    assert checked.code == 1 and "wrong.yaml:" in checked.err


def test_advisors_are_listed_with_their_columns() -> None:
    listed = advisor("advisors", "list")
    assert listed.code == 0 and "host_dispatch.idle" in listed.out
    shown = advisor("advisors", "show", "host_dispatch.sync_calls")
    assert "* operator" in shown.out and "saved_ns" in shown.out and "needs: steps" in shown.out
    unknown = advisor("advisors", "show", "host_dispatch.idel")
    assert unknown.code == 2 and "did you mean 'host_dispatch.idle'?" in unknown.err


def test_problems_of_rule_files_for_programs(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("override: HD999\n", encoding="utf-8")
    done = advisor("rules", "check", tmp_path, "--format", "json")
    assert done.code == 1
    (problem,) = json.loads(done.out)
    assert problem["line"] == 1 and "HD999" in problem["message"] and problem["severity"] == "error"


def test_one_format_to_stdout(short_job: Path, tmp_path: Path) -> None:
    done = advisor("run", short_job, *FEW, "-o", "-", "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert RunResult.model_validate_json(done.out).rules
    assert "Rules:" in done.err and "Report:" not in done.err
    assert not list(tmp_path.iterdir())
    several = advisor("run", short_job, *FEW, "-o", "-", cwd=tmp_path)
    assert several.code == 2 and "--format" in several.err and not several.out


def test_a_folder_may_have_the_name_of_stdout(short_job: Path, tmp_path: Path) -> None:
    assert advisor("run", short_job, *FEW, "-o", "./-", "--format", "md", cwd=tmp_path).code == 0
    assert (tmp_path / "-" / "report.md").is_file()


def test_quiet_and_verbose(short_job: Path, tmp_path: Path) -> None:
    quiet = advisor("run", short_job, *FEW, "-o", tmp_path, "--format", "md", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert (tmp_path / "report.md").is_file()
    verbose = advisor("run", short_job, *FEW, "-o", tmp_path, "--format", "md", "-v", "--no-cache")
    assert verbose.code == 0 and "total: " in verbose.err and "rank 0: " in verbose.err
    assert advisor("run", short_job, *FEW, "-q", "-v").code == 2


def test_quiet_still_says_what_is_wrong(tmp_path: Path) -> None:
    done = advisor("run", tmp_path, "-q")
    assert done.code == 3 and str(tmp_path) in done.err


def test_reports_of_an_earlier_run_are_named(short_job: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("of before", encoding="utf-8")
    done = advisor("run", short_job, *FEW, "-o", tmp_path, "--format", "md")
    assert done.code == 0 and f"{tmp_path / 'report.html'} is of an earlier run" in done.err


def test_input_that_can_be_read_but_not_judged(tmp_path: Path) -> None:
    """A recording that lost all but the sums of its communication: the message says what is there and what is not."""
    profile = tmp_path / "node_1_20250109074803600_ascend_pt"
    output = profile / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    with sqlite3.connect(output / "analysis.db") as database:
        database.execute("CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT)")
    database.close()
    done = advisor("run", profile, "-o", tmp_path / "report")
    assert done.code == 3
    assert "analysis.db" in done.err and "ascend_pytorch_profiler_*.db" in done.err
    assert not (tmp_path / "report").exists()


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "advisor_core", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("advisor, version ")
