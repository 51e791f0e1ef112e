"""The host call behind each idle gap: the operator whose launch was late, the call that drained the queue."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import launches
from advisor_core.facts.host.operators import operators_of
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.steps.timeline import timeline
from advisor_core.nesting import enclosing_of
from advisor_core.vocabulary.vocabulary import Vocabulary

LATE_GAPS = (
    Column("gap", "int", "", "row of the gaps of bookings"),
    Column("start_ns", "int", "ns", "start of the gap"),
    Column("end_ns", "int", "ns", "end of the gap"),
    Column("step", "int", "", "row of steps"),
    Column("next", "int", "", "row of work of the task that ended it"),
    Column("path", "text", "", "leaf with most of the gap"),
    Column("late_ns", "int", "ns", "how much of the gap the launch was late"),
    Column("call_row", "int", "", "row of host_events of the launching call, -1 unknown"),
    Column("dequeue_row", "int", "", "row of host_events of the dequeue, -1 unknown"),
    Column("enqueue_row", "int", "", "row of host_events of the enqueue, -1 unknown"),
    Column("op_row", "int", "", "row of host_events of the innermost operator, -1 unknown"),
    Column(
        "outer_row",
        "int",
        "",
        "row of host_events of the outermost operator, which the model's code called; -1 unknown",
    ),
)


@fact("late_gaps", needs=(bookings, launches, HOST_EVENTS, work, PROFILE), columns=LATE_GAPS)
def late_gaps(facts: Facts) -> pd.DataFrame:
    """One row per idle gap that a late launch ended, with the operator that was launched late."""
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


SYNC_CALLS = (
    Column("row", "int", "", "row of host_events"),
    Column("start_ns", "int", "ns", "start, device time"),
    Column("end_ns", "int", "ns", "end, device time"),
    Column("held_ns", "int", "ns", "the device was busy meanwhile: this part costs nothing"),
    Column("idle_ns", "int", "ns", "idle time that is booked to this call"),
    Column("op_row", "int", "", "row of host_events of the innermost operator around it, -1 none"),
    Column("outer_row", "int", "", "row of host_events of the outermost operator around it, -1 none"),
    Column("step", "int", "", "row of steps, -1 outside"),
)


@fact("sync_calls", needs=(bookings, launches, host_activity, HOST_EVENTS, timeline, PROFILE), columns=SYNC_CALLS)
def sync_calls(facts: Facts) -> pd.DataFrame:
    """One row per synchronising call of the threads that feed the device."""
    syncs, pieces, busy = facts[host_activity].syncs, facts[bookings].pieces, facts[timeline].busy
    events = facts[HOST_EVENTS]
    blamed = pieces[pieces["sync"] >= 0]
    idle = (blamed["end_ns"] - blamed["start_ns"]).groupby(blamed["sync"]).sum()
    rows = syncs.ids
    operators = operators_of(events, facts[PROFILE].vocabulary)
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
    outermost_rows = enclosing_of(operators_of(events, words), threads, starts, outermost=True)
    return np.where(rows >= 0, outermost_rows, -1)
