"""The table of calls of operators: what each took of the host and of the device, alone and with what it called."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto.device import Device
from advisor_core.loaders.kineto.host import Host
from advisor_core.nesting import parents


def operators(host: Host, device: Device | None) -> pd.DataFrame:
    """In the order of threads and, on each, of start, so that a call is followed by those that it made."""
    rows = np.flatnonzero(host.of("cpu_op"))
    calls = host.frame.iloc[rows]
    starts, total = calls["start_ns"].to_numpy(), calls["duration_ns"].to_numpy()
    caller = parents(calls["thread"].to_numpy(), starts, starts + total)
    device_self = np.zeros(len(rows), np.int64)
    if device is not None:
        place = pd.Series(np.arange(len(rows)), index=rows).reindex(device.operator).to_numpy()
        launched = np.isfinite(place) & device.is_work
        np.add.at(device_self, place[launched].astype(np.int64), device.columns["duration_ns"][launched])
    inside = np.zeros(len(rows), np.int64)
    np.add.at(inside, caller[caller >= 0], total[caller >= 0])
    frame = pd.DataFrame(
        {
            "name": calls["name"].array,
            "input_shapes": calls["input_shapes"].array,
            "call_stack": calls["call_stack"].array,
            "host_self_ns": np.maximum(total - inside, 0),
            "host_total_ns": total,
            "device_self_ns": device_self,
            "device_total_ns": _with_called(device_self, caller),
            "source_row": calls["source_row"].to_numpy(),
        }
    )
    order = np.lexsort((-total, starts, calls["thread"].to_numpy()))
    return tables.OPERATORS.conform(frame.iloc[order])


def _with_called(durations: Int64Array, caller: Int64Array) -> Int64Array:
    """Sums of each call with all that it called, from the innermost calls outwards."""
    depth = np.zeros(len(durations), np.int64)
    around = caller.copy()
    while (inside := around >= 0).any():
        depth[inside] += 1
        around[inside] = caller[around[inside]]
    sums = durations.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        at = np.flatnonzero(depth == level)
        np.add.at(sums, caller[at], sums[at])
    return sums
