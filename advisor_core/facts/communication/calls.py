"""Collective calls of one rank: their uncovered time, divided by reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import narrowed, picked
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.contracts.tables import COLLECTIVE_BANDWIDTH, COLLECTIVES, COMMUNICATION_TASKS
from advisor_core.facts.communication.cross_rank_waits import CROSS_RANK_WAITS
from advisor_core.facts.communication.state import POINT_TO_POINT, CollectiveState, collective_state
from advisor_core.facts.device.shapes import per_text
from advisor_core.facts.device.work import work
from advisor_core.facts.grouping import Groups, aggregated
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.bookings import recorded_bookings
from advisor_core.text.messages import message
from advisor_core.vocabulary.vocabulary import Vocabulary

_T = TypeVar("_T")

_LEAVES = {
    "transmit_ns": "communication/transmit",
    "launch_gap_ns": "communication/launch",
    "unknown_ns": "communication/unknown",
}


RECORDED = (
    Column("work", "int", "", "row of work"),
    Column("table", "text", "", "name of the canonical table that it was read from"),
    Column("row", "int", "", "row number in that table"),
    Column("step", "int", "", "row of steps, -1 outside"),
    Column("name", "text", "", "as the exporter names it"),
    Column("operation", "text", "", "kind of operation, such as allReduce"),
    Column("group", "text", "", "hash of the group, or the digits in the name"),
    Column("ranks", "text", "", "global ranks of the group as recorded, '' unknown: groups side by side share a hash"),
    Column(
        "members",
        "int",
        "count",
        "ranks in the group: as recorded, else at least as many as its planes name; -1 unknown",
    ),
    Column("peer", "int", "", "the one rank that a send, a receive or a batch of them is with, -1 unknown or several"),
    Column("index", "int", "", "which call of the group, -1 unknown"),
    Column("start_ns", "int", "ns", "start"),
    Column("end_ns", "int", "ns", "end"),
    Column("elapse_ns", "int", "ns", "duration including waiting"),
    Column("uncovered_ns", "int", "ns", "no computing runs: the sum of the next four"),
    Column("transmit_ns", "int", "ns", "of it: some plane moves data"),
    Column("wait_ns", "int", "ns", "of it: it waits for a rank"),
    Column("launch_gap_ns", "int", "ns", "of it: it has begun and its next task has not"),
    Column("unknown_ns", "int", "ns", "of it: not known which"),
    Column("waits_for", "int", "", "rank that held it up longest, -1 none"),
    Column("waits_for_ns", "int", "ns", "uncovered waiting for that rank"),
    Column("launch_ns", "int", "ns", "launch of the host in device time, lowest int64 if unknown"),
    Column("moving_ns", "int", "ns", "some plane moves data, covered or not; -1 unknown"),
    Column("bytes", "int", "B", "over links, -1 unknown"),
    Column("packets", "int", "count", "over links, -1 unknown"),
    Column("max_packet_bytes", "int", "B", "largest packet, -1 unknown"),
)


@fact(
    "recorded_calls",
    needs=(work, recorded_bookings, PROFILE),
    wants=(launches, COLLECTIVES, COLLECTIVE_BANDWIDTH, COMMUNICATION_TASKS, collective_state),
    columns=RECORDED,
)
def recorded_calls(facts: Facts) -> pd.DataFrame:
    """One row per collective or send/receive, as far as this rank alone tells."""
    device, booked = facts[work], facts[recorded_bookings].pieces
    rows = np.flatnonzero(device["communication"].to_numpy())
    if not len(rows):
        raise NotApplicable(message("collectives.none"))
    calls = picked(device, rows, ("table", "row", "start_ns", "end_ns", "name"))
    calls.insert(0, "work", rows)
    calls["name"] = calls["name"].astype(str)
    calls = _identified(calls, facts[PROFILE].vocabulary, facts.get(COLLECTIVES))
    calls["elapse_ns"] = calls["end_ns"] - calls["start_ns"]
    calls["step"] = _steps(booked, calls)
    open_pieces = booked[(booked["collective"] >= 0) & ~booked["overlapped"]]
    lengths = open_pieces["end_ns"] - open_pieces["start_ns"]
    paths = open_pieces["path"].array
    by_leaf = np.zeros((len(calls), len(paths.categories)), dtype=np.int64)
    place = pd.Index(calls["work"]).get_indexer(open_pieces["collective"])
    known = place >= 0
    np.add.at(by_leaf, (place[known], paths.codes[known]), lengths.to_numpy()[known])
    calls["uncovered_ns"] = by_leaf.sum(axis=1)
    for column, path in _LEAVES.items():
        calls[column] = by_leaf[:, paths.categories.get_loc(path)] if path in paths.categories else 0
    calls["wait_ns"] = calls["uncovered_ns"] - calls["transmit_ns"] - calls["launch_gap_ns"] - calls["unknown_ns"]
    _name_peer(calls, open_pieces, lengths, facts)
    launched = facts.get(launches)
    lowest = np.iinfo(np.int64).min
    calls["launch_ns"] = launched.frame["launch_ns"].to_numpy()[rows] if launched is not None else lowest
    state = facts.get(collective_state)
    calls["moving_ns"] = -1
    if state is not None:
        starts, ends = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
        moving = state.moving.measure(ends) - state.moving.measure(starts)
        traced = state.covered.measure(ends) > state.covered.measure(starts)
        calls["moving_ns"] = np.where(traced, moving, -1)
    calls = _sizes(calls, facts.get(COLLECTIVES), facts.get(COLLECTIVE_BANDWIDTH))
    calls["ranks"] = _ranks(calls, facts[PROFILE])
    members = _members(calls, facts[PROFILE], facts.get(COMMUNICATION_TASKS))
    calls["members"] = np.where(calls["members"] > 0, calls["members"], members)
    calls["peer"] = _peers(calls, facts[PROFILE].rank, facts.get(COMMUNICATION_TASKS), state)
    return calls


def _peers(calls: pd.DataFrame, rank: int, tasks: pd.DataFrame | None, state: CollectiveState | None) -> np.ndarray:
    """The one other rank that the planes of each send, receive or batch name, -1 where it is not known or not one."""
    peers = np.full(len(calls), -1, dtype=np.int64)
    between = calls["operation"].str.contains(POINT_TO_POINT).to_numpy()
    if tasks is None or state is None or not between.any():
        return peers
    known = state.peers_are_global & (state.peers >= 0) & (state.peers != rank)
    named = tasks.assign(peer=state.peers)[known]
    whole = tasks[(tasks["plane"] < 0) & (tasks["group"] >= 0)].sort_values("start_ns", kind="stable")
    parts = []
    for group, operations in whole.groupby("group"):
        own = named[named["group"] == group]
        place = np.searchsorted(operations["start_ns"].to_numpy(), own["start_ns"].to_numpy(), side="right") - 1
        inside = place >= 0
        names = operations[["name", "start_ns"]].iloc[place[inside]].astype({"name": str})
        parts.append(names.assign(peer=own["peer"].to_numpy()[inside]))
    if not parts:
        return peers
    one = pd.concat(parts).groupby(["name", "start_ns"])["peer"].agg(["min", "max"])
    one = one["min"].where(one["min"] == one["max"], -1)
    found = one.reindex(pd.MultiIndex.from_frame(calls[["name", "start_ns"]])).fillna(-1).to_numpy(dtype=np.int64)
    return np.where(between, found, -1)


def _identified(calls: pd.DataFrame, words: Vocabulary, collectives: pd.DataFrame | None) -> pd.DataFrame:
    """With ``operation``, ``group``, ``index``, ``members`` and ``bytes`` of each call: as recorded with the collective
    that has its name and start, else as far as its name tells."""
    named = [words.collective.search(name) for name in calls["name"]]
    name_parts = [match.groupdict() if match else {} for match in named]
    calls["operation"] = [parts.get("operation") or name for parts, name in zip(name_parts, calls["name"], strict=True)]
    calls["group"] = [parts.get("group") or "" for parts in name_parts]
    calls["index"] = np.array([int(parts.get("index") or -1) for parts in name_parts], dtype=np.int64)
    calls["members"], calls["bytes"] = -1, -1
    recorded = None if collectives is None else collectives[collectives["operation"] != ""]
    if recorded is None or recorded.empty:
        return calls
    columns = ["operation", "group", "index", "members", "bytes"]
    plain = recorded.astype({"name": str, "operation": str, "group": str}).drop_duplicates(["name", "start_ns"])
    recorded_calls = calls[["name", "start_ns"]].merge(plain, on=["name", "start_ns"], how="left")
    is_recorded = recorded_calls["operation"].notna().to_numpy()
    for column in columns:
        calls.loc[is_recorded, column] = recorded_calls.loc[is_recorded, column].astype(calls[column].dtype).to_numpy()
    return calls


COLUMNS = (
    *RECORDED,
    Column("last_rank", "int", "", "rank that arrived last, -1 where the ranks of the job were not compared"),
    Column("waited_ns", "int", "ns", "uncovered waiting for that rank"),
    Column(
        "source",
        "text",
        "",
        "what tells waiting from moving data: planes (tasks of this rank), arrivals (of all ranks of the collective), "
        "pair (both ends of a send and a receive); '' nothing does",
    ),
)


@fact(
    "collective_calls",
    needs=(recorded_calls, CROSS_RANK_WAITS),
    shared=True,
    columns=COLUMNS,
)
def collective_calls(facts: Facts) -> pd.DataFrame:
    """One row per collective or send/receive: its time, what was not covered by computing, and who held it up.

    What the rank alone does not tell (``unknown_ns``) is waiting and transfer where the ranks were compared.
    """
    calls = facts[recorded_calls]
    waits = facts[CROSS_RANK_WAITS].set_index("work").reindex(calls["work"])
    last = waits["last_rank"].fillna(-1).astype("int64").to_numpy()
    waited = waits["waited_ns"].fillna(0).astype("int64").to_numpy()
    unknown = np.where(last >= 0, calls["unknown_ns"], 0)
    for_last = np.minimum(waited, unknown)
    pair = waits["pair"].eq(True).to_numpy()
    compared = (last >= 0) & (calls["unknown_ns"] > 0).to_numpy()
    by_ranks = np.where(pair, "pair", "arrivals")
    source = np.where(compared, by_ranks, np.where(calls["moving_ns"] >= 0, "planes", ""))
    untold = (calls["waits_for"] < 0).to_numpy() & (for_last > 0)
    return calls.assign(
        last_rank=last,
        waited_ns=waited,
        unknown_ns=calls["unknown_ns"] - unknown,
        wait_ns=calls["wait_ns"] + for_last,
        transmit_ns=calls["transmit_ns"] + unknown - for_last,
        waits_for=np.where(untold, last, calls["waits_for"]),
        waits_for_ns=np.where(untold, for_last, calls["waits_for_ns"]),
        source=source,
    )


def _ranks(calls: pd.DataFrame, profile: Profile) -> pd.Series:
    """The recorded ranks of each call's group, as text."""
    ranks_of_group: dict[str, str] = {}
    for group in calls["group"].unique():
        ranks = members_of_group(str(group), profile)
        ranks_of_group[group] = ",".join(map(str, ranks)) if ranks is not None else ""
    return calls["group"].map(ranks_of_group).astype(str)


def members_of_group(group: str, profile: Profile) -> Sequence[int] | None:
    """The ranks of a group that is known by its name or, where no other has the same, by the end of it."""
    return _of_group(group, profile.groups)


def name_of_group(group: str, profile: Profile) -> str | None:
    """The name that the framework gave a group, which is known as `members_of_group` says; ``None`` where none is
    recorded."""
    # One that is known by its whole name and was given none is no other with the same end.
    return profile.group_names.get(group) if group in profile.groups else _of_group(group, profile.group_names)


def _of_group(group: str, recorded: Mapping[str, _T]) -> _T | None:
    if group in recorded:
        return recorded[group]
    ending = [value for key, value in recorded.items() if group and key.endswith(group)]
    return ending[0] if len(ending) == 1 else None


def _members(calls: pd.DataFrame, profile: Profile, tasks: pd.DataFrame | None) -> np.ndarray:
    """Size of each call's group. Groups are known by their hash or the last three digits of it; the planes of a
    group's tasks name local ranks from 0 on."""
    plane_sizes: dict[str, int] = {}
    if tasks is not None and len(tasks):
        largest = tasks.groupby("group")[["own_rank", "peer_rank"]].max().max(axis=1) + 1
        whole = narrowed(tasks, ("name", "group"))[(tasks["plane"] < 0) & (tasks["group"] >= 0)].drop_duplicates(
            "group"
        )
        digits = whole["name"].astype(str).str.extract(r"__(\d+)_\d+_\d+$")[0]
        plane_sizes = {
            key: int(largest[group]) for key, group in zip(digits, whole["group"], strict=True) if largest[group]
        }
    sizes = {}
    for group in calls["group"].unique():
        ranks = members_of_group(str(group), profile)
        planes = [size for key, size in plane_sizes.items() if isinstance(key, str) and str(group).endswith(key)]
        sizes[group] = len(ranks) if ranks is not None else planes[0] if len(planes) == 1 else -1
    return calls["group"].map(sizes).to_numpy().astype(np.int64)


def _steps(booked: pd.DataFrame, calls: pd.DataFrame) -> np.ndarray:
    place = np.searchsorted(booked["start_ns"].to_numpy(), calls["start_ns"].to_numpy(), side="right") - 1
    inside = (place >= 0) & (calls["start_ns"].to_numpy() < booked["end_ns"].to_numpy()[np.maximum(place, 0)])
    return np.where(inside, booked["step"].to_numpy()[np.maximum(place, 0)], -1)


def _name_peer(calls: pd.DataFrame, pieces: pd.DataFrame, lengths: pd.Series, facts: Facts) -> None:
    calls["waits_for"], calls["waits_for_ns"] = -1, 0
    state = facts.get(collective_state)
    waits = pieces["wait"] >= 0
    if state is None or not waits.any():
        return
    peers = pd.Series(state.peers[pieces.loc[waits, "wait"]], index=pieces.index[waits])
    totals = lengths[waits].groupby([pieces.loc[waits, "collective"], peers]).sum().rename("ns").reset_index()
    totals.columns = pd.Index(["work", "peer", "ns"])
    worst = totals.sort_values(["work", "ns", "peer"]).drop_duplicates("work", keep="last").set_index("work")
    calls["waits_for"] = calls["work"].map(worst["peer"]).fillna(-1).astype("int64")
    calls["waits_for_ns"] = calls["work"].map(worst["ns"]).fillna(0).astype("int64")


def _of_names(names: pd.Series, told: pd.DataFrame, column: str, calls: np.ndarray) -> np.ndarray:
    """Of each name the value of a column of ``told``, divided by the number of ``calls`` of that name; -1 without."""
    place = pd.Index(told["name"]).get_indexer(names)
    shared = np.append(told[column].to_numpy(dtype=np.float64), -1.0)[place] / np.where(place < 0, 1, calls)
    return np.asarray(np.nan_to_num(shared, nan=-1.0), dtype=np.int64)


def operation_names(names: pd.Series) -> pd.Series:
    """The names of operations in files of the exporter, without what these add behind an ``@``."""
    return per_text(names, lambda text: text.partition("@")[0])


def _sizes(calls: pd.DataFrame, collectives: pd.DataFrame | None, bandwidth: pd.DataFrame | None) -> pd.DataFrame:
    calls["packets"], calls["max_packet_bytes"] = -1, -1
    if bandwidth is None or not len(bandwidth):
        return calls
    transport, name = bandwidth["transport"], operation_names(bandwidth["name"])
    is_sum = transport.isin(["SDMA", "RDMA"])
    is_link = transport.isin(["HCCS", "PCIE", "SIO", "RDMA"])
    moved = narrowed(bandwidth, ("bytes", "packets", "max_packet_bytes")).assign(name=name)
    sums = aggregated(moved[is_sum], "name", bytes=("bytes", "sum"))
    links = aggregated(moved[is_link], "name", packets=("packets", "sum"), max_packet_bytes=("max_packet_bytes", "max"))
    # The same operation name occurs once per step; several steps share it only in exports that restart the index.
    names = Groups(calls, "name")
    repeats = names.sizes[names.codes]
    calls["bytes"] = _of_names(calls["name"], sums, "bytes", repeats)
    calls["packets"] = _of_names(calls["name"], links, "packets", repeats)
    calls["max_packet_bytes"] = _of_names(calls["name"], links, "max_packet_bytes", np.ones(len(calls)))
    if collectives is not None and len(collectives):
        full = collectives[["group"]].assign(name=operation_names(collectives["name"])).drop_duplicates("name")
        groups = full.set_index("name")["group"].astype(str)
        calls["group"] = calls["name"].map(groups).fillna(calls["group"])
    return calls
