"""Findings that are gone, new, better or worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from advisor_core.result.comparison import FindingDifference, FindingState
from advisor_core.result.finding import SEVERITIES, Severity
from advisor_core.result.run import UNANSWERED, RunResult
from advisor_core.text.base import Scalar, Text

SAME_SHARE = 0.01
"""Of the earlier step: a finding whose time differs by less is the same. The convention of the first page of a report,
which leaves out entries below this share."""

_ORDER: tuple[FindingState, ...] = (
    "new", "worse", "gone", "better", "other_subject", "judged_differently", "unknown_before", "unknown_after", "same",
)  # fmt: skip

Asked = tuple[str, str | None]
"""A rule and the role it was asked of."""


@dataclass(frozen=True)
class Found:
    """A finding of a side. ``number``: of its problem; ``ns``: what its rule measured; ``None``: not known."""

    asked: Asked
    fingerprint: str
    title: Text
    severity: Severity
    number: str | None = None
    ns: int | None = None


@dataclass(frozen=True)
class Judged:
    """What a side found, and what it was asked. ``answered``: what had an answer on some rank; that there is no finding
    says something only then. ``by``: condition and thresholds, where they are known."""

    findings: Sequence[Found]
    answered: frozenset[Asked]
    by: Mapping[Asked, tuple[str, Mapping[str, Scalar]]] = field(default_factory=dict)


def judged(result: RunResult) -> Judged:
    """Of a result."""
    return Judged(
        [
            Found(
                (finding.rule, finding.role),
                finding.fingerprint,
                finding.title,
                finding.severity,
                result.numbers.get(finding.fingerprint),
                finding.impact.gross_ns_per_step,
            )
            for finding in result.findings
        ],
        frozenset((one.rule, one.role) for one in result.rules if one.state not in UNANSWERED),
        {(one.rule, one.role): (one.condition, one.params) for one in result.rules},
    )


def finding_differences(before: Judged, after: Judged, step_ns: int) -> list[FindingDifference]:
    """Every finding of either side. ``step_ns``: the earlier step."""
    old, new = ({finding.fingerprint: finding for finding in side.findings} for side in (before, after))
    pairs = [(old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]
    rows = []
    for one, other in _with_moved(pairs):
        finding = other or one
        assert finding is not None
        rows.append(
            FindingDifference(
                state=_state(one, other, step_ns, before, after),
                rule=finding.asked[0],
                fingerprint=finding.fingerprint,
                title=finding.title,
                before=None if one is None else one.number,
                after=None if other is None else other.number,
                severity_before=None if one is None else one.severity,
                severity_after=None if other is None else other.severity,
                before_ns=None if one is None else one.ns,
                after_ns=None if other is None else other.ns,
            )
        )
    return sorted(rows, key=lambda row: (_ORDER.index(row.state), -abs((row.after_ns or 0) - (row.before_ns or 0))))


_Pair = tuple[Found | None, Found | None]


def _with_moved(pairs: Sequence[_Pair]) -> Iterator[_Pair]:
    """The pairs; where a rule has one finding on each side, about different things, these are a pair too."""
    lone: dict[Asked, tuple[list[Found], list[Found]]] = {}
    for one, other in pairs:
        if one is not None and other is not None:
            yield one, other
            continue
        finding = one or other
        assert finding is not None
        lone.setdefault(finding.asked, ([], []))[0 if one is not None else 1].append(finding)
    for old, new in lone.values():
        if len(old) == len(new) == 1:
            yield old[0], new[0]
        else:
            yield from ((finding, None) for finding in old)
            yield from ((None, finding) for finding in new)


def _state(one: Found | None, other: Found | None, step_ns: int, before: Judged, after: Judged) -> FindingState:
    """A rule that is not there, or could not be answered on any rank, says nothing of a side without its finding."""
    if one is None:
        assert other is not None
        return "new" if other.asked in before.answered else "unknown_before"
    if other is None:
        return "gone" if one.asked in after.answered else "unknown_after"
    if one.fingerprint != other.fingerprint:
        return "other_subject"
    sides = before.by.get(other.asked), after.by.get(other.asked)
    if None not in sides and sides[0] != sides[1]:
        return "judged_differently"
    change = _change(one, other, step_ns)
    return "worse" if change > 0 else "better" if change < 0 else "same"


def _change(one: Found, other: Found, step_ns: int) -> int:
    """By how much a finding costs more. A severity is a share of the step, which changes by itself: it tells where no
    time does."""
    if one.ns is None or other.ns is None or not (one.ns or other.ns):
        return SEVERITIES.index(one.severity) - SEVERITIES.index(other.severity)
    change = other.ns - one.ns
    return change if abs(change) >= SAME_SHARE * step_ns else 0
