"""A result as a document: which sections a report has, in which order."""

from __future__ import annotations

from collections.abc import Iterator

from reports.blocks import Document, Entry, Section, Words, line
from reports.headline import verdict
from reports.labels import Labels
from reports.outline import Outline
from reports.problems import Item
from reports.sections.appendix import diagnostics, environment, inputs, replay, tool
from reports.sections.charts import charts
from reports.sections.findings import findings
from reports.sections.first_page import first_page, on_first_page, ran
from reports.sections.ledger import ledger, unexplained
from reports.sections.limits import Limits
from reports.sections.links import links
from reports.sections.problem_words import brief_title
from reports.sections.rules import rules
from reports.sections.side_by_side import side_by_side
from reports.sections.spread import spread


def document(outline: Outline, t: Labels, limits: Limits) -> Document:
    """The report on a result, with as much of it as ``limits`` allows."""
    result = outline.result
    sections = tuple(_sections(outline, t, limits))
    return Document(
        kind=t("doc.kind"),
        tool=f"{result.tool.name} {result.tool.version}",
        verdict=verdict(outline, t),
        ran=ran(outline, t),
        first=first_page(outline, t),
        contents=tuple(_contents(outline, t, limits, sections)),
        sections=sections,
        footer=t("doc.footer", tool=result.tool.name, version=result.tool.version),
    )


def _sections(outline: Outline, t: Labels, limits: Limits) -> Iterator[Section]:
    if outline.items:
        yield findings(outline, t, limits)
    if outline.by_rank:
        yield ledger(outline, t)
        yield unexplained(outline, t, limits.rows)
    yield from side_by_side(outline, t)
    yield from spread(outline, t)
    yield from links(outline, t)
    if (drawn := charts(outline, t, limits, on_first_page(outline))) is not None:
        yield drawn
    yield rules(outline, t, limits)
    yield environment(outline, t)
    yield inputs(outline, t, limits)
    yield diagnostics(outline, t, limits.diagnostics)
    if (model := replay(outline, t)) is not None:
        yield model
    yield tool(outline, t)


def _contents(outline: Outline, t: Labels, limits: Limits, sections: tuple[Section, ...]) -> Iterator[Entry]:
    yield Entry("top", line(t("doc.title")))
    for section in sections:
        below: list[Entry] = []
        if section.id == "findings":
            below = [_entry(item, more, t) for item, more in outline.kinds]
            if not all(limits.writes(item.number) for root in outline.items for item in root.walk()):
                below.append(Entry("further", line(t("finding.further"))))
        yield Entry(section.id, line(section.title), tuple(below))


def _entry(item: Item, more: int, t: Labels) -> Entry:
    title = brief_title(t.of(item.finding.title)) + (f" (+{more})" if more else "")
    below = tuple(_entry(cause, 0, t) for cause in item.causes)
    return Entry(item.anchor, line(Words(item.number, "number"), f" {title}"), below)
