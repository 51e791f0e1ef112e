"""The recipes of examples/ci: they parse, name files that the commands write, and their commands run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from advisor_core.cli.main import cli
from tests.conftest import ROOT
from tests.docs.test_docs import GUIDE

RECIPES = ROOT / "examples" / "ci"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))
    return found


def lines(part: object) -> Iterator[str]:
    """Every text of a recipe."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from lines(value)
    elif isinstance(part, list):
        for value in part:
            yield from lines(value)


def commands(name: str) -> list[list[str]]:
    """The calls of advisor in a recipe, without their first word."""
    return [shlex.split(line)[1:] for line in lines(read(name)) if line.startswith("advisor ")]


@pytest.fixture(scope="module")
def project(advisor_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as the recipes expect it: a profile, a baseline, rule files with a translation and cases."""
    folder = tmp_path_factory.mktemp("project")
    (rank,) = sorted(advisor_sample.glob("*_ascend_pt"))[:1]
    shutil.copytree(rank, folder / "profile" / rank.name)
    rule, cases = GUIDE.rule, GUIDE.cases
    (folder / "rules" / "cases").mkdir(parents=True)
    (folder / "rules" / "rule.yaml").write_text(rule, encoding="utf-8")
    (folder / "rules" / "cases" / "rule.yaml").write_text(cases, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert advisor("run", "profile", "-q", "-o", "first", "--format", "json") == 0
        assert advisor("baseline", "write", "first/report.json", "baseline.yaml") == 0
    return folder


def advisor(*arguments: str) -> int:
    done = CliRunner().invoke(cli, list(arguments))
    assert "Traceback" not in done.output, done.output
    return done.exit_code


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_the_gate_runs_and_writes_what_the_recipe_passes_on(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    shutil.rmtree("report", ignore_errors=True)
    (gate,) = [command for command in commands(name) if command[:2] == ["run", "profile"]]
    assert advisor(*gate) == 0
    named = {found for line in lines(read(name)) for found in re.findall(r"report/[\w.-]+", line)}
    assert named and [file for file in named if not Path(file).is_file()] == []


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml", "pre-commit-config.yaml"])
def test_rule_files_are_checked(name: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    calls = [command for command in commands(name) if command[0] == "rules"]
    assert {command[1] for command in calls} == {"check", "test"}
    assert [advisor(*call) for call in calls] == [0, 0]


def test_the_matrix_has_three_systems() -> None:
    matrix = read("github-actions.yml")["jobs"]["rules"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "windows", "macos"}


def test_hooks_have_what_pre_commit_asks_for() -> None:
    for repository in read("pre-commit-config.yaml")["repos"]:
        for hook in repository["hooks"]:
            assert {"id", "name", "entry", "language"} <= set(hook)
            assert re.search(hook["files"], "rules/zh/rule.yaml") and not re.search(hook["files"], "src/x.py")
