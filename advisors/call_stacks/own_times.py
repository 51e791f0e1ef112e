"""The time of each host event without that of the events in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.facts import enclosing_of

Ints = npt.NDArray[np.int64]


def own_times(events: pd.DataFrame, windows: pd.DataFrame) -> Ints:
    """ns of each row of host events inside of the windows (``start_ns``, ``end_ns``, apart and in order).

    At each moment of a thread the time is that of the event that began last, so that no moment counts twice, not even
    where a mark ends after the call in which it began.
    """
    starts = events["start_ns"].to_numpy()
    ends = starts + events["duration_ns"].to_numpy()
    begin, end = windows["start_ns"].to_numpy(), windows["end_ns"].to_numpy()
    if not len(begin) or not len(starts):
        return np.zeros(len(events), dtype=np.int64)
    inside = np.flatnonzero((ends > begin[0]) & (starts < end[-1]) & (ends > starts))
    threads = events["thread"].to_numpy()[inside]
    kinds, number = np.unique(threads, return_inverse=True)
    borders = np.concatenate([begin, end])
    # Every border of an event or a window, on every thread.
    at = np.concatenate([starts[inside], ends[inside], np.tile(borders, len(kinds))])
    of = np.concatenate([number, number, np.repeat(np.arange(len(kinds)), len(borders))])
    order = np.lexsort((at, of))
    at, of = at[order], of[order]
    parts = np.flatnonzero((of[1:] == of[:-1]) & (at[1:] > at[:-1]))
    first, last, of = at[parts], at[parts + 1], of[parts]
    window = np.searchsorted(begin, first, side="right") - 1
    shown = (window >= 0) & (first < end[np.maximum(window, 0)])
    first, last, of = first[shown], last[shown], of[shown]
    # Doubled, the middle of a part of one ns is a whole number, and on no border.
    doubled = pd.DataFrame(
        {"thread": number, "start_ns": 2 * starts[inside], "duration_ns": 2 * (ends - starts)[inside]}, index=inside
    )
    around = enclosing_of(doubled, of, first + last)
    held = around >= 0
    own = np.zeros(len(events), dtype=np.int64)
    np.add.at(own, around[held], (last - first)[held])
    return own
