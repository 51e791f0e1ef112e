"""The page of guides and checks: every answer names something that exists, and every state has its reasons."""

from __future__ import annotations

import gzip
import json
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

RESULTS = ("training", "marked")
"""Results that have every drawing between them, below tests/report_fixtures."""

ITEM: dict[str, Any] = {"asks": "Idle time", "state": "part", "by": ["HD001"], "missing": "the rest"}


@pytest.fixture(scope="module")
def page() -> Iterator[ModuleType]:
    """The module of the page, which lies beside docs/generate.py and not in a package."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from reference_pages import guides

        yield guides
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def catalogue(page: ModuleType) -> Any:
    host = load_host()
    return page.Catalogue(host, list(rule_book(host, RunOptions())))


def test_every_answer_names_something_that_exists(page: ModuleType, catalogue: Any) -> None:
    found = page.read_guides()
    named = {name for source in (*found.guides, *found.checks) for item in source.items for name in item.by}
    assert len(named) > 100
    for name in named:
        assert page.answer_link(name, found.views, catalogue).startswith("[")
    assert set(found.views) == {name.removeprefix("view ") for name in named if name.startswith("view ")}


@pytest.mark.parametrize(
    "name", ["HD999", "host_dispatch.nothing", "no_fact", "advisor guess", "view nothing", "nothing.md", "../LICENSE"]
)
def test_an_answer_that_does_not_exist_is_refused(page: ModuleType, catalogue: Any, name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(name)):
        page.answer_link(name, page.read_guides().views, catalogue)


OF_RARE_FILES = {"graph-memory", "graph-operators", "preparing"}
"""Drawings of files that no recording of these reports has; tests/advisors draws them."""


def test_the_drawings_are_those_of_reports(page: ModuleType) -> None:
    drawn = set()
    for name in RESULTS:
        packed = (ROOT / "tests" / "report_fixtures" / f"{name}.json.gz").read_bytes()
        ids = [view["id"] for view in json.loads(gzip.decompress(packed))["views"]]
        drawn |= {re.sub(r"(?<=stack)\d+$", "", re.sub(r"-(rank|step)\d+", "", one)) for one in ids}
    assert set(page.read_guides().views) <= drawn | OF_RARE_FILES


def test_what_is_missing_says_whether_it_stays_so(page: ModuleType) -> None:
    found = page.read_guides()
    items = [item for source in (*found.guides, *found.checks) for item in source.items if item.closed]
    text = page.guides_page.__globals__["_missing"](items[0])
    assert text == f"{items[0].missing}. *Closed*: {items[0].closed}"


@pytest.mark.parametrize(
    "change",
    [
        {"state": "perhaps"},
        {"state": True},
        {"state": "yes"},
        {"state": "no"},
        {"by": []},
        {"by": ["HD001", "HD001"]},
        {"missing": None},
        {"state": "yes", "missing": None, "closed": "no export has it"},
        {"closed": ""},
        {"missing": " "},
        {"asks": ""},
        {"advice": "none"},
    ],
    ids=str,
)
def test_an_item_that_is_not_whole_is_refused(page: ModuleType, tmp_path: Path, change: dict[str, Any]) -> None:
    def read(item: dict[str, Any]) -> Any:
        file = tmp_path / "guides.yaml"
        source = {"title": "A guide", "about": "Of idle time.", "items": [item]}
        file.write_text(yaml.safe_dump({"views": {}, "guides": [source], "checks": []}), encoding="utf-8")
        return page.read_guides(file)

    assert len(read(ITEM).guides) == 1
    with pytest.raises(ValidationError):
        read({**ITEM, **change})


def test_the_page_counts_and_lists_every_item() -> None:
    text = (ROOT / "docs" / "reference" / "guides.md").read_text(encoding="utf-8")
    found = yaml.safe_load((ROOT / "docs" / "guides.yaml").read_text(encoding="utf-8"))
    sources = [*found["guides"], *found["checks"]]
    items = [item for source in sources for item in source["items"]]
    assert len(found["guides"]) == 5
    counts = [len(items), *(sum(item["state"] == state for item in items) for state in ("yes", "part", "no"))]
    assert f"| all | {' | '.join(map(str, counts))} |" in text
    for source in sources:
        section = text.partition(f"\n### {source['title']}\n")[2].partition("\n### ")[0]
        rows = re.findall(r"^\| (.+?) \| (?:yes|part|no) \|", section, re.MULTILINE)
        assert rows == [item["asks"] for item in source["items"]]
