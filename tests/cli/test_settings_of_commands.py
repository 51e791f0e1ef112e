"""``advisor.toml`` from outside: what options it stands for, and what is stronger."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor_core.cli.main import cli
from advisor_core.result.run import RunResult

SETTINGS = """\
format = ["json"]
output = "out"
fail_on = ["high"]

[ignore]
DQ003 = "stacks are *wanted*"

[set]
HD001.idle_share = "30 %"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "advisor.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def advisor(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_a_run_follows_the_settings_and_says_so(advisor_sample: Path, project: Path) -> None:
    done = advisor("run", advisor_sample, "--rank", 0)
    assert done.exit_code == 1 and "advisor.toml:3 (fail_on) 'high' holds" in done.output
    assert f"settings: {project / 'advisor.toml'}" in done.output
    assert [file.name for file in (project / "out").iterdir()] == ["report.json"]
    rules = {
        rule.rule: rule for rule in RunResult.model_validate_json((project / "out" / "report.json").read_bytes()).rules
    }
    assert rules["HD001"].params["idle_share"] == 0.3 and rules["HD001"].set_by == {"idle_share": "advisor.toml:9"}
    assert rules["DQ003"].state == "left_out" and rules["DQ003"].reason is not None
    assert "advisor.toml:6 (ignore): stacks are" in rules["DQ003"].reason.en.replace("\\", "")


@pytest.mark.parametrize("line", ['HD001.idle_share = "x"', "HD001.nope = 1", "XX999.a = 1"])
@pytest.mark.parametrize("command", [("rules", "show", "HD001"), ("rules", "list")])
def test_a_wrong_threshold_is_told_with_its_place(command: tuple[str, ...], line: str, project: Path) -> None:
    (project / "advisor.toml").write_text(f"[set]\n{line}\n", encoding="utf-8")
    done = advisor(*command)
    assert done.exit_code == 2
    assert "advisor.toml:2" in done.output and line.split(".")[0] in done.output


def test_the_command_line_is_stronger(advisor_sample: Path, project: Path) -> None:
    options = ("--ignore", "RL", "--set", "HD001.idle_share=25%", "--fail-on", "cannot_answer ZZ*", "-o", "other", "-q")
    assert advisor("run", advisor_sample, "--rank", 0, *options).exit_code == 0
    result = RunResult.model_validate_json((project / "below" / "other" / "report.json").read_bytes())
    rules = {rule.rule: rule for rule in result.rules}
    assert rules["HD001"].params["idle_share"] == 0.25 and rules["HD001"].set_by == {"idle_share": "--set"}
    assert rules["DQ003"].state != "left_out" and rules["RL001"].state == "left_out"


def test_the_settings_that_hold_are_shown(project: Path) -> None:
    shown = advisor("config", "show").output.splitlines()
    (ignored,) = [line.split() for line in shown if line.startswith("ignore")]
    assert (ignored[1], ignored[-1]) == ("DQ003", "advisor.toml:6")
    entries = json.loads(advisor("config", "show", "--format", "json").output)["settings"]
    places = {entry["key"]: (entry["value"], entry["line"]) for entry in entries}
    assert places["set HD001.idle_share"] == ("30 %", 9) and places["lang"] == ("en", None)
    bare = json.loads(advisor("config", "show", "--no-config", "--format", "json").output)
    assert bare["files"] == [] and all(entry["file"] is None for entry in bare["settings"])


def test_other_commands_follow_what_is_for_them(project: Path) -> None:
    shown = advisor("rules", "show", "HD001")
    assert "set by advisor.toml:9" in shown.output
    assert "set by" not in advisor("rules", "show", "HD001", "--no-config").output
    (project / "advisor.toml").write_text('lang = "zh"\n', encoding="utf-8")
    assert re.search(r"[\u4e00-\u9fff]", advisor("collect").output)
    assert not re.search(r"[\u4e00-\u9fff]", advisor("collect", "--lang", "en").output)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("langs = 1", "advisor.toml:1:1: unknown key 'langs' (did you mean 'lang'?)"),
        ('\nset."QQ001.x" = 1', "advisor.toml:2 QQ001.x: no rule 'QQ001'"),
        ('ignore = ["QQ001"]', "advisor.toml:1 (ignore): no rule 'QQ001'"),
        ('format = ["pdf"]', "advisor.toml:1 (format) 'pdf' is not known"),
        ('fail_on = ["urgent"]', "advisor.toml:1 (fail_on): 'urgent' is no condition"),
        ('rulesets = ["nowhere"]', "advisor.toml:1 (rulesets): "),
        ('baseline = "nowhere"', "advisor.toml:1 (baseline): "),
    ],
)
def test_mistakes_name_the_file(advisor_sample: Path, project: Path, text: str, said: str) -> None:
    (project / "advisor.toml").write_text(text, encoding="utf-8")
    done = advisor("run", advisor_sample)
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output
    assert advisor("run", advisor_sample, "--config", project / "advisor.toml", "--no-config").exit_code == 2
