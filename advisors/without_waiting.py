"""Replay of the timeline of a rank without some of its host time.

What a pause of the host costs is not the idle time right behind it. A host that was ahead loses its lead first and
stands in the way later; one that never gets ahead passes on its smallest delay; and a saving ends at the next call that
waits for the device, or where the device is busy anyway. So the step is replayed:

- The threads that feed the device (model code and autograd, which take turns) need as long from one launch to the next
  as they did, less what is left out.
- A synchronising call that stays returns when the device is done with all that came before it.
- The thread that empties the task queue takes the tasks in order, and needs as long for each as it did.
- A task starts when it has been launched and the device is done with the tasks before it, and takes as long as it did.
  Idle time that the host did not cause belongs to the task behind it.

Every one of these is a maximum of sums, so that task after task is a product of small matrices in the (max, +) algebra;
products are associative and are taken pairwise over whole arrays, in time linear in tasks and synchronising calls.

With two recorded steps or more the answer is about a long run of such steps: the recorded ones, over and over, which is
the growth rate of their product. The profile begins with an idle device and a host without a lead, and the host time
before its first task is in no step; neither counts in a long run. A single step is replayed as it stands.

Left out of the model: a full task queue, streams other than in the recorded order, and the other ranks. A collective
takes as long as it did, waiting included: the other ranks are taken to gain as much. Where they do not, this rank waits
for them instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.facts import (
    NO_TIME,
    Bookings,
    Facts,
    HostActivity,
    Launches,
    Layer,
    bookings,
    fact,
    host_activity,
    launches,
    steps,
    union,
    work,
)

Ints = npt.NDArray[np.int64]

ENTRY_NS = 3_000
"""What it takes to put a task into a queue where there was none: medians in real exports are 2.6 to 4.5 us."""

_NEVER = -(1 << 60)
"""Minus infinity of the algebra: two of them do not overflow, and no time of a profile comes near."""
_FEEDER, _LAUNCHER, _DEVICE = range(3)
"""Components of the state: when each is done with all so far."""
_CYCLES = 64
"""Rounds of the recorded steps after which a long run has settled; as many again are measured."""


def _nothing() -> Layer:
    none = np.zeros(0, dtype=np.int64)
    return union(none, none)


@dataclass(frozen=True)
class Change:
    """The host time that a replay leaves out, as layers of device time.

    ``feeding``: left out of the threads that feed the device; a synchronising call that begins within it does not wait
    any more. ``launching``: left out of the thread that empties the task queue. ``handed_over``: done by a thread that
    takes the tasks from a queue, where the threads that feed the device did it themselves.
    """

    feeding: Layer = field(default_factory=_nothing)
    launching: Layer = field(default_factory=_nothing)
    handed_over: Layer = field(default_factory=_nothing)


class Replay:
    """The tasks of a rank with their launches, ready to be replayed.

    ``work``: the fact of that name, in order of start; ``host``: the synchronising calls, and the recorded steps of the
    framework; ``windows``: the fact ``steps``, without which the whole of ``work`` is one step. ``long_run``: replay
    several steps over and over rather than once.
    """

    def __init__(
        self,
        work: pd.DataFrame,
        launched: Launches,
        booked: Bookings,
        host: HostActivity | None = None,
        windows: pd.DataFrame | None = None,
        *,
        long_run: bool = True,
    ) -> None:
        inside = np.ones(len(work), dtype=bool)
        if windows is not None:
            begin, finish = windows["start_ns"].min(), windows["end_ns"].max()
            inside = ((work["start_ns"] >= begin) & (work["start_ns"] < finish)).to_numpy()
        self.steps = 1 if windows is None else len(windows)
        repeats = long_run and self.steps > 1 and host is not None and len(host.steps) > 0
        rows = np.flatnonzero(inside)
        start = work["start_ns"].to_numpy()[rows]
        self._origin = int(start[0]) if len(start) else 0
        reach = np.maximum.accumulate(work["end_ns"].to_numpy()[rows])
        before = np.concatenate([start[:1], reach[:-1]])
        gap = np.maximum(0, start - before)
        ended = np.zeros(len(work), dtype=bool)
        following = booked.gaps.loc[booked.gaps["host_late_ns"] > 0, "next"].to_numpy()
        ended[following[following >= 0]] = True
        launch = launched.frame["launch_ns"].to_numpy()[rows]
        self._known = launch != NO_TIME
        late = ended[rows] & self._known
        self._duration = np.maximum(0, reach - np.maximum(before, start)) + np.where(late, 0, gap)
        self._reach = reach
        # A task that an idle device waited for starts this long after its launch, one that waited in a stream would.
        latency = np.where(late, np.maximum(0, start - launch), 0)
        usual = int(np.median(latency[late])) if late.any() else 0
        lead = np.where(self._known, np.maximum(0, before - launch), 0)
        self._latency = np.where(late, latency, np.minimum(usual, lead))
        entered = launched.frame["entered_ns"].to_numpy()[rows]
        self._entered, self._launch = entered, launch
        # Tasks of several streams start in another order than that of their launches: the host has come as far as the
        # latest of them, and an earlier one was ready so much before.
        first = entered[self._known][0] if self._known.any() else self._origin
        self._progress = np.maximum.accumulate(np.where(self._known, entered, first))
        self._served = np.maximum.accumulate(np.where(self._known, launch, first))
        syncs = host.syncs if host is not None else union(rows[:0], rows[:0])
        # From when to when the host was at the recorded steps.
        self._cycle: tuple[int, int] | None = None
        if repeats and host is not None and len(rows):
            begun, finished = int(host.steps.starts[0]), int(host.steps.ends[-1])
            self._cycle = min(begun, int(self._progress[0])), max(finished, int(self._progress[-1]))
        last = self._cycle[1] if self._cycle is not None else self._progress[-1] if len(rows) else first
        waits = (syncs.ends > first) & (syncs.starts < last)
        self._sync_start, self._sync_end = syncs.starts[waits], syncs.ends[waits]

    @classmethod
    def of(cls, facts: Facts, *, long_run: bool = True) -> Replay:
        """From the facts that `replay` needs and wants."""
        return cls(
            facts[work],
            facts[launches],
            facts[bookings],
            facts.get(host_activity),
            facts[steps],
            long_run=long_run,
        )

    def saved_ns(self, waits: pd.DataFrame) -> int:
        """By how much the recorded steps would be shorter without these calls (``start_ns``, ``end_ns`` in device time)
        of the threads that feed the device, none of which waits for the device any more."""
        return self.saved_by(Change(union(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy())))

    def saved_by(self, what: Change) -> int:
        """By how much the recorded steps would be shorter, ns (all of them together)."""
        if not len(self._progress):
            return 0
        return max(0, self.recorded_ns - self._replayed(what))

    @cached_property
    def recorded_ns(self) -> int:
        """How long the replayed steps take when nothing is left out: in a long run, else as recorded."""
        return self._replayed(Change())

    def _replayed(self, what: Change) -> int:
        kept = what.feeding.at(self._sync_start) < 0
        sync_start, sync_end = self._sync_start[kept], self._sync_end[kept]
        place = np.searchsorted(self._progress, sync_end, side="left")
        tasks = len(self._progress)
        order = np.argsort(np.concatenate([2 * place, 2 * np.arange(tasks) + 1]), kind="stable")
        is_sync = order < len(place)
        point = np.concatenate([sync_end, self._progress])[order]
        previous = np.concatenate([point[:1], point[:-1]])
        steps = _unchanged(len(order))

        def lasts(since: Ints, until: Ints, *without: Layer) -> Ints:
            gone = sum((layer.measure(until) - layer.measure(since) for layer in without), np.zeros_like(since))
            return np.maximum(0, until - since - gone)

        # Tasks: the host goes on to the point where it hands the task over; queue and device take it in turn.
        rows = np.flatnonzero(~is_sync)
        feeds = lasts(previous[rows], point[rows], what.feeding, what.handed_over)
        if len(what.handed_over):
            feeds = feeds + ENTRY_NS
        entry = feeds + self._entered - self._progress
        served_before = np.concatenate([self._served[:1], self._served[:-1]])
        begun = np.maximum(self._entered, served_before)
        service = lasts(np.minimum(begun, self._served), self._served, what.launching)
        moved = what.handed_over
        service = service + moved.measure(point[rows]) - moved.measure(previous[rows])
        in_order = self._known & (self._launch >= served_before)
        ahead = np.where(in_order, 0, np.where(self._known, self._launch - self._served, _NEVER)) + self._latency
        steps[_FEEDER, _FEEDER, rows] = feeds
        takes = rows[in_order]
        steps[_LAUNCHER, _LAUNCHER, takes] = service[in_order]
        steps[_LAUNCHER, _FEEDER, takes] = (entry + service)[in_order]
        steps[_DEVICE, _DEVICE, rows] = self._duration
        to_device = np.where(self._known, ahead + self._duration, _NEVER)
        steps[_DEVICE, _LAUNCHER, rows] = np.where(in_order, service, 0) + to_device
        steps[_DEVICE, _FEEDER, rows] = np.where(in_order, entry + service + to_device, _NEVER)

        # Synchronising calls: the host goes on when the device is done.
        rows = np.flatnonzero(is_sync)
        place = place[order[rows]]
        begin = np.maximum(sync_start[order[rows]], previous[rows])
        finish = np.maximum(sync_end[order[rows]], begin)
        done = np.where(place > 0, self._reach[np.maximum(place, 1) - 1], begin)
        own = np.maximum(0, finish - np.maximum(done, begin))
        steps[_FEEDER, _FEEDER, rows] = lasts(previous[rows], begin, what.feeding, what.handed_over) + own
        steps[_FEEDER, _DEVICE, rows] = np.where(done > begin, finish - done, own)

        product = _product(steps)
        if self._cycle is None:
            begun = np.array([point[0], self._served[0], self._origin], dtype=np.int64) - self._origin
            return int((product[_DEVICE, :, 0] + begun).max())
        begin_host, end_host = (np.array([time]) for time in self._cycle)
        around = lasts(begin_host, point[:1], what.feeding) + lasts(point[-1:], end_host, what.feeding)
        turn = _unchanged(1)
        turn[_FEEDER, _FEEDER] = around
        return _growth(_times(product, turn))


@fact(
    "replay",
    needs=(work, launches, bookings, steps),
    wants=(host_activity,),
)
def replay(facts: Facts) -> Replay:
    """The tasks with their launches, ready to be replayed without some of the host's time (a long run of the steps)."""
    return Replay.of(facts)


FACTS = (replay,)


def _unchanged(count: int) -> Ints:
    """``count`` unit matrices, of shape (3, 3, count)."""
    found = np.full((3, 3, count), _NEVER, dtype=np.int64)
    found[np.arange(3), np.arange(3)] = 0
    return found


def _times(later: Ints, earlier: Ints) -> Ints:
    """Products of matrices in the (max, +) algebra, each of shape (3, 3, count)."""
    found: Ints = np.maximum((later[:, :, None] + earlier[None]).max(axis=1), _NEVER)
    return found


def _product(steps: Ints) -> Ints:
    """The product of all, the last one leftmost: neighbours in pairs, then pairs of these."""
    while (count := steps.shape[2]) > 1:
        paired = _times(steps[:, :, 1::2], steps[:, :, 0 : count - 1 : 2])
        steps = paired if count % 2 == 0 else np.concatenate([paired, steps[:, :, -1:]], axis=2)
    return steps


def _growth(turn: Ints) -> int:
    """By how much the device is later after each of many turns."""
    many = turn
    for _ in range(_CYCLES.bit_length() - 1):
        many = _times(many, many)
    first = (many[:, :, 0]).max(axis=1)
    second = (many[:, :, 0] + first).max(axis=1)
    return int(second[_DEVICE] - first[_DEVICE]) // _CYCLES
