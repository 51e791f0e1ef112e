"""A tool that takes profiles is two files in ``collecting/tools``: what is there is complete, and two more add one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import advisor_core
from advisor_core.collecting import TOOLS
from advisor_core.collecting.tool import tools
from tests.conftest import ROOT

FOLDER = ROOT / "advisor_core" / "collecting" / "tools"
ENTRY = """
title: {en: "the profiler of bench", zh: "bench 的采集工具"}
window: seconds
notes:
  - {en: "Replace JOB by yours.", zh: "请将 JOB 换成自己的任务。"}
  - disk
comments:
  begin: {en: "Record {seconds} s:", zh: "采集 {seconds} s："}
"""
TEMPLATE = '{{ comment("begin", seconds=plan.seconds.duration) }}\nbench --record JOB\n'


def test_the_tree_names_every_tool() -> None:
    files = [file.name for file in FOLDER.iterdir()]
    assert {file.split(".")[0] for file in files} == set(TOOLS) and len(files) == 2 * len(TOOLS)
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in TOOLS if name not in guide.partition("collecting/")[2].partition("sample/")[0]] == []


def test_every_comment_of_a_tool_is_in_its_template() -> None:
    for tool in tools().values():
        template = (FOLDER / tool.template).read_text(encoding="utf-8")
        assert [name for name in tool.comments if f'comment("{name}"' not in template] == [], tool.name


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages, to add a tool to."""
    for package in ("advisor_core", "advisors", "rulesets", "reports"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


COLLECT = """
import sys
from advisor_core.cli.main import main
for options in sys.argv[1:]:
    sys.argv = ["advisor", "collect", *options.split()]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def collect(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """``advisor collect`` with the options of each command in turn, in one process."""
    command = [sys.executable, "-c", COLLECT, *commands]
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False
    )


def test_two_files_add_a_tool(copy: Path) -> None:
    added = copy / "advisor_core" / "collecting" / "tools"
    (added / "bench.yaml").write_text(ENTRY, encoding="utf-8")
    alone = collect(copy, "--for bench")
    assert alone.returncode == 4 and "tools/bench.yaml needs one template beside it, and has 0" in alone.stderr
    (added / "bench.sh.j2").write_text(TEMPLATE, encoding="utf-8")
    printed = collect(copy, "--for bench", "--for bench --lang zh", "--help")
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.startswith("# Configuration of the profiler of bench\n")
    assert "# - Replace JOB by yours." in printed.stdout and "in memory and on disk" in printed.stdout
    assert "# Record 10 s:\nbench --record JOB\n" in printed.stdout
    assert "# 采集 10 s：" in printed.stdout
    assert "bench" in printed.stdout.partition("Usage: ")[2]
    assert Path(advisor_core.__file__).is_relative_to(ROOT), "the copy is not the package that the other tests use"
