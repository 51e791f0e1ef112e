"""NS020 and NS025: normalisation in 16 bits, cast to FP32, for a matrix product in FP32 or for another operator."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, matching, per_text
from advisors.columns import shares
from advisors.first_tensor import first_dtype
from advisors.fusion.chains import fusion_chains
from advisors.fusion.reads import kernel_reads
from advisors.grouping import aggregated
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.step_kernels import kernel_rows, step_kernels

_NORM = re.compile(r"^(Add)?(RmsNorm|LayerNorm)(V\d)?$", re.I)
_CAST = re.compile(r"^Cast$", re.I)
_NARROW = ("FLOAT16", "BF16")


@advisor(
    "network_structure.norm_cast_matmul",
    needs=(step_kernels, kernel_reads, fusion_chains),
    wants=(launches, HOST_EVENTS, layers),
    about=(Column("norm", "text", "", "operator type of the normalisation", zh="归一化"),),
    columns=(
        Column("chains", "float", "count", "chains per step", zh="链数"),
        Column("dtype", "text", "", "what the normalisation writes", zh="数据类型"),
        Column("cast_ns", "float", "ns", "time of the casts per step", zh="类型转换"),
        Column("product_ns", "float", "ns", "time of the FP32 products per step", zh="矩阵乘"),
        Column("total_ns", "float", "ns", "both", zh="合计"),
        *shares("total_ns"),
        Column("others", "float", "count", "casts of its results to FP32 that no product reads, per step", zh="其他"),
        Column(
            "other_ns",
            "float",
            "ns",
            "their time per step, without chains that a fused kernel replaces",
            zh="其他转换耗时",
        ),
        Column("other_share", "float", "ratio", "other_ns over the step", zh="其他占 step"),
        Column("other_computing", "float", "ratio", "other_ns over the kernel time of the step", zh="其他占计算"),
    ),
    evidence=PLACES,
)
def norm_cast_matmul(facts: Facts, params: Params) -> Observations:
    """Normalisation in 16 bits, cast to FP32, matrix product in FP32; and casts that others than a product read.

    Who wrote a tensor is the nearest kernel before that wrote one of its size and type: see `advisors.fusion.reads`."""
    own = facts[step_kernels]
    frame = own.frame
    norm = matching(frame["type"], _NORM)
    if not norm.any():
        raise NotApplicable(message("network_structure.no_norm"))
    own.require_shapes()
    written = per_text(frame["output_dtypes"], first_dtype).to_numpy()
    read = per_text(frame["input_dtypes"], first_dtype).to_numpy()
    product = (frame["operator_class"] == "matmul").to_numpy() & (read == "FLOAT")
    cast_up = matching(frame["type"], _CAST) & np.isin(read, _NARROW) & (written == "FLOAT")
    reads = facts[kernel_reads]
    behind = (norm & np.isin(written, _NARROW))[reads.writer] & cast_up[reads.reader]
    normed = np.full(len(frame), -1, dtype=np.int64)
    normed[reads.reader[behind]] = reads.writer[behind]
    feeds = (normed >= 0)[reads.writer] & product[reads.reader]
    # A cast that several products read counts once, with all of them.
    cast, places = np.unique(np.stack([reads.writer[feeds], reads.reader[feeds]]), axis=1)
    again, counted = pd.Series(cast).duplicated().to_numpy(), pd.Series(places).duplicated().to_numpy()
    other = np.flatnonzero(normed >= 0)
    other = other[~np.isin(other, cast) & ~np.isin(other, facts[fusion_chains].members)]
    duration = frame["duration_ns"].to_numpy()
    table = pd.DataFrame(
        {
            "norm": frame["type"].astype(str).to_numpy()[normed[cast]],
            "dtype": written[normed[cast]],
            "chain": ~again,
            "cast_ns": np.where(again, 0, duration[cast]),
            "product_ns": np.where(counted, 0, duration[places]),
        }
    )
    grouped = aggregated(
        table.groupby("norm", sort=True),
        chains=("chain", "sum"),
        dtype=("dtype", "first"),
        cast_ns=("cast_ns", "sum"),
        product_ns=("product_ns", "sum"),
    )
    # A normalisation without such a chain is in order, which is an answer.
    others = pd.DataFrame({"norm": frame["type"].astype(str).to_numpy()[normed[other]], "ns": duration[other]})
    others = aggregated(others.groupby("norm"), others=("ns", "size"), other_ns=("ns", "sum"))
    norms = pd.Index(sorted(frame["type"][norm].astype(str).unique()), name="norm")
    result = grouped.reindex(norms).join(others).reset_index()
    numbers = ["chains", "cast_ns", "product_ns", "others", "other_ns"]
    result[numbers] = result[numbers].fillna(0.0) / own.steps
    result["other_share"] = result["other_ns"] / own.wall_ns
    result["other_computing"] = result["other_ns"] / own.kernel_ns
    result["dtype"] = result["dtype"].astype(object).where(result["dtype"].notna(), None)
    result["total_ns"] = result["cast_ns"] + result["product_ns"]
    result = result.assign(**own.shares(result["total_ns"]))

    def evidence(row: int) -> list[Reference]:
        mine = (table["norm"] == result["norm"][row]).to_numpy()
        rest = other[frame["type"].astype(str).to_numpy()[normed[other]] == result["norm"][row]]
        up = np.concatenate([cast[mine], rest])
        chain = frame.iloc[np.unique(np.concatenate([normed[up], up, places[mine]]))]
        return [
            kernel_rows(message("network_structure.norm_chain"), chain),
            *origin(facts, frame.iloc[up]),
        ]

    return Observations(result, evidence)
