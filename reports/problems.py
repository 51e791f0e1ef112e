"""Problems with their findings, as the tree that a report writes out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor_core.api.renderers import Finding, Problem, RunResult


@dataclass(frozen=True)
class Item:
    """A problem with its finding and with the problems that stand below it; ``anchor``: what to link to."""

    problem: Problem
    finding: Finding
    anchor: str
    causes: tuple[Item, ...]

    def walk(self) -> Iterator[Item]:
        yield self
        for cause in self.causes:
            yield from cause.walk()

    @property
    def number(self) -> str:
        return self.problem.number

    @property
    def of_step(self) -> str:
        """The name of the text that says what the share is of."""
        return "first.of_step" if self.finding.role is None else "first.of_role"

    @property
    def no_time(self) -> str:
        """Where there is no time at stake, the name of the text that says why."""
        return {"at_stake": "", "counted_elsewhere": "first.counted_elsewhere", "none": "first.no_time"}[
            self.problem.time
        ]


def items(result: RunResult) -> list[Item]:
    """The problems that stand below no other, in the order of the result."""
    findings = {finding.fingerprint: finding for finding in result.findings}
    anchors = dict(zip(findings, _anchors(list(findings)), strict=True))
    problems = {problem.number: problem for problem in result.problems}

    def item(problem: Problem) -> Item:
        fingerprint = problem.findings[0]
        causes = tuple(item(problems[number]) for number in problem.causes)
        return Item(problem, findings[fingerprint], anchors[fingerprint], causes)

    return [item(problem) for problem in result.problems if problem.parent is None]


def _anchors(fingerprints: Sequence[str]) -> list[str]:
    """An id for each finding, from its fingerprint, so that a link from a ticket survives a new run."""
    counts: dict[str, int] = defaultdict(int)
    anchors = []
    for fingerprint in fingerprints:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", fingerprint).strip("-")[:64] or "finding"
        counts[slug] += 1
        anchors.append(f"f-{slug}" if counts[slug] == 1 else f"f-{slug}--{counts[slug]}")
    return anchors
