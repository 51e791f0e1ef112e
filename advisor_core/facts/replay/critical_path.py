"""The critical path of a rank: for every moment of the recorded steps, what their end waited for.

The last task waited for one thing, that for another, and so on back to the beginning; so every moment has one owner. An
owner is named as an entry of the ledger, but means another thing: the ledger books what the device did, or why it was
idle; on the critical path time belongs to the host where the end waited for the host, though the device may have been
busy with something else meanwhile, and to the device where it did not, though it may have ended sooner.

- a kernel: ``compute/<class>``; a collective: the entry that its time is booked under, ``communication/covered`` while
  kernels run;
- the threads that feed the device: ``idle/host/<activity>``, by what they did; the end of a call that waited for the
  device: ``idle/sync``; the thread that empties the task queue: ``idle/host/runtime``;
- from launch to start: ``idle/launch_latency``, ``idle/unknown`` where that is longer than any latency; between two
  tasks: ``idle/task_switch``; behind what a task waited for on another stream: ``idle/dependency``; before the first
  and after the last node of it: ``idle/step_boundary``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.device.work import work
from advisor_core.facts.host.activity import HostActivity, host_activity
from advisor_core.facts.intervals import NOTHING, Ints, Layer, cut, empty
from advisor_core.facts.ledger.bookings import host_path
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.replay.nodes import CALL, FEED, LAUNCH, TASK
from advisor_core.facts.replay.owner_paths import COLLECTIVE, delay_paths, node_paths, waited_kinds
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.steps.steps import steps
from advisor_core.replay.critical_path import ON_CHAIN
from advisor_core.replay.critical_path import critical_path as path_to

_BOUNDARY = "idle/step_boundary"
_COVERED = "communication/covered"

COLUMNS = (
    Column("step", "int", "", "row of steps"),
    Column("start_ns", "int", "ns", "start"),
    Column("end_ns", "int", "ns", "end"),
    Column("chain", "text", "", "host, queue, device or collectives: whose time it is"),
    Column("path", "text", "", "entry of the ledger that names the owner"),
)


@fact("critical_path", needs=(rank_graph, steps, work, bookings), wants=(host_activity,), columns=COLUMNS)
def critical_path(facts: Facts) -> pd.DataFrame:
    """The owner of every moment of the recorded steps: what their end waited for."""
    recorded, device = facts[rank_graph], facts[work]
    owned = _owned(recorded, device, facts.get(host_activity))
    owned = _with_states(owned[owned["end_ns"] > owned["start_ns"]], facts[bookings].pieces)
    windows = Layer.of(facts[steps])
    pieces = cut(int(windows.starts.min()), int(windows.ends.max()), [windows, Layer.of(owned)], within=windows)
    step, owner = pieces.ids
    # What has no owner is before, between or after the stretches of a step.
    boundary = {"chain": "host", "path": _BOUNDARY}
    owners = {
        name: pd.Categorical(np.append(owned[name].to_numpy(dtype=object), of_none)[owner])
        for name, of_none in boundary.items()
    }
    return pd.DataFrame({"step": step, "start_ns": pieces.starts, "end_ns": pieces.ends, **owners})


def _owned(recorded: RankGraph, device: pd.DataFrame, host: HostActivity | None) -> pd.DataFrame:
    """The stretches of the path in order of time, each with its owner."""
    graph, nodes, edges = recorded.graph, recorded.nodes, recorded.edges
    tasks = np.flatnonzero(nodes.kind == TASK)
    ended = nodes.end_ns - recorded.origin_ns
    on_path, waited_for = path_to(graph, ended, int(tasks[ended[tasks].argmax()]))
    end = nodes.end_ns[on_path]
    begun = end - graph.duration[on_path]
    kind = nodes.kind[on_path]
    rows = np.where(kind == TASK, nodes.row[on_path], 0)
    talks = (kind == TASK) & device["communication"].to_numpy()[rows]
    path = node_paths(kind, talks, device["operator_class"].astype(str).to_numpy(dtype=object)[rows])
    chain = np.select([talks, kind == TASK, kind == LAUNCH], ["collectives", "device", "queue"], default="host")
    is_edge = waited_for >= 0
    delay = np.where(waited_for == ON_CHAIN, graph.pause[on_path], 0)
    delay[is_edge] = graph.lag[waited_for[is_edge]]
    behind = delay_paths(waited_kinds(edges.kind, waited_for), delay)
    whose = np.where(kind == LAUNCH, "queue", "device")
    delays = pd.DataFrame({"start_ns": begun - delay, "end_ns": begun, "chain": whose, "path": behind})
    own_time = (kind == FEED) | (kind == CALL)
    lasting = pd.DataFrame({"start_ns": begun, "end_ns": end, "chain": chain, "path": path})
    hosts = _labelled(begun[own_time], end[own_time], host)
    owned = pd.concat([delays, lasting[~own_time], hosts], ignore_index=True)
    in_order: pd.DataFrame = owned.sort_values(["start_ns", "end_ns"], ignore_index=True)
    return in_order


def _with_states(owned: pd.DataFrame, pieces: pd.DataFrame) -> pd.DataFrame:
    """The stretches with those of collectives cut where the ledger books them under another entry."""
    collective = (owned["path"] == COLLECTIVE).to_numpy()
    stretches = owned[collective]
    booked = Layer.of(pieces)
    starts, ends, piece = _divided(stretches["start_ns"].to_numpy(), stretches["end_ns"].to_numpy(), booked)
    paths = np.append(pieces["path"].astype(str).to_numpy(dtype=object), "")[piece]
    is_open = np.array([path.startswith("communication/") for path in paths], dtype=np.bool_)
    states = pd.DataFrame(
        {"start_ns": starts, "end_ns": ends, "chain": "collectives", "path": np.where(is_open, paths, _COVERED)}
    )
    whole: pd.DataFrame = pd.concat([owned[~collective], states], ignore_index=True)
    in_order: pd.DataFrame = whole.sort_values(["start_ns", "end_ns"], ignore_index=True)
    return in_order


def _labelled(starts: Ints, ends: Ints, host: HostActivity | None) -> pd.DataFrame:
    """The time of the threads that feed the device, by what they did."""
    starts, ends, label = _divided(starts, ends, host.labels if host is not None else empty())
    names = [host_path(name) for name in (*(host.activities if host is not None else ()), "unknown")]
    paths = np.array(names, dtype=object)[label]
    return pd.DataFrame({"start_ns": starts, "end_ns": ends, "chain": "host", "path": paths})


def _divided(starts: Ints, ends: Ints, layer: Layer) -> tuple[Ints, Ints, Ints]:
    """Stretches that do not overlap, cut at the borders of ``layer``: starts, ends, and the id of the layer in each."""
    if not len(starts):
        return starts, ends, starts
    pieces = cut(int(starts.min()), int(ends.max()), [Layer(starts, ends, np.arange(len(starts))), layer])
    stretch, found = pieces.ids
    inside = stretch != NOTHING
    return pieces.starts[inside], pieces.ends[inside], found[inside]
