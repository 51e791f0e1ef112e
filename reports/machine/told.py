"""The texts and the place of a finding that every format for programs has."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.api.renderers import Finding, RunResult, Source
from reports.labels import Labels, one_line
from reports.outline import Outline
from reports.problems import Item
from reports.prose import plain


def told(result: RunResult) -> Iterator[Item]:
    """Every problem in the order of the report, causes after their symptom."""
    for root in Outline(result).items:
        yield from root.walk()


def sentence(text: str) -> str:
    """A text of a rule on one line, without markup."""
    return one_line(plain(text))


def title(finding: Finding, t: Labels) -> str:
    """The title of a finding; where roles were profiled one by one, after the role."""
    text = sentence(t.of(finding.title))
    return f"{finding.role}{t('word.colon')}{text}" if finding.role else text


def advice(finding: Finding, t: Labels) -> str:
    """The first advice of a finding."""
    return sentence(t.of(finding.advice[0].text))


def paragraphs(finding: Finding, t: Labels) -> list[str]:
    """Title, cause and first advice, a line each."""
    first = f"{t('first.do')}{t('word.colon')}{advice(finding, t)}"
    return [title(finding, t), sentence(t.of(finding.why)), first]


def place(finding: Finding) -> Source | None:
    """The first place in the input that the evidence points at."""
    return next((evidence.source for evidence in finding.evidence if evidence.source is not None), None)
