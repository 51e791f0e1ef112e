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
    kernels = facts[step_kernels]
    frame = kernels.frame
    products = np.flatnonzero((frame["operator_class"] == "matmul").to_numpy())
    is_normalisation = (frame["operator_class"] == "normalisation").to_numpy()
    softmax = np.flatnonzero(is_normalisation & matching(frame["type"], _SOFTMAX))
    if not len(products) or not len(softmax):
        raise NotApplicable(message("written_out_attention.none"))
    next_product = np.searchsorted(products, softmax)
    before = products[np.maximum(next_product - 1, 0)]
    after = products[np.minimum(next_product, len(products) - 1)]
    segment = np.cumsum(kernels.breaks)
    in_reach = (before < softmax) & (softmax - before <= _REACH) & (softmax < after) & (after - softmax <= _REACH)
    in_reach &= segment[before] == segment[after]
    product_pairs = sorted({*zip(before[in_reach].tolist(), after[in_reach].tolist(), strict=True)})
    between = np.array([index for first, last in product_pairs for index in range(first + 1, last)], dtype=np.int64)
    product_rows = np.unique(np.array([index for pair in product_pairs for index in pair], dtype=np.int64))
    duration_ns = frame["duration_ns"].to_numpy(dtype=np.float64)
    between_ns = float(duration_ns[between].sum()) / kernels.steps
    result = row(
        attentions=len(product_pairs) / kernels.steps,
        kernels=len(between) / kernels.steps,
        between_ns=between_ns,
        product_ns=float(duration_ns[product_rows].sum()) / kernels.steps,
        share_of_step=between_ns / kernels.wall_ns,
        share_of_computing=between_ns / kernels.kernel_ns,
    )
    shown_rows = np.concatenate([between, product_rows]) if len(product_pairs) else softmax

    def evidence(_: int) -> list[Reference]:
        return [
            kernel_rows(message("written_out_attention.rows"), frame.iloc[shown_rows]),
            *call_stack(facts, frame.iloc[shown_rows]),
        ]

    return Observations(result, evidence, cure=lambda _: kernels.shorter(frame.iloc[np.unique(between)]))
