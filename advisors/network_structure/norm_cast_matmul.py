"""NS020 and NS025: normalisation in 16 bits, cast to FP32, for a matrix product in FP32 or for another operator."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    Shortening,
    aggregated,
    launches,
    matching,
    per_text,
)
from advisors.columns import shares
from advisors.first_tensor import first_dtype
from advisors.fusion.chains import fusion_chains
from advisors.fusion.reads import kernel_reads
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
    kernels = facts[step_kernels]
    frame = kernels.frame
    is_norm = matching(frame["type"], _NORM)
    if not is_norm.any():
        raise NotApplicable(message("network_structure.no_norm"))
    kernels.require_tensors()
    output_dtype = per_text(frame["output_dtypes"], first_dtype).to_numpy()
    input_dtype = per_text(frame["input_dtypes"], first_dtype).to_numpy()
    is_product = (frame["operator_class"] == "matmul").to_numpy() & (input_dtype == "FLOAT")
    is_cast_up = matching(frame["type"], _CAST) & np.isin(input_dtype, _NARROW) & (output_dtype == "FLOAT")
    reads = facts[kernel_reads]
    norm_to_cast = (is_norm & np.isin(output_dtype, _NARROW))[reads.writer] & is_cast_up[reads.reader]
    norm_of_cast = np.full(len(frame), -1, dtype=np.int64)
    norm_of_cast[reads.reader[norm_to_cast]] = reads.writer[norm_to_cast]
    cast_to_product = (norm_of_cast >= 0)[reads.writer] & is_product[reads.reader]
    # A cast that several products read counts once, with all of them.
    cast_rows, product_rows = np.unique(
        np.stack([reads.writer[cast_to_product], reads.reader[cast_to_product]]), axis=1
    )
    repeated_cast, repeated_product = (
        pd.Series(cast_rows).duplicated().to_numpy(),
        pd.Series(product_rows).duplicated().to_numpy(),
    )
    other_casts = np.flatnonzero(norm_of_cast >= 0)
    other_casts = other_casts[~np.isin(other_casts, cast_rows) & ~np.isin(other_casts, facts[fusion_chains].members)]
    duration = frame["duration_ns"].to_numpy()
    table = pd.DataFrame(
        {
            "norm": frame["type"].astype(str).to_numpy()[norm_of_cast[cast_rows]],
            "dtype": output_dtype[norm_of_cast[cast_rows]],
            "chain": ~repeated_cast,
            "cast_ns": np.where(repeated_cast, 0, duration[cast_rows]),
            "product_ns": np.where(repeated_product, 0, duration[product_rows]),
        }
    )
    grouped = aggregated(
        table,
        "norm",
        chains=("chain", "sum"),
        dtype=("dtype", "first"),
        cast_ns=("cast_ns", "sum"),
        product_ns=("product_ns", "sum"),
    ).set_index("norm")
    # A normalisation without such a chain is in order, which is an answer.
    others = pd.DataFrame(
        {"norm": frame["type"].astype(str).to_numpy()[norm_of_cast[other_casts]], "ns": duration[other_casts]}
    )
    others = aggregated(others, "norm", others=("ns", "size"), other_ns=("ns", "sum")).set_index("norm")
    norms = pd.Index(sorted(frame["type"][is_norm].astype(str).unique()), name="norm")
    result = grouped.reindex(norms).join(others).reset_index()
    numeric_columns = ["chains", "cast_ns", "product_ns", "others", "other_ns"]
    result[numeric_columns] = result[numeric_columns].fillna(0.0) / kernels.steps
    result["other_share"] = result["other_ns"] / kernels.wall_ns
    result["other_computing"] = result["other_ns"] / kernels.kernel_ns
    result["dtype"] = result["dtype"].astype(object).where(result["dtype"].notna(), None)
    result["total_ns"] = result["cast_ns"] + result["product_ns"]
    result = result.assign(**kernels.shares(result["total_ns"]))

    def others_of(row: int) -> np.ndarray:
        norms = frame["type"].astype(str).to_numpy()[norm_of_cast[other_casts]]
        return np.asarray(other_casts[norms == result["norm"][row]])

    def evidence(row: int) -> list[Reference]:
        of_norm = (table["norm"] == result["norm"][row]).to_numpy()
        shown_casts = np.concatenate([cast_rows[of_norm], others_of(row)])
        chain = frame.iloc[np.unique(np.concatenate([norm_of_cast[shown_casts], shown_casts, product_rows[of_norm]]))]
        return [
            kernel_rows(message("network_structure.norm_chain"), chain),
            *origin(facts, frame.iloc[shown_casts]),
        ]

    def cure(row: int) -> Shortening:
        of_products = np.unique(cast_rows[(table["norm"] == result["norm"][row]).to_numpy()])
        return kernels.shorter(frame.iloc[np.concatenate([of_products, others_of(row)])])

    return Observations(result, evidence, cure=cure)
