"""As much of a report as a ticket takes: the first page, as many problems as fit, what is cut told by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from reports.blocks import Card, Document, Paragraph, Section, line
from reports.document import document
from reports.labels import Labels
from reports.outline import Outline
from reports.problems import Item
from reports.sections.findings import card, findings
from reports.sections.limits import Limits

CUT = "…"
"""The last line of a text that is cut off."""

FOR_PROBLEMS = 0.4
"""Share of a ticket that is kept for problems where there are any: our choice."""


@dataclass(frozen=True)
class Ticket:
    """``characters``: that the ticket takes. ``limits``: of what is shown, but for the problems. ``leave_out``: ids of
    sections that are never there. ``long_ends``: the end of a line counts twice, as a form sends it."""

    characters: int
    limits: Limits
    leave_out: frozenset[str] = frozenset()
    long_ends: bool = False

    def fill(self, outline: Outline, t: Labels, write: Callable[[Document], str], part: Callable[[Card], str]) -> str:
        """The report in at most ``characters``. ``write`` gives the text of a document, ``part`` that of a card.
        Problems of the plan come first, then the others in the order of the report; one that does not fit is listed.
        Sections behind the problems are left out from the end until these have `FOR_PROBLEMS` of the room."""
        page = document(outline, t, dataclasses.replace(self.limits, written=frozenset()))
        page = replace(page, sections=tuple(part for part in page.sections if part.id not in self.leave_out))
        pages = _shortening(page, t)
        wanted = self.characters * (FOR_PROBLEMS if outline.items else 0)
        next(pages)
        while (room := self.characters - self._length(write(page))) < wanted:
            if (shorter := next(pages, None)) is None:
                break
            page = shorter
        chosen: list[str] = []
        for item in _in_order(outline):
            alone = dataclasses.replace(self.limits, written=frozenset([item.number]))
            needed = self._length(part(replace(card(item, outline, t, alone), causes=())))
            if needed <= room:
                chosen.append(item.number)
                room -= needed
        while True:
            limits = dataclasses.replace(self.limits, written=frozenset(chosen))
            text = write(replace(page, sections=tuple(_filled(page, outline, t, limits))))
            if self._length(text) <= self.characters:
                return text
            if not chosen:
                return self._cut(text)
            chosen.pop()

    def fit(self, page: Document, t: Labels, write: Callable[[Document], str]) -> str:
        """A document in at most ``characters``, without the sections from the end that have no room."""
        text = ""
        for shorter in _shortening(page, t):
            if self._length(text := write(shorter)) <= self.characters:
                return text
        return self._cut(text)

    def _length(self, text: str) -> int:
        return len(text) + (text.count("\n") if self.long_ends else 0)

    def _cut(self, text: str) -> str:
        """The lines that fit, and a mark: the first page of a job of very many phases may be too long by itself."""
        lines = text.split("\n")
        while lines and self._length("\n".join([*lines, CUT])) > self.characters:
            lines.pop()
        return "\n".join([*lines, CUT])


def _filled(page: Document, outline: Outline, t: Labels, limits: Limits) -> Iterator[Section]:
    """The sections of a page, the problems written as far as ``limits`` allow. No other section depends on that."""
    for section in page.sections:
        yield findings(outline, t, limits) if section.id == "findings" else section


def _shortening(page: Document, t: Labels) -> Iterator[Document]:
    """The document, then without its last section, and so on; the problems stay. What is gone is told at the end."""
    yield page
    others = [section for section in page.sections if section.id != "findings"]
    gone: list[Section] = []
    while others:
        gone.insert(0, others.pop())
        names = t.join([section.title for section in gone if section.title])
        note = Section("left-out", "", (Paragraph(line(t("ticket.left_out", names=names)), "small"),))
        kept = (section for section in page.sections if section not in gone)
        yield replace(page, sections=(*kept, note))


def _in_order(outline: Outline) -> Iterator[Item]:
    """The problems whose change the plan makes, in its order, then all others."""
    plan = outline.result.plan
    planned = [action.problem for action in plan.actions] if plan else []
    every = [item.number for root in outline.items for item in root.walk()]
    yield from (outline.item(number) for number in dict.fromkeys([*planned, *every]))
