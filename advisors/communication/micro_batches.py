"""CO022: communication that layers wait for, and what a second micro-batch on another stream could hide of it.

With two micro-batches on two streams one computes while the other communicates. What that can hide is at most the
communication between two pieces of a layer, and no more than the computing of the piece before it: that of the other
micro-batch lies beside it. Two halves of a batch read all weights twice, which products that wait for their weights
pay for in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    Facts,
    NotApplicable,
    Timeline,
    collective_calls,
    timeline,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import (
    CALL,
    all_to_all,
    call_metric,
    call_rows,
    calls_in_steps,
    point_to_point,
    reduces,
)
from advisors.layers.blocks import Pass
from advisors.layers.collectives import ended_before
from advisors.layers.layers import Layers, layers
from advisors.measuring import row, share
from advisors.messages import message
from advisors.pipeline_bound.streams import computing_streams
from advisors.roofline.bounds import roofline
from advisors.roofline.work import kernel_work
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

_NUMBERS = re.compile(r"_*\d+(_\d+)*_*$")
"""The part behind the kind of an operation in names such as ``hcom_allReduce__445_3``."""

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True)
class Waited:
    """``calls``: collectives on data of a layer, which the layer goes on behind, in order of start; ``hideable_ns`` of
    each. ``inside``: mask of the kernels of layers that have such calls."""

    calls: pd.DataFrame
    hideable_ns: Ints
    inside: Bools


@advisor(
    "communication.micro_batches",
    needs=(layers, step_kernels, collective_calls, timeline),
    wants=(computing_streams, kernel_work, roofline, KERNELS, COLLECTIVES),
    columns=(
        STEP_NS,
        Column("calls", "float", "count", "collectives inside layers, on data of these, per step", zh="次数"),
        Column("layers", "int", "count", "layers with such a collective", zh="层数"),
        Column("collective_kinds", "text", "", "what they are", zh="集合通信种类"),
        Column("for_experts", "bool", "", "some of them bring tokens to experts: all-to-all", zh="专家通信"),
        Column("uncovered_ns", "float", "ns", "of these, without computing, per step", zh="未掩盖"),
        Column("unknown_share", "float", "ratio", "of uncovered_ns: waiting or moving, not known which", zh="未知占比"),
        Column(
            "hideable_ns",
            "float",
            "ns",
            "of these, moving data or unknown, at most the computing of the piece of the layer before, per step",
            zh="可掩盖",
        ),
        Column(
            "again_ns",
            "float",
            "ns",
            "products that wait for their weights read them once more, per step; 0 where bounds are not known",
            zh="重复读权重",
        ),
        Column("won_ns", "float", "ns", "hideable_ns without again_ns, per step", zh="净收益"),
        Column("won_share", "float", "ratio", "won_ns over wall time", zh="净收益占比"),
    ),
    evidence=(*CALL,),
)
def micro_batches(facts: Facts, params: Params) -> Observations:
    """Communication inside layers that computing of a second micro-batch could hide."""
    kernels, model, device = facts[step_kernels], facts[layers], facts[timeline]
    streams = facts.get(computing_streams)
    if streams is not None and streams.twins:
        raise NotApplicable(message("communication.micro_batches.two", streams=", ".join(map(str, streams.twins))))
    found = waited(calls_in_steps(facts), kernels, model, device)
    calls = found.calls
    if calls.empty:
        raise NotApplicable(message("communication.micro_batches.none"))
    again = _again_ns(facts, kernels, found.inside)
    steps, uncovered = kernels.steps, float(calls["uncovered_ns"].sum())
    hideable = float(found.hideable_ns.sum())
    won = max(hideable - again, 0.0) / steps
    kinds = calls["operation"].astype(str).str.replace(_NUMBERS, "", regex=True)
    names = calls.groupby(kinds)["uncovered_ns"].sum().sort_values(ascending=False)
    frame = row(
        step_ns=kernels.wall_ns,
        calls=len(calls) / steps,
        layers=int(calls["place"].nunique()),
        collective_kinds=", ".join(map(str, names.index)),
        for_experts=bool(all_to_all(calls["operation"].astype(str)).any()),
        uncovered_ns=uncovered / steps,
        unknown_share=share(float(calls["unknown_ns"].sum()), uncovered),
        hideable_ns=hideable / steps,
        again_ns=again / steps,
        won_ns=won,
        won_share=won / kernels.wall_ns,
    )

    def evidence(number: int) -> Sequence[Reference]:
        largest = calls.sort_values("uncovered_ns", ascending=False, kind="stable")
        return [call_metric(largest), *call_rows(facts, largest)]

    return Observations(frame, evidence)


def waited(calls: pd.DataFrame, kernels: StepKernels, model: Layers, device: Timeline) -> Waited:
    """The collectives between two kernels of one pass over the layers, in groups that reduce or exchange in a forward
    pass: these carry what the layer computes. A group that only gathers there brings parameters, which no computing of
    this layer makes and a prefetch hides."""
    calls = calls[~point_to_point(calls["operation"].astype(str)).to_numpy()]
    calls = calls.sort_values("start_ns", kind="stable", ignore_index=True)
    starts, ends = (calls[name].to_numpy(dtype=np.int64) for name in ("start_ns", "end_ns"))
    before, behind = ended_before(kernels, starts), _begins_behind(kernels, starts)
    run = np.append(model.run, -1)  # the last for -1: no kernel
    between = (run[before] >= 0) & (run[before] == run[behind])
    operations = calls["operation"].astype(str)
    carries = (reduces(operations) | all_to_all(operations)).to_numpy()
    forward = between & (np.append(model.passes, -1)[before] == Pass.FORWARD)
    groups = set(calls["group"].to_numpy()[forward & carries].tolist())
    chosen = between & calls["group"].isin(groups).to_numpy()
    place = model.tower * (int(model.layer.max(initial=0)) + 1) + model.layer
    own = calls[chosen].assign(place=np.append(place, -1)[before[chosen]]).reset_index(drop=True)
    starts, ends = starts[chosen], ends[chosen]
    begins = pd.Series(kernels.frame["start_ns"].to_numpy()).groupby(model.run).min()
    reach = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]])[: len(ends)]
    since = np.maximum(begins.reindex(run[before[chosen]]).to_numpy(dtype=np.int64), reach)
    computed = device.computing.measure(starts) - device.computing.measure(np.minimum(since, starts))
    moving = (own["uncovered_ns"] - own["wait_ns"]).to_numpy(dtype=np.int64)
    inside = (model.layer >= 0) & np.isin(place, own["place"].to_numpy())
    return Waited(own, np.minimum(np.maximum(moving, 0), computed), inside)


def _begins_behind(kernels: StepKernels, times: Ints) -> Ints:
    """The row of the kernel that begins first behind each of these times, on the stream that computes longest; -1 where
    none does."""
    frame = kernels.frame
    by_stream = frame.groupby("stream")["duration_ns"].sum()
    rows = np.flatnonzero((frame["stream"] == by_stream.idxmax()).to_numpy()) if len(by_stream) else np.zeros(0, int)
    place = np.searchsorted(frame["start_ns"].to_numpy()[rows], times, side="left")
    return np.asarray(np.append(rows, -1)[place], dtype=np.int64)


def _again_ns(facts: Facts, kernels: StepKernels, inside: Bools) -> float:
    """The time in which products of these layers that their bytes bound read their largest operand, in all steps."""
    work, bounds = facts.get(kernel_work), facts.get(roofline)
    if work is None or bounds is None or not np.isfinite(bounds.peaks.hbm):
        return 0.0
    products = work.table["kind"].isin(["product", "grouped"]).to_numpy()
    largest = np.array([max((*one.reads, 0.0), key=np.nan_to_num) for one in work.traffic], dtype=np.float64)
    signature = kernels.frame["signature"].to_numpy()
    ns = np.minimum(np.nan_to_num(largest[signature]) / bounds.peaks.hbm * 1e9, bounds.duration_ns)
    return float(ns[inside & bounds.moves & products[signature]].sum())
