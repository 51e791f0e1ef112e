"""HD004: synchronising calls and the idle time that they leave behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    Groups,
    HostChange,
    Replay,
    host_activity,
    joined,
    launches,
    ledger,
    matching,
    replay,
    steps,
    sync_calls,
)
from advisors.columns import IDLE_SHARE, STEP_NS
from advisors.host_dispatch.host_events import names_of
from advisors.host_dispatch.savings import SAVED, savings_by_replay
from advisors.host_dispatch.waits import waits_gone, whole_waits
from advisors.measuring import LARGEST, call_sites, host_rows, records, share, stack_of, step_count, step_ns
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
        Column("site", "text", "", "the place, unknown without call stacks", zh="代码位置"),
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
        Column(
            "places",
            "int",
            "count",
            "places in the code that call the operator, unknown where a call of it has no call stack",
            nullable=True,
            zh="位置数",
        ),
        Column(
            "as_last_ns",
            "float",
            "ns",
            "saved_ns, or what it saves where all other places of the operator are gone already, if more",
            zh="最后去除时节省",
        ),
        Column("as_last_share", "float", "ratio", "as_last_ns over the time of a step", zh="最后去除时节省占比"),
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
    groups = Groups(calls, ["operator", "place"])
    frame = groups.table(
        idle_ns=("idle_ns", "sum"),
        calls=("row", "size"),
        held_ns=("held_ns", "sum"),
        longest_ns=("idle_ns", "max"),
        whole_device=("whole_device", "any"),
    )
    for column in ("idle_ns", "calls", "held_ns"):
        frame[column] = frame[column] / steps
    frame["longest_ns"] = frame["longest_ns"].astype(float)
    frame["site"] = [str(place) or None for place in frame["place"]]
    frame["step_ns"] = wall
    frame["idle_share"] = frame["idle_ns"] / wall
    waits = whole_waits(events, calls, facts[launches].skew_ns, facts[PROFILE].vocabulary)
    used = _with_use(events, calls, waits, facts[launches].skew_ns)
    changes = [
        replace(waits_gone(waits.iloc[rows]), least=waits_gone(calls.iloc[rows]), most=waits_gone(used.iloc[rows]))
        for rows in groups.parts()
    ]
    saved = savings_by_replay(facts[replay], wall, changes)
    for measured in SAVED:
        frame[measured.name] = np.array([values[measured.name] for values in saved], dtype=float)
    operators = frame["operator"].tolist()
    places = frame.groupby("operator")["place"]
    frame["places"] = places.transform("size").where(places.transform("min") != "")
    last = _as_the_last(facts[replay], changes, operators)
    frame["as_last_ns"] = np.fmax(frame["saved_ns"], np.array(last, dtype=float) / facts[replay].steps)
    frame["as_last_share"] = [
        share(saved, max(wall, facts[replay].recorded_ns / facts[replay].steps)) for saved in frame["as_last_ns"]
    ]

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


def _as_the_last(replayed: Replay, changes: Sequence[HostChange], operators: Sequence[str]) -> list[float]:
    """The saving by each place of the recorded steps, ns, once the other places of its operator are gone: as long as
    one of them holds the host, the others may cost nothing. NaN where there are none."""
    same = {name: [place for place, own in enumerate(operators) if own == name] for name in dict.fromkeys(operators)}
    several = {name: places for name, places in same.items() if len(places) > 1}
    all_gone = [joined([changes[place] for place in places]) for places in several.values()]
    one_left = {
        place: joined([changes[other] for other in places if other != place])
        for places in several.values()
        for place in places
    }
    saved = replayed.saved_by_each([*all_gone, *one_left.values()])
    of_all = dict(zip(several, saved, strict=False))
    last = np.full(len(changes), np.nan)
    for place, others in zip(one_left, saved[len(several) :], strict=True):
        last[place] = of_all[operators[place]] - others
    return list(last.tolist())


def _with_use(events: pd.DataFrame, calls: pd.DataFrame, waits: pd.DataFrame, skew_ns: int) -> pd.DataFrame:
    """The waits with the Python behind each up to the next operator of its thread: what is done with a value that is
    read back can go with it."""
    operators = events[events["category"] == "cpu_op"]
    ends = waits["end_ns"].to_numpy().copy()
    of_call = events["thread"].to_numpy()[calls["row"].to_numpy()]
    for thread in np.unique(of_call):
        begins = np.sort(operators.loc[operators["thread"] == thread, "start_ns"].to_numpy() - skew_ns)
        own = of_call == thread
        following = np.searchsorted(begins, ends[own], side="left")
        ends[own] = np.where(following < len(begins), np.append(begins, 0)[following], ends[own])
    return waits.assign(end_ns=ends)
