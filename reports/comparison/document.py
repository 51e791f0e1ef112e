"""A comparison as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from advisor_core.api.renderers import Comparison, ComparisonResult
from reports.blocks import Block, Document, Entry, Paragraph, Section, line
from reports.comparison.details import apis, collectives, ledger, memory, operators, ranks, settings, withheld
from reports.comparison.drawings import drawings
from reports.comparison.origins import amounts, computed, origins, passes
from reports.comparison.runs import facts, table
from reports.comparison.summary import findings, obstacles, promises, where, why
from reports.comparison.words import sentence
from reports.labels import Labels


def document(result: ComparisonResult, t: Labels) -> Document:
    """Two runs in full, or several as a table with what each differs in."""
    one = len(result.comparisons) == 1
    first = tuple(_first_page(result.comparisons[0], t)) if one else (table(result, t),)
    sections = tuple(_details(result, t) if one else _several(result, t))
    shown = [block for block in (*first, *sections) if isinstance(block, Section) and block.level == 2]
    return Document(
        kind=t("compare.kind"),
        tool=f"{result.tool.name} {result.tool.version}",
        verdict=headline(result, t),
        ran=facts(result, t),
        first=first,
        contents=tuple(Entry(section.id, line(section.title)) for section in shown),
        sections=sections,
        footer=t("compare.footer", tool=result.tool.name, version=result.tool.version),
    )


def headline(result: ComparisonResult, t: Labels) -> str:
    """The verdict on two runs, or how many of several became slower or faster."""
    if len(result.comparisons) == 1:
        return sentence(result.comparisons[0], t)
    counts = Counter(comparison.verdict.outcome for comparison in result.comparisons)
    parts = t.join([f"{count} {t(f'compare.outcome.{outcome}')}" for outcome, count in counts.items()])
    return t("compare.verdict.several", count=len(result.runs), name=result.runs[0].name, parts=parts)


def _first_page(comparison: Comparison, t: Labels) -> Iterator[Block]:
    for blocks in (obstacles, amounts, where, why, origins, findings, promises):
        yield from blocks(comparison, t)


def _details(result: ComparisonResult, t: Labels) -> Iterator[Section]:
    for sections in (
        ledger,
        computed,
        passes,
        operators,
        drawings,
        collectives,
        apis,
        memory,
        ranks,
        settings,
        withheld,
    ):
        yield from sections(result.comparisons[0], t)
    yield table(result, t)


def _several(result: ComparisonResult, t: Labels) -> Iterator[Section]:
    first = result.runs[0].name
    for comparison in result.comparisons:
        title = t("compare.against", name=result.runs[comparison.after].name, first=first)
        blocks: list[Block] = [Paragraph(line(sentence(comparison, t)), "lead")]
        for part in (obstacles, amounts, why, origins, findings, promises):
            blocks += [_below(block, comparison.after) for block in part(comparison, t)]
        yield Section(f"run-{comparison.after}", title, tuple(blocks))


def _below(block: Block, run: int) -> Block:
    """A section of one of several comparisons: below its title, with an id of its own."""
    if not isinstance(block, Section):
        return block
    return Section(f"{block.id}-{run}", block.title, block.blocks, level=3)
