"""The edges of a rank's graph: what waited for what.

Recorded, or by construction of the runtime:

- `HANDED`: a task is launched when the host has handed it over and the thread behind the queue has taken it;
- `LAUNCHED`: it starts when it has been launched;
- `DONE`: a call that waits for the device returns when all that was handed over before has ended; a stream that ended
  later than the call returned was not waited for.

Inferred, because recordings do not say which event a stream waited for:

- `READY`: a collective starts when the kernels have ended that were handed over before it (a process group of PyTorch
  lets its stream wait for the stream that computes);
- `HELD`: a kernel that was handed over after a collective waits for it, unless it ran beside it: the first that did not
  waits, and with it all behind it. What the recording does not show to be independent is taken to depend, so that a
  promise is not too large;
- `FOLLOWS`: a task whose launch is not recorded was launched no sooner than the one that started before it;
- `AWAITED`: a task whose stream was free and that had been launched long before it started waited for what ended last
  before it on another stream, if that was at most `LATENCY_NS` ago; so did one whose launch is not recorded;
- `ROOM_MADE`: a call that handed over a task waited until the full queue had room (`full_queues`): the entry that many
  before it was done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.facts.host.launches import NO_TIME, Launches
from advisor_core.facts.ledger.bookings import LATENCY_NS
from advisor_core.facts.replay.nodes import FEED, LAUNCH, RETURN, ROOM, TASK, Nodes
from advisor_core.replay.graph import Ints
from advisor_core.replay.structure import before_on_chain

HANDED, LAUNCHED, DONE, READY, HELD, AWAITED, FOLLOWS, ROOM_MADE = range(8)
"""Kinds of edges."""

INFERRED = (READY, HELD, AWAITED, FOLLOWS, ROOM_MADE)


@dataclass(frozen=True)
class Edges:
    """``kind``, ``source`` and ``target`` of each edge, as numbers of `Nodes`. ``contradicted``: the same of those
    that the recorded times contradict, which are no edges."""

    kind: Ints
    source: Ints
    target: Ints
    contradicted: tuple[Ints, Ints, Ints]


def edges_of(nodes: Nodes, work: pd.DataFrame, rows: Ints, launched: Launches, held: pd.DataFrame) -> Edges:
    """The edges between the nodes of a rank; arguments as of `advisor_core.facts.replay.nodes.nodes_of`."""
    feed, launch, task = (nodes.of(kind, len(work)) for kind in (FEED, LAUNCH, TASK))
    fed = np.flatnonzero(feed >= 0)
    entered = launched.frame["entered_ns"].to_numpy()
    parts = [
        (HANDED, feed[fed], launch[fed]),
        (LAUNCHED, launch[fed], task[fed]),
        (DONE, *_waited_for(nodes, entered)),
        (READY, *_ready(nodes, work, rows, entered, task)),
        (HELD, *_held(nodes, work, rows, entered, task)),
    ]
    late = np.full(len(work), NO_TIME, dtype=np.int64)
    late[fed] = nodes.end_ns[launch[fed]]
    parts.append((FOLLOWS, *_follows(rows, launch, task)))
    parts.append((AWAITED, *_awaited(nodes, late, np.concatenate([parts[3][2], parts[4][2]]))))
    parts.append((ROOM_MADE, *_room_made(nodes, held, launch, task)))
    kind = np.concatenate([np.full(len(source), number, dtype=np.int64) for number, source, _ in parts])
    source, target = (np.concatenate([part[column] for part in parts]).astype(np.int64) for column in (1, 2))
    holds = (nodes.end_ns[source] <= nodes.start_ns[target]) | np.isin(kind, (DONE, ROOM_MADE))
    holds &= source < target
    return Edges(kind[holds], source[holds], target[holds], (kind[~holds], source[~holds], target[~holds]))


def _waited_for(nodes: Nodes, entered: Ints) -> tuple[Ints, Ints]:
    """(task, return): the last task on each stream that had been handed over and had ended when a call returned."""
    returns = np.flatnonzero(nodes.kind == RETURN)
    tasks = np.flatnonzero(nodes.kind == TASK)
    sources, targets = [], []
    for chain in np.unique(nodes.chain[tasks]):
        own = tasks[nodes.chain[tasks] == chain]
        count = _handed_over(entered[nodes.row[own]], nodes.end_ns[returns])
        ended = np.searchsorted(nodes.end_ns[own], nodes.end_ns[returns], side="right")
        # Of a stream that goes on the call waited for no more than had ended, if for anything.
        waits = (count > 0) & (ended >= count)
        sources.append(own[count[waits] - 1])
        targets.append(returns[waits])
    return _joined(sources), _joined(targets)


def _room_made(nodes: Nodes, held: pd.DataFrame, launch: Ints, task: Ints) -> tuple[Ints, Ints]:
    """(what made room, call that waited for it): the end of a task, or its launch from a queue of the host."""
    room = np.flatnonzero(nodes.kind == ROOM)
    own = held.set_index("call_row").loc[nodes.row[room]]
    by_launch, row = own["launched"].to_numpy(), own["work_row"].to_numpy()
    source = np.where(by_launch, launch[row], task[row])
    return source[source >= 0], room[source >= 0]


def _ready(nodes: Nodes, work: pd.DataFrame, rows: Ints, entered: Ints, task: Ints) -> tuple[Ints, Ints]:
    """(kernel, collective): the last kernel of each stream that was handed over before the collective."""
    talks = work["communication"].to_numpy()
    known = entered != NO_TIME
    collectives = rows[talks[rows] & known[rows]]
    kernels = rows[~talks[rows] & known[rows]]
    sources, targets = [], []
    chains = nodes.chain[task[kernels]]
    for chain in np.unique(chains):
        own = kernels[chains == chain]
        count = _handed_over(entered[own], entered[collectives])
        sources.append(task[own[count[count > 0] - 1]])
        targets.append(task[collectives[count > 0]])
    return _joined(sources), _joined(targets)


def _held(nodes: Nodes, work: pd.DataFrame, rows: Ints, entered: Ints, task: Ints) -> tuple[Ints, Ints]:
    """(collective, kernel): the first kernel of each stream that was handed over after the collective and did not start
    before its end."""
    talks = work["communication"].to_numpy()
    known = entered != NO_TIME
    collectives, kernels = rows[talks[rows]], rows[~talks[rows] & known[rows]]
    last = np.maximum.accumulate(np.where(known[rows], entered[rows], NO_TIME))
    handed_over = np.where(known, entered, NO_TIME)
    handed_over[rows] = np.where(known[rows], entered[rows], last)
    ends = work["end_ns"].to_numpy()[collectives]
    sources, targets = [], []
    chains = nodes.chain[task[kernels]]
    for chain in np.unique(chains):
        own = kernels[chains == chain]
        since = _handed_over(entered[own], handed_over[collectives])
        after = np.searchsorted(work["start_ns"].to_numpy()[own], ends, side="left")
        first = np.maximum(since, after)
        exists = first < len(own)
        sources.append(task[collectives[exists]])
        targets.append(task[own[first[exists]]])
    return _joined(sources), _joined(targets)


def _follows(rows: Ints, launch: Ints, task: Ints) -> tuple[Ints, Ints]:
    """(launch of the task that started before, task) for the tasks without a launch of their own."""
    known = launch[rows] >= 0
    last = np.maximum.accumulate(np.where(known, np.arange(len(rows)), -1))
    asks = np.flatnonzero(~known & (last >= 0))
    return launch[rows[last[asks]]], task[rows[asks]]


def _awaited(nodes: Nodes, launched: Ints, known: Ints) -> tuple[Ints, Ints]:
    """(task, task that waited for it) where nothing else of the graph explains the start. ``launched``: of each row of
    work; ``known``: nodes that an edge of that kind leads to already."""
    tasks = np.flatnonzero(nodes.kind == TASK)
    start, end = nodes.start_ns[tasks], nodes.end_ns[tasks]  # in order of end
    before = before_on_chain(nodes.chain[tasks])
    free = np.where(before >= 0, end[before], NO_TIME)
    launch = launched[nodes.row[tasks]]
    early = (launch == NO_TIME) | (start - LATENCY_NS > launch)
    asks = early & (start > free) & ~np.isin(tasks, known)
    last = np.searchsorted(end, start[asks], side="right") - 1
    asks = np.flatnonzero(asks)
    last, asks = last[last >= 0], asks[last >= 0]
    explains = (end[last] > free[asks]) & (start[asks] - end[last] <= LATENCY_NS)
    explains &= nodes.chain[tasks[last]] != nodes.chain[tasks[asks]]
    return tasks[last[explains]], tasks[asks[explains]]


def _handed_over(entered: Ints, moments: Ints) -> Ints:
    """The number of tasks of a stream that the host had handed over by each moment. ``entered``: when it handed each
    over, in the order in which they start."""
    return np.searchsorted(np.maximum.accumulate(entered), moments, side="right").astype(np.int64)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
