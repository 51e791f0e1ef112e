"""CO019: collectives of BatchNorm layers that share their statistics between ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    HOST_EVENTS,
    KERNELS,
    Facts,
    NotApplicable,
    collective_calls,
    launches,
    matching,
    steps,
    union,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import CALL, call_metric, call_rows, calls_in_steps, shorter
from advisors.measuring import host_rows, row, stack_of, step_count, step_ns
from advisors.messages import message

_SHARED = re.compile(r"^SyncBatchNorm")
"""The marks of PyTorch for the two passes of ``torch.nn.SyncBatchNorm``: SyncBatchNorm, SyncBatchNormBackward."""


@advisor(
    "communication.batch_norm",
    needs=(steps, HOST_EVENTS, launches, collective_calls),
    wants=(KERNELS, COLLECTIVES),
    columns=(
        STEP_NS,
        Column(
            "norm_passes",
            "float",
            "count",
            "passes of such layers, forward and backward, per step",
            zh="BatchNorm 调用数",
        ),
        Column("collectives", "float", "count", "collectives that were launched in them, per step", zh="集合通信次数"),
        Column("median_bytes", "float", "B", "median size of these; unknown where none is recorded", zh="数据量中位数"),
        Column("uncovered_ns", "float", "ns", "of these collectives that no computing covers, per step", zh="未掩盖"),
        Column("uncovered_share", "float", "ratio", "uncovered_ns over wall time", zh="未掩盖占比"),
    ),
    evidence=(*CALL,),
)
def batch_norm(facts: Facts, params: Params) -> Observations:
    """Collectives of BatchNorm layers that share their statistics between ranks."""
    events, launched = facts[HOST_EVENTS], facts[launches].frame
    marks = np.flatnonzero(((events["category"] == "cpu_op").to_numpy()) & matching(events["name"], _SHARED))
    if not len(marks):
        raise NotApplicable(message("communication.no_shared_norm"))
    start, length = (events[name].to_numpy() for name in ("start_ns", "duration_ns"))
    layers = union(start[marks], start[marks] + length[marks])
    calls = calls_in_steps(facts)
    event = _handed_over_by(launched, calls["work"].to_numpy())
    inside = (event >= 0) & (layers.at(start[np.maximum(event, 0)]) >= 0)
    own = calls[inside].sort_values("uncovered_ns", ascending=False, kind="stable")
    count, wall = step_count(facts), step_ns(facts)
    uncovered = float(own["uncovered_ns"].sum()) / count
    sizes = own["bytes"][own["bytes"] >= 0]
    frame = row(
        step_ns=wall,
        norm_passes=len(marks) / count,
        collectives=len(own) / count,
        median_bytes=float(sizes.median()) if len(sizes) else np.nan,
        uncovered_ns=uncovered,
        uncovered_share=uncovered / wall,
    )

    def evidence(number: int) -> Sequence[Reference]:
        longest = marks[np.argsort(-length[marks], kind="stable")]
        found: list[Reference] = [call_metric(own), *call_rows(facts, own)]
        return [*found, *host_rows("communication.shared_norms", longest), *stack_of(events, int(longest[0]))]

    return Observations(frame, evidence, cure=lambda _: shorter(own, own["elapse_ns"]))


def _handed_over_by(launched: pd.DataFrame, work: np.ndarray) -> np.ndarray:
    """The host event on the thread of the model that handed each task over: where it was queued, else its launch; -1
    unknown."""
    queued, called = (launched[name].to_numpy()[work] for name in ("enqueue_row", "call_row"))
    return np.asarray(np.where(queued >= 0, queued, called), dtype=np.int64)
