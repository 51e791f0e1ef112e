"""SA006: attention over a cache, one token at a time: sequences times heads against cores."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, chip, launches, matching, per_text, shapes_of
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.messages import message
from advisors.roofline.products import balance
from advisors.step_kernels import PIPE_COLUMNS, VECTOR_CORES, call_stack, kernel_rows, step_kernels

_DECODE_ATTENTION = re.compile(r"IncreFlashAttention|PagedAttention|FusedInferAttentionScore", re.I)


def more_sequences(sequences: pd.Series, heads: np.ndarray, cores: pd.Series) -> pd.Series:
    """As many sequences as fit into the rounds of cores that one sequence more would need; NaN for unknown heads.

    Two sequences of 4 heads on 24 cores: a third needs one round of 24, which 6 fill. Thirty of 1 head: a 31st needs
    two rounds, which 48 fill."""
    rounds = np.ceil((sequences + 1) * heads / cores)
    better: pd.Series = np.floor(rounds * cores / heads)
    return better


@advisor(
    "shape_affinity.attention",
    needs=(step_kernels, chip),
    wants=(launches, HOST_EVENTS),
    about=(
        OPERATOR_TYPE,
        Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape"),
    ),
    columns=(
        Column("query_shape", "text", "", "shape of the query", zh="query shape"),
        Column("sequences", "int", "count", "sequences in a batch; unknown where the shapes do not tell", zh="序列数"),
        Column(
            "kv_heads", "float", "count", "heads of key and value; unknown where the shapes do not tell", zh="KV 头数"
        ),
        Column("parallel", "float", "count", "sequences x heads of key and value: what can run at once", zh="并行"),
        Column("cores", "int", "count", "cores of the kind that it runs on", zh="核数"),
        Column("efficiency", "float", "ratio", "part of the cores' time that is used", zh="效率"),
        Column(
            "good_sequences",
            "float",
            "count",
            "the next larger number that fills its rounds of cores",
            zh="合适的序列数",
        ),
        Column(
            "good_efficiency",
            "float",
            "ratio",
            "part of the cores' time that is used with so many sequences",
            zh="该序列数下的利用率",
        ),
        Column("blocks", "float", "count", "logical blocks that the kernel used", zh="分块数"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column("gain_ns", "float", "ns", "time of the idle cores", zh="收益"),
        *shares("gain_ns"),
    ),
)
def attention(facts: Facts, params: Params) -> Observations:
    """Attention over a cache, one token at a time: sequences times heads against cores."""
    kernels = facts[step_kernels]
    device = facts[chip]
    frame = kernels.frame
    decodes = frame[matching(frame["type"], _DECODE_ATTENTION)]
    if len(decodes):
        kernels.require_shapes()
    decode_shape = per_text(decodes["input_shapes"], _decode_shape)
    cores = np.where(decodes["core"].isin(VECTOR_CORES), device.vector_cores, device.cube_cores)
    texts = decodes["input_shapes"].astype(str)
    decodes = decodes.assign(operator=decodes["type"].astype(str), texts=texts, decode_shape=decode_shape, cores=cores)
    decodes = decodes[decodes["decode_shape"].notna()]
    if decodes.empty:
        raise NotApplicable(message("shape_affinity.no_decode"))
    grouped = decodes.groupby(["operator", "texts"], sort=True)
    table = grouped["duration_ns"].agg(kernels="size", mean_ns="mean", total_ns="sum")
    rest = grouped.agg(blocks=("block_dim", "median"), decode_shape=("decode_shape", "first"), cores=("cores", "first"))
    table = table.join(rest).reset_index()
    table = table.rename(columns={"texts": "input_shapes"})
    table["query_shape"] = table["input_shapes"].str.split(";").str[0]
    table["sequences"] = [shape[0] for shape in table["decode_shape"]]
    heads = np.array([shape[1] if shape[1] else np.nan for shape in table["decode_shape"]], dtype=np.float64)
    table["kv_heads"] = heads
    table["parallel"] = table["sequences"] * heads
    used = balance(table["parallel"].fillna(1), table["cores"])
    table["efficiency"] = np.where(table["parallel"].notna(), used, np.nan)
    table["good_sequences"] = more_sequences(table["sequences"], heads, table["cores"])
    table["good_efficiency"] = balance(table["good_sequences"] * heads, table["cores"])
    for name in ("kernels", "total_ns"):
        table[name] = table[name] / kernels.steps
    table["gain_ns"] = table["total_ns"] * (1 - table["efficiency"])
    table = table.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**kernels.shares(table["gain_ns"]))

    def evidence(row: int) -> list[Reference]:
        listed = decodes[
            (decodes["operator"] == table["operator"][row]) & (decodes["texts"] == table["input_shapes"][row])
        ]
        return [
            kernel_rows(message("shape_affinity.attention_rows"), listed, PIPE_COLUMNS),
            *call_stack(facts, listed),
        ]

    return Observations(table, evidence)


DECODE_TOKENS = 16
"""More new tokens per sequence than this are no decoding step (speculation adds a few)."""


def _decode_shape(text: str) -> tuple[int, int] | None:
    """(sequences, heads of key and value) of attention over a cache; 0 heads where the layout does not tell them,
    ``None`` for what is not a decoding step.

    Layouts: BNSD and BSND (query ``[8,32,1,128]`` or ``[8,1,32,128]`` with keys of four axes, or a paged cache
    ``[blocks, block size, heads x channels]``), one row per sequence with a paged cache ``[blocks, block size, heads,
    channels]``, and BSH, which hides the heads.

    >>> _decode_shape("8,32,1,128;8,4,4096,128;8,4,4096,128"), _decode_shape("8,1,32,128;8,4096,4,128")
    ((8, 4), (8, 4))
    >>> _decode_shape("16,32,128;900,128,8,128"), _decode_shape("8,1,4096;8,2048,512")
    ((16, 8), (8, 0))
    >>> _decode_shape("64,1,48,128;64,2049,1024"), _decode_shape("64,48,1,128;900,128,1024")
    ((64, 8), (64, 8))
    >>> _decode_shape("1,32,2048,128;1,4,2048,128") is None
    True
    """
    shapes = shapes_of(text)
    if len(shapes) < 2 or len(shapes[0]) < 3 or not shapes[1]:
        return None
    query, key = shapes[0], shapes[1]
    if len(query) == 4 and len(key) == 4:
        if query[2] <= DECODE_TOKENS < key[2] and query[2] < query[1]:
            return query[0], key[1]
        if query[1] <= DECODE_TOKENS < key[1]:
            return query[0], key[2]
        return None
    if len(query) == 4 and len(key) == 3 and min(query[1:3]) <= DECODE_TOKENS < key[1] and key[2] % query[3] == 0:
        return query[0], key[2] // query[3]
    if len(query) == 3 and len(key) == 4 and query[2] == key[3]:
        return query[0], key[2]
    if len(query) == 3 and query[1] <= DECODE_TOKENS:
        return query[0], 0
    return None
