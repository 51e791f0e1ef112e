"""HD018: the device is idle while a stream waits for an event or a notification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    DEVICE_TASKS,
    KERNELS,
    PROFILE,
    Facts,
    bookings,
    launches,
    ledger,
    matching,
    steps,
    union,
    work,
)
from advisors.columns import IDLE_SHARE, STEP_NS
from advisors.measuring import (
    LARGEST,
    by_gap,
    gap_intervals,
    leaves,
    next_kernels,
    pieces_of,
    row,
    share,
    step_count,
    step_ns,
    under,
)
from advisors.messages import message

_LEAF = "idle/dependency"


@advisor(
    "host_dispatch.dependency",
    needs=(steps, ledger, bookings, work, launches, DEVICE_TASKS, PROFILE),
    wants=(KERNELS,),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "idle while a stream waits, with the next task launched, per step", zh="空闲"),
        IDLE_SHARE,
        Column("gaps", "float", "count", "idle gaps per step with such a wait in them", zh="空隙数"),
        Column("longest_ns", "int", "ns", "longest of them", zh="最长"),
        Column("stream", "int", "", "the stream that waits for longest, -1 none", zh="流"),
        Column("next_task", "text", "", "what runs after the longest of them", zh="之后的任务"),
    ),
)
def dependency(facts: Facts, params: Params) -> Observations:
    """Idle time in which a stream waits for an event or a notification, the next task being launched."""
    booked, tasks, wall = facts[bookings], facts[DEVICE_TASKS], step_ns(facts)
    pieces = pieces_of(booked, _LEAF)
    sums = by_gap(pieces)
    waits = np.flatnonzero(matching(tasks["task_type"], facts[PROFILE].vocabulary.wait_tasks))
    start = tasks["start_ns"].to_numpy()[waits]
    end = start + tasks["duration_ns"].to_numpy()[waits]
    idle = union(pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy())
    meanwhile = pd.Series(idle.measure(end) - idle.measure(start), index=waits)
    by_stream = meanwhile.groupby(tasks["stream"].to_numpy()[waits]).sum().sort_values(ascending=False, kind="stable")
    following = booked.gaps.loc[sums.index, "next"].to_numpy()
    lost = under(leaves(facts), _LEAF)
    frame = row(
        step_ns=wall,
        idle_ns=lost,
        idle_share=share(lost, wall),
        gaps=len(sums) / step_count(facts),
        longest_ns=int(sums.iloc[0]) if len(sums) else 0,
        stream=int(by_stream.index.to_numpy()[0]) if len(sums) and len(by_stream) else -1,
        next_task=str(facts[work]["name"].iloc[following[0]]) if len(sums) and following[0] >= 0 else "",
    )

    def evidence(number: int) -> Sequence[Reference]:
        columns = ("name", "task_type", "stream", "start_ns", "duration_ns")
        longest = meanwhile[meanwhile > 0].sort_values(ascending=False, kind="stable").index.to_numpy()[:LARGEST]
        found: list[Reference] = [Rows(message("host_dispatch.waits"), DEVICE_TASKS, longest, columns)]
        return [*(found if len(longest) else []), *next_kernels(facts, following), *gap_intervals(booked, sums)]

    return Observations(frame, evidence)
