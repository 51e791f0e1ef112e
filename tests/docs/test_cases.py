"""The page of real cases: every case has a source, an answer and its reasons, and names rules that exist."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from advisor_core.plugins.host import load_host
from advisor_core.run.prepared import RunOptions, rule_book
from tests.conftest import ROOT

FILE = ROOT / "docs" / "cases.yaml"
RULE = re.compile(r"\b[A-Z]{2,3}\d{3}\b")
WHOLE: dict[str, Any] = {
    "case": 1,
    "sources": {"thread#1": "https://example.org/1"},
    "shows": "Slow.",
    "cause": "Known.",
    "effect": "None.",
    "status": "cause",
    "answer": "part",
    "rules": {"HD001": "Idle."},
    "missing": "The rest.",
}


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """The module of the page, which lies beside docs/generate.py and not in a package."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from reference_pages import cases

        yield cases
    finally:
        sys.path.remove(str(ROOT / "docs"))


def entries() -> list[dict[str, Any]]:
    found = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def test_the_38_cases_are_whole(pages: ModuleType) -> None:
    assert [case.case for case in pages.real_cases()] == list(range(1, 39))


def test_rules_that_cases_name_exist() -> None:
    known = {compiled.id for compiled in rule_book(load_host(), RunOptions())}
    named = {(entry["case"], name) for entry in entries() for name in entry.get("rules", ())}
    mentioned = {(entry["case"], name) for entry in entries() for name in RULE.findall(str(entry))}
    assert len(named) > 30
    assert {(case, name) for case, name in named | mentioned if name not in known} == set()


@pytest.mark.parametrize(
    "change",
    [
        {"sources": {}},
        {"sources": {"thread#1": "somewhere"}},
        {"answer": "perhaps"},
        {"answer": None},
        {"missing": None},
        {"answer": "no", "rules": {}, "missing": None},
        {"answer": "no"},
        {"answer": "yes", "rules": {}},
        {"status": "S"},
        {"shows": " "},
        {"advice": "none"},
    ],
    ids=str,
)
def test_a_case_that_is_not_whole_is_refused(pages: ModuleType, tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump([WHOLE]), encoding="utf-8")
    assert len(pages.real_cases(file)) == 1
    file.write_text(yaml.safe_dump([{**WHOLE, **change}]), encoding="utf-8")
    with pytest.raises(ValidationError):
        pages.real_cases(file)


def test_two_cases_with_one_number_are_refused(pages: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump([WHOLE, WHOLE]), encoding="utf-8")
    with pytest.raises(ValueError, match="same number"):
        pages.real_cases(file)


def test_the_page_counts_and_lists_every_case() -> None:
    text = (ROOT / "docs" / "reference" / "cases.md").read_text(encoding="utf-8")
    counts = dict(re.findall(r"^\| (yes|part|no) \|.*\| (\d+) \|$", text, re.MULTILINE))
    answers = [entry["answer"] for entry in entries()]
    assert counts == {answer: str(answers.count(answer)) for answer in ("yes", "part", "no")}
    rows = re.findall(r"^\| \[(\d+)\]\(#case-\1\) \|.*$", text, re.MULTILINE)
    assert [int(row) for row in rows] == [entry["case"] for entry in entries()]
    for entry in entries():
        assert all(url in text for url in entry["sources"].values())
