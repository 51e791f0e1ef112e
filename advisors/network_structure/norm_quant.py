"""NS024: RMSNorm, and a kernel of its own that quantises the result."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, matching, per_text
from advisors.columns import shares
from advisors.first_tensor import first_dtype
from advisors.fusion.reads import kernel_reads
from advisors.grouping import aggregated
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
    own = facts[step_kernels]
    frame = own.frame
    norm = matching(frame["type"], _NORM)
    if not norm.any():
        raise NotApplicable(message("network_structure.no_rms_norm"))
    own.require_shapes()
    reads = facts[kernel_reads]
    types = frame["type"].astype(str).to_numpy()
    static = matching(frame["type"], _STATIC)
    scales = np.select(
        [matching(frame["type"], _DYNAMIC), static, matching(frame["type"], _BLOCKS)],
        ["dynamic", "static", "blocks"],
        "",
    )
    quant = scales != ""
    added = np.zeros(len(frame), dtype=np.bool_)
    added[reads.reader[reads.first & (types[reads.writer] == "Add")]] = True
    edge = norm[reads.writer] & quant[reads.reader] & reads.first
    if not edge.any():
        raise NotApplicable(message("network_structure.no_norm_quant"))
    writer, reader = reads.writer[edge], reads.reader[edge]
    readers = np.bincount(reads.writer, minlength=len(frame))
    sole = reads.only(quant)[writer] & (~static[reader] | (readers[writer] == 1))
    duration = frame["duration_ns"].to_numpy()
    table = pd.DataFrame(
        {
            "norm": types[writer],
            "quant": types[reader],
            "adds": (matching(frame["type"], _ADDS) | added)[writer],
            "scales": scales[reader],
            "dtype": per_text(frame["output_dtypes"], first_dtype).to_numpy()[writer],
            "writer": writer,
            "reader": reader,
            "sole": sole,
        }
    )
    about = ["norm", "quant", "adds"]
    # One norm that is quantised twice is one pair, and both kernels go away.
    table["counted"] = table["sole"] & ~table.duplicated(["writer"])
    table["other"] = ~table["sole"] & ~table.duplicated(["writer"])
    table["norm_ns"] = np.where(table["counted"], duration[writer], 0)
    table["quant_ns"] = np.where(table["sole"], duration[reader], 0)
    result = aggregated(
        table.groupby(about, sort=True),
        scales=("scales", "first"),
        pairs=("counted", "sum"),
        dtype=("dtype", "first"),
        norm_ns=("norm_ns", "sum"),
        quant_ns=("quant_ns", "sum"),
        shared=("other", "sum"),
    )
    result = result.reset_index()
    numbers = ["pairs", "norm_ns", "quant_ns", "shared"]
    result[numbers] = result[numbers].astype("float64") / own.steps
    result = result.assign(**own.shares(result["quant_ns"]))

    def evidence(row: int) -> list[Reference]:
        mine = np.logical_and.reduce([(table[name] == result[name][row]).to_numpy() for name in about])
        mine &= table["sole"].to_numpy()
        pairs = np.unique(np.concatenate([writer[mine], reader[mine]]))
        return [
            kernel_rows(message("network_structure.norm_quant_rows"), frame.iloc[pairs]),
            *call_stack(facts, frame.iloc[reader[mine]]),
        ]

    return Observations(result, evidence)
