"""The commands for those who write rules: the beginning of one, and its cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor_core.cli.main import cli


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    done = advise("new", "host_dispatch.sync_calls", "--id", "MY001", "-o", tmp_path)
    assert done.exit_code == 0
    return tmp_path


def advise(*words: object) -> Result:
    return CliRunner().invoke(cli, ["rules", *map(str, words)])


def test_the_beginning_of_a_rule_can_be_used(begun: Path) -> None:
    text = (begun / "MY001.yaml").read_text(encoding="utf-8")
    assert "#   saved_ns [ns]: " in text and "TODO" in text
    assert advise("check", begun).exit_code == 0
    done = advise("test", begun)
    assert (done.exit_code, done.stdout) == (0, f"{begun}: 1 cases of 1 rules hold\n")


def test_nothing_is_overwritten_or_guessed(begun: Path) -> None:
    again = advise("new", "host_dispatch.sync_calls", "-o", begun)
    assert again.exit_code == 2 and "MY001.yaml exists already" in again.stderr
    unknown = advise("new", "host_dispatch.sync_call", "-o", begun)
    assert unknown.exit_code == 2 and "did you mean 'host_dispatch.sync_calls'?" in unknown.stderr
    assert advise("new", "host_dispatch.idle", "--id", "my1", "-o", begun).exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("severity: medium", "severity: high", "expected severity high, got medium"),
        ("state: fail", "state: pass", "expected state pass, got fail"),
        ('"idle_share": 0.5', '"idle_share": 0.001', "expected state fail, got pass"),
        ('"idle_share": 0.5', '"idle_shre": 0.5', "no column 'idle_shre' (did you mean 'idle_share'?)"),
        ('"idle_share": 0.5', '"idle_share": much', "'much' is not float, as the column is"),
        ("cases: MY001", "cases: MY002", "no rule 'MY002' (did you mean 'MY001'?)"),
    ],
)
def test_a_case_that_does_not_hold_is_told_with_its_place(old: str, new: str, message: str, begun: Path) -> None:
    path = begun / "cases" / "MY001.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    done = advise("test", begun)
    assert done.exit_code == 1 and message in done.stderr and "MY001.yaml:" in done.stderr


def test_the_fixture_for_rule_authors(begun: Path, advisor_rule_cases: Callable[[Path], list[str]]) -> None:
    assert advisor_rule_cases(begun) == []
    path = begun / "cases" / "MY001.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("state: fail", "state: pass"), encoding="utf-8")
    (problem,) = advisor_rule_cases(begun)
    assert "expected state pass, got fail" in problem
