"""The summary on a terminal at the end of a run: at most twenty lines of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor_core.api.renderers import RunResult
from reports.blocks import Figure, Headline, Headlines, LedgerBars, Line, Paragraph, Words
from reports.labels import Labels, one_line, shorten
from reports.outline import Outline
from reports.prose import opening
from reports.sections.brief import brief
from reports.text_bars import text_bars

LINES = 20
TITLE = 100
CAUSE = 80
CHANGE = 110


def summary(result: RunResult, lang: str, report_paths: Iterable[str]) -> str:
    """The verdict, where the step went, the findings that matter most, and where the report is. Where that is more than
    fits, what is said of rules for other devices is left out first, then the last of the findings."""
    t = Labels.of_result(result, lang)
    lines: list[str] = []
    asides: list[str] = []
    findings: list[list[str]] = []
    place = 0
    for block in brief(Outline(result), t):
        match block:
            case Paragraph(content=content, style="aside"):
                asides.append(f"  {_text(content)}")
            case Paragraph(content=content, style=style):
                before, indent, after = _LAYOUT.get(style, ((), "", ()))
                lines += [*before, indent + _text(content), *after]
            case Figure(data=LedgerBars() as bars):
                lines += [f"  {bar}" for bar in text_bars(bars, t)]
            case Headlines(items=items):
                findings = [[f"  {line}" for line in _headline(item, t)] for item in items]
                place = len(lines)
    where = [one_line(str(path)) for path in report_paths]
    last = [f"{t('term.report')}{t('word.colon')}{t.join(where)}"] if where else []
    room = LINES - len(lines) - len(last)
    while len(findings) > 1 and sum(map(len, findings)) > room:
        findings.pop()
    finding_lines = [line for finding in findings for line in finding]
    fitting = asides if len(finding_lines) + len(asides) <= room else []
    return "\n".join(line.rstrip() for line in [*lines[:place], *finding_lines, *lines[place:], *fitting, *last])


_LAYOUT: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "ran": ((), "", ("",)),
    "indented": ((), "  ", ()),
    "heading": (("",), "", ()),
}
"""Style of a paragraph to lines before it, its indent, and lines after it."""


def _text(content: Line) -> str:
    return one_line("".join(piece.text for piece in content if isinstance(piece, Words)))


def _headline(item: Headline, t: Labels) -> Iterator[str]:
    role = f"{one_line(item.role)}{t('word.colon')}" if item.role else ""
    yield f"{item.number} [{t(f'severity.{item.severity}')}] {role}{shorten(item.title, TITLE)}"
    stake = item.stake
    cost = stake.why_none or f"{stake.time}, {stake.share}, {stake.basis}"
    if item.cause is not None:
        cost += f" · {t('first.because')}{t('word.colon')}{shorten(_text(item.cause.content), CAUSE)}"
    yield f"   {cost}"
    if item.settings:
        change = " ".join([item.kind, *(one_line(setting.text) for setting in item.settings)])
    else:
        change = opening(item.change, CHANGE)
    conditions = f" {_text(item.conditions.content)}" if item.conditions is not None else ""
    yield f"   -> {change}{conditions}"
