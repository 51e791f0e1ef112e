"""HTML, Markdown and terminal are renderings of one document: no number differs between them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import ModuleType

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from advisor_core.result.run import RunResult
from reports.blocks import Block, Details, Document, Figure, Section
from reports.document import document
from reports.html import HtmlRenderer, page
from reports.labels import Labels
from reports.markdown import MarkdownRenderer, text
from reports.outline import Outline
from reports.sections.limits import Limits
from reports.terminal import summary

EVERYTHING = Limits(written=None, further=1000, rows=1000, inputs=1000, diagnostics=1000, charts=1000)
WITH_A_LEDGER = ("training", "two_of_four", "many_ranks", "many_findings", "of_roles", "marked", "nothing_found")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?: (?:%|(?:ns|µs|ms|s|B|kB|MB|GB|KiB|MiB|GiB|MHz)\b))?")

TOLD_WHOLE = ("fence", "code_block", "html_block")
"""Tokens of Markdown whose content is not parsed further; what is folded has its heading in a block of HTML."""


class Text(HTMLParser):
    """The text of a page, without that of its style sheet."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag == "style"
        self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag == "style"
        self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def of_html(source: str) -> set[str]:
    return numbers("".join(Text(source).parts))


def of_markdown(source: str) -> set[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(source)
    inline = [child.content for token in tokens for child in token.children or []]
    return numbers(" \n ".join([*inline, *(token.content for token in tokens if token.type in TOLD_WHOLE)]))


def numbers(source: str) -> set[str]:
    return set(NUMBER.findall(source.replace("\u00a0", " ").replace("\u2060", "")))


def in_words(found: Document) -> Document:
    """The document without its drawings, and without what a ticket has no room for."""

    def kept(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        left = (block for block in blocks if not isinstance(block, Figure) and not _is_extra(block))
        return tuple(replace(b, blocks=kept(b.blocks)) if isinstance(b, Section | Details) else b for b in left)

    sections = tuple(replace(section, blocks=kept(section.blocks)) for section in found.sections)
    return replace(found, first=kept(found.first), sections=sections)


def _is_extra(block: Block) -> bool:
    return isinstance(block, Details) and block.extra


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", WITH_A_LEDGER)
def test_the_page_and_the_ticket_have_the_same_numbers(example: ModuleType, name: str, lang: str) -> None:
    labels = Labels(lang)
    whole = in_words(document(Outline(getattr(example, name)()), labels, EVERYTHING))
    on_page, in_ticket = of_html(page(whole, labels)), of_markdown(text(whole, labels))
    assert len(on_page) > 20
    assert on_page == in_ticket


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", WITH_A_LEDGER)
def test_what_is_short_has_no_number_of_its_own(example: ModuleType, name: str, lang: str) -> None:
    result: RunResult = getattr(example, name)()
    on_page = of_html(HtmlRenderer().render(result, lang))
    without_unit = {number.split(" ")[0] for number in on_page}  # the ledger has its unit in the heading
    leaves = Labels(lang)("term.leaves")
    for line in summary(result, lang, []).splitlines():
        for number in numbers(line):
            assert number in on_page or (leaves in line and number.split(" ")[0] in without_unit), line
    drawn = re.findall(r"^```text$.*?^```$", MarkdownRenderer().render(result, lang), re.MULTILINE | re.DOTALL)
    assert drawn and numbers("\n".join(drawn)) <= on_page


def test_the_test_would_notice() -> None:
    assert numbers("12.3 ms, 4 of 5\u00a0%") == {"12.3 ms", "4", "5 %"}
    assert of_html("<style>9</style><p>1 <b>ms</b></p>") == {"1"} and of_markdown("| a |\n|--|\n| 7 |\n") == {"7"}
