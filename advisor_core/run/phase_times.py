"""The phases of a rank, for the report: how long each lasts in each step, and what that time consists of."""

from __future__ import annotations

from advisor_core.contracts.profile import Profile
from advisor_core.facts.steps.phases import phase_ledger, phases
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.result.run import PhaseTime


def phase_times(store: FactStore, profile: Profile) -> list[PhaseTime]:
    """By step, the phases in the order in which they begin, what lies outside all of them last; empty where the profile
    tells no phases."""
    spans, booked, windows = store.get(phases), store.get(phase_ledger), store.get(steps)
    if spans is None or booked is None or windows is None:
        return []
    order = {name: number for number, name in enumerate(spans["phase"].drop_duplicates().tolist())}
    kinds = dict(zip(spans["phase"].tolist(), spans["kind"].tolist(), strict=True))
    counts = spans.groupby(["step", "phase"]).size().to_dict()
    numbers = windows["step"].tolist()
    entries: dict[tuple[int, str], dict[str, int]] = {}
    leaves = (booked[name].tolist() for name in ("step", "phase", "path", "ns"))
    for step, phase, path, ns in zip(*leaves, strict=True):  # a row per step, phase and leaf
        entries.setdefault((step, phase), {})[path] = ns
    return [
        PhaseTime(
            rank=profile.rank,
            step=int(numbers[step]) if numbers[step] >= 0 else None,
            phase=phase,
            kind=str(kinds.get(phase, "")),
            wall_ns=sum(found.values()),
            spans=int(counts.get((step, phase), 0)),
            entries=found,
        )
        for (step, phase), found in sorted(
            entries.items(), key=lambda pair: (pair[0][0], order.get(pair[0][1], len(order)))
        )
    ]
