"""The stages of kernels between the operator and their end, by operator type, as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts, aggregated, launches, steps, union, work
from advisor_core.api.renderers import Cell, View
from advisors.measuring import step_count
from advisors.messages import message
from advisors.rank_tables import rank_table

SHOWN = 12
"""Rows of the table, the types that run longest; the title says of how many."""

STAGES = ("queued", "launching", "behind", "idle", "running")
"""In the task queue; from there to the launch; launched, while the device has other work; launched, while it has none
(the latency of a launch, events that are waited for); running."""

_COLUMNS = (
    ("host_dispatch.stages.type", ""),
    ("host_dispatch.stages.kernels", ""),
    ("host_dispatch.stages.queued", "ns"),
    ("host_dispatch.stages.launching", "ns"),
    ("host_dispatch.stages.behind", "ns"),
    ("host_dispatch.stages.idle", "ns"),
    ("host_dispatch.stages.running", "ns"),
)


@drawing("host_dispatch.stages", needs=(work, launches, steps, PROFILE))
def stages(facts: Facts) -> list[View]:
    """Mean times of the kernels of each operator type whose launch was recorded: queued, launched, waiting, running."""
    times = stage_times(facts)
    if times.empty:
        return []
    sums = aggregated(
        times,
        "type",
        kernels=("running", "size"),
        queued=("queued", "sum"),
        launching=("launching", "sum"),
        behind=("behind", "sum"),
        idle=("idle", "sum"),
        running=("running", "sum"),
    )
    largest = sums.sort_values("running", ascending=False, kind="stable").head(SHOWN)
    of_step, rank = step_count(facts), facts[PROFILE].rank
    means = (largest[list(STAGES)].to_numpy() / largest[["kernels"]].to_numpy()).round().astype(np.int64).tolist()
    kernels = (largest["kernels"].to_numpy() / of_step).tolist()
    rows: list[list[Cell]] = [
        [str(name), count, *mean] for name, count, mean in zip(largest["type"], kernels, means, strict=True)
    ]
    title = message("host_dispatch.view.stages", rank=rank, shown=len(rows), count=len(sums))
    return [rank_table("kernel-stages", title, rank, _COLUMNS, rows)]


def stage_times(facts: Facts) -> pd.DataFrame:
    """One row per kernel of the steps whose launch and type are known: ``type`` and the stages, ns. What host times
    are off by, as far as that is known, is taken off them (see `Launches`)."""
    device, launched = facts[work], facts[launches]
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    windows = facts[steps]
    inside = (starts >= windows["start_ns"].min()) & (starts < windows["end_ns"].max())
    types = device["type"].astype(str).to_numpy()
    chosen = np.flatnonzero(launched.known() & ~device["communication"].to_numpy() & inside & (types != ""))
    entered, taken, launch = (
        launched.frame[name].to_numpy()[chosen] for name in ("entered_ns", "taken_ns", "launch_ns")
    )
    begin, end = starts[chosen], ends[chosen]
    # A long call counts from its end, which can lie behind the start of its kernel (see `Launches`).
    taken = np.clip(taken, entered, launch)
    launch = np.minimum(launch, begin)
    busy = union(starts, ends)
    behind = busy.measure(begin) - busy.measure(launch)
    return pd.DataFrame(
        {
            "type": types[chosen],
            "queued": taken - entered,
            "launching": np.maximum(launch - taken, 0),
            "behind": behind,
            "idle": begin - launch - behind,
            "running": end - begin,
        }
    )


DRAWINGS: tuple[Drawing, ...] = (stages,)
