"""The stretch of a rank that a slice for a problem is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor_core.result.finding import Finding
from advisor_core.result.places import Kind, Place, places, places_of_evidence
from advisor_core.result.run import RunResult


@dataclass(frozen=True)
class Focus:
    """``number``: of the problem. ``start_ns`` and ``end_ns``: by the clock of the rank. ``further``: other places of
    the finding, which may be outside of the slice."""

    number: str
    finding: Finding
    role: str | None
    rank: int
    start_ns: int
    end_ns: int
    kind: Kind
    further: int


def focuses(result: RunResult) -> Iterator[Focus]:
    """The longest place of each problem, in the order of the report: of its evidence, else where the ledger books what
    it claims; on the rank that the finding is shown for, if it has one there. A finding without a place has none."""
    claimed = places(result)
    findings = {finding.fingerprint: finding for finding in result.findings}
    for problem in result.problems:
        finding = findings[problem.findings[0]]
        by_lane = places_of_evidence(finding) or claimed.get(finding.fingerprint, {})
        if not by_lane:
            continue
        shown = finding.role, finding.rank
        role, rank = next((lane for lane in by_lane if lane == shown), None) or max(
            by_lane, key=lambda lane: (max(place.ns for place in by_lane[lane]), -lane[1])
        )
        longest: Place = max(by_lane[role, rank], key=lambda place: (place.ns, -place.start_ns))
        yield Focus(
            number=problem.number,
            finding=finding,
            role=role,
            rank=rank,
            start_ns=longest.start_ns,
            end_ns=longest.start_ns + longest.ns,
            kind=longest.kind,
            further=sum(map(len, by_lane.values())) - 1,
        )
