"""CO003: moving data while nothing computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    HOST_EVENTS,
    KERNELS,
    PROFILE,
    Facts,
    Overlapping,
    collective_calls,
    collective_state,
    launches,
    ledger,
    outlasting,
    steps,
    timeline,
    work,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import (
    CALL,
    LEAVES,
    all_to_all,
    call_metric,
    call_rows,
    calls_in_steps,
    divides_or_sums,
    leaf_metric,
    point_to_point,
)
from advisors.communication.gradient_times import leads_ns
from advisors.communication.producing import producing
from advisors.measuring import leaves, row, share, step_count, step_ns, under
from advisors.transfers import chains, hideable_ns, late_ns, message_bytes

LEAST_PRODUCING = 0.5
"""Of the computing that makes the data of transfers: in how much of it there is some, at least. When each gradient is
made is not recorded; the backward pass begins with the loss and the output layer, whose weights can be those of the
embedding, which are ready last. Our choice."""


@advisor(
    "communication.transmit",
    needs=(steps, ledger, timeline, collective_calls, collective_state, work, PROFILE),
    wants=(KERNELS, COLLECTIVES, HOST_EVENTS, launches),
    columns=(
        STEP_NS,
        Column("time_ns", "float", "ns", "uncovered moving, per step", zh="时间"),
        Column("time_share", "float", "ratio", "time_ns over wall time", zh="时间占比"),
        Column(
            "hideable_ns",
            "float",
            "ns",
            "of it: what computing could hide if it started earlier, per step",
            zh="可掩盖",
        ),
        Column("hideable_share", "float", "ratio", "hideable_ns over wall time", zh="可掩盖占比"),
        Column(
            "late_ns", "float", "ns", "of it: what would be hidden had nobody waited for a rank, per step", zh="迟到"
        ),
        Column("share_of_uncovered", "float", "ratio", "time_ns over uncovered communication", zh="占未掩盖通信"),
        Column(
            "moving_overlap_ratio", "float", "ratio", "covered part of the time in which data moved", zh="传输掩盖率"
        ),
        Column("calls", "float", "count", "operations per step", zh="次数"),
        Column(
            "largest_bytes", "float", "B", "largest message of one operation, from the bytes on its links", zh="最大包"
        ),
        Column(
            "divides_or_sums",
            "bool",
            "",
            "an AllReduce, ReduceScatter or AllGather is among what moves data uncovered",
            zh="归约或收集",
        ),
        Column("all_to_all", "bool", "", "an all-to-all is among what moves data uncovered", zh="all-to-all"),
    ),
    evidence=(
        *LEAVES,
        *CALL,
    ),
)
def transmit(facts: Facts, params: Params) -> Observations:
    """Moving data while nothing computes, and how much of it could be hidden."""
    calls, count, wall, per_leaf = calls_in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    bare, moving = under(per_leaf, "communication/transmit"), calls["moving_ns"].clip(lower=0).sum() / count
    rows = chains(calls, facts[timeline].computing)
    ends = rows["end_ns"].to_numpy()
    before = np.concatenate([facts[steps]["start_ns"].to_numpy()[:1], ends[:-1]])[: len(rows)]
    first = calls["work"].to_numpy()[rows["first"].to_numpy(dtype=np.int64)]
    began, ready, told = producing(facts, rows, first, before)
    sizes = message_bytes(calls)
    moved = _moved(calls.assign(bytes=sizes), rows)
    leads = leads_ns(facts, moved, rows, began, told)
    ready = _ready(moved, leads, ready)
    hideable = hideable_ns(rows, ready) / count
    bare_kinds = calls.loc[calls["transmit_ns"] > 0, "operation"].astype(str)
    frame = row(
        step_ns=wall,
        time_ns=bare,
        time_share=share(bare, wall),
        hideable_ns=hideable,
        hideable_share=share(hideable, wall),
        late_ns=float(rows["displaced_ns"].sum()) / count,
        share_of_uncovered=share(bare, under(per_leaf, "communication")),
        moving_overlap_ratio=share(moving - bare, moving),
        calls=len(calls) / count,
        largest_bytes=float(sizes.max()) if sizes.notna().any() else np.nan,
        divides_or_sums=bool(divides_or_sums(bare_kinds).any()),
        all_to_all=bool(all_to_all(bare_kinds).any()),
    )

    def evidence(number: int) -> Sequence[Reference]:
        largest = calls.sort_values("transmit_ns", ascending=False, kind="stable")
        return [leaf_metric(per_leaf, wall), call_metric(largest), *call_rows(facts, largest)]

    def cure(_: int) -> Overlapping:
        usual = _beside_computing(facts, moved, leads, rows, began, ready)
        sooner = replace(usual, ready_ns=ready * LEAST_PRODUCING, lead_ns=leads * LEAST_PRODUCING)
        return replace(usual, least=sooner)

    return Observations(frame, evidence, cure=cure)


def _moved(calls: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """The calls that move data uncovered in one of the `chains`, in order of time, with its number as ``chain``."""
    calls = calls.sort_values("start_ns", kind="stable")
    chain = np.searchsorted(found["start_ns"].to_numpy(), calls["start_ns"].to_numpy(), side="right") - 1
    moves = (calls["transmit_ns"].to_numpy() > 0) & (calls["moving_ns"].to_numpy() >= 0) & (chain >= 0)
    moves &= ~point_to_point(calls["operation"]).to_numpy()
    moved: pd.DataFrame = calls.assign(chain=chain)[moves]
    return moved


def _ready(moved: pd.DataFrame, leads: np.ndarray, ready: np.ndarray) -> np.ndarray:
    """Of each chain the computing that can hide it: where it is recorded when the data of its transfers is ready, what
    of them is done by then if each begins with its data; else as it was."""
    chain, moves = moved["chain"].to_numpy(), moved["transmit_ns"].to_numpy(dtype=np.float64)
    until_then = np.bincount(chain, moves, len(ready)) - outlasting(moves, chain, leads, len(ready))
    return np.where(_with_leads(moved, leads, len(ready)), until_then, ready)


def _with_leads(moved: pd.DataFrame, leads: np.ndarray, chains: int) -> np.ndarray:
    """Mask of the chains of whose transfers it is known when their data is ready."""
    return np.isin(np.arange(chains), moved["chain"].to_numpy()[np.isfinite(leads)])


def _beside_computing(
    facts: Facts, moved: pd.DataFrame, leads: np.ndarray, found: pd.DataFrame, began: np.ndarray, ready: np.ndarray
) -> Overlapping:
    """The change by which each of the `chains` begins when the first of its data is ready. ``began`` and ``ready``: the
    computing that makes it; ``leads``: as of `leads_ns`."""
    starts, moving = found["start_ns"].to_numpy(), found["transmit_ns"].to_numpy()
    device = facts[work]
    kernels = np.flatnonzero(~device["communication"].to_numpy())
    begin = device["start_ns"].to_numpy()[kernels]
    chain = np.searchsorted(starts, begin, side="right")
    made = (chain < len(starts)) & (begin >= np.append(began, 0)[chain])
    computed = facts[timeline].computing.measure(starts) - facts[timeline].computing.measure(began)
    return Overlapping(
        moved["work"].to_numpy(dtype=np.int64),
        moved["chain"].to_numpy(dtype=np.int64),
        moved["transmit_ns"].to_numpy(dtype=np.float64),
        moving - late_ns(found),
        kernels[made],
        chain[made],
        np.where(_with_leads(moved, leads, len(found)), computed, ready).astype(np.float64),
        leads,
    )
