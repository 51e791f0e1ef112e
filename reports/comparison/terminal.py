"""The summary of a comparison on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor_core.api.renderers import Comparison, ComparisonResult
from reports.comparison.document import headline
from reports.comparison.origins import amount_lines, apart, division_words, origin_waterfall
from reports.comparison.summary import waterfall
from reports.comparison.words import sentence
from reports.labels import Labels, one_line, shorten
from reports.prose import plain
from reports.text_waterfall import text_waterfall

OBSTACLE = 160
TITLE = 100
NAMED = 5
"""Origins of the difference between two devices that are divided."""
CHANGED = 8
"""Findings that are named."""


def summary(result: ComparisonResult, lang: str, written: Iterable[str]) -> str:
    """The verdict, what is not the same, the parts of the difference, findings that changed, and where the rest is."""
    t = Labels(lang, result.labels)
    lines = [headline(result, t)]
    if len(result.comparisons) == 1:
        lines += _parts(result.comparisons[0], t)
    else:
        lines += [
            f"  {one_line(result.runs[one.after].name)}{t('word.colon')}{sentence(one, t)}"
            for one in result.comparisons
        ]
    where = [one_line(path) for path in written]
    if where:
        lines.append(f"{t('term.report')}{t('word.colon')}{t.join(where)}")
    return "\n".join(one_line(line) if not line.startswith(" ") else line.rstrip() for line in lines)


def _parts(comparison: Comparison, t: Labels) -> Iterator[str]:
    for obstacle in comparison.obstacles:
        yield f"  ! {shorten(one_line(t.of(obstacle.text)), OBSTACLE)}"
    if comparison.amounts is not None:
        yield from (f"  {text}" for text in amount_lines(comparison.amounts, t))
    across = bool(comparison.origins)
    drawn = origin_waterfall(comparison, t) if across else waterfall(comparison, t)
    if drawn is not None:
        yield from (f"  {line}" for line in text_waterfall(drawn, t))
    if across:
        yield from (f"  {division_words(one, t)}" for one in apart(comparison)[0][:NAMED])
    changed = [finding for finding in comparison.findings if finding.state != "same"]
    for finding in changed[:CHANGED]:
        state = t(f"compare.finding.{finding.state}")
        yield f"  {state}{t('word.colon')}{shorten(plain(t.of(finding.title)), TITLE)}"
