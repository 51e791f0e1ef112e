"""HD004: synchronising calls and the idle time that they leave behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api import Vocabulary
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    HostChange,
    host_activity,
    launches,
    ledger,
    matching,
    replay,
    steps,
    sync_calls,
    union,
)
from advisors.columns import IDLE_SHARE, STEP_NS
from advisors.grouping import aggregated
from advisors.host_dispatch.host_events import names_of
from advisors.host_dispatch.savings import SAVED, saving_by_replay
from advisors.measuring import LARGEST, call_sites, host_rows, records, stack_of, step_count, step_ns
from advisors.messages import message

_WHOLE_DEVICE: Final = re.compile(r"Synchronize(?:Device|Context)|(?:Device|Ctx)Synchronize")
"""Calls of CANN, CUDA and HIP that wait for all streams: aclrtSynchronizeDevice, cudaDeviceSynchronize."""


@advisor(
    "host_dispatch.sync_calls",
    needs=(steps, sync_calls, HOST_EVENTS, ledger, launches, host_activity, replay, PROFILE),
    about=(
        Column("operator", "text", "", "operator that synchronises, as the model's code called it", zh="算子"),
        Column("place", "text", "", "frame of the model's code, '' without call stacks", zh="位置"),
    ),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "idle time left behind, per step", zh="空闲"),
        IDLE_SHARE,
        Column("calls", "float", "count", "calls per step", zh="次数"),
        Column("held_ns", "float", "ns", "the device was busy meanwhile: costs nothing, per step", zh="占用时间"),
        Column("longest_ns", "float", "ns", "most idle time behind one call", zh="最长"),
        Column(
            "whole_device",
            "bool",
            "",
            "it waits for the whole device, with no operator around it",
            zh="等待整个 device",
        ),
        *SAVED,
    ),
    evidence=(
        Column("start_ns", "int", "ns", "start of the call", zh="开始"),
        Column("held", "int", "ns", "how long the host was held", zh="占用时间"),
        Column("idle_after", "int", "ns", "idle time of the device behind it", zh="其后空闲"),
    ),
)
def synchronising(facts: Facts, params: Params) -> Observations:
    """Synchronising calls and the idle time they leave behind, by place in the code."""
    events, steps, wall = facts[HOST_EVENTS], step_count(facts), step_ns(facts)
    calls, recorded = facts[sync_calls], facts[host_activity].steps
    # The last call of the last step ends when the device is done: after its window, within the step of the framework.
    inside = (calls["step"] >= 0) | (calls["idle_ns"] > 0) | (recorded.at(calls["start_ns"].to_numpy()) >= 0)
    calls = calls[inside].reset_index(drop=True)
    source = np.where(calls["outer_row"] >= 0, calls["outer_row"], calls["row"])
    calls["operator"] = names_of(events, pd.Series(source))
    calls["place"] = call_sites(events, source)
    calls["whole_device"] = matching(events["name"], _WHOLE_DEVICE)[calls["row"]] & (calls["outer_row"] < 0)
    groups = calls.groupby(["operator", "place"], sort=True)
    frame = aggregated(
        groups,
        idle_ns=("idle_ns", "sum"),
        calls=("row", "size"),
        held_ns=("held_ns", "sum"),
        longest_ns=("idle_ns", "max"),
        whole_device=("whole_device", "any"),
    ).reset_index()
    for column in ("idle_ns", "calls", "held_ns"):
        frame[column] = frame[column] / steps
    frame["longest_ns"] = frame["longest_ns"].astype(float)
    frame["step_ns"] = wall
    frame["idle_share"] = frame["idle_ns"] / wall
    waits = _whole_waits(events, calls, facts[launches].skew_ns, facts[PROFILE].vocabulary)
    changes = [_waits_gone(waits.iloc[rows]) for rows in groups.indices.values()]
    saved = [saving_by_replay(facts[replay], wall, change) for change in changes]
    for measured in SAVED:
        frame[measured.name] = np.array([values[measured.name] for values in saved], dtype=float)

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        own = calls[(calls["operator"] == subject["operator"]) & (calls["place"] == subject["place"])]
        own = own.sort_values("idle_ns", ascending=False, kind="stable")
        rows = records(own, LARGEST, start_ns="start_ns", held="held_ns", idle_after="idle_ns")
        title = message("host_dispatch.sync_site")
        first = int(own["outer_row"].iloc[0] if own["outer_row"].iloc[0] >= 0 else own["row"].iloc[0])
        return [
            *host_rows("host_dispatch.sync_calls", own["row"]),
            Metric(title, rows),
            *stack_of(events, first),
        ]

    return Observations(frame, evidence, cure=lambda number: changes[number])


def _waits_gone(waits: pd.DataFrame) -> HostChange:
    return HostChange(union(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy()))


def _whole_waits(events: pd.DataFrame, calls: pd.DataFrame, skew_ns: int, words: Vocabulary) -> pd.DataFrame:
    """From when to when each call held the host: with the operator around it where that does nothing but read a value,
    as its copy and its bookkeeping go when it goes."""
    outer = calls["outer_row"].to_numpy()
    reads = (outer >= 0) & matching(events["name"], words.sync_operators)[np.maximum(outer, 0)]
    around = events.iloc[np.maximum(outer, 0)]
    start = around["start_ns"].to_numpy() - skew_ns
    end = start + around["duration_ns"].to_numpy()
    return pd.DataFrame(
        {
            "start_ns": np.where(reads, start, calls["start_ns"].to_numpy()),
            "end_ns": np.where(reads, end, calls["end_ns"].to_numpy()),
        }
    )
