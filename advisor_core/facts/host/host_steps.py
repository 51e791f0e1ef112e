"""Steps on the host, of a recording without a device: what the loop waited for, and how long operators ran."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable, Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import Layer, empty, first_of, union
from advisor_core.facts.matching import matching
from advisor_core.text.messages import message

_PARTS = ("loader_ns", "operator_ns")


COLUMNS = (
    Column("step", "int", "", "step id as the mark names it, -1 for all of a recording without marks"),
    Column("start_ns", "int", "ns", "start of the mark"),
    Column("end_ns", "int", "ns", "start of the next mark, of the last one its end"),
    Column("loader_ns", "int", "ns", "in which the loop waited for the data loader"),
    Column("operator_ns", "int", "ns", "of the rest: in which a thread ran operators of the framework"),
    Column("rest_ns", "int", "ns", "the rest: Python, and what was not recorded"),
)


@fact("host_steps", needs=(HOST_EVENTS, PROFILE), wants=(work,), columns=COLUMNS)
def host_steps(facts: Facts) -> pd.DataFrame:
    """One row per step on the host, in order of time, where no device was recorded.

    Not applicable where one was: what the host did then matters as far as the device waited for it, which the ledger
    says. Without marks of steps all of the recording, from the first to the last operator, is one step.
    """
    if work in facts:
        raise NotApplicable(message("host_steps.device"))
    events, words = facts[HOST_EVENTS], facts[PROFILE].vocabulary
    starts = events["start_ns"].to_numpy()
    ends = starts + events["duration_ns"].to_numpy()
    marked = matching(events["name"], words.step_mark)
    operators = (events["category"] == "cpu_op").to_numpy() & ~matching(events["name"], words.annotation) & ~marked
    if not operators.any():
        raise Unavailable(message("host_steps.none"), message("host_steps.none.collect"), ("host",))
    loading = matching(events["name"], words.data_loader)
    if marked.any():
        marks = events[marked].sort_values("start_ns")
        begins = marks["start_ns"].to_numpy()
        stops = np.append(begins[1:], int((marks["start_ns"] + marks["duration_ns"]).iloc[-1]))
        numbers = pd.to_numeric(marks["name"].astype(str).str.extract(r"(\d+)$")[0], errors="coerce")
        steps = numbers.fillna(-1).to_numpy().astype(np.int64)
        loading &= np.isin(events["thread"].to_numpy(), marks["thread"].unique())
    else:
        spanned = operators | loading
        begins, stops = np.array([starts[spanned].min()]), np.array([ends[spanned].max()])
        steps = np.array([-1])
    busy = first_of([union(starts[rows], ends[rows]) for rows in (loading, operators)])
    frame = pd.DataFrame({"step": steps, "start_ns": begins, "end_ns": stops})
    for number, name in enumerate(_PARTS):
        part = _of(busy, number)
        frame[name] = part.measure(stops) - part.measure(begins)
    return frame.assign(rest_ns=stops - begins - frame[list(_PARTS)].sum(axis=1))


def _of(layer: Layer, number: int) -> Layer:
    chosen = layer.ids == number
    return Layer(layer.starts[chosen], layer.ends[chosen], layer.ids[chosen]) if len(layer) else empty()
