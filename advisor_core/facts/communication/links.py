"""Bytes, time and bandwidth of each link of a rank, beside the bandwidth of the other links of its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import narrowed
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.contracts.tables import LINKS
from advisor_core.facts.communication.calls import members_of_group
from advisor_core.facts.grouping import Groups, aggregated
from advisor_core.facts.intervals import Bools
from advisor_core.facts.matching import matching
from advisor_core.facts.steps.steps import steps

TOTAL = re.compile(r"-total(?:@|$)")
"""The part of a name by which a link stands for all operations of a kind."""

_KIND = ["transport", "group"]
_LINK = ["group", "source_rank", "target_rank", "transport"]

COLUMNS = (
    Column("group", "text", "", "hash of the group"),
    Column("source_rank", "int", "", "rank that sends, as recorded: mostly its place in the group"),
    Column("target_rank", "int", "", "rank that receives, as recorded"),
    Column("transport", "text", "", "HCCS, RDMA, PCIE or SIO"),
    Column("source", "int", "", "rank of the job that sends, -1 where the ranks of the group are not recorded"),
    Column("target", "int", "", "rank of the job that receives, -1 likewise"),
    Column("bytes", "int", "B", "moved over the link"),
    Column("transit_ns", "int", "ns", "time moving"),
    Column("bandwidth", "float", "B/s", "bytes over transit time"),
    Column("links", "int", "count", "links of this transport in this group, with this one"),
    Column("median_bandwidth", "float", "B/s", "median over the others of these, NaN without any"),
    Column("ratio", "float", "ratio", "bandwidth over median_bandwidth"),
    Column("steps", "int", "count", "steps in which it moved, also those that are not counted"),
)


@fact("link_speeds", needs=(LINKS, PROFILE), wants=(steps,), columns=COLUMNS)
def link_speeds(facts: Facts) -> pd.DataFrame:
    """One row per group, transport and pair of ranks between which this rank moved data."""
    table, profile = facts[LINKS], facts[PROFILE]
    moved = narrowed(table, (*_LINK, "bytes", "transit_ns"))[transfers(table)]
    frame = aggregated(moved, _LINK, bytes=("bytes", "sum"), transit_ns=("transit_ns", "sum"))
    frame["group"], frame["transport"] = frame["group"].astype(str), frame["transport"].astype(str)
    frame["bandwidth"] = frame["bytes"] / frame["transit_ns"] * 1e9
    kinds = Groups(frame, _KIND)
    frame["links"] = kinds.sizes[kinds.codes]
    frame["median_bandwidth"] = _median_of_others(frame)
    frame["ratio"] = frame["bandwidth"] / frame["median_bandwidth"]
    frame["steps"] = _steps(table, facts.get(steps))
    return _numbered(frame, profile)


def _steps(table: pd.DataFrame, windows: pd.DataFrame | None) -> int:
    """The number of steps that the table is of: those that it names, else those that are counted."""
    named = table["step"][table["step"] >= 0].nunique()
    return named or (0 if windows is None else len(windows)) or 1


def transfers(table: pd.DataFrame) -> Bools:
    """Mask of the rows of the table `LINKS` that a link moved between two ranks, each operation counted once: the
    exporter lists some operations (top, middle, bottom) and their total."""
    totals = matching(table["name"], TOTAL)
    between = (table["transport"] != "LOCAL") & (table["source_rank"] != table["target_rank"])
    moved = (table["transit_ns"] > 0) & (table["bytes"] > 0)
    chosen: Bools = (between & moved & (totals if totals.any() else True)).to_numpy(dtype=np.bool_)
    return chosen


def _median_of_others(frame: pd.DataFrame) -> pd.Series:
    """For each link the median bandwidth of the other links of its transport and group, from the sorted values: without
    one of them the middle moves by at most one place."""
    result = pd.Series(np.nan, index=frame.index)
    for _, kind in frame.groupby(_KIND):
        order = kind["bandwidth"].sort_values(kind="stable")
        values, count = order.to_numpy(), len(order)
        if count < 2:
            continue
        place = np.arange(count)
        below, above = (count - 2) // 2, (count - 1) // 2

        def without(target: int, place: np.ndarray = place, values: np.ndarray = values) -> np.ndarray:
            """For each link the value that stands at ``target`` when the link itself is left out."""
            return np.asarray(values[np.minimum(target + (place <= target), len(values) - 1)])

        result.loc[order.index] = (without(below) + without(above)) / 2
    return result


def _numbered(frame: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """With the ranks of the job that a link joins. A file names places in the group, or, for sends and receives of
    some exporters, ranks of the job."""
    source, target = np.full(len(frame), -1, dtype=np.int64), np.full(len(frame), -1, dtype=np.int64)
    for group, rows in frame.groupby("group").indices.items():
        sends, receives = (frame[name].to_numpy()[rows] for name in ("source_rank", "target_rank"))
        members = _members(str(group), sends, receives, profile)
        if members is not None:
            source[rows], target[rows] = members[sends], members[receives]
    return frame.assign(source=source, target=target)


def _members(group: str, sends: np.ndarray, receives: np.ndarray, profile: Profile) -> np.ndarray | None:
    """The rank of the job behind each number that a group's links use; ``None`` where that is not known."""
    named: Sequence[int] | None = members_of_group(group, profile)
    highest = int(max(sends.max(), receives.max()))
    if named is None:  # a group of all ranks has places 0 to the last rank
        return np.arange(highest + 1) if profile.world_size == highest + 1 else None
    both = np.concatenate([sends, receives])
    if highest < len(named) and profile.rank in np.asarray(named)[both]:
        return np.asarray(named)
    return np.arange(highest + 1) if set(both.tolist()) <= set(named) else None
