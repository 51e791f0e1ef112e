"""The traffic of each communication group over each kind of link, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import COLLECTIVE_BANDWIDTH, COLLECTIVES, PROFILE, Facts, Profile
from advisor_core.api.renderers import Cell, View
from advisors.messages import message
from advisors.rank_tables import known, rank_table

SHOWN = 40
"""Rows of the table, those that moved longest; the title says of how many."""

_LINKS = ("HCCS", "RDMA", "PCIE", "SIO")
"""Transports that are links; the exporter adds sums of them."""

_COLUMNS = (
    ("communication.group.name", ""),
    ("communication.group.ranks", ""),
    ("communication.group.operations", ""),
    ("communication.group.transport", ""),
    ("communication.group.calls", ""),
    ("communication.group.bytes", "B"),
    ("communication.group.transit", "ns"),
    ("communication.group.bandwidth", "B/s"),
    ("communication.group.slowest", "B/s"),
)


@drawing("communication.groups", needs=(COLLECTIVE_BANDWIDTH, PROFILE), wants=(COLLECTIVES,))
def groups(facts: Facts) -> list[View]:
    """Groups of the rank: their ranks, operations, and the bandwidth that they reach over each kind of link."""
    table, profile = facts[COLLECTIVE_BANDWIDTH], facts[PROFILE]
    moved = table[(table["transport"].isin(_LINKS) & (table["bytes"] > 0) & (table["transit_ns"] > 0)).to_numpy()]
    if moved.empty:
        return []
    moved = moved.astype({"group": str, "transport": str})
    steps = max(moved["step"][moved["step"] >= 0].nunique(), 1)
    by_link = moved.groupby(["group", "transport"], sort=True)
    sums = by_link[["bytes", "transit_ns"]].sum().assign(calls=by_link.size(), slowest=by_link["bandwidth"].min())
    sums = sums.sort_values("transit_ns", ascending=False, kind="stable").reset_index()
    operations = _operations(facts)
    shown = sums.head(SHOWN)
    per_step = shown[["calls", "bytes", "transit_ns"]].to_numpy(dtype=np.float64) / steps
    reached = per_step[:, 1] / per_step[:, 2] * 1e9
    slowest = shown["slowest"].to_numpy(dtype=np.float64)
    numbers = np.column_stack([per_step, reached, slowest]).tolist()
    rows: list[list[Cell]] = [
        [group, _ranks(profile, group), operations.get(group, ""), transport, *map(known, row)]
        for group, transport, row in zip(shown["group"].tolist(), shown["transport"].tolist(), numbers, strict=True)
    ]
    title = message("communication.view.groups", rank=profile.rank, shown=len(rows), count=len(sums))
    return [rank_table("groups", title, profile.rank, _COLUMNS, rows)]


def _operations(facts: Facts) -> dict[str, str]:
    """The operations of each group, by its hash; empty where only their names tell."""
    calls = facts.get(COLLECTIVES)
    if calls is None:
        return {}
    named = pd.DataFrame({"group": calls["group"].astype(str), "name": calls["name"].astype(str)})
    named["kind"] = named["name"].str.extract(r"^hcom_([A-Za-z]+)_", expand=False)
    kinds = named.dropna(subset=["kind"]).groupby("group")["kind"].unique()
    return {str(group): ", ".join(sorted(found)) for group, found in kinds.items()}


def _ranks(profile: Profile, group: str) -> Cell:
    """The ranks of a group as ``0-3,8``; ``None`` where they are not recorded."""
    recorded = profile.groups.get(group)
    return spans(sorted(set(recorded))) if recorded else None


def spans(ranks: Sequence[int]) -> str:
    """Numbers in ascending order as ``0-3,8``."""
    starts = [number for number in ranks if number - 1 not in set(ranks)]
    ends = [number for number in ranks if number + 1 not in set(ranks)]
    pairs = zip(starts, ends, strict=True)
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in pairs)


DRAWINGS: tuple[Drawing, ...] = (groups,)
