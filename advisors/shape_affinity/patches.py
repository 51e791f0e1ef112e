"""SA008: convolutions whose window does not overlap itself, which are matrix products in disguise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    launches,
    peaks,
)
from advisors.messages import message
from advisors.roofline.convolutions import convolutions
from advisors.step_kernels import call_stack, kernel_rows, step_kernels


@advisor(
    "shape_affinity.patches",
    needs=(step_kernels, peaks),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("operator", "text", "", "operator type", zh="算子"),
        Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape"),
    ),
    columns=(
        Column("window", "text", "", "lengths of the window, which are its steps as well", zh="窗口"),
        Column("rows", "int", "count", "places of the window: rows of the matrix product that it is", zh="行数"),
        Column("inputs", "int", "count", "values under the window: length of the sum", zh="求和长度"),
        Column("outputs", "int", "count", "channels of the result: columns of the product", zh="输出通道"),
        Column("kernels", "float", "count", "kernels per step", zh="kernel 数"),
        Column("mean_ns", "float", "ns", "mean duration", zh="均值"),
        Column("total_ns", "float", "ns", "time per step", zh="合计"),
        Column("tflops", "float", "TFLOP/s", "2 x rows x inputs x outputs over the duration", zh="TFLOPS"),
        Column("efficiency", "float", "ratio", "of the peak for its dtype at the measured clock", zh="效率"),
        Column(
            "product_ns",
            "float",
            "ns",
            "time per step as a product at the peak, or of its bytes if that is more",
            zh="矩阵乘",
        ),
        Column("share_of_step", "float", "ratio", "total_ns over the step", zh="占 step"),
        Column("share_of_computing", "float", "ratio", "total_ns over the kernel time of the step", zh="占计算"),
    ),
)
def patches(facts: Facts, params: Params) -> Observations:
    """Convolutions whose window does not overlap itself, and what they would take as matrix products."""
    kernels, most = facts[step_kernels], facts[peaks]
    if not (kernels.frame["operator_class"] == "convolution").any():
        raise NotApplicable(message("convolutions.none"))
    kernels.require_shapes()
    table = convolutions(kernels)
    if table.empty or not (table["window"] != "").any():
        raise NotApplicable(message("convolutions.overlap"))
    table = table[table["window"] != ""].sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)
    peak = table["dtype"].map(most.of)
    table["tflops"] = table["flops"] / table["mean_ns"] / 1e3
    table["efficiency"] = table["tflops"] * 1e12 / peak
    by_computing, by_bytes = table["flops"] / peak * 1e9, table["bytes"] / kernels.bandwidth * 1e9
    table["product_ns"] = np.fmax(by_computing, by_bytes) * table["kernels"]
    table["rows"] = table["positions"]
    table = table.assign(**kernels.shares(table["total_ns"]))

    def rows_of(row: int) -> pd.DataFrame:
        rows: pd.DataFrame = kernels.frame[kernels.frame["signature"] == table["signature"][row]]
        return rows

    def evidence(row: int) -> Sequence[Reference]:
        rows = rows_of(row)
        return [kernel_rows(message("convolutions.rows"), rows), *call_stack(facts, rows)]

    return Observations(table, evidence, cure=lambda row: kernels.shorter(rows_of(row)))
