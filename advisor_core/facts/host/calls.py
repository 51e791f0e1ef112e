"""The host call behind each idle gap: the operator whose launch was late, the call that drained the queue."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.matching import matching
from advisor_core.facts.steps.timeline import timeline
from advisor_core.nesting import enclosing_of
from advisor_core.vocabulary.vocabulary import Vocabulary


def _operators(events: pd.DataFrame, words: Vocabulary) -> pd.DataFrame:
    return events[(events["category"] == "cpu_op") & ~matching(events["name"], words.annotation)]


@fact("late_gaps", needs=(bookings, launches, HOST_EVENTS, work, PROFILE))
def late_gaps(facts: Facts) -> pd.DataFrame:
    """One row per idle gap that a late launch ended, with the operator that was launched late.

    Columns: ``gap`` (row of ``gaps``), ``start_ns``, ``end_ns``, ``step``, ``late_ns``, ``next`` (row of ``work``),
    ``call_row``, ``dequeue_row``, ``enqueue_row``, ``op_row`` (innermost operator) and ``outer_row`` (outermost
    operator, the one that the model's code called) as rows of ``host_events``, -1 unknown; ``path``: the leaf with
    most of the gap.
    """
    booked = facts[bookings]
    launched = facts[launches]
    events = facts[HOST_EVENTS]
    gaps = booked.gaps
    late = gaps[(gaps["host_late_ns"] > 0) & (gaps["next"] >= 0)]
    following = late["next"].to_numpy()
    links = launched.frame.iloc[following].reset_index(drop=True)
    frame = late[["start_ns", "end_ns", "step", "next", "path"]].rename_axis("gap").reset_index()
    frame["late_ns"] = late["host_late_ns"].to_numpy()
    for column in ("call_row", "dequeue_row", "enqueue_row", "op_row"):
        frame[column] = links[column]
    frame["outer_row"] = _outermost(events, links["op_row"].to_numpy(), facts[PROFILE].vocabulary)
    return frame


@fact("sync_calls", needs=(bookings, launches, host_activity, HOST_EVENTS, timeline, PROFILE))
def sync_calls(facts: Facts) -> pd.DataFrame:
    """One row per synchronising call of the threads that feed the device.

    Columns: ``row`` (of ``host_events``), ``start_ns``, ``end_ns`` (device time), ``held_ns`` (the device was busy
    meanwhile: this part costs nothing), ``idle_ns`` (idle booked to this call), ``op_row`` and ``outer_row`` (innermost
    and outermost operator around it, rows of ``host_events``, -1 none), ``step`` (row of ``steps``, -1 outside).
    """
    syncs, pieces, busy = facts[host_activity].syncs, facts[bookings].pieces, facts[timeline].busy
    events = facts[HOST_EVENTS]
    blamed = pieces[pieces["sync"] >= 0]
    idle = (blamed["end_ns"] - blamed["start_ns"]).groupby(blamed["sync"]).sum()
    rows = syncs.ids
    operators = _operators(events, facts[PROFILE].vocabulary)
    threads, starts = events["thread"].to_numpy()[rows], events["start_ns"].to_numpy()[rows]
    return pd.DataFrame(
        {
            "row": rows,
            "start_ns": syncs.starts,
            "end_ns": syncs.ends,
            "held_ns": busy.measure(syncs.ends) - busy.measure(syncs.starts),
            "idle_ns": idle.reindex(rows, fill_value=0).to_numpy().astype(np.int64),
            "op_row": enclosing_of(operators, threads, starts),
            "outer_row": enclosing_of(operators, threads, starts, outermost=True),
            "step": facts[timeline].steps.at(syncs.ends),
        }
    )


def _outermost(events: pd.DataFrame, rows: np.ndarray, words: Vocabulary) -> np.ndarray:
    """The outermost operator around each operator; -1 stays -1."""
    threads = events["thread"].to_numpy()[np.maximum(rows, 0)]
    starts = events["start_ns"].to_numpy()[np.maximum(rows, 0)]
    found = enclosing_of(_operators(events, words), threads, starts, outermost=True)
    return np.where(rows >= 0, found, -1)
