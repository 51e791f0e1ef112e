"""The phases of an iteration at a glance: how long each takes, what of, and how evenly the ranks share it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from advisor_core.result.run import MeanStep, PhaseTime, RunResult
from reports.labels import Labels
from reports.ledgers import CLASSES, Ledger

_WAITING = "communication/wait"
_NO_WORK = (_WAITING, "communication/unknown")
"""A rank waits, or may wait, for another."""


@dataclass(frozen=True)
class PhaseRow:
    """One phase, times per step. ``ns``: mean over its ranks; ``share``: of all phases together. ``parts``: trunk of
    the ledger and ``communication/wait``, as shares of the phase. ``longest``, ``shortest``: rank and its time without
    waiting for others, ``None`` where one rank only was profiled; ``spread``: how much less the median of that is than
    the longest, of the longest."""

    name: str
    label: str
    ranks: int
    ns: float
    share: float
    parts: dict[str, float]
    longest: tuple[int, float] | None
    shortest: tuple[int, float] | None
    spread: float


def phase_rows(result: RunResult, labels: Labels) -> list[PhaseRow]:
    """The phases in the order of the result; time outside of all marks, where there is some, last."""
    groups: dict[str, list[PhaseTime]] = defaultdict(list)
    for time in result.phases:
        groups[time.phase].append(time)
    names = sorted(groups, key=lambda name: not name)  # '' is outside of all; the order of the others stays
    order = list(result.profile.roles) or names
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    steps = _steps(result)
    rows = [_row(name, groups[name], steps, labels) for name in names]
    total = sum(row.ns for row in rows)
    return [
        PhaseRow(**{**vars(row), "share": row.ns / total if total else 0.0})
        for row in rows
        if row.name or row.ns >= total / 1000
    ]


def phase_ledgers(result: RunResult) -> dict[str, Ledger]:
    """The mean step of each phase that marks name, over its ranks, by name in the order of the result."""
    steps = _steps(result)
    ranks = len({time.rank for time in result.phases})
    groups: dict[str, dict[str, float]] = {}
    for time in result.phases:
        entries = groups.setdefault(time.phase, defaultdict(float))
        for path, ns in time.entries.items():
            entries[path] += ns / (ranks * max(1, steps[None, time.rank]))
    return {
        name: _ledger({path: round(ns) for path, ns in entries.items()}) for name, entries in groups.items() if name
    }


def _ledger(entries: dict[str, int]) -> Ledger:
    return Ledger(MeanStep(role=None, rank=None, steps=1, wall_ns=sum(entries.values()), entries=entries))


def _steps(result: RunResult) -> dict[tuple[str | None, int], int]:
    """How many steps each rank of each phase has."""
    counts: dict[tuple[str | None, int], int] = defaultdict(int)
    for step in result.ledger:
        counts[step.role, step.rank] += 1
    return counts


def _row(name: str, times: Sequence[PhaseTime], steps: dict[tuple[str | None, int], int], labels: Labels) -> PhaseRow:
    whole, sums = 0, dict.fromkeys((time.rank for time in times), 0.0)
    parts: dict[str, float] = dict.fromkeys((*CLASSES, _WAITING), 0.0)
    for time in times:
        whole += time.wall_ns
        sums[time.rank] += sum(ns for path, ns in time.entries.items() if not path.startswith(_NO_WORK))
        for path, ns in time.entries.items():
            for part in parts:
                if path == part or path.startswith(f"{part}/"):
                    parts[part] += ns
    counts = {rank: max(1, steps.get((name, rank)) or steps.get((None, rank), 1)) for rank in sums}
    lengths = {rank: ns / counts[rank] for rank, ns in sums.items()}
    ordered = sorted(lengths.items(), key=lambda pair: (-pair[1], pair[0]))
    several = name and len(ordered) > 1
    values = [ns for _, ns in ordered]
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    kind = next((time.kind for time in times if time.kind), "")
    return PhaseRow(
        name=name,
        label=labels(f"phase.{kind}") if f"phase.{kind}" in labels else "" if name else labels("phases.outside"),
        ranks=len(ordered),
        ns=sum(time.wall_ns / counts[time.rank] for time in times) / len(counts),
        share=0.0,
        parts={part: ns / whole if whole else 0.0 for part, ns in parts.items()},
        longest=ordered[0] if several else None,
        shortest=ordered[-1] if several else None,
        spread=(values[0] - middle) / values[0] if several and values[0] else 0.0,
    )
