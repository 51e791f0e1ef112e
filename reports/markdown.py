"""``report.md``: the same document for a ticket on GitHub, GitLab or Gitee. Tables, no HTML but what folds, every name
inert."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor_core.api.renderers import RunResult
from reports.blocks import (
    Below,
    Block,
    Boxes,
    Callout,
    Card,
    Code,
    CodeLines,
    Column,
    Columns,
    Definitions,
    Details,
    Document,
    Exhibit,
    Figure,
    Headline,
    Headlines,
    Items,
    LedgerBars,
    Level,
    Line,
    Link,
    LinkMap,
    Nearby,
    Pairs,
    Paragraph,
    Piece,
    Prose,
    RankMap,
    Row,
    RuleText,
    Section,
    Stake,
    Steps,
    Swatch,
    Table,
    Times,
    Waterfall,
    Web,
    Words,
    cards,
    line,
)
from reports.labels import Labels, one_line
from reports.outline import Outline
from reports.prose import KEPT, code_span, escape_markdown, first_sentence, markdown, markdown_inline
from reports.sections.limits import Limits
from reports.terminal import summary
from reports.text_bars import text_bars
from reports.text_waterfall import text_waterfall
from reports.ticket import Ticket
from reports.view_tables import view_tables

if TYPE_CHECKING:
    from advisor_core.api.renderers import ComparisonResult

ROWS = 24
CHARTS = 8
"""Drawings that are written out as tables: those of one rank."""

TICKET = Ticket(
    characters=65_400,  # GitHub takes 65,536
    limits=Limits(
        written=frozenset(), further=ROWS, rows=ROWS, inputs=0, diagnostics=ROWS, charts=CHARTS, ids_only=True
    ),
)

FOLDED = ("charts", "environment", "inputs", "tool")
"""Sections that few readers of a ticket want."""

INDENT = "\u2003"


class MarkdownRenderer:
    """Writes the report that is pasted into a ticket."""

    def render(self, result: RunResult, lang: str) -> str:
        labels, outline = Labels.of_result(result, lang), Outline(result)

        def part(card: Card) -> str:
            return "\n".join(_Writer(labels).block(card))

        return TICKET.fill(outline, labels, lambda page: text(page, labels), part)

    def summary(self, result: RunResult, lang: str, written: Iterable[Path]) -> str:
        """The few lines that ``advisor run`` prints when it is done."""
        return summary(result, lang, map(str, written))

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        """A comparison of runs, for a ticket."""
        from reports.comparison.document import document as comparison_document

        labels = Labels(lang, result.labels)
        return TICKET.fit(comparison_document(result, labels), labels, lambda page: text(page, labels))

    def comparison_summary(self, result: ComparisonResult, lang: str, written: Iterable[Path]) -> str:
        """The few lines that ``advisor compare`` prints when it is done."""
        from reports.comparison.terminal import summary as comparison_summary

        return comparison_summary(result, lang, map(str, written))


def text(page: Document, labels: Labels) -> str:
    """A document as Markdown."""
    return _Writer(labels).document(page)


class _Writer:
    """Blocks as lines of Markdown; each block ends with an empty line."""

    def __init__(self, labels: Labels) -> None:
        self.t = labels
        self._anchors: Mapping[str, str] = {}

    def document(self, page: Document) -> str:
        written = {card.id: card.number.lower() for card in cards(page.sections)}
        sections = (block for block in (*page.first, *page.sections) if isinstance(block, Section))
        self._anchors = written | {section.id: _slug(section.title) for section in sections}
        lines = [f"# {page.kind}", "", f"**{escape_markdown(page.verdict)}**", "", *self._pairs(page.ran)]
        for block in (*page.first, *page.sections):
            lines += self.block(block)
        return "\n".join(lines).rstrip("\n") + "\n"

    # --- pieces

    def line(self, content: Line, in_table: bool = False) -> str:
        return self._pieces(content, in_table).strip()

    def _pieces(self, content: Line, in_table: bool = False) -> str:
        return "".join(self._piece(piece, in_table) for piece in content)

    def _piece(self, piece: Piece, in_table: bool) -> str:
        match piece:
            case Words(text=text, style=style):
                return _words(text, style)
            case Code(text=text):
                return code_span(text, in_table)
            case Prose(text=text):
                return markdown_inline(text, in_table)
            case Link(target=target, content=content):
                inner = self.line(content, in_table)
                return f"[{inner}](#{self._anchors[target]})" if target in self._anchors else inner
            case Web(title=title, url=url):
                return f"[{escape_markdown(title)}](<{one_line(url).replace('<', '%3C').replace('>', '%3E')}>)"
            case Level(severity=severity):
                return self.t(f"severity.{severity}")
            case Below(content=content):
                inner = self.line(content, in_table)
                return f" ({inner})" if inner else ""
            case Swatch() | Nearby():
                return ""

    # --- blocks

    def block(self, block: Block) -> Iterator[str]:
        match block:
            case Section():
                yield from self._section(block)
            case Card():
                yield from self._card(block, is_root=True)
            case Paragraph(content=content):
                text = self.line(content)
                yield from (text, "") if text else ()
            case Callout(blocks=blocks):
                quoted = "\n".join(self._blocks(blocks)).rstrip("\n")
                yield from (*(f"> {text}".rstrip() for text in quoted.split("\n")), "")
            case RuleText(text=text):
                yield from (markdown(text), "")
            case Items():
                yield from self._items(block)
            case Pairs():
                yield from self._pairs(block)
            case Table():
                yield from self._table(block)
            case CodeLines(lines=lines):
                yield from (f"{number}. {code_span(text)}" for number, text in enumerate(lines, 1))
                yield ""
            case Exhibit(title=title, about=about, block=shown):
                yield from (f"{escape_markdown(title)} ({escape_markdown(about)})", "")
                yield from self.block(shown) if shown is not None else ()
            case Figure():
                yield from self._figure(block)
            case Definitions(entries=entries):
                for term, blocks in entries:
                    yield from self._definition(term, blocks)
            case Details(summary=heading, blocks=blocks, extra=extra):
                if not extra:
                    yield from self._folded(heading, self._blocks(blocks))
            case Columns(blocks=blocks):
                yield from self._blocks(blocks)
            case Headlines(items=items):
                yield from self._headlines(items)
            case Steps():
                yield from self._steps(block)

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self.block(block)

    def _section(self, section: Section) -> Iterator[str]:
        if section.title:
            yield from (f"{'#' * section.level} {section.title}", "")
        if section.id in FOLDED:
            yield from self._folded(line(self.t("finding.unfold")), self._blocks(section.blocks))
        else:
            yield from self._blocks(section.blocks)

    def _folded(self, summary: Line, inner: Iterable[str]) -> Iterator[str]:
        """Lines that a click unfolds. The empty lines around make them Markdown again; ``summary`` is HTML."""
        words = "".join(piece.text for piece in summary if isinstance(piece, Words))
        inert = re.sub(r"@(?=\w)", "@\u2060", html.escape(one_line(words)))
        yield from ("<details>", f"<summary>{inert}</summary>", "", *inner, "</details>", "")

    def _items(self, items: Items) -> Iterator[str]:
        if items.style == "legend":
            yield " · ".join(self.line(item) for item in items.items)
        else:
            yield from (f"- {self.line(item)}" for item in items.items)
        yield ""

    def _pairs(self, pairs: Pairs) -> Iterator[str]:
        names, values = ([pair[part] for pair in pairs.pairs] for part in (0, 1))
        if pairs.style == "ran":
            yield from self._rows([self.line(name, True) for name in names], [[self.line(v, True) for v in values]])
        else:
            rows = [[self.line(name, True), self.line(value, True)] for name, value in pairs.pairs]
            yield from self._rows([escape_markdown(pairs.title), ""], rows)

    def _table(self, table: Table) -> Iterator[str]:
        heads = [escape_markdown(_head(column)) for column in table.columns]
        rows = [[self._first(row), *(self.line(cell, True) for cell in row.cells[1:])] for row in table.rows]
        yield from self._rows(heads, rows, [column.numeric for column in table.columns])

    def _first(self, row: Row) -> str:
        label = self.line(row.cells[0], True)
        if row.total or row.depth == 0:
            return f"**{label}**"
        return INDENT * (row.depth or 0) + label

    def _rows(self, heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> Iterator[str]:
        """A table of cells that are Markdown already."""
        rules = ["--:" if place < len(numeric) and numeric[place] else "---" for place in range(len(heads))]
        for cells in (heads, rules, *rows):
            yield "| " + " | ".join(cell or " " for cell in cells) + " |"
        yield ""

    def _figure(self, figure: Figure) -> Iterator[str]:
        if isinstance(figure.data, LedgerBars):
            bars = (bar.replace("`", "'") for bar in text_bars(figure.data, self.t))  # none may end the block
            yield from ("```text", *bars, "```", "")
            return
        if isinstance(figure.data, Waterfall):
            steps = (step.replace("`", "'") for step in text_waterfall(figure.data, self.t))
            yield from ("```text", *steps, "```", "")
            return
        if isinstance(figure.data, RankMap | LinkMap | Boxes | Times):  # the table behind it says the same
            return
        view = figure.data
        rank = f" ({self.t('word.rank', rank=view.rank)})" if view.rank is not None else ""
        role = f" {code_span(view.role)}" if view.role else ""
        yield from (f"**{_unbold(escape_markdown(figure.title))}**{rank}{role}", "")
        yield from self._blocks(view_tables(view, self.t))

    def _definition(self, term: str, blocks: Sequence[Block]) -> Iterator[str]:
        if len(blocks) == 1 and isinstance(one := blocks[0], Items | Paragraph):
            lines = one.items if isinstance(one, Items) else (one.content,)
            yield from (f"**{term}**{self.t('word.colon')}{self.t.join([self.line(content) for content in lines])}", "")
        else:
            yield from (f"**{term}**", "")
            yield from self._blocks(blocks)

    # --- problems

    def _headlines(self, items: Sequence[Headline]) -> Iterator[str]:
        t = self.t
        keys = ("finding.title", "rules.severity", "first.at_stake", "unexplained.share", "first.do")
        rows = []
        for item in items:
            number = self.line((Link(item.target, (Words(item.number),)),))
            title = escape_markdown(item.title)
            if item.role:
                title = f"{code_span(item.role, True)} {title}"
            if item.cause is not None:
                because = self.line((Link(item.cause.target, (Words(item.cause_number),)),))
                title += f" — {t('first.because')}{t('word.colon')}{because} {self.line(item.cause.content, True)}"
            title += "".join(f" ({note})" for note in item.notes)
            change = [self.line((setting,), True) for setting in item.settings]
            change += [self.line(item.conditions.content, True)] if item.conditions is not None else []
            change.append(markdown_inline(first_sentence(item.change), in_table=True))
            stake = item.stake
            cost = stake.why_none or f"{stake.time} ({stake.basis})"
            rows.append([number, title, t(f"severity.{item.severity}"), cost, stake.share, " ".join(change)])
        yield from self._rows(["", *(t(key) for key in keys)], rows, (False, False, False, True, True, False))

    def _card(self, card: Card, is_root: bool) -> Iterator[str]:
        yield from (f"{'###' if is_root else '####'} {card.number}", "")
        yield from (f"**{_unbold(markdown_inline(card.title))}**", "")
        facts = [self.t(f"severity.{card.severity}"), *self._stake(card.stake), card.own]
        facts += [self.line(fact) for fact in card.facts]
        yield from (" · ".join(fact for fact in facts if fact), "")
        yield from self.block(card.body)
        if card.judged is not None:
            yield from self._judged(card.judged)
        for cause in card.causes:
            yield from self._card(cause, is_root=False)

    def _stake(self, stake: Stake) -> Sequence[str]:
        return [stake.why_none] if stake.why_none else [f"**{stake.time}**", stake.share, stake.basis]

    def _steps(self, steps: Steps) -> Iterator[str]:
        for number, step in enumerate(steps.steps, 1):
            chips = " ".join(self.line((setting,)) for setting in step.settings)
            yield from (f"{number}. **{step.kind}** {chips}".rstrip(), "")
            indent = " " * (len(str(number)) + 2)
            yield from (f"{indent}{text}".rstrip() for text in markdown(step.text).split("\n"))
            for name, note in step.notes:
                yield from ("", f"{indent}*{name}*{self._pieces(note)}")
            yield ""
        if steps.withheld:
            yield from (f"**{steps.withheld_title}**", "")
            yield from self._items(Items(steps.withheld))

    def _judged(self, details: Details) -> Iterator[str]:
        """How a finding was judged, as one table."""
        rows: list[list[str]] = []
        for definitions in details.blocks:
            if isinstance(definitions, Definitions):
                rows += [row for term, blocks in definitions.entries for row in self._facts(term, blocks)]
        yield from self._folded(details.summary, self._rows(["", ""], rows))

    def _facts(self, term: str, blocks: Sequence[Block]) -> Iterator[list[str]]:
        for block in blocks:
            match block:
                case Pairs(pairs=pairs, style=style):
                    before = f"{term}{self.t('word.colon')}" if style else ""
                    yield from ([before + self.line(name, True), self.line(value, True)] for name, value in pairs)
                case Paragraph(content=content):
                    yield [term, self.line(content, True)]
                case Items(items=items):
                    yield [term, self.t.join([self.line(item, True) for item in items])]


@lru_cache(KEPT)
def _words(text: str, style: str) -> str:
    """Plain text in a style, with a space where it begins or ends with white space."""
    if style == "extra":
        return ""
    if style == "value":
        return code_span(text, in_table=True)
    escaped = escape_markdown(text)
    if style == "count":
        escaped = f"({escaped})"
    if style == "strong" and escaped:
        escaped = f"**{_unbold(escaped)}**"
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :] if text.strip() else ""
    return f"{' ' if lead else ''}{escaped}{' ' if tail else ''}"


def _head(column: Column) -> str:
    return f"{column.group} ({column.title})" if column.group else column.title


def _slug(heading: str) -> str:
    """The anchor that GitHub and GitLab give to a heading of ours."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _unbold(text: str) -> str:
    """Bold inside of bold is not bold."""
    return text.replace("**", "")
