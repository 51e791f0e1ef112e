"""The way of a collective from the operator that calls for it to the device, by operation and group, as a table."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    Groups,
    collective_calls,
    launches,
    steps,
    union,
    work,
)
from advisor_core.api.renderers import Cell, View
from advisors.messages import message
from advisors.rank_tables import rank_table

SHOWN: Final = 12
"""Rows of the table, the operations that run longest."""

STAGES: Final = ("operator", "queued", "launching", "behind", "computing", "idle", "running")
"""From the start of the operator until the task queue has it; in the task queue; from there to the launch; launched,
while other collectives run; while only kernels do; while nothing does; running, with its waiting for ranks."""

_COLUMNS: Final = (
    ("communication.lag.operation", ""),
    ("communication.lag.group", ""),
    ("communication.lag.calls", ""),
    ("communication.lag.operator", "ns"),
    ("communication.lag.queued", "ns"),
    ("communication.lag.launching", "ns"),
    ("communication.lag.behind", "ns"),
    ("communication.lag.computing", "ns"),
    ("communication.lag.idle", "ns"),
    ("communication.lag.running", "ns"),
)


@drawing("communication.lag", needs=(collective_calls, launches, work, steps, PROFILE), wants=(HOST_EVENTS,))
def lag(facts: Facts) -> list[View]:
    """Mean stages of collectives whose launch was recorded: operator, task queue, launch, waiting, running."""
    times = lag_times(facts)
    if times.empty:
        return []
    known = times["operator"].notna().astype(np.int64)
    groups = Groups(times.assign(operator=times["operator"].fillna(0.0), known=known), ["operation", "group"])
    sums = groups.table(calls=("running", "size"), known=("known", "sum"), **{one: (one, "sum") for one in STAGES})
    largest = sums.sort_values("running", ascending=False, kind="stable").head(SHOWN)
    has_queue = facts[PROFILE].vocabulary.task_queue
    rows: list[list[Cell]] = []
    for kind in largest.to_dict("records"):
        cells: list[Cell] = [round(kind[stage] / kind["calls"]) for stage in STAGES]
        cells[0] = round(kind["operator"] / kind["known"]) if kind["known"] else None
        if not has_queue:
            cells[STAGES.index("queued")] = None
        rows.append([str(kind["operation"]), str(kind["group"]), int(kind["calls"]), *cells])
    rank = facts[PROFILE].rank
    title = message("communication.view.lag", rank=rank, shown=len(rows), count=len(sums))
    return [rank_table("collective-lag", title, rank, _COLUMNS, rows)]


def lag_times(facts: Facts) -> pd.DataFrame:
    """One row per collective of the steps whose launch is known: ``operation``, ``group`` and the stages, ns; what host
    times are off by, as far as that is known, is taken off them. ``operator`` is NaN where it was not recorded."""
    device, launched, windows, calls = facts[work], facts[launches], facts[steps], facts[collective_calls]
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    own = calls["work"].to_numpy()
    inside = (starts[own] >= windows["start_ns"].min()) & (starts[own] < windows["end_ns"].max())
    calls = calls[launched.known().to_numpy()[own] & inside]
    own = calls["work"].to_numpy()
    entered, taken, launch = (launched.frame[name].to_numpy()[own] for name in ("entered_ns", "taken_ns", "launch_ns"))
    begin, end = starts[own], ends[own]
    taken = np.clip(taken, entered, launch)
    launch = np.minimum(launch, begin)
    asked = np.full(len(own), np.nan)
    rows = launched.frame["op_row"].to_numpy()[own]
    if HOST_EVENTS in facts and (rows >= 0).any():
        called = facts[HOST_EVENTS]["start_ns"].to_numpy()[np.maximum(rows, 0)] - launched.skew_ns
        asked = np.where(rows >= 0, np.maximum(entered - called, 0), np.nan)
    talks = device["communication"].to_numpy()
    talking, busy = union(starts[talks], ends[talks]), union(starts, ends)
    behind = talking.measure(begin) - talking.measure(launch)
    covered = busy.measure(begin) - busy.measure(launch)
    return pd.DataFrame(
        {
            "operation": calls["operation"].astype(str).to_numpy(),
            "group": calls["group"].astype(str).to_numpy(),
            "operator": asked,
            "queued": taken - entered,
            "launching": np.maximum(launch - taken, 0),
            "behind": behind,
            "computing": covered - behind,
            "idle": begin - launch - covered,
            "running": end - begin,
        }
    )


DRAWINGS: tuple[Drawing, ...] = (lag,)
