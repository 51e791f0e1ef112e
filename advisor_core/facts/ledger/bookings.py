"""Bookings: the profiled time of a rank, cut into pieces, each booked under exactly one leaf of the ledger.

How a piece finds its leaf
--------------------------
*The device computes* -> ``compute/<class>``. When kernels of several classes run at once on several streams, the
piece goes to the class that stands first in `OperatorClasses.names` (attention, matmul, ...): a rule about the moment,
not about kernels, so that splitting a kernel in two changes nothing. Communication that runs meanwhile is marked
``overlapped`` and costs nothing.

*It communicates and does not compute* -> ``communication/...``: ``transmit`` while any plane of the collective moves
or reduces data; else ``wait/rank N`` while a Notify_Wait runs, named for the rank whose wait ends last
(``wait/pipeline`` in send and receive operations); else ``launch``: the collective has begun and its next task has
not; ``unknown`` where the export has no tasks of planes.

*It does neither* -> ``idle/...``, gap by gap. A gap is ended by a task K that the host launched at time L.

- Up to L the host was late. That stretch is divided by what the threads that launch and feed the device were doing
  (`host_labels.ACTIVITIES`, outermost cause first): ``host/compile``, ``host/dataloader``, ``host/python`` ...
  Time between two recorded steps of the framework is ``step_boundary``.
- From the moment at which K lay in the task queue only the thread that empties the queue can hold it up: that part of
  the stretch is divided by what this thread did, ``host/runtime`` where nothing else has a name. What the model's code
  does meanwhile, even a call that waits for the device, is not why K is late.
- A synchronising call stops the host from running ahead. While the device is busy that costs nothing; when it has
  drained, the rest of the call is ``sync``, and so is the refilling after it, up to the time for which the call held
  the host while the device was busy: had the call not been there, everything the host did after it would have come
  that much earlier. What was held by one call is used up in order of time, until the next call.
- From L on the task was on its way: ``copy`` while a copy task runs on the device, ``dependency`` while a task waits
  for an event or a notification, else ``launch_latency``. A task that had been launched before the gap began and
  started more than `LATENCY_NS` after it, with no task seen to wait, is ``task_switch``: time the device needs between
  two tasks. (In the real exports at hand it is a steady 95 us between any two kernels while the host is 90 ms ahead:
  the cost of reading counters between tasks, with l2_cache on.) One that an idle device started more than
  `LONGEST_LATENCY_NS` after its launch was held up by what is not recorded: ``unknown``.
- Without a launch (no trace, no CPU activity) the gap is ``unknown``.

All of it is sorting and merging of whole arrays: linear in events but for the sorts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import narrowed
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import DEVICE_TASKS
from advisor_core.facts.communication.state import POINT_TO_POINT, CollectiveState, collective_state
from advisor_core.facts.device.work import work
from advisor_core.facts.grouping import Groups, aggregated
from advisor_core.facts.host.activity import HostActivity, host_activity
from advisor_core.facts.host.launches import NO_TIME, Launches, launches
from advisor_core.facts.intervals import NOTHING, Ints, Layer, cut, empty, union
from advisor_core.facts.matching import matching
from advisor_core.facts.steps.timeline import Timeline, timeline
from advisor_core.vocabulary.host_labels import ACTIVITIES
from advisor_core.vocabulary.vocabulary import Vocabulary

LATENCY_NS = 30_000
"""A gap shorter than this before a task that was launched in time is launch latency. 30 us is the limit of HTA's idle
time breakdown (`consecutive_kernel_delay`), checked there on GPUs; the launch-to-start times of tasks that an idle
device waited for are 4 to 20 us in the real Ascend exports at hand."""

LONGEST_LATENCY_NS = 1_000_000
"""A task that an idle device runs only this long after its launch was held up by something that is not recorded: work
of another process, or work that was launched before recording began. Our choice, 50 times the longest latency above."""

_REFILLING = ("runtime", "framework", "python")


PIECES = (
    Column("step", "int", "", "row of steps"),
    Column("start_ns", "int", "ns", "start"),
    Column("end_ns", "int", "ns", "end"),
    Column("path", "text", "", "leaf of the ledger"),
    Column("overlapped", "bool", "", "communication runs under computing"),
    Column("gap", "int", "", "row of gaps, -1 none"),
    Column("collective", "int", "", "row of work, -1 none"),
    Column("wait", "int", "", "row of communication_tasks, -1 none"),
    Column("sync", "int", "", "row of host_events of the call that idle/sync is about, -1 none"),
)


GAPS = (
    Column("start_ns", "int", "ns", "start"),
    Column("end_ns", "int", "ns", "end"),
    Column("step", "int", "", "row of steps"),
    Column("next", "int", "", "row of work of the task that ended it, -1 at the end"),
    Column("launch_ns", "int", "ns", "launch of that task, lowest int64 if unknown"),
    Column("host_late_ns", "int", "ns", "how much of it the host was late"),
    Column("queued_ns", "int", "ns", "of that: the task lay in the task queue already"),
    Column("path", "text", "", "leaf with most of it"),
)


@dataclass(frozen=True)
class Bookings:
    """``pieces``: one row per piece, in order of time and without holes. ``gaps``: one row per idle gap."""

    pieces: pd.DataFrame
    gaps: pd.DataFrame


FRAMES = {"pieces": PIECES, "gaps": GAPS}


@fact(
    "recorded_bookings",
    needs=(work, timeline, PROFILE),
    wants=(launches, host_activity, collective_state, DEVICE_TASKS),
    frames=FRAMES,
)
def recorded_bookings(facts: Facts) -> Bookings:
    """Every piece of profiled time under one leaf of the ledger, as far as this rank alone tells."""
    device, time = facts[work], facts[timeline]
    busy = _book_busy(device, time, facts.get(collective_state))
    gaps = _find_gaps(device, time, facts.get(launches))
    idle = _book_gaps(gaps, facts.get(host_activity), facts.get(DEVICE_TASKS), time, facts[PROFILE].vocabulary)
    pieces = pd.concat([busy, idle], ignore_index=True).sort_values("start_ns", ignore_index=True)
    pieces["step"] = time.steps.at(pieces["start_ns"].to_numpy())
    pieces["path"] = pieces["path"].astype("category")
    gaps["path"] = _largest_leaf(pieces, len(gaps))
    return Bookings(pieces, gaps)


def _book_busy(device: pd.DataFrame, time: Timeline, state: CollectiveState | None) -> pd.DataFrame:
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    codes, classes = device["operator_class"].array.codes, device["operator_class"].array.categories
    computes = ~device["communication"].to_numpy()
    # A class costs an id for each piece: those without kernels are left out.
    found = np.unique(codes[computes]) if computes.any() else np.zeros(1, dtype=codes.dtype)
    by_class = [union(starts[rows], ends[rows]) for rows in (computes & (codes == n) for n in found)]
    moving, waiting, covered = (state.moving, state.waiting, state.covered) if state else (empty(), empty(), empty())
    edges = [time.steps, time.busy, time.collectives, moving, waiting, covered, *by_class]
    pieces = cut(time.start_ns, time.end_ns, edges, within=time.busy)
    _, _, collective, moves, waits, known, *computing = pieces.ids
    active = np.stack([ids != NOTHING for ids in computing])
    is_computing = active.any(axis=0)
    names = np.array([f"compute/{name}" for name in classes], dtype=object)[found]
    path = names[active.argmax(axis=0)]
    talking = ~is_computing & (collective != NOTHING)
    path[talking] = "communication/unknown"
    path[talking & (known != NOTHING)] = "communication/launch"
    waited = talking & (waits != NOTHING)
    if state is not None:
        path[waited] = _wait_paths(state, waits[waited], device, collective[waited])
    path[talking & (moves != NOTHING)] = "communication/transmit"
    return pd.DataFrame(
        {
            "start_ns": pieces.starts,
            "end_ns": pieces.ends,
            "path": path,
            "overlapped": is_computing & (collective != NOTHING),
            "gap": NOTHING,
            "collective": collective,
            "wait": np.where(waited & (moves == NOTHING), waits, NOTHING),
            "sync": NOTHING,
        }
    )


def _wait_paths(state: CollectiveState, waits: Ints, device: pd.DataFrame, collective: Ints) -> np.ndarray:
    pipeline = matching(device["name"], POINT_TO_POINT)[collective]
    peers = state.peers[waits]
    numbers = peers[peers >= 0]
    named = np.full(len(peers), "communication/wait/unknown", dtype=object)
    for known in (True, False):
        word = "rank" if known else "group rank"
        names = {int(peer): f"communication/wait/{word} {peer}" for peer in np.unique(numbers)}
        chosen = (state.peers_are_global[waits] == known) & (peers >= 0)
        named[chosen] = pd.Series(peers[chosen]).map(names).to_numpy(dtype=object)
    return np.where(pipeline, "communication/wait/pipeline", named)


def _find_gaps(device: pd.DataFrame, time: Timeline, launched: Launches | None) -> pd.DataFrame:
    ends = time.gaps.ends
    starts = device["start_ns"].to_numpy()
    following = np.searchsorted(starts, ends, side="left")
    exists = following < len(starts)
    following = np.where(exists, following, -1)
    launch = np.full(len(ends), NO_TIME, dtype=np.int64)
    if launched is not None and len(ends):
        launch = np.where(exists, launched.frame["launch_ns"].to_numpy()[following], NO_TIME)
    late = np.clip(launch, time.gaps.starts, ends) - time.gaps.starts
    entered = launch
    if launched is not None and len(ends):
        entered = np.where(exists, launched.frame["entered_ns"].to_numpy()[following], NO_TIME)
    queued = np.where(launch == NO_TIME, 0, late - (np.clip(entered, time.gaps.starts, ends) - time.gaps.starts))
    return pd.DataFrame(
        {
            "start_ns": time.gaps.starts,
            "end_ns": ends,
            "step": time.steps.at(time.gaps.starts),
            "next": following,
            "launch_ns": launch,
            "host_late_ns": np.where(launch == NO_TIME, 0, late),
            "queued_ns": np.maximum(0, queued),
        }
    )


def _book_gaps(
    gaps: pd.DataFrame, host: HostActivity | None, tasks: pd.DataFrame | None, time: Timeline, words: Vocabulary
) -> pd.DataFrame:
    if gaps.empty:
        none = time.gaps.ids
        return _idle_frame(time.gaps.starts, time.gaps.ends, np.zeros(0, dtype=object), none, none)
    starts, ends = gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy()
    late_until = starts + gaps["host_late_ns"].to_numpy()
    numbers = np.arange(len(gaps), dtype=np.int64)
    late = Layer(starts[late_until > starts], late_until[late_until > starts], numbers[late_until > starts])
    queued_from = late_until - gaps["queued_ns"].to_numpy()
    waited = late_until > queued_from
    queued = Layer(queued_from[waited], late_until[waited], numbers[waited])
    labels, steps, syncs = (host.labels, host.steps, host.syncs) if host else (empty(), empty(), empty())
    launching = host.launching if host else empty()
    copies, waits = _device_layers(tasks, words)
    layers = [time.steps, time.gaps, late, labels, steps, copies, waits, syncs, queued, launching]
    pieces = cut(time.start_ns, time.end_ns, layers, within=time.gaps)
    _, gap, is_late, label, in_step, copying, depending, in_sync, in_queue, launcher = pieces.ids
    activities = host.activities if host else ACTIVITIES
    label = np.where(in_queue == NOTHING, label, np.where(launcher == NOTHING, activities.index("runtime"), launcher))
    begin, finish = pieces.starts, pieces.ends
    hosts = np.array([host_path(name) for name in activities], dtype=object)
    host_paths = np.where(
        label == NOTHING, "idle/host/python" if host and host.framework else "idle/host/unknown", hosts[label]
    )
    if len(steps):
        outside = (label == NOTHING) | (in_step == NOTHING) & (label == activities.index("python"))
        host_paths = np.where(outside, "idle/step_boundary", host_paths)
    launched = gaps["launch_ns"].to_numpy()[gap]
    early = (launched <= starts[gap]) & ((ends - starts)[gap] > LATENCY_NS)
    held_up = (launched > starts[gap]) & (ends[gap] - launched > LONGEST_LATENCY_NS)
    device_path = np.where(held_up, "idle/unknown", "idle/launch_latency")
    device_path = np.where(early, "idle/task_switch", device_path)
    device_path = np.where(depending != NOTHING, "idle/dependency", device_path)
    device_path = np.where(copying != NOTHING, "idle/copy", device_path)
    path = np.where(is_late != NOTHING, host_paths, device_path)
    path = np.where(launched == NO_TIME, "idle/unknown", path).astype(object)
    refilling = (is_late != NOTHING) & (launched != NO_TIME) & np.isin(path, [host_path(n) for n in _REFILLING])
    booked = _idle_frame(begin, finish, path, gap, np.where(path == "idle/sync", in_sync, NOTHING))
    return _charge_syncs(booked, refilling, syncs, time.busy)


def host_path(activity: str) -> str:
    return "idle/sync" if activity == "sync" else f"idle/host/{activity}"


def _device_layers(tasks: pd.DataFrame | None, words: Vocabulary) -> tuple[Layer, Layer]:
    if tasks is None:
        return empty(), empty()
    starts = tasks["start_ns"].to_numpy()
    ends = starts + tasks["duration_ns"].to_numpy()
    copies, waits = matching(tasks["task_type"], words.copy_tasks), matching(tasks["task_type"], words.wait_tasks)
    return union(starts[copies], ends[copies]), union(starts[waits], ends[waits])


def _charge_syncs(booked: pd.DataFrame, refilling: np.ndarray, syncs: Layer, busy: Layer) -> pd.DataFrame:
    """Book under ``sync`` the refilling that a synchronising call made necessary, splitting a piece where what the
    call had held is used up."""
    if not len(syncs):
        return booked
    begin, finish = booked["start_ns"].to_numpy(), booked["end_ns"].to_numpy()
    held = busy.measure(syncs.ends) - busy.measure(syncs.starts)
    last = np.searchsorted(syncs.ends, begin, side="right") - 1
    owed = refilling & (last >= 0)
    length = np.where(owed, finish - begin, 0)
    running = np.cumsum(length)
    group_start = np.concatenate([[True], last[1:] != last[:-1]])
    base = np.maximum.accumulate(np.where(group_start, running - length, 0))
    used_before = running - length - base
    charged = np.where(owed, np.clip(held[np.maximum(last, 0)] - used_before, 0, length), 0)
    split = begin + charged
    refill = booked.assign(end_ns=split, path="idle/sync", sync=syncs.ids[np.maximum(last, 0)])
    rest = booked.assign(start_ns=split)
    return pd.concat([part[part["end_ns"] > part["start_ns"]] for part in (refill, rest)])


def _idle_frame(begin: Ints, finish: Ints, path: np.ndarray, gap: Ints, sync: Ints) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "start_ns": begin,
            "end_ns": finish,
            "path": path,
            "overlapped": False,
            "gap": gap,
            "collective": NOTHING,
            "wait": NOTHING,
            "sync": sync,
        }
    )


def _largest_leaf(pieces: pd.DataFrame, gaps: int) -> pd.Series:
    inside = narrowed(pieces, ("gap", "path")).assign(ns=pieces["end_ns"] - pieces["start_ns"])[pieces["gap"] >= 0]
    if inside.empty:
        return pd.Series([], dtype="category")
    sums = aggregated(inside, ["gap", "path"], ns=("ns", "sum"))
    ranked = sums.sort_values("ns", ascending=False, kind="stable", ignore_index=True)
    place = Groups(ranked, "gap")
    largest = pd.Series(ranked["path"].array.take(place.firsts), index=ranked["gap"].to_numpy()[place.firsts])
    return largest.reindex(range(gaps)).reset_index(drop=True)
