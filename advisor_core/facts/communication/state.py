"""State of each collective over time: moving data, waiting for a rank, or between its tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.contracts.tables import COMMUNICATION_TASKS
from advisor_core.facts.intervals import Layer, latest_end_wins, union
from advisor_core.text.messages import message

POINT_TO_POINT = re.compile(r"receive|send", re.I)
"""Operations between pipeline stages: hcom_send, hcom_receive, hcom_batchSendRecv. The exporter's Bubble knows only
hcom_receive."""


@dataclass(frozen=True)
class CollectiveState:
    """``moving``: some plane moves or reduces data. ``waiting``: some plane waits; ids are row numbers of
    ``communication_tasks``. Where several planes wait for different ranks at once, the wait that ends last is the one
    that holds the collective up (of two that end together, that for the lower rank). ``covered``: times for which the
    trace has tasks of planes at all."""

    moving: Layer
    waiting: Layer
    covered: Layer
    peers: np.ndarray
    """Peer of each row of ``communication_tasks``: a global rank where the group is known, else group-local."""
    peers_are_global: np.ndarray
    """Mask of the numbers that are global ranks."""


@fact("collective_state", needs=(COMMUNICATION_TASKS, PROFILE))
def collective_state(facts: Facts) -> CollectiveState:
    """Moving, waiting (for whom) or neither, from the tasks on the planes of each collective."""
    tasks, profile = facts[COMMUNICATION_TASKS], facts[PROFILE]
    planes = tasks["plane"].to_numpy() >= 0
    if not planes.any():
        raise Unavailable(message("planes.none"), message("planes.none.collect"), ("level1",))
    starts = tasks["start_ns"].to_numpy()
    ends = starts + tasks["duration_ns"].to_numpy()
    waits = planes & _named(tasks["name"], profile.vocabulary.plane_waits)
    moves = planes & ~waits & ~_named(tasks["name"], profile.vocabulary.plane_marks)
    rows = np.flatnonzero(waits & (ends > starts))
    peers, is_global = _global_peers(tasks, profile)
    pieces = latest_end_wins(starts[rows], ends[rows], peers[rows])
    whole = ~planes
    return CollectiveState(
        union(starts[moves], ends[moves]),
        Layer(pieces.starts, pieces.ends, rows[pieces.ids].astype(np.int64)),
        _with_planes(starts[whole], ends[whole], starts[planes]),
        peers,
        is_global,
    )


def _named(names: pd.Series, pattern: re.Pattern[str]) -> np.ndarray:
    hits = np.array([bool(pattern.search(str(name))) for name in names.array.categories], dtype=bool)
    return np.asarray(hits[names.array.codes], dtype=np.bool_)


def _with_planes(starts: np.ndarray, ends: np.ndarray, tasks: np.ndarray) -> Layer:
    """The operations during which at least one task of a plane started."""
    tasks = np.sort(tasks)
    has = np.searchsorted(tasks, ends) > np.searchsorted(tasks, starts)
    return union(starts[has], ends[has])


def _global_peers(tasks: pd.DataFrame, profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    """Peers as global ranks, and which of them are. Tasks carry group-local ranks. A group is known by the last three
    digits of its hash, which the names of its operations carry (``hcom_allReduce__586_0_1``). Where it was not recorded
    the local ranks are the global ones in the group of all ranks: the only group there is, or one of as many ranks as
    the job, in which this rank's own local rank is its global rank."""
    peers, own_ranks, members = (tasks[name].to_numpy().copy() for name in ("peer_rank", "own_rank", "group"))
    is_global = np.zeros(len(tasks), dtype=bool)
    planes = tasks["plane"].to_numpy() >= 0
    whole = tasks[(tasks["plane"] < 0) & (tasks["group"] >= 0)].drop_duplicates("group")
    suffixes = whole["name"].astype(str).str.extract(r"__(\d+)_\d+_\d+$")[0]
    for group, suffix in zip(whole["group"], suffixes, strict=True):
        matches = [ranks for key, ranks in profile.groups.items() if key.endswith(str(suffix))]
        inside = (members == group) & planes
        rows = np.flatnonzero(inside & (peers >= 0))
        if len(matches) == 1 and len(rows) and peers[rows].max() < len(matches[0]):
            peers[rows] = np.asarray(matches[0], dtype=np.int64)[peers[rows]]
            is_global[rows] = True
        elif not matches and len(rows):
            locals_ = own_ranks[inside & (own_ranks >= 0)]
            size = max(peers[rows].max(), locals_.max(initial=-1)) + 1
            everyone = len(whole) == 1 or size == profile.world_size
            is_global[rows] = bool(everyone and len(locals_) and (locals_ == profile.rank).all())
    return peers, is_global
