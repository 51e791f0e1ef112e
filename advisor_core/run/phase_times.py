"""The phases of a rank, for the report: how long each lasts in each step, and what that time consists of."""

from __future__ import annotations

import pandas as pd

from advisor_core.contracts.profile import Profile
from advisor_core.facts.steps.parts import part_ledger, parts
from advisor_core.facts.steps.phases import phase_ledger, phases
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.result.run import PhaseTime
from advisor_core.vocabulary.parts import TOLD


def phase_times(store: FactStore, profile: Profile) -> list[PhaseTime]:
    """By step, the phases in the order in which they begin, what lies outside all of them last. Where nothing tells
    phases of reinforcement learning the parts of a recording of several; empty where there is only one."""
    windows = store.get(steps)
    spans, booked = store.get(phases), store.get(phase_ledger)
    if spans is None:
        spans, booked = _parts(store.get(parts)), store.get(part_ledger)
        booked = None if booked is None else booked.assign(phase=booked["part"])
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


def _parts(told: pd.DataFrame | None) -> pd.DataFrame | None:
    """Parts as phases of their name."""
    if told is None or told.empty:
        return None
    lengths = (told["end_ns"] - told["start_ns"]).groupby(told["part"].astype(str)).sum()
    if (lengths >= TOLD * lengths.sum()).sum() < 2:
        return None
    return told.assign(phase=told["part"], kind=told["part"])
