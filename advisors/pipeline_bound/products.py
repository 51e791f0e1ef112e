"""PB011, GPB003: how much of the peak matrix products reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    Shortening,
    launches,
    peaks,
    pipes,
)
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.roofline.products import matrix_products, tiles
from advisors.step_kernels import PIPE_COLUMNS, kernel_rows, records, step_kernels

BLOCK_N = 128
"""The narrower of the two blocks of a product: that which gives work to more cores."""


@advisor(
    "pipeline_bound.products",
    needs=(step_kernels, matrix_products, peaks),
    wants=(pipes, launches, HOST_EVENTS, layers),
    about=(
        OPERATOR_TYPE,
        Column("left_shape", "text", "", "shape of the left operand", zh="左矩阵 shape"),
        Column("right_shape", "text", "", "shape of the right operand", zh="右矩阵 shape"),
        Column("dtype", "text", "", "its dtype", zh="数据类型"),
    ),
    columns=(
        Column("m", "int", "count", "rows of the result", zh="M"),
        Column("n", "int", "count", "columns of the result", zh="N"),
        Column("k", "int", "count", "length of the sum", zh="K"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column("tflops", "float", "TFLOP/s", "2 x M x N x K over the duration", zh="TFLOPS"),
        Column(
            "peak_tflops",
            "float",
            "TFLOP/s",
            "of the chip at the clock that was measured; unknown for FP32",
            zh="峰值 TFLOPS",
        ),
        Column("efficiency", "float", "ratio", "of the peak", zh="效率"),
        Column(
            "reachable",
            "float",
            "ratio",
            "of the peak, what large products of this dtype reached at the most on chips of this model, where measured",
            zh="可达到的效率",
        ),
        Column(
            "ridge",
            "float",
            "ratio",
            "time for its operations at the peak over time for its bytes at the bandwidth of the memory",
            zh="计算与访存时间之比",
        ),
        Column("reuse", "float", "count", "multiply-adds per element of both operands and the result", zh="复用"),
        Column("mte2", "float", "ratio", "how much of the duration the cube cores load", zh="mte2"),
        Column("core", "text", "", "the kind of core that it runs on", zh="核类型"),
        Column("fp32", "bool", "", "the operands are FP32", zh="FP32"),
        Column(
            "peak_share",
            "float",
            "ratio",
            "cores that have a block to work on, of all, by M, N and the batch",
            zh="峰值占比",
        ),
        *shares("total_ns"),
    ),
    evidence=PLACES,
)
def product_efficiency(facts: Facts, params: Params) -> Observations:
    """Matrix products: how much of the peak of the cube cores they reach."""
    own = facts[step_kernels]
    most = facts[peaks]
    table: pd.DataFrame = facts[matrix_products].copy()
    if table.empty:
        raise NotApplicable(message("pipeline_bound.no_products"))
    frame = own.frame
    table["mte2"] = table["signature"].map(_loading(frame, facts[pipes])) if pipes in facts else np.nan
    table["tflops"] = table["flops"] / table["mean_ns"] / 1e3
    table["peak_tflops"] = [np.nan if dtype == "FLOAT" else most.of(dtype) / 1e12 for dtype in table["dtype"]]
    table["efficiency"] = table["tflops"] / table["peak_tflops"]
    table["reachable"] = [most.reached.get(dtype, np.nan) for dtype in table["dtype"]]
    table["fp32"] = table["dtype"] == "FLOAT"
    m, n, k = (table[name].astype("float64") for name in ("m", "n", "k"))
    elements = m * k + k * n + m * n
    table["reuse"] = m * n * k / elements
    moving = elements * table["batch"] * table["element_bytes"].where(table["element_bytes"] > 0) / most.hbm
    table["ridge"] = table["flops"] / (table["peak_tflops"] * 1e12) / moving
    table["peak_share"] = np.minimum(tiles(table["m"], table["n"], BLOCK_N, table["batch"]) / most.cores, 1.0)
    table = table.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**own.shares(table["total_ns"]))

    def evidence(row: int) -> list[Reference]:
        rows = frame[frame["signature"] == table["signature"][row]]
        peers = table.loc[
            table["peak_tflops"].notna(), ["left_shape", "right_shape", "tflops", "efficiency", "mean_ns"]
        ]
        best = peers.sort_values("efficiency", ascending=False, kind="stable").head(5)
        return [
            kernel_rows(message("pipeline_bound.rows"), rows, PIPE_COLUMNS),
            Metric(message("pipeline_bound.best_products"), records(best)),
            *origin(facts, rows),
        ]

    def cure(row: int) -> Shortening:
        """At the least it becomes as efficient as the slowest product of the recording that is better."""
        change = own.shorter(frame[frame["signature"] == table["signature"][row]])
        efficiency = table["efficiency"].to_numpy()
        better = efficiency[efficiency > efficiency[row]]
        share = 1 - efficiency[row] / better.min() if len(better) else 0.0
        return replace(change, least=replace(change, by_ns=round(share * table["total_ns"][row])))

    return Observations(table, evidence, cure=cure)


def _loading(frame: pd.DataFrame, measured: pd.DataFrame) -> pd.Series:
    """Of each signature how much of its time the cube cores load."""
    loads = measured["aic_mte2"].to_numpy()[frame["row"].to_numpy()] * frame["duration_ns"].to_numpy()
    sums = pd.DataFrame({"signature": frame["signature"], "loads": loads, "duration": frame["duration_ns"]})
    per_signature = sums.groupby("signature").sum(min_count=1)
    return per_signature["loads"] / per_signature["duration"]
