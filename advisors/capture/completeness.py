"""DQ009: launches that have no task on the device."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from advisor_core.api.advisors import Column, Interval, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    FLOWS,
    HOST_EVENTS,
    Facts,
    Unavailable,
    launches,
    matching,
    work,
)
from advisors.measuring import DEVICE_LANE, row, share
from advisors.messages import message

_LAUNCH = re.compile("^Node@launch")


@advisor(
    "capture.completeness",
    needs=(work, launches, HOST_EVENTS),
    columns=(
        Column("launches", "int", "count", "recorded launches", zh="下发次数"),
        Column("never_run", "int", "count", "of these: no task on the device belongs to them", zh="未见执行"),
        Column("never_run_share", "float", "ratio", "never_run over launches", zh="未见执行占比"),
    ),
    wants=(FLOWS,),
)
def completeness(facts: Facts, params: Params) -> Observations:
    """Whether what was launched was also recorded on the device."""
    events, device, launched = facts[HOST_EVENTS], facts[work], facts[launches]
    calls = events[(events["category"] == "runtime") & matching(events["name"], _LAUNCH)]
    flows = facts.get(FLOWS)
    arrows = flows[flows["kind"] == "host_to_device"] if flows is not None else None
    heads, tails = (arrows.loc[arrows["end"] == end, "flow"] if arrows is not None else pd.Series() for end in "sf")
    last = int(device["end_ns"].max())
    late = calls[calls["start_ns"] - launched.skew_ns > last]
    total = max(len(calls), len(heads))
    if not total:
        raise Unavailable(message("capture.no_launches"), message("capture.no_launches.collect"), ("host", "level1"))
    never = max(len(late), int((~heads.isin(tails)).sum()))
    frame = row(launches=total, never_run=never, never_run_share=share(never, total))

    def evidence(number: int) -> Sequence[Reference]:
        ending = Interval(message("capture.last_task"), int(device["start_ns"].iloc[-1]), last, DEVICE_LANE)
        columns = ("name", "item", "thread", "start_ns", "duration_ns")
        rows = late.index.to_numpy()
        return [ending, *([Rows(message("capture.late_launches"), HOST_EVENTS, rows, columns)] if len(rows) else [])]

    return Observations(frame, evidence)
