"""The time of a recording without step marks before its first kernel and behind its last one, beside what is judged."""

from __future__ import annotations

import numpy as np

from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import DEVICE_TASKS, HOST_EVENTS
from advisor_core.facts.host.launches import ahead_ns, launches
from advisor_core.facts.intervals import union
from advisor_core.facts.matching import matching
from advisor_core.facts.store import FactStore
from advisor_core.result.run import StepInfo


def bounded(step: StepInfo, store: FactStore, profile: Profile) -> StepInfo:
    """The only step of a recording in which none is marked, with how much was recorded before its start and behind its
    end, and for how long the device copied in that time; as it is where no calls of the host are recorded.

    What is judged lasts from the first kernel to the end of the last one. Reading data and weights, copying them to the
    device and the host's way to the first kernel come before, and are in no figure.
    """
    host, device = profile.tables.get(HOST_EVENTS.name), profile.tables.get(DEVICE_TASKS.name)
    if host is None or host.frame.empty or step.step is not None or step.start_ns is None or step.end_ns is None:
        return step
    skew_ns = ahead_ns(store.get(launches))
    starts, ends = _bounds(host.frame["start_ns"].to_numpy() - skew_ns, host.frame["duration_ns"].to_numpy())
    copied_ns = None
    if device is not None and not device.frame.empty:
        tasks = device.frame
        first, last = _bounds(tasks["start_ns"].to_numpy(), tasks["duration_ns"].to_numpy())
        starts, ends = min(starts, first), max(ends, last)
        copies = tasks[matching(tasks["task_type"], profile.vocabulary.copy_tasks)]
        copying = union(copies["start_ns"].to_numpy(), (copies["start_ns"] + copies["duration_ns"]).to_numpy())
        inside = copying.clip(step.start_ns, step.end_ns)
        copied_ns = copying.total() - inside.total()
    return step.model_copy(
        update={
            "recorded_before_ns": max(0, step.start_ns - starts),
            "recorded_after_ns": max(0, ends - step.end_ns),
            "copied_beside_ns": copied_ns,
        }
    )


def _bounds(starts_ns: np.ndarray, durations_ns: np.ndarray) -> tuple[int, int]:
    """The first start and the last end."""
    return int(starts_ns.min()), int((starts_ns + durations_ns).max())
