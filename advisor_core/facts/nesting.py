"""Which event of a thread encloses a moment."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.facts.intervals import Ints


def enclosing(
    threads: Ints, starts: Ints, ends: Ints, ask_threads: Ints, ask_times: Ints, *, outermost: bool = False
) -> Ints:
    """For each asked (thread, time) the row of the innermost (or outermost) event [start, end] that holds it, -1
    where none does.

    Events of a thread nest. All borders and questions are sorted once by thread and time; the number of open events
    at a question is its depth, and the event asked for is the last one before it that was opened at that depth. The
    only loop is over depths (tens), not over events.
    """
    events, asks = len(starts), len(ask_times)
    if not events or not asks:
        return np.full(asks, -1, dtype=np.int64)
    # At equal times an event that starts is opened first and one that ends is closed last, so that an event holds
    # both its borders; the longer of two that start together is the outer one.
    order = np.lexsort(
        (
            np.concatenate([-(ends - starts), np.zeros(asks, dtype=np.int64), ends - starts]),
            np.repeat([0, 1, 2], [events, asks, events]),
            np.concatenate([starts, ask_times, ends]),
            np.concatenate([threads, ask_threads, threads]),
        )
    )
    kind = np.repeat(np.array([1, 0, -1]), [events, asks, events])[order]
    depth = np.cumsum(kind)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    opened, asked = place[:events], place[events : events + asks]
    opened_depth, asked_depth = depth[opened], depth[asked]
    if outermost:
        asked_depth = np.minimum(asked_depth, 1)
    result = np.full(asks, -1, dtype=np.int64)
    for level in np.unique(asked_depth[asked_depth > 0]):
        rows = np.flatnonzero(opened_depth == level)
        rows = rows[np.argsort(opened[rows])]
        questions = np.flatnonzero(asked_depth == level)
        before = np.searchsorted(opened[rows], asked[questions]) - 1
        found = before >= 0
        result[questions[found]] = rows[before[found]]
    return result


def enclosing_of(events: pd.DataFrame, ask_threads: Ints, ask_times: Ints, *, outermost: bool = False) -> Ints:
    """`enclosing` over rows of ``host_events``; gives index labels of ``events``."""
    starts = events["start_ns"].to_numpy()
    ends = starts + events["duration_ns"].to_numpy()
    rows = enclosing(events["thread"].to_numpy(), starts, ends, ask_threads, ask_times, outermost=outermost)
    if not len(events):
        return rows
    return np.where(rows >= 0, events.index.to_numpy()[np.maximum(rows, 0)], -1)
