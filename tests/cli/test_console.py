"""What goes to which stream, in which colours and letters, and the completion of the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from advisor_core.cli import report_files
from advisor_core.cli.colour import coloured, wanted
from advisor_core.cli.letters import PLAIN
from advisor_core.cli.main import cli
from reports.terminal import summary
from reports.text_bars import FILLS
from tests import report_fixtures as example


def advisor(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "advisor_core", *map(str, arguments)]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were given to the system to show."""
    files: list[str] = []

    def launch(file: str) -> int:
        files.append(Path(file).name)
        return 0

    monkeypatch.setattr(report_files.click, "launch", launch)
    return files


def test_markdown_to_stdout_and_nothing_else(advisor_sample: Path, tmp_path: Path) -> None:
    options = ("-o", "-", "--format", "md", "--rank", 0, "--lang", "zh")
    done = subprocess.run(advisor("run", advisor_sample, *options), cwd=tmp_path, capture_output=True, check=False)
    page = done.stdout.decode("utf-8")
    assert done.returncode == 0 and page.startswith("# ") and page.endswith("\n") and "rank 0:" not in page
    assert not list(tmp_path.iterdir())


def test_colours_repeat_what_words_say() -> None:
    result = example.training()
    plain = summary(result, "zh", [])
    bright = coloured(plain, result)
    assert click.unstyle(bright) == plain
    assert click.style("[高]", fg="red") in bright


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wanted() is None
    monkeypatch.setenv(name, value)
    assert wanted() is False


def test_the_report_is_shown_on_request(advisor_sample: Path, tmp_path: Path, shown: list[str]) -> None:
    run = ["run", str(advisor_sample), "--rank", "0", "-q", "--open", "-o", str(tmp_path)]
    assert CliRunner().invoke(cli, [*run, "--format", "json,html"]).exit_code == 0
    assert shown == ["report.html"]
    refused = CliRunner().invoke(cli, [*run, "--format", "md"])
    assert refused.exit_code == 2 and "--open" in refused.output and shown == ["report.html"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str) -> None:
    asked = {"COMP_WORDS": "advisor ru", "COMP_CWORD": "1" if shell != "fish" else "ru"}
    env = {**os.environ, **asked, "_ADVISOR_COMPLETE": f"{shell}_complete"}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'advisor'; from advisor_core.cli.main import main; main()",
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", check=False)
    words = done.stdout.replace(",", "\n").replace("\t", "\n").split()
    assert {"run", "rules"} <= set(words) and "explain" not in words


@pytest.mark.parametrize(
    ("encoding", "bar", "time"),
    [("ascii", "####", "us"), ("cp936", "████", "us"), ("cp1252", "####", "µs"), ("utf-8", "████", "µs")],
)
def test_a_console_of_another_encoding(encoding: str, bar: str, time: str) -> None:
    text = "█████ 12 µs · 中文 “x” … \ud800"
    code = (
        "import sys; from advisor_core.cli.letters import accept_any_console; from advisor_core.cli.console import say;"
        f"accept_any_console(); say({text!a}); say({text!a}, err=True)"
    )
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode(encoding)
    assert bar in said and f"12 {time}" in said and said.rstrip().endswith("?")
    assert done.stderr.decode(encoding) == said


def test_chinese_on_a_console_without_it_is_told() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(advisor("collect", "--lang", "zh"), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "PYTHONIOENCODING=utf-8" in done.stderr and "torch_npu" in done.stdout
    english = subprocess.run(advisor("collect"), env=env, capture_output=True, text=True, check=False)
    assert english.returncode == 0 and english.stderr == ""


def test_every_letter_of_the_drawings_has_a_plain_one() -> None:
    drawn = {*FILLS.values(), "░", "µ", "−", "–", "…", "→"}
    assert drawn <= set(PLAIN) and all(plain.isascii() for plain in PLAIN.values())


def test_long_paths_with_blanks_and_chinese(advisor_sample: Path, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["性能 数据 " + "x" * 60] * 4)
    (rank,) = list(advisor_sample.glob("*_ascend_pt"))[:1]
    shutil.copytree(rank, deep / rank.name)
    assert len(str(deep / rank.name)) > 260
    options = ["-q", "--format", "json,lines", "-o", str(deep / "报告 a")]
    assert CliRunner().invoke(cli, ["run", str(deep / rank.name), *options]).exit_code == 0
    assert (deep / "报告 a" / "findings.txt").is_file()
