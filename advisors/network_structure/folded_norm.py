"""NS051: BatchNorm behind a convolution in inference, where it can be folded into the weights."""

from __future__ import annotations

import re

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, Shortening, launches, matching
from advisors.columns import shares
from advisors.fusion.reads import kernel_reads
from advisors.measuring import row
from advisors.messages import message
from advisors.step_kernels import call_stack, kernel_rows, step_kernels

_NORM = re.compile(r"^(BNInfer|BN_?Inference|BatchNorm|FusedBatchNorm)", re.I)
"""Kernels of BatchNorm with given statistics. Those of training, BNTraining..., compute statistics."""

_LAYOUT = ("format_conversion", "transpose", "copy", "cast")
MOST_BETWEEN = 2
"""Kernels that rearrange the result of the convolution before the norm: formats differ once on each side."""


@advisor(
    "network_structure.folded_norm",
    needs=(step_kernels, kernel_reads),
    wants=(launches, HOST_EVENTS),
    columns=(
        Column(
            "norms", "float", "count", "BatchNorm kernels whose input a convolution wrote, per step", zh="BatchNorm 数"
        ),
        Column("others", "float", "count", "BatchNorm kernels behind something else, per step", zh="其他"),
        Column("norm_ns", "float", "ns", "time of the first per step", zh="归一化"),
        Column("example", "text", "", "shapes of the inputs of the one with most time", zh="示例"),
        *shares("norm_ns"),
    ),
)
def folded_norm(facts: Facts, params: Params) -> Observations:
    """BatchNorm with given statistics behind convolutions."""
    kernels = facts[step_kernels]
    frame = kernels.frame
    is_norm = matching(frame["type"], _NORM)
    if not is_norm.any():
        raise NotApplicable(message("network_structure.no_batch_norm"))
    kernels.require_tensors()
    reads = facts[kernel_reads]
    writer_of = np.full(len(frame), -1, dtype=np.int64)
    writer_of[reads.reader[reads.first]] = reads.writer[reads.first]
    classes = frame["operator_class"].astype(str).to_numpy()
    rearranges = np.isin(classes, _LAYOUT)
    norms = np.flatnonzero(is_norm)
    source = writer_of[norms]
    for _ in range(MOST_BETWEEN):
        source = np.where((source >= 0) & rearranges[source], writer_of[source], source)
    behind = norms[(source >= 0) & (classes[source] == "convolution")]
    foldable = frame.iloc[behind].sort_values("duration_ns", ascending=False, kind="stable")
    norm_ns = float(foldable["duration_ns"].sum()) / kernels.steps
    result = row(
        norms=len(foldable) / kernels.steps,
        others=(len(norms) - len(foldable)) / kernels.steps,
        norm_ns=norm_ns,
        example=str(foldable["input_shapes"].iloc[0]) if len(foldable) else None,
    )
    result = result.assign(**kernels.shares(result["norm_ns"]))

    def evidence(_: int) -> list[Reference]:
        return [kernel_rows(message("network_structure.batch_norms"), foldable), *call_stack(facts, foldable)]

    def cure(_: int) -> Shortening:
        return kernels.shorter(foldable)

    return Observations(result, evidence, cure=cure)
