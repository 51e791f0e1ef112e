"""Look up the event of a thread that encloses a point in time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import Int64Array as Ints


def enclosing(
    threads: Ints, starts: Ints, ends: Ints, ask_threads: Ints, ask_times: Ints, *, outermost: bool = False
) -> Ints:
    """For each asked (thread, time) the row of the innermost (or outermost) event [start, end] that holds it, -1
    where none does.

    The innermost is the one that started last, of those the shortest. The outermost is reached from it by going to
    the event around it for as long as there is one. Events of a thread nest, but for marks of the framework that are
    opened inside one Python call and closed inside another; those cross without harm.
    """
    none = np.full(len(ask_times), -1, dtype=np.int64)
    if not len(starts) or not len(ask_times):
        return none
    # What lies before or after all questions holds none: sorting it would be most of the work for a few of them.
    rows = np.flatnonzero((ends >= ask_times.min()) & (starts <= ask_times.max()))
    if not len(rows):
        return none
    rows = rows[np.lexsort((starts[rows] - ends[rows], starts[rows], threads[rows]))]
    threads, starts, ends = threads[rows], starts[rows], ends[rows]
    around = _around(threads, ends)
    found = _last_started(threads, starts, ask_threads, ask_times)
    # Whatever started between an event and the one around it ended before it: if it is over by the time asked for,
    # so are they.
    while (over := (found >= 0) & (ends[found] < ask_times)).any():
        found[over] = around[found[over]]
    while outermost and (inner := (found >= 0) & (around[found] >= 0)).any():
        found[inner] = around[found[inner]]
    return np.where(found >= 0, rows[found], -1)


def parents(threads: Ints, starts: Ints, ends: Ints) -> Ints:
    """For each event the row of the one that it lies directly in, -1 for none; of two that are equally long the earlier
    row is the outer one."""
    order = np.lexsort((np.arange(len(starts)), starts - ends, starts, threads))
    around = _around(threads[order], ends[order])
    found = np.full(len(starts), -1, dtype=np.int64)
    inside = around >= 0
    found[order[inside]] = order[around[inside]]
    return found


def _around(threads: Ints, ends: Ints) -> Ints:
    """For each event, sorted by thread and start, the last one before it that ends no earlier; -1 for none.

    Every event begins with the one just before it. One that ends too early is passed over together with all that it
    passed over itself, so that a row of n siblings takes about log2(n) rounds.
    """
    around = np.arange(-1, len(ends) - 1)
    around[np.flatnonzero(np.diff(threads)) + 1] = -1
    rows = np.flatnonzero(around >= 0)
    while len(rows := rows[ends[around[rows]] < ends[rows]]):
        around[rows] = around[around[rows]]
        rows = rows[around[rows] >= 0]
    return around


def _last_started(threads: Ints, starts: Ints, ask_threads: Ints, ask_times: Ints) -> Ints:
    """For each question the last event of its thread that started by then; -1 for none. Events are sorted."""
    events, asks = len(starts), len(ask_times)
    is_ask = np.repeat([False, True], [events, asks])
    order = np.lexsort((is_ask, np.concatenate([starts, ask_times]), np.concatenate([threads, ask_threads])))
    asked = is_ask[order]
    last = np.empty(asks, dtype=np.int64)
    last[order[asked] - events] = np.cumsum(~asked)[asked] - 1
    return np.where((last >= 0) & (threads[last] == ask_threads), last, -1)


def enclosing_of(events: pd.DataFrame, ask_threads: Ints, ask_times: Ints, *, outermost: bool = False) -> Ints:
    """`enclosing` over rows of ``host_events``; gives index labels of ``events``."""
    starts = events["start_ns"].to_numpy()
    ends = starts + events["duration_ns"].to_numpy()
    rows = enclosing(events["thread"].to_numpy(), starts, ends, ask_threads, ask_times, outermost=outermost)
    if not len(events):
        return rows
    return np.where(rows >= 0, events.index.to_numpy()[np.maximum(rows, 0)], -1)
