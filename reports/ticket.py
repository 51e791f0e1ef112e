"""As much of a report as a ticket takes: the first page, as many problems as fit, what is cut told by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from reports.blocks import Card, Document
from reports.document import document
from reports.labels import Labels
from reports.outline import Outline
from reports.problems import Item
from reports.sections.findings import card
from reports.sections.limits import Limits

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
        page = self._page(outline, t, frozenset())
        wanted = self.characters * (FOR_PROBLEMS if outline.items else 0)
        while (room := self.characters - self._length(write(page))) < wanted and (shorter := _without_last(page)):
            page = shorter
        chosen: list[str] = []
        for item in _in_order(outline):
            alone = dataclasses.replace(self.limits, written=frozenset([item.number]))
            needed = self._length(part(replace(card(item, outline, t, alone), causes=())))
            if needed <= room:
                chosen.append(item.number)
                room -= needed
        kept = {section.id for section in page.sections}
        while True:
            whole = self._page(outline, t, frozenset(chosen))
            text = write(replace(whole, sections=tuple(part for part in whole.sections if part.id in kept)))
            if self._length(text) <= self.characters:
                return text
            if not chosen:
                return self._cut(text)
            chosen.pop()

    def _length(self, text: str) -> int:
        return len(text) + (text.count("\n") if self.long_ends else 0)

    def _cut(self, text: str) -> str:
        """The lines that fit: the first page of a job of very many phases may be too long by itself."""
        lines = text.split("\n")
        while lines and self._length("\n".join(lines)) > self.characters:
            lines.pop()
        return "\n".join(lines)

    def _page(self, outline: Outline, t: Labels, written: frozenset[str]) -> Document:
        page = document(outline, t, dataclasses.replace(self.limits, written=written))
        return replace(page, sections=tuple(part for part in page.sections if part.id not in self.leave_out))


def _without_last(page: Document) -> Document | None:
    """The document without its last section that is not the problems; ``None`` where there is none."""
    others = [section for section in page.sections if section.id != "findings"]
    return replace(page, sections=tuple(part for part in page.sections if part is not others[-1])) if others else None


def _in_order(outline: Outline) -> Iterator[Item]:
    """The problems whose change the plan makes, in its order, then all others."""
    plan = outline.result.plan
    planned = [action.problem for action in plan.actions] if plan else []
    every = [item.number for root in outline.items for item in root.walk()]
    yield from (outline.item(number) for number in dict.fromkeys([*planned, *every]))
