"""GNS002: attention as products with a softmax between them, instead of one fused kernel."""

from __future__ import annotations

import re

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, matching
from advisors.columns import shares
from advisors.measuring import row
from advisors.messages import message
from advisors.step_kernels import call_stack, kernel_rows, step_kernels

_SOFTMAX = re.compile("(?<!log)(?<!log_)softmax", re.IGNORECASE)
_REACH = 6
"""Kernels on either side of a softmax among which its matrix products are looked for: scale, mask, dropout, casts and
copies stand between."""


@advisor(
    "network_structure.written_out_attention",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS),
    columns=(
        Column("attentions", "float", "count", "softmax between two matrix products, per step", zh="注意力数"),
        Column("kernels", "float", "count", "kernels between these products, per step", zh="kernel 数"),
        Column("between_ns", "float", "ns", "their time per step", zh="其间耗时"),
        Column("product_ns", "float", "ns", "time of the products per step", zh="矩阵乘"),
        *shares("between_ns"),
    ),
)
def written_out_attention(facts: Facts, params: Params) -> Observations:
    """Attention as products with a softmax between them, whose matrix of scores is written and read again."""
    own = facts[step_kernels]
    frame = own.frame
    products = np.flatnonzero((frame["operator_class"] == "matmul").to_numpy())
    normalises = (frame["operator_class"] == "normalisation").to_numpy()
    softmax = np.flatnonzero(normalises & matching(frame["type"], _SOFTMAX))
    if not len(products) or not len(softmax):
        raise NotApplicable(message("written_out_attention.none"))
    place = np.searchsorted(products, softmax)
    before = products[np.maximum(place - 1, 0)]
    after = products[np.minimum(place, len(products) - 1)]
    unbroken = np.cumsum(own.breaks)
    near = (before < softmax) & (softmax - before <= _REACH) & (softmax < after) & (after - softmax <= _REACH)
    near &= unbroken[before] == unbroken[after]
    ends = sorted({*zip(before[near].tolist(), after[near].tolist(), strict=True)})
    between = np.array([n for first, last in ends for n in range(first + 1, last)], dtype=np.int64)
    touched = np.unique(np.array([n for pair in ends for n in pair], dtype=np.int64))
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    spent = float(took[between].sum()) / own.steps
    result = row(
        attentions=len(ends) / own.steps,
        kernels=len(between) / own.steps,
        between_ns=spent,
        product_ns=float(took[touched].sum()) / own.steps,
        share_of_step=spent / own.wall_ns,
        share_of_computing=spent / own.kernel_ns,
    )
    shown = np.concatenate([between, touched]) if len(ends) else softmax

    def evidence(_: int) -> list[Reference]:
        return [
            kernel_rows(message("written_out_attention.rows"), frame.iloc[shown]),
            *call_stack(facts, frame.iloc[shown]),
        ]

    return Observations(result, evidence)
