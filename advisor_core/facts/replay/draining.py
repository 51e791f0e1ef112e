"""Calls that wait for the task queue first, and then for the device.

What a thread behind the queue has not launched yet, the device has not done either: an operator that reads a number
back waits until the queue is empty, and only then makes the call that waits for the device. A recording has the second
wait as a call; the first is time within the operator before it, and would be taken for work of the host.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.facts.host.launches import Launches
from advisor_core.facts.host.operators import operators_of
from advisor_core.facts.intervals import Ints, Layer
from advisor_core.nesting import enclosing
from advisor_core.vocabulary.vocabulary import Vocabulary


def waiting_since(syncs: Layer, launched: Launches, events: pd.DataFrame, words: Vocabulary) -> Ints:
    """Since when each call waits for the device, or what it is a part of for the queue; device time in ns. ``syncs``:
    the calls, in device time, ids are rows of ``host_events``; ``words``: of the vendor. Where the task queue was
    drained before a call, its operator waits from its beginning, though not before its thread had handed over its last
    task, and later by as much as the operator went on once the queue was empty: that is its own work. The queue was
    drained where it was not empty when the operator began, and was when the call began."""
    frame = launched.frame[launched.known() & (launched.frame["enqueue_row"] >= 0)]
    operator = operators_of(events, words)
    if frame.empty or operator.empty or not len(syncs):
        return syncs.starts
    entered, done = frame["entered_ns"].to_numpy(), frame["launch_ns"].to_numpy()
    order = np.argsort(entered, kind="stable")
    entered, done = entered[order], np.maximum.accumulate(done[order])
    threads, starts = (operator[name].to_numpy() for name in ("thread", "start_ns"))
    began = starts - launched.skew_ns
    ends = began + operator["duration_ns"].to_numpy()
    of_call = events["thread"].to_numpy()[syncs.ids]
    around = enclosing(threads, began, ends, of_call, syncs.starts, outermost=True)
    last = np.searchsorted(entered, syncs.starts, side="right") - 1
    known = (around >= 0) & (last >= 0)
    before = np.maximum(began[np.maximum(around, 0)], entered[np.maximum(last, 0)])
    empty_at = done[np.maximum(last, 0)]
    drained = known & (before < empty_at) & (empty_at <= syncs.starts)
    return np.where(drained, before + syncs.starts - empty_at, syncs.starts)
