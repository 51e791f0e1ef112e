"""Every citation of docs/sources.md has an entry, and every entry is cited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "sources.md"
FOLDERS = ("advisor_core", "advisors", "reports", "rulesets", "docs", "tests", "examples")
CITATION = re.compile(r"docs/sources\.md#([\w-]+)")
LINK = re.compile(r"\]\(#([\w-]+)\)")
NOTE = re.compile(r"\bfacts(\.md)? (DATA|[A-Z]\d)|\bseed 0\d*\b(?!\.)|\bDATA-[A-Z]\b|\bfact base\b", re.IGNORECASE)
"""Names of notes that are not in the repository, such as a section of a list of facts by letter and number."""


def anchors(levels: str = "##{1,2}") -> set[str]:
    """What GitHub makes of the headings of the page; entries stand at the third level."""
    headings = re.findall(rf"^{levels} (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def texts() -> Iterator[tuple[Path, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".yaml", ".md"} and path != Path(__file__):
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def cited() -> dict[str, Path]:
    """The anchors that comments and texts cite, with a file that does."""
    page = PAGE.relative_to(ROOT)
    return {anchor: path for path, text in texts() if path != page for anchor in CITATION.findall(text)}


def test_every_citation_has_an_entry() -> None:
    entries = anchors("###")
    dead = {anchor: path for anchor, path in cited().items() if anchor not in entries}
    assert not dead


def test_every_entry_is_cited() -> None:
    assert anchors("###") == set(cited())


def test_links_inside_the_page_lead_somewhere() -> None:
    assert set(LINK.findall(PAGE.read_text(encoding="utf-8"))) <= anchors()


def test_every_entry_names_its_source() -> None:
    entries = re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries if "\nSource: " not in entry] == []


def test_no_text_cites_notes_that_readers_do_not_have() -> None:
    assert [(str(path), match.group()) for path, text in texts() for match in NOTE.finditer(text)] == []


@pytest.mark.parametrize("note", ["facts A3", "facts.md E12", "seed 002", "Seed 000, 4.1", "DATA-A", "facts DATA-B"])
def test_names_of_notes_are_recognised(note: str) -> None:
    assert NOTE.search(f"as measured ({note})")
