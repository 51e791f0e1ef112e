"""A host that keeps pace with the device: how much quicker it would have to be.

A host that runs ahead has a lead until the next call that waits for the device. What it is quicker than the device
before such a call does not help it behind the call. So its pace is that of the stretches between two of these calls in
which it takes longer than the device: a rollout whose kernels are short, though an update with long ones follows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    Bookings,
    Facts,
    HostActivity,
    HostChange,
    Layer,
    bookings,
    covered,
    host_activity,
    launches,
    phases,
    steps,
    union,
)
from advisors.measuring import pieces_of

_WORKING = ("compute", "communication")
_WAITING = ("communication/wait",)
"""The device has begun a collective and waits for another rank: time in which it has nothing to do either."""


def in_pace(facts: Facts, slow: Layer, layer: HostChange) -> HostChange:
    """The host without as much of the work of one layer as it takes longer than the device does for its own, each piece
    by the same share, and at most all of it; the thread behind a task queue as much as that takes longer than the
    device. ``slow``: all work of the threads that feed the device, device time."""
    host = facts.get(host_activity)
    at_work, borders = _at_work(facts[bookings]), _borders(facts[steps], host)
    return HostChange(
        _shrunk(layer.feeding, excess_share(slow, at_work, borders, layer.feeding)),
        _shrunk(layer.launching, excess_share(layer.launching, at_work, borders)),
    )


def _shrunk(layer: Layer, share: float) -> Layer:
    """The first part of each piece, of this share."""
    return union(layer.starts, layer.starts + (share * (layer.ends - layer.starts)).astype(np.int64))


def outside_idle_phases(facts: Facts, layer: Layer) -> Layer:
    """The part of ``layer`` that is in no phase of a step in which the host hands nothing over. What takes long there
    (a reward function) is no dispatch, and has findings of its own."""
    spans = facts.get(phases)
    if spans is None or not len(layer):
        return layer
    entered = np.sort(facts[launches].frame["entered_ns"].to_numpy())
    starts, ends = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    empty = np.searchsorted(entered, ends) == np.searchsorted(entered, starts)
    return layer.without(union(starts[empty], ends[empty]))


def refilling(facts: Facts) -> Layer:
    """The idle time behind calls that wait for the device, in which the host fills the queue again: the ledger books it
    under the call, and a quicker host needs less of it."""
    host = facts.get(host_activity)
    idle = _booked_to(facts[bookings], "idle/sync")
    return idle if host is None else idle.without(host.syncs)


def excess_share(slow: Layer, at_work: Layer, borders: np.ndarray, part: Layer | None = None) -> float:
    """By how much ``slow``, the work of the host, takes longer than the device, which is ``at_work``, in the stretches
    between two ``borders`` (ns, ascending) in which it does; as a share of ``part`` of it, else of all, at most 1."""
    host, device = np.diff(slow.measure(borders)), np.diff(at_work.measure(borders))
    behind = host > device
    own = host if part is None else np.diff(part.measure(borders))
    whole = float(own[behind].sum())
    return min(1.0, float((host - device)[behind].sum()) / whole) if whole else 0.0


def _at_work(booked: Bookings) -> Layer:
    """The time in which the device computes or moves data."""
    paths = booked.pieces["path"].array.categories.tolist()
    return _booked_to(booked, *(path for path in paths if covered(path, _WORKING) and not covered(path, _WAITING)))


def _booked_to(booked: Bookings, *paths: str) -> Layer:
    """The time that is booked under exactly these leaves."""
    pieces = pieces_of(booked, *paths)
    return union(pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy())


def _borders(windows: pd.DataFrame, host: HostActivity | None) -> np.ndarray:
    """The begin of the first step, the ends of the calls that wait for the device, the end of the last step."""
    begin, finish = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    ends = host.syncs.ends if host is not None else np.zeros(0, dtype=np.int64)
    return np.concatenate([[begin], ends[(ends > begin) & (ends < finish)], [finish]])
