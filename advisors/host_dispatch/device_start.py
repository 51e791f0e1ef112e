"""GHD012: the start of the device within the recording, and which call it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, bookings, launches, ledger, steps
from advisors.columns import STEP_NS
from advisors.host_dispatch.activity import idle_behind, require_runtime_calls, runtime_calls_named
from advisors.host_dispatch.savings import layer_of
from advisors.measuring import host_rows, pieces_of, row, stack_of, step_count, step_ns

_LEAF = "idle/host/memory"


def start_of_the_device(facts: Facts, params: Params) -> np.ndarray:
    """The row of ``host_events`` of the call that waits for the start of the device; none where no call does.

    The first call about device memory that takes at least ``start``. It begins in the first step while the device
    has nothing to do, since a call that frees memory also waits for kernels that are not done; and no later step has a
    call of its name that takes as long, since a process starts its device once.
    """
    events, skew = facts[HOST_EVENTS], facts[launches].skew_ns
    chosen = runtime_calls_named("memory")(events, facts[PROFILE].vocabulary)
    chosen &= events["duration_ns"].to_numpy() >= float(params["start"])
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(events["start_ns"].to_numpy()[rows], kind="stable")]
    begin = events["start_ns"].to_numpy()[rows] - skew
    later = begin >= int(facts[steps]["end_ns"].min())
    names = events["name"].astype(str).to_numpy()[rows]
    once = ~np.isin(names, names[later])
    pieces = facts[bookings].pieces
    place = np.searchsorted(pieces["start_ns"].to_numpy(), begin, side="right") - 1
    inside = (place >= 0) & (begin < pieces["end_ns"].to_numpy()[place])
    busy = inside & (pieces["gap"].to_numpy()[place] < 0)
    return rows[~later & once & ~busy][:1]


@advisor(
    "host_dispatch.device_start",
    needs=(steps, ledger, bookings, HOST_EVENTS, launches, PROFILE),
    columns=(
        STEP_NS,
        Column("call", "text", "", "the call that waits for the start of the device", zh="调用"),
        Column("startup_ns", "float", "ns", "how long it takes; 0 where no call waits for a start", zh="启动耗时"),
        Column("idle_ns", "float", "ns", "idle time of the device meanwhile, per step", zh="空闲"),
    ),
    params=("start",),
)
def device_start(facts: Facts, params: Params) -> Observations:
    """The start of the device within the recording."""
    require_runtime_calls(facts)
    events = facts[HOST_EVENTS]
    rows = start_of_the_device(facts, params)
    pieces = pieces_of(facts[bookings], _LEAF)
    pieces = pieces[pieces["step"] >= 0]
    idle = idle_behind(pieces, layer_of(events, rows, facts[launches].skew_ns))
    frame = row(
        step_ns=step_ns(facts),
        call=str(events["name"].iloc[rows[0]]) if len(rows) else "",
        startup_ns=float(events["duration_ns"].iloc[rows].sum()),
        idle_ns=float(idle.sum()) / step_count(facts),
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [*host_rows("host_dispatch.activity_calls", rows), *stack_of(events, int(rows[0]) if len(rows) else -1)]

    return Observations(frame, evidence)
