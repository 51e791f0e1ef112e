"""Rare long pauses of the host: a passage of the program that takes far longer than the same passage at other times.

Between one recorded border (an operator, a call or a Python function begins or ends) and the next, the threads that
feed the device, which take turns, do something that the profile does not show. The same two borders follow each other
many times in a run: in every layer, in every step. Work of the program takes about as long each time. What strikes
from outside, a garbage collection that was not recorded, a page fault, another process on the core, strikes once in a
while.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import launches
from advisor_core.facts.intervals import Layer, union
from advisor_core.facts.matching import matching
from advisor_core.vocabulary.host_labels import UNNAMED
from advisor_core.vocabulary.vocabulary import Vocabulary

PAUSE_NS = 1_000_000
"""Shorter pauses are left out: the vendor's advisor calls a garbage collection of 1 ms or more a problem."""
TIMES_USUAL = 10
"""A pause takes this many times the median of the same passage; our choice. The durations of host work in the real
exports at hand spread by a factor of 2 to 3 around their median."""
OCCURRENCES = 4
"""Least number of occurrences of a passage before one of them can be called unusual; our choice."""

_KINDS = ("cpu_op", "python_function", "enqueue", "user_annotation", "runtime")


COLUMNS = (
    Column("thread", "int", "", "thread that goes on afterwards"),
    Column("start_ns", "int", "ns", "start of what is beyond the usual duration, device time"),
    Column("end_ns", "int", "ns", "end, device time"),
    Column("usual_ns", "int", "ns", "median of the same passage"),
    Column("occurrences", "int", "count", "how often the passage occurs"),
    Column("before", "int", "", "row of host_events whose border precedes it"),
    Column("after", "int", "", "row of host_events whose border follows it"),
)


@fact("host_pauses", needs=(HOST_EVENTS, launches, host_activity, PROFILE), columns=COLUMNS)
def host_pauses(facts: Facts) -> pd.DataFrame:
    """One row per rare long pause of the threads that feed the device, in order of time.

    Waiting that has a name (data loader, synchronising, reading a value back, allocating ...) is left out, and so is
    the first time of each passage, which builds caches.
    """
    events, host, launched = facts[HOST_EVENTS], facts[host_activity], facts[launches]
    chosen = np.flatnonzero(
        events["category"].isin(_KINDS).to_numpy() & np.isin(events["thread"].to_numpy(), list(host.feeders))
    )
    words: Vocabulary = facts[PROFILE].vocabulary
    reads = np.isin(events["thread"].to_numpy(), list(host.feeders)) & matching(events["name"], words.sync_operators)
    begun = events["start_ns"].to_numpy()[reads] - launched.skew_ns
    reading = union(begun, begun + events["duration_ns"].to_numpy()[reads])
    labels = host.labels
    named = np.isin(labels.ids, [number for number, activity in enumerate(host.activities) if activity not in UNNAMED])
    return _unnamed(
        _pauses(events, chosen, launched.skew_ns),
        Layer(labels.starts[named], labels.ends[named], labels.ids[named]),
        reading,
    )


def _pauses(events: pd.DataFrame, rows: np.ndarray, skew_ns: int) -> pd.DataFrame:
    start = events["start_ns"].to_numpy()[rows] - skew_ns
    lasting = events["duration_ns"].to_numpy()[rows]
    event, is_end = _borders(start, lasting)
    times, border_rows = start[event] + np.where(is_end, lasting[event], 0), rows[event]
    name = 2 * events["name"].array.codes.astype(np.int64)[border_rows] + is_end
    lengths = times[1:] - times[:-1]
    passage = name[:-1] * (2 * len(events["name"].array.categories)) + name[1:]
    alike = np.flatnonzero(np.isin(passage, passage[lengths >= PAUSE_NS]))
    groups = pd.DataFrame({"passage": passage[alike], "ns": lengths[alike]}).groupby("passage")
    median, count = groups["ns"].transform("median").to_numpy(), groups["ns"].transform("size").to_numpy()
    first = groups.cumcount().to_numpy() == 0
    unusual = (lengths[alike] >= np.maximum(PAUSE_NS, TIMES_USUAL * median)) & (count >= OCCURRENCES) & ~first
    pauses, usual = alike[unusual], median[unusual].astype(np.int64)
    return pd.DataFrame(
        {
            "thread": events["thread"].to_numpy()[border_rows[pauses + 1]],
            "start_ns": times[pauses] + usual,
            "end_ns": times[pauses + 1],
            "usual_ns": usual,
            "occurrences": count[unusual].astype(np.int64),
            "before": border_rows[pauses],
            "after": border_rows[pauses + 1],
        }
    )


def _borders(start: np.ndarray, lasting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The events whose borders follow each other in time, each by its place, and which of the borders are ends.

    Where several fall on one moment, as traces in microseconds have it in every second operator, they stand as calls
    nest: what ends, the inner first; what takes no time; what begins, the outer first. Else it would depend on the
    rounding of a time which border is the last one before a pause, and passages that are the same would not be told as
    such.
    """
    lasts = lasting > 0
    some, none = np.flatnonzero(lasts), np.flatnonzero(~lasts)
    some = some[np.lexsort((-lasting[some], start[some]))]
    event = np.concatenate([some[::-1], np.repeat(none, 2), some])
    is_end = np.concatenate([np.ones(len(some), bool), np.tile([False, True], len(none)), np.zeros(len(some), bool)])
    order = np.argsort(start[event] + np.where(is_end, lasting[event], 0), kind="stable")
    return event[order], is_end[order]


def _unnamed(pauses: pd.DataFrame, *waiting: Layer) -> pd.DataFrame:
    """The pauses in which the host was for the most part at nothing that has a name."""
    start, end = pauses["start_ns"].to_numpy(), pauses["end_ns"].to_numpy()
    is_unnamed = np.ones(len(pauses), dtype=bool)
    for layer in waiting:
        is_unnamed &= 2 * (layer.measure(end) - layer.measure(start)) < end - start
    unnamed: pd.DataFrame = pauses[is_unnamed].reset_index(drop=True)
    return unnamed


def paused(pauses: pd.DataFrame) -> Layer:
    """The time in pauses."""
    return union(pauses["start_ns"].to_numpy(), pauses["end_ns"].to_numpy())
