"""Collective calls of one rank: their uncovered time, divided by reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import frame_of, narrowed, picked
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.contracts.tables import COLLECTIVE_BANDWIDTH, COLLECTIVES, COMMUNICATION_TASKS
from advisor_core.facts.communication.cross_rank_waits import CROSS_RANK_WAITS
from advisor_core.facts.communication.state import POINT_TO_POINT, CollectiveState, collective_state
from advisor_core.facts.device.shapes import per_text
from advisor_core.facts.device.work import work
from advisor_core.facts.grouping import Groups, Ints, aggregated, first_rows
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.bookings import recorded_bookings
from advisor_core.text.messages import message
from advisor_core.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

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
    calls = picked(device, rows, ("table", "row", "start_ns", "end_ns"))
    calls = calls.assign(work=rows, name=device["name"].array.take(rows).astype(str))
    calls = _identified(calls, facts[PROFILE].vocabulary, facts.get(COLLECTIVES))
    starts, ends = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    open_pieces = booked[(booked["collective"] >= 0) & ~booked["overlapped"]]
    launched, state = facts.get(launches), facts.get(collective_state)
    lowest = np.iinfo(np.int64).min
    calls = calls.assign(
        elapse_ns=ends - starts,
        step=_steps(booked, calls),
        **_uncovered(rows, open_pieces),
        **_held_up(rows, open_pieces, state),
        launch_ns=launched.frame["launch_ns"].to_numpy()[rows] if launched is not None else lowest,
        moving_ns=-1 if state is None else _moving(state, starts, ends),
    )
    calls = _sizes(calls, facts.get(COLLECTIVES), facts.get(COLLECTIVE_BANDWIDTH))
    members = _members(calls, facts[PROFILE], facts.get(COMMUNICATION_TASKS))
    calls["members"] = np.where(calls["members"] > 0, calls["members"], members)
    peers = _peers(calls, facts[PROFILE].rank, facts.get(COMMUNICATION_TASKS), state)
    return calls.assign(ranks=_ranks(calls, facts[PROFILE]), peer=peers)


def _uncovered(works: Ints, pieces: pd.DataFrame) -> dict[str, Ints]:
    """The time of each call that no computing covers, in all and by reason."""
    paths, lengths = pieces["path"].array, (pieces["end_ns"] - pieces["start_ns"]).to_numpy()
    by_leaf = np.zeros((len(works), len(paths.categories)), dtype=np.int64)
    place = first_rows([works], [pieces["collective"]])
    known = place >= 0
    np.add.at(by_leaf, (place[known], paths.codes[known]), lengths[known])
    nothing = np.zeros(len(works), dtype=np.int64)
    found = {
        column: by_leaf[:, paths.categories.get_loc(path)] if path in paths.categories else nothing
        for column, path in _LEAVES.items()
    }
    whole = by_leaf.sum(axis=1)
    return {"uncovered_ns": whole, **found, "wait_ns": whole - sum(found.values(), nothing)}


def _moving(state: CollectiveState, starts: Ints, ends: Ints) -> Ints:
    moving = state.moving.measure(ends) - state.moving.measure(starts)
    traced = state.covered.measure(ends) > state.covered.measure(starts)
    return np.where(traced, moving, -1)


def _peers(calls: pd.DataFrame, rank: int, tasks: pd.DataFrame | None, state: CollectiveState | None) -> np.ndarray:
    """The one other rank that the planes of each send, receive or batch name, -1 where it is not known or not one."""
    peers = np.full(len(calls), -1, dtype=np.int64)
    between = np.array([bool(POINT_TO_POINT.search(operation)) for operation in calls["operation"].tolist()])
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
    names = calls["name"].tolist()
    matches = [words.collective.search(name) for name in names]
    parts = [match.groupdict() if match else {} for match in matches]
    operations = [part.get("operation") or name for part, name in zip(parts, names, strict=True)]
    told: dict[str, npt.NDArray[Any]] = {
        "operation": np.array(operations, dtype=object),
        "group": np.array([part.get("group") or "" for part in parts], dtype=object),
        "index": np.array([int(part.get("index") or -1) for part in parts], dtype=np.int64),
        "members": np.full(len(calls), -1, dtype=np.int64),
        "bytes": np.full(len(calls), -1, dtype=np.int64),
    }
    recorded = None if collectives is None else collectives[collectives["operation"] != ""]
    if recorded is not None and len(recorded):
        place = first_rows(*([frame[name] for name in ("name", "start_ns")] for frame in (recorded, calls)))
        for column, values in told.items():
            values[place >= 0] = recorded[column].to_numpy()[place[place >= 0]]
    return calls.assign(**told)


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


def _ranks(calls: pd.DataFrame, profile: Profile) -> npt.NDArray[np.object_]:
    """The recorded ranks of each call's group, as text."""
    groups = calls["group"].tolist()
    ranks_of_group = {group: members_of_group(group, profile) or () for group in dict.fromkeys(groups)}
    texts = {group: ",".join(map(str, ranks)) for group, ranks in ranks_of_group.items()}
    return np.array([texts[group] for group in groups], dtype=object)


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
    groups, plane_sizes = calls["group"].tolist(), _plane_sizes(tasks)
    sizes: dict[str, int] = {}
    for group in dict.fromkeys(groups):
        ranks = members_of_group(group, profile)
        planes = [size for key, size in plane_sizes.items() if group.endswith(key)]
        sizes[group] = len(ranks) if ranks is not None else planes[0] if len(planes) == 1 else -1
    return np.array([sizes[group] for group in groups], dtype=np.int64)


_DIGITS = re.compile(r"__(\d+)_\d+_\d+$")


def _plane_sizes(tasks: pd.DataFrame | None) -> dict[str, int]:
    """The last digits of the hash of a group to as many ranks as its planes name."""
    if tasks is None or not len(tasks):
        return {}
    largest = aggregated(tasks, "group", own=("own_rank", "max"), peer=("peer_rank", "max"))
    count = dict(zip(largest["group"].tolist(), (largest[["own", "peer"]].max(axis=1) + 1).tolist(), strict=True))
    whole = tasks[(tasks["plane"] < 0) & (tasks["group"] >= 0)]
    firsts = Groups(whole, "group", sort=False).firsts
    names, groups = (whole[name].array.take(firsts).tolist() for name in ("name", "group"))
    digits = ((_DIGITS.search(str(name)), count[group]) for name, group in zip(names, groups, strict=True))
    return {found.group(1): size for found, size in digits if found and size}


def _steps(booked: pd.DataFrame, calls: pd.DataFrame) -> np.ndarray:
    place = np.searchsorted(booked["start_ns"].to_numpy(), calls["start_ns"].to_numpy(), side="right") - 1
    inside = (place >= 0) & (calls["start_ns"].to_numpy() < booked["end_ns"].to_numpy()[np.maximum(place, 0)])
    return np.where(inside, booked["step"].to_numpy()[np.maximum(place, 0)], -1)


def _held_up(works: Ints, pieces: pd.DataFrame, state: CollectiveState | None) -> dict[str, Ints]:
    """The rank that each call waits for longest, of equals the last, and how long."""
    waits = np.flatnonzero(pieces["wait"].to_numpy() >= 0)
    if state is None or not len(waits):
        return {"waits_for": np.full(len(works), -1), "waits_for_ns": np.zeros(len(works), dtype=np.int64)}
    starts, ends, collectives, tasks = (
        pieces[name].to_numpy()[waits] for name in ("start_ns", "end_ns", "collective", "wait")
    )
    waited = frame_of({"work": collectives, "peer": state.peers[tasks], "ns": ends - starts}, len(waits))
    totals = aggregated(waited, ["work", "peer"], ns=("ns", "sum")).sort_values(["work", "ns", "peer"])
    work, peer, ns = (totals[name].to_numpy() for name in ("work", "peer", "ns"))
    worst = np.flatnonzero(np.append(work[1:] != work[:-1], True))
    place = first_rows([work[worst]], [works])
    return {
        "waits_for": np.where(place >= 0, peer[worst][place], -1),
        "waits_for_ns": np.where(place >= 0, ns[worst][place], 0),
    }


def _shared(told: npt.NDArray[Any], place: Ints, calls: Ints | int) -> Ints:
    """The value of each place divided by the number of ``calls`` that have it; -1 without."""
    shared = np.append(told.astype(np.float64), -1.0)[place] / np.where(place < 0, 1, calls)
    return np.asarray(np.nan_to_num(shared, nan=-1.0), dtype=np.int64)


def operation_names(names: pd.Series) -> pd.Series:
    """The names of operations in files of the exporter, without what these add behind an ``@``."""
    return per_text(names, lambda text: text.partition("@")[0])


def _sizes(calls: pd.DataFrame, collectives: pd.DataFrame | None, bandwidth: pd.DataFrame | None) -> pd.DataFrame:
    if bandwidth is None or not len(bandwidth):
        return calls.assign(packets=-1, max_packet_bytes=-1)
    transport = bandwidth["transport"]
    moved = narrowed(bandwidth, ("bytes", "packets", "max_packet_bytes")).assign(
        name=operation_names(bandwidth["name"])
    )
    sums = aggregated(moved[transport.isin(["SDMA", "RDMA"])], "name", bytes=("bytes", "sum"))
    links = aggregated(
        moved[transport.isin(["HCCS", "PCIE", "SIO", "RDMA"])],
        "name",
        packets=("packets", "sum"),
        max_packet_bytes=("max_packet_bytes", "max"),
    )
    # The same operation name occurs once per step; several steps share it only in exports that restart the index.
    names = Groups(calls, "name")
    repeats = names.sizes[names.codes]
    summed, linked = (first_rows([told["name"]], [calls["name"]]) for told in (sums, links))
    calls["bytes"] = _shared(sums["bytes"].to_numpy(), summed, repeats)
    if collectives is not None and len(collectives):
        place = first_rows([operation_names(collectives["name"])], [calls["name"]])
        own, recorded = (frame["group"].to_numpy(dtype=object) for frame in (calls, collectives))
        calls["group"] = np.where(place >= 0, recorded[place], own)
    return calls.assign(
        packets=_shared(links["packets"].to_numpy(), linked, repeats),
        max_packet_bytes=_shared(links["max_packet_bytes"].to_numpy(), linked, 1),
    )
