"""The stages of a rank, for the report: how long each lasts in each step, and what that time consists of."""

from __future__ import annotations

from advisor_core.contracts.facts import NotApplicable, Unavailable
from advisor_core.contracts.profile import Profile
from advisor_core.facts.store import FactStore
from advisor_core.result.run import StageTime


def stage_times(store: FactStore, profile: Profile) -> list[StageTime]:
    """By step, the stages in the order in which they begin, what lies outside all of them last; empty where the profile
    tells no stages."""
    try:
        spans, booked, steps = (store.get(name) for name in ("stages", "stage_ledger", "steps"))
    except (Unavailable, NotApplicable):
        return []
    order = {name: number for number, name in enumerate(spans["stage"].drop_duplicates().tolist())}
    kinds = dict(zip(spans["stage"].tolist(), spans["kind"].tolist(), strict=True))
    counts = spans.groupby(["step", "stage"]).size().to_dict()
    numbers = steps["step"].tolist()
    entries: dict[tuple[int, str], dict[str, int]] = {}
    for row in booked.itertuples():  # a row per step, stage and leaf
        entries.setdefault((int(row.step), str(row.stage)), {})[str(row.path)] = int(row.ns)
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
