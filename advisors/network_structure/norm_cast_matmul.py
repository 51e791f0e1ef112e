"""NS020: normalisation in 16 bits, cast to FP32, matrix product in FP32."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, matching, per_text
from advisors.columns import shares
from advisors.first_tensor import first_dtype, first_elements
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.step_kernels import kernel_rows, step_kernels

_NORM = re.compile(r"^(Add)?(RmsNorm|LayerNorm)(V\d)?$", re.I)
_CAST = re.compile(r"^Cast$", re.I)
_NARROW = ("FLOAT16", "BF16")


@advisor(
    "network_structure.norm_cast_matmul",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS, layers),
    about=(Column("norm", "text", "", "operator type of the normalisation", zh="归一化"),),
    columns=(
        Column("chains", "float", "count", "chains per step", zh="链数"),
        Column("dtype", "text", "", "what the normalisation writes", zh="数据类型"),
        Column("cast_ns", "float", "ns", "time of the casts per step", zh="类型转换"),
        Column("product_ns", "float", "ns", "time of the FP32 products per step", zh="矩阵乘"),
        Column("total_ns", "float", "ns", "both", zh="合计"),
        *shares("total_ns"),
    ),
    evidence=PLACES,
)
def norm_cast_matmul(facts: Facts, params: Params) -> Observations:
    """Normalisation in 16 bits, cast to FP32, matrix product in FP32."""
    own = facts[step_kernels]
    frame = own.frame
    norm = matching(frame["type"], _NORM)
    if not norm.any():
        raise NotApplicable(message("network_structure.no_norm"))
    own.require_shapes()
    written = per_text(frame["output_dtypes"], first_dtype).to_numpy()
    read = per_text(frame["input_dtypes"], first_dtype).to_numpy()
    size = per_text(frame["output_shapes"], first_elements).to_numpy(dtype=np.int64)
    in_size = per_text(frame["input_shapes"], first_elements).to_numpy(dtype=np.int64)
    product = (frame["operator_class"] == "matmul").to_numpy()
    first = norm & np.isin(written, _NARROW)
    casts = matching(frame["type"], _CAST) & (written == "FLOAT") & ~own.breaks
    middle = casts & np.roll(first, 1) & (in_size == np.roll(size, 1))
    wide = product & (read == "FLOAT") & ~own.breaks
    # The weight may be cast between the cast of the norm and the product.
    between = np.roll(casts & ~middle, 1)
    near = wide & np.roll(middle, 1) & (in_size == np.roll(size, 1))
    far = wide & between & np.roll(middle, 2) & (in_size == np.roll(size, 2)) & ~near
    places = np.flatnonzero(near | far)
    cast = places - np.where(far[places], 2, 1)
    duration = frame["duration_ns"].to_numpy()
    table = pd.DataFrame(
        {
            "norm": frame["type"].astype(str).to_numpy()[cast - 1],
            "dtype": written[cast - 1],
            "cast_ns": duration[cast],
            "product_ns": duration[places],
        }
    )
    grouped = table.groupby("norm", sort=True).agg(
        chains=("dtype", "size"), dtype=("dtype", "first"), cast_ns=("cast_ns", "sum"), product_ns=("product_ns", "sum")
    )
    # A normalisation without such a chain is in order, which is an answer.
    norms = pd.Index(sorted(frame["type"][norm].astype(str).unique()), name="norm")
    result = grouped.reindex(norms).reset_index()
    numbers = ["chains", "cast_ns", "product_ns"]
    result[numbers] = result[numbers].fillna(0.0) / own.steps
    result["dtype"] = result["dtype"].astype(object).where(result["dtype"].notna(), None)
    result["total_ns"] = result["cast_ns"] + result["product_ns"]
    result = result.assign(**own.shares(result["total_ns"]))

    def evidence(row: int) -> list[Reference]:
        mine = (table["norm"] == result["norm"][row]).to_numpy()
        chain = frame.iloc[np.concatenate([cast[mine] - 1, cast[mine], places[mine]])]
        return [
            kernel_rows(message("network_structure.norm_chain"), chain),
            *origin(facts, frame.iloc[cast[mine]]),
        ]

    return Observations(result, evidence)
