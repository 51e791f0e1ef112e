"""Where in time each finding is: the rows and stretches of its evidence, or what the ledger books where it claims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from advisor_core.result.evidence import Evidence
from advisor_core.result.finding import Finding
from advisor_core.result.run import RunResult
from advisor_core.result.timeline import RankTimeline

Kind = Literal["evidence", "claimed"]


@dataclass(frozen=True)
class Place:
    """A stretch of a rank, in ns of its own clock, that a finding is about. ``kind``: whether its evidence is there, or
    the ledger books the stretch under an entry of which the finding claims some."""

    kind: Kind
    start_ns: int
    ns: int


Lane = tuple[str | None, int]
"""Role and rank."""


def places(result: RunResult) -> dict[str, dict[Lane, tuple[Place, ...]]]:
    """Fingerprint to the places of the finding on each rank that is shown; a finding without any has no entry."""
    if result.timeline is None:
        return {}
    shown = {(rank.role, rank.rank): rank for rank in result.timeline.ranks}
    found = {finding.fingerprint: _of_finding(finding, shown) for finding in result.findings}
    return {fingerprint: by_lane for fingerprint, by_lane in found.items() if by_lane}


def _of_finding(finding: Finding, shown: dict[Lane, RankTimeline]) -> dict[Lane, tuple[Place, ...]]:
    by_lane = {lane: own for lane, own in places_of_evidence(finding).items() if lane in shown}
    if by_lane:
        return by_lane
    claimed: dict[Lane, set[Place]] = defaultdict(set)
    for claim in finding.impact.claims:
        if (finding.role, claim.rank) in shown:
            claimed[finding.role, claim.rank] |= set(_booked(shown[finding.role, claim.rank], claim.path))
    return _in_order(claimed)


def places_of_evidence(finding: Finding) -> dict[Lane, tuple[Place, ...]]:
    """Where the evidence of a finding is, on every rank that it is of, in order of time."""
    by_lane: dict[Lane, set[Place]] = defaultdict(set)
    for evidence in finding.evidence:
        rank = finding.rank if evidence.rank is None else evidence.rank
        if rank is not None:
            by_lane[finding.role, rank] |= set(_of_evidence(evidence))
    return _in_order(by_lane)


def _in_order(by_lane: Mapping[Lane, set[Place]]) -> dict[Lane, tuple[Place, ...]]:
    return {
        lane: tuple(sorted(own, key=lambda place: (place.start_ns, -place.ns))) for lane, own in by_lane.items() if own
    }


def _of_evidence(evidence: Evidence) -> Iterator[Place]:
    """A stretch, or the rows that are listed with their times: what lies between the first and the last row is no part
    of it."""
    start, end = evidence.start_ns, evidence.end_ns
    if evidence.kind == "interval" and start is not None and end is not None:
        yield Place("evidence", start, end - start)
    elif evidence.kind == "rows":
        for row in evidence.rows:
            begun, lasted = row.get("start_ns"), row.get("duration_ns")
            if isinstance(begun, int) and isinstance(lasted, int):
                yield Place("evidence", begun, lasted)


def _booked(rank: RankTimeline, path: str) -> Sequence[Place]:
    return [
        Place("claimed", start, ns)
        for track in rank.tracks
        if track.kind == "ledger"
        for start, ns, name in track.spans
        if track.names[name] == path
    ]
