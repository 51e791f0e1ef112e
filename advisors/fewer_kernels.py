"""Replay of the steps with chains of kernels fused: fewer launches and less work.

Summing the time of the kernels that go away is not the answer where the host is the bottleneck: there the device waits
for the launches anyway, and what is saved is the time in which the host prepared those that are no longer needed. Where
the device is the bottleneck it is the other way round, and in most jobs the bottleneck changes several times in a step.
So the steps are replayed. The host prepares one operator after the other, the thread that launches takes one after the
other from its queue, and the device starts each task when it has been launched and the one before it is done. A call
that waits until the device has nothing left to do (``item()``, a synchronisation) begins a new stretch: the host goes
on when both have arrived there.

Other ranks are taken to save as much: they run the same code, so a collective waits for them as long as it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.facts import (
    HOST_EVENTS,
    NO_TIME,
    Bookings,
    Facts,
    bookings,
    fact,
    host_activity,
    launches,
    timeline,
    work,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

APART_NS = 1 << 44
"""Stretches are laid this far apart (5 hours), so that one running maximum serves them all."""

SHORT_GAP_NS = 30_000
"""Idle time up to this before a kernel is that of starting it and goes with it. Longer gaps between launched tasks (95
us between any two on a real export, where counters are read) come from elsewhere and stay."""

LONGEST = 4
"""An operator that took the host longer than this many times the usual was held up by something that stays: a garbage
collection, a full queue, Python around the operator. Of it, this much counts as the operator's own."""


@dataclass(frozen=True)
class Merging:
    """Kernels that become one: ``tasks``, rows of the fact ``work``; ``chain``, the number of the chain of each, from
    0; ``before_ns`` and ``after_ns``, what each chain takes and would take as one kernel."""

    tasks: Ints
    chain: Ints
    before_ns: Floats
    after_ns: Floats

    @classmethod
    def none(cls, tasks: Ints, before_ns: Floats, after_ns: Floats) -> Merging:
        """Every task stays, and takes ``after_ns`` in place of ``before_ns``."""
        return cls(tasks, np.arange(len(tasks)), before_ns, after_ns)


@dataclass(frozen=True)
class StepReplay:
    """The tasks of a rank, ready to be replayed; all arrays but the last two are by row of the fact ``work``.

    ``duration``: what the task takes from the device alone (a collective: what no kernel covers). ``gap``: idle time
    before it that the host did not cause. ``latency``: from launch to start on a device that waits. ``entered``: when
    the operator reached the task queue, or the device where there is none. ``service``: how long the launching thread
    needed for it. ``own``: how long the host took since the task before it. ``order``: rows in order of launch.

    ``stretch_of``: the stretch of each task; ``begins``: when each stretch begins on the host, ``calls``: when the host
    makes the call that ends it, `NO_TIME` for the last.
    """

    duration: Ints
    gap: Ints
    latency: Ints
    entered: Ints
    service: Ints
    own: Ints
    order: Ints
    stretch_of: Ints
    begins: Ints
    calls: Ints

    def saved_ns(self, merged: Merging) -> int:
        """By how much the steps become shorter if the first kernel of each chain does the work of all of them and the
        others are not launched. Less than what the kernels take less where the host cannot keep up, more where its
        operators were what the device waited for; never less than 0."""
        if not len(merged.tasks):
            return 0
        order = np.lexsort((merged.tasks, merged.chain))
        tasks, chain = merged.tasks[order], merged.chain[order]
        first = np.concatenate([[True], chain[1:] != chain[:-1]])
        # What a chain takes from the device alone shrinks as the chain does.
        alone = np.bincount(chain, weights=self.duration[tasks], minlength=len(merged.before_ns))
        shrunk = alone * merged.after_ns / np.maximum(merged.before_ns, 1)
        duration = self.duration.copy()
        stays = np.where(first | (self.gap[tasks] <= SHORT_GAP_NS), 0, self.gap[tasks])
        shrunk += np.bincount(chain, weights=stays, minlength=len(shrunk))
        duration[tasks[first]] = np.rint(shrunk[chain[first]]).astype(np.int64)
        after = self._lengths(duration, tasks[~first])
        return max(0, int((self._unchanged - after).sum()))

    @cached_property
    def _unchanged(self) -> Ints:
        """How long each stretch takes when no kernel goes: the same for all that may be merged."""
        return self._lengths(self.duration, np.zeros(0, dtype=np.int64))

    def _lengths(self, duration: Ints, gone: Ints) -> Ints:
        """How long each stretch takes without the tasks that are gone."""
        stays = np.ones(len(duration), dtype=np.bool_)
        stays[gone] = False
        own = self.own[self.order]
        usual = np.median(own[own > 0]) if (own > 0).any() else 0
        freed = np.where(stays[self.order], 0, np.minimum(own, LONGEST * usual)).astype(np.int64)
        total = np.cumsum(freed)
        # The thread that launches does not go back to an earlier stretch.
        stretch = np.maximum.accumulate(self.stretch_of[self.order])
        starts = np.searchsorted(stretch, np.arange(len(self.begins)), side="left")
        freed_before = np.concatenate([[0], total])[starts]
        entered = self.entered[self.order] - self.begins[stretch] - (total - freed_before[stretch])
        kept = stays[self.order]
        order, stretch = self.order[kept], stretch[kept]
        ready = in_turn(entered[kept] + stretch * APART_NS, self.service[order]) - stretch * APART_NS
        launched = np.zeros(len(duration), dtype=np.int64)
        launched[order] = ready + self.begins[stretch]
        rows = np.flatnonzero(stays)
        stretch = self.stretch_of[rows]
        ready = launched[rows] + self.latency[rows] - self.begins[stretch]
        ended = in_turn(ready + stretch * APART_NS, self.gap[rows] + duration[rows])
        device = np.zeros(len(self.begins), dtype=np.int64)
        np.maximum.at(device, stretch, ended - stretch * APART_NS)
        # The call that ends a stretch is made after everything that was launched before it.
        freed_until = np.concatenate([freed_before[1:], total[-1:]]) - freed_before
        host = np.where(self.calls == NO_TIME, 0, self.calls - self.begins - freed_until)
        return np.asarray(np.maximum(device, host), dtype=np.int64)


def in_turn(ready: Ints, duration: Ints) -> Ints:
    """When each of several tasks ends that run one after the other, none before it is ready."""
    total = np.cumsum(duration)
    ended: Ints = np.maximum.accumulate(ready - (total - duration)) + total
    return ended


@fact(
    "step_replay",
    # Without the calls of the host it is not known where a synchronisation begins a new stretch.
    needs=(work, launches, bookings, timeline, HOST_EVENTS),
    wants=(host_activity,),
)
def step_replay(facts: Facts) -> StepReplay:
    """The tasks of a rank with what host and device need for each."""
    device, launched, booked = facts[work], facts[launches], facts[bookings]
    duration = _durations(device, facts)
    gap, late = _gaps(len(device), booked)
    launch, entered = (launched.frame[name].to_numpy() for name in ("launch_ns", "entered_ns"))
    known = launch != NO_TIME
    waits = np.maximum(0, device["start_ns"].to_numpy() - launch)
    # A task that was launched early does not tell how long it would have taken to start; those that were late do.
    usual = int(np.median(waits[late & known])) if (late & known).any() else 0
    latency = np.where(known, np.where(late, waits, np.minimum(waits, usual)), 0)
    # What is not linked is launched with the task before it.
    last = np.maximum.accumulate(np.where(known, np.arange(len(device)), 0))
    launch, entered = launch[last], entered[last]
    entered = np.where(launch == NO_TIME, device["start_ns"].to_numpy(), entered)
    launch = np.where(launch == NO_TIME, device["start_ns"].to_numpy(), launch)
    order = np.lexsort((np.arange(len(device)), launch))
    begun = np.maximum(entered[order], np.concatenate([entered[order][:1], launch[order][:-1]]))
    service = np.zeros(len(device), dtype=np.int64)
    service[order] = np.maximum(0, launch[order] - begun)
    own = np.zeros(len(device), dtype=np.int64)
    reached = np.maximum.accumulate(entered[order])
    own[order] = np.diff(reached, prepend=reached[:1])
    begins, calls = _stretches(facts, int(reached[0]) if len(reached) else 0)
    # The device had nothing left to do when a stretch began: what starts later belongs to it or to a later one.
    stretch = np.searchsorted(begins[1:], device["start_ns"].to_numpy(), side="right")
    return StepReplay(duration, gap, latency, entered, service, own, order, stretch, begins, calls)


def _durations(work: pd.DataFrame, facts: Facts) -> Ints:
    """What each task takes from the device alone."""
    start, end = work["start_ns"].to_numpy(), work["end_ns"].to_numpy()
    talks = work["communication"].to_numpy()
    reach = np.maximum.accumulate(np.where(talks, NO_TIME, end))
    before = np.concatenate([[NO_TIME], reach[:-1]])
    duration = np.where(talks, 0, np.maximum(0, end - np.maximum(start, before)))
    time = facts[timeline]
    collectives, computing = time.collectives, time.computing
    hidden = computing.measure(collectives.ends) - computing.measure(collectives.starts)
    np.add.at(duration, collectives.ids, collectives.ends - collectives.starts - hidden)
    return duration.astype(np.int64)


def _gaps(tasks: int, booked: Bookings) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Idle time before each task that is not the host's, and whether the device waited for its launch."""
    gaps = booked.gaps[booked.gaps["next"] >= 0]
    following, length = gaps["next"].to_numpy(), (gaps["end_ns"] - gaps["start_ns"]).to_numpy()
    late = np.zeros(tasks, dtype=np.bool_)
    late[following[gaps["host_late_ns"].to_numpy() > 0]] = True
    idle = np.zeros(tasks, dtype=np.int64)
    np.add.at(idle, following, np.where(late[following], 0, length))
    return idle, late


def _stretches(facts: Facts, first: int) -> tuple[Ints, Ints]:
    """When stretches begin on the host, and when it made the call that ended each; `NO_TIME` for the last."""
    none = np.zeros(0, dtype=np.int64)
    activity, busy = facts.get(host_activity), facts[timeline].busy
    starts, ends = (activity.syncs.starts, activity.syncs.ends) if activity is not None else (none, none)
    # Only calls that return to a device with nothing to do have waited for all of it.
    drained = (ends > first) & (busy.measure(ends + 1) == busy.measure(ends))
    starts, ends = starts[drained], ends[drained]
    return np.concatenate([[first], ends]), np.concatenate([starts, [NO_TIME]])


FACTS = (step_replay,)
