"""What a step saves without some calls of the host, by replay: columns and the changes that are replayed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Change,
    Facts,
    HostActivity,
    HostChange,
    Layer,
    Replay,
    host_activity,
    launches,
    matching,
    union,
)
from advisors.measuring import share

SAVED = (
    Column(
        "saved_ns", "float", "ns", "how much shorter a step of a long run would be without it, by replay", zh="节省"
    ),
    Column("saved_share", "float", "ratio", "saved_ns over the time of a step", zh="节省占比"),
)


def saving_by_replay(replayed: Replay, wall: float, change: Change) -> dict[str, float]:
    """`SAVED`. A step of a long run can be longer than the mean of the recorded ones: the share is of the longer."""
    return savings_by_replay(replayed, wall, [change])[0]


def savings_by_replay(replayed: Replay, wall: float, changes: Sequence[Change]) -> list[dict[str, float]]:
    """`SAVED` of each of the changes alone, as `saving_by_replay`."""
    step = max(wall, replayed.recorded_ns / replayed.steps)
    saved = [ns / replayed.steps for ns in replayed.saved_by_each(changes)]
    return [{"saved_ns": ns, "saved_share": share(ns, step)} for ns in saved]


def layer_of(events: pd.DataFrame, rows: np.ndarray, skew_ns: int) -> Layer:
    """The time in these host events, in device time."""
    starts = events["start_ns"].to_numpy()[rows] - skew_ns
    return union(starts, starts + events["duration_ns"].to_numpy()[rows])


def without_calls(events: pd.DataFrame, rows: np.ndarray, host: HostActivity, skew_ns: int) -> HostChange:
    """The host without these events, each on the thread that it was on."""
    on_launcher = np.isin(events["thread"].to_numpy()[rows], list(host.launchers))
    return HostChange(layer_of(events, rows[~on_launcher], skew_ns), layer_of(events, rows[on_launcher], skew_ns))


def runtime_calls(facts: Facts) -> Layer:
    """The time in `runtime_call_rows`, in device time."""
    return layer_of(facts[HOST_EVENTS], runtime_call_rows(facts), facts[launches].skew_ns)


def runtime_call_rows(facts: Facts) -> np.ndarray:
    """Calls into CANN of the threads that feed the device, but for those that wait for it: what a thread of its own
    would do for them with a task queue; nothing where the vendor has none. Rows of ``host_events``."""
    events, host = facts[HOST_EVENTS], facts[host_activity]
    rows = (events["category"] == "runtime").to_numpy() & np.isin(events["thread"].to_numpy(), list(host.feeders))
    rows &= ~matching(events["name"], facts[PROFILE].vocabulary.sync_calls) & facts[PROFILE].vocabulary.task_queue
    return np.flatnonzero(rows)
