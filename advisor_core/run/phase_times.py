"""The stages of a rank, for the report: how long each lasts in each step, and what that time consists of."""

from __future__ import annotations

from advisor_core.contracts.profile import Profile
from advisor_core.facts.steps.phases import stage_ledger, stages
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.result.run import StageTime


def stage_times(store: FactStore, profile: Profile) -> list[StageTime]:
    """By step, the stages in the order in which they begin, what lies outside all of them last; empty where the profile
    tells no stages."""
    spans, booked, windows = store.get(stages), store.get(stage_ledger), store.get(steps)
    if spans is None or booked is None or windows is None:
        return []
    order = {name: number for number, name in enumerate(spans["stage"].drop_duplicates().tolist())}
    kinds = dict(zip(spans["stage"].tolist(), spans["kind"].tolist(), strict=True))
    counts = spans.groupby(["step", "stage"]).size().to_dict()
    numbers = windows["step"].tolist()
    entries: dict[tuple[int, str], dict[str, int]] = {}
    leaves = (booked[name].tolist() for name in ("step", "stage", "path", "ns"))
    for step, stage, path, ns in zip(*leaves, strict=True):  # a row per step, stage and leaf
        entries.setdefault((step, stage), {})[path] = ns
    return [
        StageTime(
            rank=profile.rank,
            step=int(numbers[step]) if numbers[step] >= 0 else None,
            stage=stage,
            kind=str(kinds.get(stage, "")),
            wall_ns=sum(found.values()),
            spans=int(counts.get((step, stage), 0)),
            entries=found,
        )
        for (step, stage), found in sorted(
            entries.items(), key=lambda pair: (pair[0][0], order.get(pair[0][1], len(order)))
        )
    ]
