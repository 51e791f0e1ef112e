"""NS024: RMSNorm, and a kernel of its own that quantises the result."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, aggregated, launches, matching, per_text
from advisors.columns import shares
from advisors.first_tensor import first_dtype
from advisors.fusion.reads import kernel_reads
from advisors.messages import message
from advisors.step_kernels import call_stack, kernel_rows, step_kernels

_NORM = re.compile(r"^(Add|InplaceAdd)?RmsNorm(Bias)?$", re.I)
_ADDS = re.compile(r"^(Inplace)?Add", re.I)
_DYNAMIC = re.compile(r"^DynamicQuant(V\d)?$", re.I)
_STATIC = re.compile(r"^(AscendQuant|Quantize)(V\d)?$", re.I)
_BLOCKS = re.compile(r"^Dynamic(Mx|Block)Quant(V\d)?$", re.I)


@advisor(
    "network_structure.norm_quant",
    needs=(step_kernels, kernel_reads),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("norm", "text", "", "operator type of the normalisation", zh="归一化"),
        Column("quant", "text", "", "operator type that quantises", zh="量化"),
        Column("adds", "bool", "", "the norm adds the residual, or reads what an addition wrote", zh="含残差加"),
    ),
    columns=(
        Column("scales", "text", "", "dynamic (a scale per row), static (given scales) or blocks", zh="量化方式"),
        Column("pairs", "float", "count", "norms whose result only quantising kernels read, per step", zh="对数"),
        Column("dtype", "text", "", "what the norm writes", zh="数据类型"),
        Column("norm_ns", "float", "ns", "time of these norms per step", zh="归一化"),
        Column("quant_ns", "float", "ns", "time of the quantising kernels behind them, per step", zh="量化"),
        Column("shared", "float", "count", "such norms whose result other kernels read too, per step", zh="共享"),
        *shares("quant_ns"),
    ),
)
def norm_quant(facts: Facts, params: Params) -> Observations:
    """RMSNorm whose result a kernel of its own quantises.

    A fused kernel writes no result in 16 bits: a norm that others read too is only counted. A static quantisation is
    the only reader, since the fused kernel takes one set of scales."""
    kernels = facts[step_kernels]
    frame = kernels.frame
    is_norm = matching(frame["type"], _NORM)
    if not is_norm.any():
        raise NotApplicable(message("network_structure.no_rms_norm"))
    kernels.require_tensors()
    reads = facts[kernel_reads]
    types = frame["type"].astype(str).to_numpy()
    is_static = matching(frame["type"], _STATIC)
    scales = np.select(
        [matching(frame["type"], _DYNAMIC), is_static, matching(frame["type"], _BLOCKS)],
        ["dynamic", "static", "blocks"],
        "",
    )
    is_quant = scales != ""
    reads_sum = np.zeros(len(frame), dtype=np.bool_)
    reads_sum[reads.reader[reads.first & (types[reads.writer] == "Add")]] = True
    norm_to_quant = is_norm[reads.writer] & is_quant[reads.reader] & reads.first
    if not norm_to_quant.any():
        raise NotApplicable(message("network_structure.no_norm_quant"))
    writer, reader = reads.writer[norm_to_quant], reads.reader[norm_to_quant]
    readers = np.bincount(reads.writer, minlength=len(frame))
    only_quantised = reads.only(is_quant)[writer] & (~is_static[reader] | (readers[writer] == 1))
    duration = frame["duration_ns"].to_numpy()
    table = pd.DataFrame(
        {
            "norm": types[writer],
            "quant": types[reader],
            "adds": (matching(frame["type"], _ADDS) | reads_sum)[writer],
            "scales": scales[reader],
            "dtype": per_text(frame["output_dtypes"], first_dtype).to_numpy()[writer],
            "writer": writer,
            "reader": reader,
            "sole": only_quantised,
        }
    )
    group_columns = ["norm", "quant", "adds"]
    # One norm that is quantised twice is one pair, and both kernels go away.
    table["counted"] = table["sole"] & ~table.duplicated(["writer"])
    table["other"] = ~table["sole"] & ~table.duplicated(["writer"])
    table["norm_ns"] = np.where(table["counted"], duration[writer], 0)
    table["quant_ns"] = np.where(table["sole"], duration[reader], 0)
    result = aggregated(
        table,
        group_columns,
        scales=("scales", "first"),
        pairs=("counted", "sum"),
        dtype=("dtype", "first"),
        norm_ns=("norm_ns", "sum"),
        quant_ns=("quant_ns", "sum"),
        shared=("other", "sum"),
    )
    numeric_columns = ["pairs", "norm_ns", "quant_ns", "shared"]
    result[numeric_columns] = result[numeric_columns].astype("float64") / kernels.steps
    result = result.assign(**kernels.shares(result["quant_ns"]))

    def group_of(row: int) -> np.ndarray:
        same = [(table[name] == result[name][row]).to_numpy() for name in group_columns]
        return np.asarray(np.logical_and.reduce([*same, table["sole"].to_numpy()]))

    def evidence(row: int) -> list[Reference]:
        in_group = group_of(row)
        pair_rows = np.unique(np.concatenate([writer[in_group], reader[in_group]]))
        return [
            kernel_rows(message("network_structure.norm_quant_rows"), frame.iloc[pair_rows]),
            *call_stack(facts, frame.iloc[reader[in_group]]),
        ]

    return Observations(
        result, evidence, cure=lambda row: kernels.shorter(frame.iloc[np.unique(reader[group_of(row)])])
    )
