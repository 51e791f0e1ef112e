"""The code in docs/ runs, and the example plugin's test passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from advisor_core.plugins.host import load_host
from advisor_core.run.prepared import RunOptions, rule_book
from advisor_core.testing.rule_cases import check_cases
from tests.conftest import ROOT

BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


class Guide(NamedTuple):
    """The YAML of the guide, in its order: a rule, its cases, the advice and the exceptions of one, and a change of a
    built-in rule."""

    rule: str
    cases: str
    advice: str
    exceptions: str
    change: str

    @property
    def with_advice(self) -> str:
        start, end = self.rule.index("advice:\n"), self.rule.index("params:")
        return self.rule[:start] + self.advice + self.rule[end:]

    @property
    def with_exceptions(self) -> str:
        return f"{self.rule.rstrip()}\n{self.exceptions}"


GUIDE = Guide(*BLOCK.findall((ROOT / "docs" / "writing-a-rule.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "document",
    [GUIDE.rule, GUIDE.with_exceptions, GUIDE.with_advice, GUIDE.change],
    ids=["rule", "exceptions", "advice", "change"],
)
def test_rule_documents_of_the_guide_load(document: str, tmp_path: Path) -> None:
    (tmp_path / "rule.yaml").write_text(document, encoding="utf-8")
    book = rule_book(load_host(), RunOptions(rulesets=(tmp_path,)))
    assert not book.problems
    assert "HD001" in [rule.id for rule in book]


def test_the_cases_of_the_guide_hold(tmp_path: Path) -> None:
    (tmp_path / "rule.yaml").write_text(f"{GUIDE.rule}---\n{GUIDE.cases}", encoding="utf-8")
    report = check_cases(tmp_path)
    assert (report.problems, report.cases) == ((), 2)


def test_the_guide_names_every_hook() -> None:
    from advisor_core.plugins import hookspecs

    guide = (ROOT / "docs" / "writing-a-plugin.md").read_text(encoding="utf-8")
    for hook in (name for name in dir(hookspecs) if name.startswith("advisor_register_")):
        assert hook in guide


def test_the_example_plugin_is_tested_as_its_author_would() -> None:
    example = ROOT / "examples" / "advisor-plugin-hello"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(example / "tests")]
    done = subprocess.run(
        command, cwd=example, env={"PYTHONPATH": str(example)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
