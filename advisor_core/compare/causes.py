"""Causes of a difference: for each entry of the ledger that matters, findings, operators and collectives that moved
the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor_core.contracts.ledger_paths import LedgerPath, summed
from advisor_core.result.comparison import (
    Cause,
    CollectiveDifference,
    FindingDifference,
    FindingState,
    LedgerDifference,
    OperatorDifference,
)
from advisor_core.result.run import RunResult

MATTERS = 0.01
"""Share of the earlier step from which the difference of an entry is explained: as on the first page of a report."""

NAMED = 3
"""Operators and collectives that are named under one entry: the largest, from a share of its difference on."""

NAMED_FROM = 0.1

_WAITING = LedgerPath("communication/wait")

_GREW: tuple[FindingState, ...] = ("new", "worse", "other_subject", "unknown_before")
_SHRANK: tuple[FindingState, ...] = ("gone", "better", "other_subject", "unknown_after")


def causes(
    ledger: Sequence[LedgerDifference],
    findings: Sequence[FindingDifference],
    operators: Sequence[OperatorDifference],
    collectives: Sequence[CollectiveDifference],
    results: tuple[RunResult, RunResult],
    step_ns: int,
) -> list[Cause]:
    """The entries whose difference matters, largest first, with what is about them. ``results``: before and after."""
    claims = [_claims(result) for result in results]
    told = []
    for path, difference in _entries(ledger):
        if not difference or abs(difference) < MATTERS * step_ns:
            continue
        grew = difference > 0
        states, claimed = (_GREW, claims[1]) if grew else (_SHRANK, claims[0])
        about = [
            place
            for place, finding in enumerate(findings)
            if finding.state in states and _is_about(path, claimed.get(_number(finding, grew), ()))
        ]
        of_operators = [one.difference_ns if _is_in(path, one) else 0 for one in operators]
        of_collectives = [one.at(path) for one in collectives]
        told.append(
            Cause(
                path=path,
                difference_ns=difference,
                findings=about,
                operators=_moved(of_operators, difference),
                collectives=_moved(of_collectives, difference),
            )
        )
    return told


def _entries(ledger: Sequence[LedgerDifference]) -> list[tuple[str, int]]:
    """The entries by size, with all waiting as one."""
    sums = summed(
        ((row.path, row.difference_ns) for row in ledger), lambda path: _WAITING if _WAITING.above(path) else path
    )
    return sorted(sums.items(), key=lambda entry: (-abs(entry[1]), entry[0]))


def _claims(result: RunResult) -> Mapping[str, Sequence[str]]:
    """The entries that each problem claims, by its number."""
    numbers = result.numbers
    return {
        numbers.get(finding.fingerprint, ""): [claim.path for claim in finding.impact.claims]
        for finding in result.findings
    }


def _number(finding: FindingDifference, grew: bool) -> str:
    return (finding.after if grew else finding.before) or ""


def _is_about(path: str, claimed: Iterable[str]) -> bool:
    return any(LedgerPath(path).covers(claim) for claim in claimed)


def _is_in(path: str, operator: OperatorDifference) -> bool:
    return path in ("compute", f"compute/{operator.operator_class}")


def _moved(differences: Sequence[int], of: int) -> list[int]:
    """The places of the largest differences of the sign of ``of``, of those that are a part of it worth naming."""
    sign = 1 if of > 0 else -1
    parts = [(place, sign * ns) for place, ns in enumerate(differences) if sign * ns >= NAMED_FROM * abs(of)]
    return [place for place, _ in sorted(parts, key=lambda part: -part[1])[:NAMED]]
