"""PB019: matrix products whose second operand is stored in ND."""

from __future__ import annotations

import numpy as np

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches
from advisors.columns import KERNELS_PER_STEP, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.measuring import row, share
from advisors.messages import message
from advisors.roofline.products import TILED, matrix_products
from advisors.step_kernels import EVIDENCE_COLUMNS, kernel_rows, records, step_kernels

_WEIGHT_AXES = 2


@advisor(
    "pipeline_bound.weight_format",
    needs=(step_kernels, matrix_products),
    wants=(launches, HOST_EVENTS, layers),
    columns=(
        OPERATOR_TYPE,
        Column("right_shape", "text", "", "shape of the second operand with most time", zh="右矩阵 shape"),
        Column("nd_products", "int", "count", "different products with such an operand in ND", zh="矩阵乘种数"),
        KERNELS_PER_STEP,
        TOTAL_NS,
        Column("share_of_products", "float", "ratio", "of all products with such an operand", zh="占矩阵乘"),
        *shares("total_ns"),
    ),
    evidence=(
        *PLACES,
        Column("left", "text", "", "shape of the left operand", zh="左矩阵 shape"),
        Column("right", "text", "", "shape of the right operand", zh="右矩阵 shape"),
        Column("format", "text", "", "format of the right operand", zh="右矩阵格式"),
        Column("each", "float", "ns", "mean duration", zh="均值"),
        Column("total", "float", "ns", "time per step", zh="合计"),
    ),
)
def weight_format(facts: Facts, params: Params) -> Observations:
    """Matrix products by a second operand of two axes, as weights have, and how much of their time it is stored in ND.

    A recording does not tell a weight from an activation: an operand with a batch of its own is left out, since weights
    have none.
    """
    own, table = facts[step_kernels], facts[matrix_products]
    axes = table["right_shape"].str.count(",") + 1
    by_weight = table[(axes == _WEIGHT_AXES) | (table["right_format"] == TILED)]
    if by_weight.empty:
        raise NotApplicable(message("pipeline_bound.no_products"))
    plain = by_weight[(by_weight["right_format"] == "ND").to_numpy()]
    plain = plain.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)
    total = float(plain["total_ns"].sum())
    frame = row(
        operator="".join(plain["operator"].head(1)),
        right_shape="".join(plain["right_shape"].head(1)),
        nd_products=len(plain),
        kernels=float(plain["kernels"].sum()),
        total_ns=total,
        share_of_products=share(total, float(by_weight["total_ns"].sum())),
    )
    frame = frame.assign(**own.shares(frame["total_ns"]))

    def evidence(number: int) -> list[Reference]:
        if plain.empty:
            return []
        shown = plain.head(10).rename(
            columns={
                "left_shape": "left",
                "right_shape": "right",
                "right_format": "format",
                "mean_ns": "each",
                "total_ns": "total",
            }
        )
        kernels = own.frame
        rows = kernels[np.isin(kernels["signature"], plain["signature"])]
        columns = (*EVIDENCE_COLUMNS, "input_formats")
        return [
            Metric(message("pipeline_bound.by_format"), records(shown[["left", "right", "format", "each", "total"]])),
            kernel_rows(message("pipeline_bound.rows"), rows, columns),
            *origin(facts, rows),
        ]

    return Observations(frame, evidence)
