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
        Problems of the plan come first, then the others in the order of the report; one that does not fit is
        listed. Where not even the rest fits, sections are left out from the end."""
        room = self.characters - self._length(write(self._page(outline, t, frozenset())))
        chosen: list[str] = []
        for item in _in_order(outline):
            alone = dataclasses.replace(self.limits, written=frozenset([item.number]))
            needed = self._length(part(replace(card(item, outline, t, alone), causes=())))
            if needed <= room:
                chosen.append(item.number)
                room -= needed
        page = self._page(outline, t, frozenset(chosen))
        while self._length(text := write(page)) > self.characters:
            if chosen:
                chosen.pop()
                page = self._page(outline, t, frozenset(chosen))
            elif page.sections:
                page = replace(page, sections=page.sections[:-1])
            else:
                return self._cut(text)
        return text

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


def _in_order(outline: Outline) -> Iterator[Item]:
    """The problems whose change the plan makes, in its order, then all others."""
    plan = outline.result.plan
    planned = [action.problem for action in plan.actions] if plan else []
    every = [item.number for root in outline.items for item in root.walk()]
    yield from (outline.item(number) for number in dict.fromkeys([*planned, *every]))
