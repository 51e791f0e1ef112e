"""Findings that are gone, new, better or worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor_core.result.comparison import FindingDifference, FindingState
from advisor_core.result.finding import SEVERITIES, Finding
from advisor_core.result.run import RuleOutcome, RunResult

SAME_SHARE = 0.01
"""Of the earlier step: a finding whose time differs by less is the same. The convention of the first page of a report,
which leaves out entries below this share."""

_ORDER: tuple[FindingState, ...] = (
    "new", "worse", "gone", "better", "other_subject", "judged_differently", "unknown_before", "unknown_after", "same",
)  # fmt: skip
_UNANSWERED = ("cannot_answer", "error", "left_out")


def finding_differences(before: RunResult, after: RunResult, step_ns: int) -> list[FindingDifference]:
    """Every finding of either side. ``step_ns``: the earlier step."""
    old, new = ({finding.fingerprint: finding for finding in result.findings} for result in (before, after))
    pairs = [(old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]
    rules = _rules(before), _rules(after)
    numbers = before.numbers, after.numbers
    rows = []
    for one, other in _with_moved(pairs):
        finding = other or one
        assert finding is not None
        rows.append(
            FindingDifference(
                state=_state(one, other, step_ns, *(side.get((finding.rule, finding.role)) for side in rules)),
                rule=finding.rule,
                fingerprint=finding.fingerprint,
                title=finding.title,
                before=None if one is None else numbers[0].get(one.fingerprint),
                after=None if other is None else numbers[1].get(other.fingerprint),
                severity_before=None if one is None else one.severity,
                severity_after=None if other is None else other.severity,
                before_ns=None if one is None else one.impact.gross_ns_per_step,
                after_ns=None if other is None else other.impact.gross_ns_per_step,
            )
        )
    return sorted(rows, key=lambda row: (_ORDER.index(row.state), -abs((row.after_ns or 0) - (row.before_ns or 0))))


_Pair = tuple[Finding | None, Finding | None]


def _with_moved(pairs: Sequence[_Pair]) -> Iterator[_Pair]:
    """The pairs; where a rule has one finding on each side, about different things, these are a pair too."""
    lone: dict[tuple[str, str | None], tuple[list[Finding], list[Finding]]] = {}
    for one, other in pairs:
        if one is not None and other is not None:
            yield one, other
            continue
        finding = one or other
        assert finding is not None
        sides = lone.setdefault((finding.rule, finding.role), ([], []))
        sides[0 if one is not None else 1].append(finding)
    for old, new in lone.values():
        if len(old) == len(new) == 1:
            yield old[0], new[0]
        else:
            yield from ((finding, None) for finding in old)
            yield from ((None, finding) for finding in new)


def _state(
    one: Finding | None, other: Finding | None, step_ns: int, old: RuleOutcome | None, new: RuleOutcome | None
) -> FindingState:
    if one is None:
        return "new" if _answered(old) else "unknown_before"
    if other is None:
        return "gone" if _answered(new) else "unknown_after"
    if one.fingerprint != other.fingerprint:
        return "other_subject"
    if old is not None and new is not None and (old.condition, old.params) != (new.condition, new.params):
        return "judged_differently"
    times = one.impact.gross_ns_per_step, other.impact.gross_ns_per_step
    change = times[1] - times[0]
    if not any(times):  # a severity is a share of the step, which changes by itself: it tells where no time does
        change = SEVERITIES.index(one.severity) - SEVERITIES.index(other.severity)
    elif abs(change) < SAME_SHARE * step_ns:
        change = 0
    return "worse" if change > 0 else "better" if change < 0 else "same"


def _answered(outcome: RuleOutcome | None) -> bool:
    """Whether a side without a finding of a rule was asked: a rule that is not there, or could not be answered on any
    rank, says nothing."""
    return outcome is not None and outcome.state not in _UNANSWERED


def _rules(result: RunResult) -> Mapping[tuple[str, str | None], RuleOutcome]:
    return {(outcome.rule, outcome.role): outcome for outcome in result.rules}
