"""Phases at a glance: how long each takes, what of, and how evenly the ranks share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.result.run import PhaseSummary, PhaseTime, RunResult
from advisor_core.result.spread import RankTime
from advisor_core.run.compose_mean_steps import Lane

_WAITING = "communication/wait"
_PARTS = ("compute", "communication", "idle", _WAITING)
_NO_WORK = (_WAITING, "communication/unknown")
"""A rank waits, or may wait, for another."""

_LEAST = 0.001
"""Share of all phases from which time outside of all marks is a row of its own."""


def compose_phases(result: RunResult) -> list[PhaseSummary]:
    """The phases in the order of the result; time outside of all marks, where there is some, last."""
    groups, steps = _by_phase(result), _steps(result)
    order = list(result.profile.roles) or sorted(groups, key=lambda name: not name)
    names = sorted(groups, key=lambda name: order.index(name) if name in order else len(order))
    found = [_summary(name, groups[name], steps) for name in names]
    total = sum(phase.ns for phase in found)
    return [
        phase.model_copy(update={"share": round(phase.ns / total, 6) if total else 0.0})
        for phase in found
        if phase.phase or phase.ns >= total * _LEAST
    ]


def phase_work(result: RunResult) -> dict[str, dict[int, int]]:
    """By phase that is named, the ns per step of each rank without waiting for others."""
    steps = _steps(result)
    return {
        name: {rank: round(ns) for rank, ns in _worked(times, _counts(name, times, steps)).items()}
        for name, times in _by_phase(result).items()
        if name
    }


def _by_phase(result: RunResult) -> dict[str, list[PhaseTime]]:
    groups: dict[str, list[PhaseTime]] = {}
    for time in result.phases:
        groups.setdefault(time.phase, []).append(time)
    return groups


def _steps(result: RunResult) -> dict[Lane, int]:
    steps: dict[Lane, int] = {}
    for step in result.ledger:
        steps[step.role, step.rank] = steps.get((step.role, step.rank), 0) + 1
    return steps


def _counts(name: str, times: Sequence[PhaseTime], steps: Mapping[Lane, int]) -> dict[int, int]:
    """The steps of each rank that has the phase."""
    ranks = dict.fromkeys(time.rank for time in times)
    return {rank: max(1, steps.get((name, rank)) or steps.get((None, rank), 1)) for rank in ranks}


def _worked(times: Sequence[PhaseTime], counts: Mapping[int, int]) -> dict[int, float]:
    worked = dict.fromkeys(counts, 0.0)
    for time in times:
        own = sum(ns for path, ns in time.entries.items() if not path.startswith(_NO_WORK))
        worked[time.rank] += own / counts[time.rank]
    return worked


def _summary(name: str, times: Sequence[PhaseTime], steps: Mapping[Lane, int]) -> PhaseSummary:
    counts = _counts(name, times, steps)
    ranks, worked, means = len(counts), _worked(times, counts), dict[str, float]()
    for time in times:
        for path, ns in time.entries.items():
            means[path] = means.get(path, 0.0) + ns / (counts[time.rank] * ranks)
    whole = sum(time.wall_ns for time in times)
    ordered = [RankTime(rank=rank, ns=round(ns)) for rank, ns in sorted(worked.items(), key=lambda p: (-p[1], p[0]))]
    several = bool(name) and len(ordered) > 1
    middle = (ordered[(len(ordered) - 1) // 2].ns + ordered[len(ordered) // 2].ns) / 2
    longest = ordered[0].ns
    return PhaseSummary(
        phase=name,
        kind=next((time.kind for time in times if time.kind), ""),
        ranks=ranks,
        ns=round(sum(time.wall_ns / counts[time.rank] for time in times) / ranks),
        share=0.0,
        parts={part: round(_under(part, times) / whole, 6) if whole else 0.0 for part in _PARTS},
        entries={path: round(ns) for path, ns in means.items()},
        longest=ordered[0] if several else None,
        shortest=ordered[-1] if several else None,
        spread=round((longest - middle) / longest, 6) if several and longest else 0.0,
    )


def _under(part: str, times: Sequence[PhaseTime]) -> int:
    return sum(ns for time in times for path, ns in time.entries.items() if path == part or path.startswith(f"{part}/"))
