"""HD012: copies between host and device that leave the device without other work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    DEVICE_TASKS,
    HOST_EVENTS,
    PROFILE,
    Facts,
    bookings,
    host_activity,
    launches,
    ledger,
    matching,
    steps,
    union,
    work,
)
from advisors.columns import IDLE_SHARE, STEP_NS
from advisors.host_dispatch.activity import runtime_calls_named
from advisors.host_dispatch.savings import layer_of, without_calls
from advisors.measuring import (
    by_gap,
    gap_intervals,
    host_rows,
    leaves,
    pieces_of,
    row,
    share,
    step_count,
    step_ns,
    under,
)
from advisors.messages import message

_ROUNDING_NS = 10
"""Tasks of a collective end up to 2 ns behind it in the recorded AlexNet job (docs/sources.md#recorded-alexnet-job):
exports round both."""


@advisor(
    "host_dispatch.copies",
    needs=(steps, ledger, bookings, launches, host_activity, HOST_EVENTS, PROFILE),
    wants=(DEVICE_TASKS, work),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "idle during copies between host and device, per step", zh="空闲"),
        IDLE_SHARE,
        Column(
            "on_host_ns",
            "float",
            "ns",
            "of it: the host was in a blocking copy and launched nothing; not in item and its like",
            zh="host 侧",
        ),
        Column("on_device_ns", "float", "ns", "of it: a copy ran on the device and nothing else", zh="device 侧"),
        Column("calls", "float", "count", "copy calls of the host per step", zh="次数"),
        Column("copy_ns", "float", "ns", "time in which the device copies, per step", zh="拷贝"),
        Column("covered_ns", "float", "ns", "of it: kernels compute meanwhile", zh="已掩盖"),
    ),
)
def copies(facts: Facts, params: Params) -> Observations:
    """Copies between host and device that leave the device without other work."""
    booked = facts[bookings]
    events, steps, wall, per_leaf = facts[HOST_EVENTS], step_count(facts), step_ns(facts), leaves(facts)
    host = facts[host_activity]
    on_device = under(per_leaf, "idle/copy")
    active = events["thread"].isin(list(host.feeders | host.launchers)).to_numpy()
    # Copies of operators that read a value back belong to the synchronising calls (HD004).
    reading = np.flatnonzero(matching(events["name"], facts[PROFILE].vocabulary.sync_operators) & active)
    reads = layer_of(events, reading, facts[launches].skew_ns)
    pieces = pieces_of(booked, "idle/host/copy", "idle/copy")
    read_back = reads.measure(pieces["end_ns"].to_numpy()) - reads.measure(pieces["start_ns"].to_numpy())
    pieces["ns"] -= np.where(pieces["path"] == "idle/host/copy", read_back, 0)
    pieces = pieces[pieces["ns"] > 0]
    on_host = float(pieces.loc[pieces["path"] == "idle/host/copy", "ns"].sum()) / steps
    sums = by_gap(pieces)
    rows = np.flatnonzero(runtime_calls_named("copy")(events, facts[PROFILE].vocabulary) & active)
    rows = rows[reads.at(events["start_ns"].to_numpy()[rows] - facts[launches].skew_ns) < 0]
    rows = rows[_in_window(facts, events, rows)]
    frame = row(
        step_ns=wall,
        idle_ns=on_host + on_device,
        idle_share=share(on_host + on_device, wall),
        on_host_ns=on_host,
        on_device_ns=on_device,
        calls=len(rows) / steps,
        **_copying(facts),
    )

    def evidence(number: int) -> Sequence[Reference]:
        longest = rows[np.argsort(-events["duration_ns"].to_numpy()[rows], kind="stable")]
        found = [*host_rows("host_dispatch.activity_calls", longest), *gap_intervals(booked, sums)]
        tasks = facts.get(DEVICE_TASKS)
        if tasks is not None and len(sums):
            chosen = booked.gaps.loc[sums.index]
            order = np.argsort(chosen["start_ns"].to_numpy())
            starts, ends = chosen["start_ns"].to_numpy()[order], chosen["end_ns"].to_numpy()[order]
            moved = np.flatnonzero(matching(tasks["task_type"], facts[PROFILE].vocabulary.copy_tasks))
            place = np.searchsorted(ends, tasks["start_ns"].to_numpy()[moved], side="right")
            end = (tasks["start_ns"] + tasks["duration_ns"]).to_numpy()[moved]
            meets = (place < len(starts)) & (end > starts[np.minimum(place, len(starts) - 1)])
            if meets.any():
                columns = ("name", "task_type", "stream", "start_ns", "duration_ns")
                found.append(Rows(message("host_dispatch.copy_tasks"), DEVICE_TASKS, moved[meets], columns))
        return found

    change = without_calls(events, rows, host, facts[launches].skew_ns)
    return Observations(frame, evidence, cure=lambda number: change)


def _copying(facts: Facts) -> dict[str, float]:
    """The time per step in which the device copies, and in which kernels compute meanwhile; unknown where its tasks are
    not recorded."""
    tasks, running = facts.get(DEVICE_TASKS), facts.get(work)
    if tasks is None or running is None:
        return {"copy_ns": np.nan, "covered_ns": np.nan}
    moved = tasks[matching(tasks["task_type"], facts[PROFILE].vocabulary.copy_tasks)]
    starts, ends = moved["start_ns"].to_numpy(), (moved["start_ns"] + moved["duration_ns"]).to_numpy()
    collectives, computing = (
        union(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
        for part in (running[running["communication"]], running[~running["communication"]])
    )
    # A stream that copies only while collectives run moves their data.
    outside = ends - starts - (collectives.measure(ends) - collectives.measure(starts))
    within = outside <= _ROUNDING_NS
    own = ~pd.Series(within).groupby(moved["stream"].to_numpy()).transform("all").to_numpy(dtype=np.bool_)
    copying = union(starts[own], ends[own])
    begin, end = (facts[steps][name].to_numpy() for name in ("start_ns", "end_ns"))
    total, bare = (
        float((layer.measure(end) - layer.measure(begin)).sum()) for layer in (copying, copying.without(computing))
    )
    return {"copy_ns": total / len(begin), "covered_ns": (total - bare) / len(begin)}


def _in_window(facts: Facts, events: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    windows = facts[steps]
    start = events["start_ns"].to_numpy()[rows] - facts[launches].skew_ns
    end = start + events["duration_ns"].to_numpy()[rows]
    return np.asarray((start < windows["end_ns"].max()) & (end > windows["start_ns"].min()))
