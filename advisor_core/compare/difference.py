"""The difference of the ledgers, which adds up to that of the step, and those of phases and memory."""

from __future__ import annotations

from collections.abc import Collection

from advisor_core.compare.match import Match, Side
from advisor_core.contracts.ledger_paths import summed
from advisor_core.result.comparison import LedgerDifference, MemoryDifference, PhaseDifference
from advisor_core.result.run import COVERED


def ledger_differences(match: Match, whole: Collection[str] = ()) -> list[LedgerDifference]:
    """Entry by entry, the largest difference first. ``whole``: trunks of the ledger of which only the sum stands, as
    the two sides know different causes. The differences add up to that of the mean step, as the entries of a mean step
    add up to it."""
    before, after = (
        summed(side.mean.entries.items(), lambda path: path.trunk if path.trunk in whole else path)
        for side in (match.before, match.after)
    )
    rows = [
        LedgerDifference(path=path, before_ns=old, after_ns=new, difference_ns=new - old)
        for path in dict.fromkeys([*before, *after])
        for old, new in [(before.get(path, 0), after.get(path, 0))]
    ]
    return sorted(rows, key=lambda row: (-abs(row.difference_ns), row.path))


def covered_shares(match: Match) -> tuple[float | None, float | None]:
    """Share of the communication of the compared ranks that computing covers, on both sides; ``None`` without any, and
    of a baseline, which does not hold it."""
    before, after = (_covered_share(side) for side in (match.before, match.after))
    return before, after


def _covered_share(side: Side) -> float | None:
    entries = [entry for step in side.ledger for entry in step.entries]
    covered = sum(int(entry.detail.get(COVERED) or 0) for entry in entries)
    uncovered = sum(entry.ns for entry in entries if entry.path.partition("/")[0] == "communication")
    return covered / (covered + uncovered) if covered + uncovered else None


def phase_differences(match: Match) -> list[PhaseDifference]:
    """The phases by name, in the order of the earlier run."""
    before, after = (
        {phase.phase: phase for phase in side.result.phase_summaries} for side in (match.before, match.after)
    )
    kinds = {name: phase.kind for name, phase in (after | before).items()}
    return [
        PhaseDifference(
            phase=name,
            kind=kinds[name],
            before_ns=before[name].ns if name in before else None,
            after_ns=after[name].ns if name in after else None,
        )
        for name in dict.fromkeys([*before, *after])
    ]


def memory_differences(match: Match) -> list[MemoryDifference]:
    """The peaks of the ranks that have one on both sides."""
    before, after = (
        {(peak.role, peak.rank): peak for peak in side.result.memory} for side in (match.before, match.after)
    )
    return [
        MemoryDifference(
            role=own[0],
            rank=own[1],
            rank_after=other[1],
            allocated_before=before[own].allocated_bytes,
            allocated_after=after[other].allocated_bytes,
            reserved_before=before[own].reserved_bytes,
            reserved_after=after[other].reserved_bytes,
        )
        for own, other in match.pairs
        if own in before and other in after
    ]
