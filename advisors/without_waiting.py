"""What if the host had not waited: the device's timeline, had some calls of the host taken no time.

A synchronising call costs more than the idle time right behind it. It keeps the host from running ahead, so that every
small delay of the host afterwards (a copy, Python, the next launch) reaches the device as well. The answer is a replay:
every launch comes earlier by what the host had waited before it, every task starts when it has been launched and the
one before it is done.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api import NO_TIME, Bookings, CollectiveState, Launches

Ints = npt.NDArray[np.int64]


class Replay:
    """The tasks of a rank with their launches, ready to be replayed.

    ``work``: the fact of that name, in order of start; ``events``: host events, for the times at which tasks were put
    into the task queue. Idle time that the host did not cause stays where it is, and so does the moment at which a
    collective stops waiting for other ranks (``state``): they do not come earlier because this rank does.
    """

    def __init__(
        self,
        work: pd.DataFrame,
        launched: Launches,
        booked: Bookings,
        events: pd.DataFrame,
        state: CollectiveState | None = None,
    ) -> None:
        start = work["start_ns"].to_numpy()
        reach = np.maximum.accumulate(work["end_ns"].to_numpy())
        before = np.concatenate([start[:1], reach[:-1]])
        gap = np.maximum(0, start - before)
        late = np.zeros(len(work), dtype=bool)
        ended = booked.gaps.loc[booked.gaps["host_late_ns"] > 0, "next"].to_numpy()
        late[ended[ended >= 0]] = True
        self._gap = np.where(late, gap, 0)
        self._duration = np.maximum(0, reach - np.maximum(before, start)) + np.where(late, 0, gap)
        self._earliest = np.full(len(work), NO_TIME, dtype=np.int64)
        self._earliest[:1] = start[:1]
        if state is not None:
            waited = state.waiting.measure(work["end_ns"].to_numpy()) - state.waiting.measure(start)
            held = work["communication"].to_numpy() & (waited > 0)
            self._earliest[held] = (before + np.minimum(waited, self._duration))[held]
            self._duration = np.where(held, np.maximum(0, self._duration - waited), self._duration)
        self._end = int(reach[-1]) if len(reach) else 0
        self._first = int(start[0]) if len(start) else 0
        known = launched.known().to_numpy()
        self._launch = np.where(known, launched.frame["launch_ns"].to_numpy(), NO_TIME)
        # A task that an idle device waited for starts this long after its launch.
        self._latency = np.where(late & known, np.maximum(0, start - self._launch), 0)
        queued = launched.frame["enqueue_row"].to_numpy()
        entered = events["start_ns"].to_numpy()[np.maximum(queued, 0)] - launched.skew_ns
        self._entered = np.where(queued >= 0, entered, self._launch)

    def saved_ns(self, waits: pd.DataFrame) -> int:
        """By how much the last task would have ended earlier without these waits (``start_ns``, ``end_ns`` of calls of
        the threads that feed the device, in device time, none inside another)."""
        order = np.argsort(waits["start_ns"].to_numpy(), kind="stable")
        starts, ends = waits["start_ns"].to_numpy()[order], waits["end_ns"].to_numpy()[order]
        inside = (ends > self._first) & (starts < self._end)
        starts, ends = starts[inside], ends[inside]
        if not len(starts):
            return 0
        waited = np.concatenate([[0], np.cumsum(ends - starts)])
        known = self._launch != NO_TIME
        order = np.flatnonzero(known)[np.argsort(self._launch[known], kind="stable")]
        entered, launch = self._entered[order], self._launch[order]
        # The thread that launches needs as long for each task as it did, after the task before or the queue entry.
        begun = np.maximum(entered, np.concatenate([entered[:1], launch[:-1]]))
        service = np.maximum(0, launch - begun)
        entered = entered - waited[np.searchsorted(ends, entered, side="right")]
        ready = np.full(len(self._launch), self._first, dtype=np.int64)
        ready[order] = _in_turn(entered, service)
        replayed = _in_turn(np.maximum(ready + self._latency, self._earliest), self._duration)
        return max(0, self._end - int(replayed[-1]))


def _in_turn(ready: Ints, duration: Ints) -> Ints:
    """When each of several tasks ends that run one after the other, none before it is ready."""
    total = np.cumsum(duration)
    ended: Ints = np.maximum.accumulate(ready - (total - duration)) + total
    return ended
