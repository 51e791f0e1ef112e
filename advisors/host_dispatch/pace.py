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


def in_pace(facts: Facts, slow: Layer) -> HostChange:
    """The host without as much of its work as it takes longer than the device does for its own, each piece by the same
    share. ``slow``: the work of the host that can become quicker, device time."""
    host = facts.get(host_activity)
    excess = excess_share(slow, _at_work(facts[bookings]), _borders(facts[steps], host))
    pieces = union(slow.starts, slow.starts + (excess * (slow.ends - slow.starts)).astype(np.int64))
    return HostChange(pieces, pieces)


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


def excess_share(slow: Layer, at_work: Layer, borders: np.ndarray) -> float:
    """The share of ``slow``, the work of the host, that it takes longer than the device, which is ``at_work``, in the
    stretches between two ``borders`` (ns, ascending) in which it does."""
    host, device = np.diff(slow.measure(borders)), np.diff(at_work.measure(borders))
    behind = host > device
    return 1 - float(device[behind].sum()) / float(host[behind].sum()) if behind.any() else 0.0


def _at_work(booked: Bookings) -> Layer:
    """The time in which the device computes or moves data."""
    paths = booked.pieces["path"].cat.categories.tolist()
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
