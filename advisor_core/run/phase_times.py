"""The phases of a rank, for the report: how long each lasts in each step, and what that time consists of."""

from __future__ import annotations

from advisor_core.contracts.facts import NotApplicable, Unavailable
from advisor_core.contracts.profile import Profile
from advisor_core.facts.store import FactStore
from advisor_core.result.run import PhaseTime


def phase_times(store: FactStore, profile: Profile) -> list[PhaseTime]:
    """By step, the phases in the order in which they begin, what lies outside all of them last; empty where the profile
    tells no phases."""
    try:
        spans, booked, steps = (store.get(name) for name in ("phases", "phase_ledger", "steps"))
    except (Unavailable, NotApplicable):
        return []
    order = {name: number for number, name in enumerate(spans["phase"].drop_duplicates().tolist())}
    kinds = dict(zip(spans["phase"].tolist(), spans["kind"].tolist(), strict=True))
    counts = spans.groupby(["step", "phase"]).size().to_dict()
    numbers = steps["step"].tolist()
    entries: dict[tuple[int, str], dict[str, int]] = {}
    for row in booked.itertuples():  # a row per step, phase and leaf
        entries.setdefault((int(row.step), str(row.phase)), {})[str(row.path)] = int(row.ns)
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
