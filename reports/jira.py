"""``jira.txt``: the report in the notation of a Jira ticket, within the characters that its description takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from advisor_core.api.renderers import RunResult
from reports.blocks import (
    Below,
    Block,
    Boxes,
    Callout,
    Card,
    Code,
    CodeLines,
    Columns,
    Definitions,
    Details,
    Document,
    Exhibit,
    Figure,
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
    RuleText,
    Section,
    Steps,
    Swatch,
    Table,
    Times,
    Waterfall,
    Web,
    Words,
    cards,
)
from reports.jira_prose import address, blocks, code, escape, inline, preformatted
from reports.labels import Labels
from reports.outline import Outline
from reports.prose import first_sentence
from reports.sections.limits import Limits
from reports.text_bars import text_bars
from reports.text_waterfall import text_waterfall
from reports.ticket import Ticket
from reports.view_tables import view_tables

ROWS = 12

TICKET = Ticket(
    characters=32_767,  # of a field, where nobody raised jira.text.field.character.limit
    limits=Limits(written=frozenset(), further=ROWS, rows=ROWS, inputs=0, diagnostics=ROWS, charts=0, ids_only=True),
    leave_out=frozenset(("charts", "environment", "inputs", "tool")),
    long_ends=True,
)


class JiraRenderer:
    """Writes the text that is pasted into a Jira ticket. What has no place in it is in report.json."""

    def render(self, result: RunResult, lang: str) -> str:
        labels, outline = Labels.of_result(result, lang), Outline(result)

        def part(card: Card) -> str:
            return "\n".join(_Writer(labels, frozenset()).block(card))

        return TICKET.fill(outline, labels, lambda page: _text(page, labels), part)


def _text(page: Document, t: Labels) -> str:
    sections = [block for block in (*page.first, *page.sections) if isinstance(block, Section)]
    targets = [*(card.id for card in cards(page.sections)), *(section.id for section in sections if section.title)]
    writer = _Writer(t, frozenset(targets))
    lines = [f"h1. {escape(page.kind)}", "", f"*{escape(page.verdict)}*", "", *writer.block(page.ran)]
    for block in (*page.first, *page.sections):
        lines += writer.block(block)
    return "\n".join(lines).rstrip("\n") + "\n"


class _Writer:
    """Blocks as lines; each block ends with an empty line. ``targets``: what can be linked to."""

    def __init__(self, labels: Labels, targets: frozenset[str]) -> None:
        self.t = labels
        self._targets = targets

    # --- pieces

    def line(self, content: Line) -> str:
        return "".join(map(self._piece, content)).strip()

    def _piece(self, piece: Piece) -> str:
        match piece:
            case Words(text=text, style=style):
                return self._words(text, style)
            case Code(text=text):
                return code(text)
            case Prose(text=text):
                return inline(text)
            case Link(target=target, content=content):
                inner = self.line(content)
                can_link = target in self._targets and not set(inner) & set("[|")
                return f"[{inner}|#{target}]" if can_link else inner
            case Web(title=title, url=url):
                return f"[{escape(title)}|{address(url)}]"
            case Level(severity=severity):
                return self.t(f"severity.{severity}")
            case Below(content=content):
                inner = self.line(content)
                return f" ({inner})" if inner else ""
            case Swatch() | Nearby():
                return ""

    def _words(self, text: str, style: str) -> str:
        said = escape(text)
        if style == "extra" or not said:
            return " " if text and style != "extra" else ""
        match style:
            case "value":
                said = code(text)
            case "count":
                said = f"({said})"
            case "strong":
                said = f"*{said}*"
        return f"{' ' if text[0].isspace() else ''}{said}{' ' if text[-1].isspace() else ''}"

    # --- blocks

    def block(self, block: Block) -> Iterator[str]:
        match block:
            case Section(id=id_, title=title, level=level, blocks=inner):
                if title:
                    yield from (f"h{level}. {{anchor:{id_}}}{escape(title)}", "")
                yield from self._all(inner)
            case Card():
                yield from self._card(block, 3)
            case Paragraph(content=content):
                said = self.line(content)
                yield from (said, "") if said else ()
            case Callout(blocks=inner):
                yield from ("{quote}", *self._all(inner), "{quote}", "")
            case RuleText(text=text):
                yield from blocks(text)
            case Items(items=items, style="legend"):
                yield from (" · ".join(map(self.line, items)), "")
            case Items(items=items):
                yield from (*(f"* {self.line(item)}" for item in items), "")
            case Pairs(pairs=pairs):
                yield from _rows([], [[f"*{self.line(name)}*", self.line(value)] for name, value in pairs])
            case Table(columns=columns, rows=rows):
                heads = [f"{column.group} ({column.title})" if column.group else column.title for column in columns]
                cells = [[self.line(cell) for cell in row.cells] for row in rows]
                yield from _rows([escape(head) for head in heads], cells)
            case CodeLines(lines=lines):
                yield from (*preformatted("\n".join(lines)), "")
            case Exhibit(title=title, about=about, block=shown):
                yield from (f"{escape(title)} ({escape(about)})", "")
                yield from self.block(shown) if shown is not None else ()
            case Figure():
                yield from self._figure(block)
            case Definitions(entries=entries):
                for term, inner in entries:
                    yield from (f"*{escape(term)}*", "")
                    yield from self._all(inner)
            case Details(summary=summary, blocks=inner, extra=False):
                yield from (f"*{self.line(summary)}*", "")
                yield from self._all(inner)
            case Columns(blocks=inner):
                yield from self._all(inner)
            case Headlines():
                yield from self._headlines(block)
            case Steps():
                yield from self._steps(block)

    def _all(self, inner: Iterable[Block]) -> Iterator[str]:
        for block in inner:
            yield from self.block(block)

    def _figure(self, figure: Figure) -> Iterator[str]:
        match figure.data:
            case LedgerBars() as bars:
                yield from (*preformatted("\n".join(text_bars(bars, self.t))), "")
            case Waterfall() as steps:
                yield from (*preformatted("\n".join(text_waterfall(steps, self.t))), "")
            case RankMap() | LinkMap() | Boxes() | Times():
                return  # the table behind it says the same
            case view:
                yield from (f"*{escape(figure.title)}*", "")
                yield from self._all(view_tables(view, self.t))

    def _headlines(self, headlines: Headlines) -> Iterator[str]:
        t = self.t
        keys = ("finding.title", "rules.severity", "first.at_stake", "first.do")
        rows = []
        for item in headlines.items:
            number = self.line((Link(item.target, (Words(item.number),)),))
            because = f" — {t('first.because')}{t('word.colon')}{item.cause_number}" if item.cause is not None else ""
            role = f"{code(item.role)} " if item.role else ""
            notes = "".join(f" ({escape(note)})" for note in item.notes)
            cost = item.stake.why_none or f"{item.stake.time}, {item.stake.share} ({item.stake.basis})"
            change = [code(setting.text) for setting in item.settings]
            change += [self.line(item.conditions.content)] if item.conditions is not None else []
            change.append(inline(first_sentence(item.change)))
            title = f"{role}{escape(item.title)}{because}{notes}"
            rows.append([number, title, t(f"severity.{item.severity}"), escape(cost), " ".join(change)])
        yield from _rows(["", *(escape(t(key)) for key in keys)], rows)

    def _card(self, card: Card, level: int) -> Iterator[str]:
        yield from (f"h{level}. {{anchor:{card.id}}}{card.number} {inline(card.title).replace('*', '')}", "")
        stake = card.stake
        costs = [stake.why_none] if stake.why_none else [stake.time, stake.share, stake.basis]
        told = [self.t(f"severity.{card.severity}"), *costs, card.own]
        facts = [*(escape(said) for said in told if said), *(self.line(fact) for fact in card.facts)]
        yield from (" · ".join(facts), "")
        yield from self.block(card.body)
        for cause in card.causes:
            yield from self._card(cause, 4)

    def _steps(self, steps: Steps) -> Iterator[str]:
        for number, step in enumerate(steps.steps, 1):
            settings = " ".join(code(setting.text) for setting in step.settings)
            yield from (f"{number}\\. *{escape(step.kind)}* {settings}".rstrip(), "", *blocks(step.text))
            for name, note in step.notes:
                yield from (f"_{escape(name)}_{''.join(map(self._piece, note))}", "")
        if steps.withheld:
            yield from (f"*{escape(steps.withheld_title)}*", "")
            yield from self.block(Items(steps.withheld))


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells that are in the notation already."""
    if any(heads):
        yield "||" + "||".join(head or " " for head in heads) + "||"
    for cells in rows:
        yield "|" + "|".join(cell or " " for cell in cells) + "|"
    yield ""
