"""SA006: attention over a cache, one token at a time: sequences times heads against cores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, Shape, chip, launches, matching, shapes_of
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.messages import message
from advisors.roofline.products import balance
from advisors.step_kernels import PIPE_COLUMNS, VECTOR_CORES, call_stack, kernel_rows, step_kernels

DECODES = re.compile(r"IncreFlashAttention|PagedAttention|FusedInferAttentionScore", re.I)
"""Attention that can read a cache."""


def more_sequences(sequences: pd.Series, heads: np.ndarray, cores: pd.Series) -> pd.Series:
    """As many sequences as fit into the rounds of cores that one sequence more would need; NaN for unknown heads.
    ``heads``: blocks of a sequence.

    Two sequences of 4 heads on 24 cores: a third needs one round of 24, which 6 fill. Thirty of 1 head: a 31st needs
    two rounds, which 48 fill."""
    rounds = np.ceil((sequences + 1) * heads / cores)
    better: pd.Series = np.floor(rounds * cores / heads)
    return better


def decode_shapes(decodes: pd.DataFrame) -> list[DecodeShape | None]:
    """The decoding of each of these kernels. Kernels of one signature are read once."""
    firsts = decodes.drop_duplicates("signature")
    texts = zip(firsts["input_shapes"].astype(str), firsts["input_dtypes"].astype(str), strict=True)
    by_signature = dict(zip(firsts["signature"].tolist(), [decode_shape(*text) for text in texts], strict=True))
    return [by_signature[signature] for signature in decodes["signature"].tolist()]


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
        Column("tokens", "int", "count", "new tokens of a sequence: more than one with speculation", zh="新 token 数"),
        Column(
            "folds",
            "int",
            "count",
            "blocks of a sequence and head of key and value: 128 rows each of tokens x heads that share it",
            zh="折叠块数",
        ),
        Column(
            "parallel",
            "float",
            "count",
            "sequences x heads of key and value x folds: what can run at once",
            zh="并行",
        ),
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
            zh="调整后利用率",
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
    decodes = frame[matching(frame["type"], DECODES)]
    if len(decodes):
        kernels.require_shapes()
    found = pd.Series(decode_shapes(decodes), index=decodes.index, dtype=object)
    cores = np.where(decodes["core"].isin(VECTOR_CORES), device.vector_cores, device.cube_cores)
    texts = decodes["input_shapes"].astype(str)
    decodes = decodes.assign(operator=decodes["type"].astype(str), texts=texts, decode_shape=found, cores=cores)
    decodes = decodes[decodes["decode_shape"].notna()]
    if decodes.empty:
        raise NotApplicable(message("shape_affinity.no_decode"))
    grouped = decodes.groupby(["operator", "texts"], sort=True)
    table = grouped["duration_ns"].agg(kernels="size", mean_ns="mean", total_ns="sum")
    rest = grouped.agg(blocks=("block_dim", "median"), decode_shape=("decode_shape", "first"), cores=("cores", "first"))
    table = table.join(rest).reset_index()
    table = table.rename(columns={"texts": "input_shapes"})
    table["query_shape"] = table["input_shapes"].str.split(";").str[0]
    shapes = table["decode_shape"].tolist()
    table["sequences"] = [shape.sequences for shape in shapes]
    table["tokens"] = [shape.tokens for shape in shapes]
    table["kv_heads"] = np.array([shape.kv_heads or np.nan for shape in shapes], dtype=np.float64)
    table["folds"] = [shape.folds for shape in shapes]
    blocks = table["kv_heads"].to_numpy() * table["folds"].to_numpy()
    table["parallel"] = table["sequences"] * blocks
    used = balance(table["parallel"].fillna(1), table["cores"])
    table["efficiency"] = np.where(table["parallel"].notna(), used, np.nan)
    table["good_sequences"] = more_sequences(table["sequences"], blocks, table["cores"])
    table["good_efficiency"] = balance(table["good_sequences"] * blocks, table["cores"])
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

FOLDED = 128
"""Rows of the query, tokens times the heads that share a head of key and value, that one block takes
(docs/sources.md#tasks-of-attention)."""

_INDICES = ("INT32", "INT64", "UINT32", "UINT64")


@dataclass(frozen=True)
class DecodeShape:
    """A decoding step of attention: ``sequences`` of so many new ``tokens``; heads of the query and of key and value, 0
    where the layout does not tell them."""

    sequences: int
    tokens: int
    heads: int
    kv_heads: int

    @property
    def folds(self) -> int:
        """Blocks of one sequence and head of key and value: its tokens and the heads that share it fold into one
        query, of which a block takes 128 rows.

        >>> DecodeShape(8, 1, 32, 4).folds, DecodeShape(8, 4, 128, 1).folds
        (1, 4)
        """
        group = self.heads // self.kv_heads if self.kv_heads else 1
        return -(-self.tokens * max(group, 1) // FOLDED)


@lru_cache(maxsize=1 << 14)
def decode_shape(shapes: str, dtypes: str = "") -> DecodeShape | None:
    """The decoding by attention over a cache; ``None`` for what is not a decoding step.

    Layouts: BNSD and BSND (query ``[8,32,1,128]`` or ``[8,1,32,128]`` with keys of four axes, or a paged cache
    ``[blocks, block size, heads x channels]``); a row of the query per token with a paged cache ``[blocks, block size,
    heads, channels]`` or ``[blocks, block size, heads x channels]``, whose table of blocks has a row per sequence; and
    BSH, which hides the heads. Without a table of blocks each row is a sequence.

    >>> decode_shape("8,32,1,128;8,4,4096,128;8,4,4096,128")
    DecodeShape(sequences=8, tokens=1, heads=32, kv_heads=4)
    >>> decode_shape("8,2,32,128;8,4096,4,128")
    DecodeShape(sequences=8, tokens=2, heads=32, kv_heads=4)
    >>> decode_shape("64,1,48,128;64,2049,1024")
    DecodeShape(sequences=64, tokens=1, heads=48, kv_heads=8)
    >>> decode_shape("16,32,128;900,128,8,128"), decode_shape("8,1,4096;8,2048,512")
    (DecodeShape(sequences=16, tokens=1, heads=32, kv_heads=8), DecodeShape(sequences=8, tokens=1, heads=0, kv_heads=0))
    >>> decode_shape("24,32,128;900,128,8,128;900,128,8,128;8,512", "BF16;BF16;BF16;INT32")
    DecodeShape(sequences=8, tokens=3, heads=32, kv_heads=8)
    >>> decode_shape("1,32,2048,128;1,4,2048,128") is None
    True
    """
    tensors = shapes_of(shapes)
    if len(tensors) < 2 or len(tensors[0]) < 3 or len(tensors[1]) < 3:
        return None
    query, key = tensors[0], tensors[1]
    found = None
    if len(query) == 4 and len(key) == 4:
        if query[2] <= DECODE_TOKENS < key[2] and query[2] < query[1]:
            found = DecodeShape(query[0], query[2], query[1], key[1])
        elif query[1] <= DECODE_TOKENS < key[1]:
            found = DecodeShape(query[0], query[1], query[2], key[2])
    elif len(query) == 4 and len(key) == 3 and key[2] % max(query[3], 1) == 0:
        if min(query[1:3]) <= DECODE_TOKENS < key[1]:
            found = DecodeShape(query[0], min(query[1:3]), max(query[1:3]), key[2] // max(query[3], 1))
    elif len(query) == 3 and len(key) == 4 and query[2] == key[3]:
        found = _by_token(query[0], query[1], key[2], tensors, dtypes)
    elif len(query) == 3 and len(key) == 3 and key[2] > query[2] > 0 and key[2] % query[2] == 0:
        found = _by_token(query[0], query[1], key[2] // query[2], tensors, dtypes)
    elif len(query) == 3 and query[1] <= DECODE_TOKENS:
        found = DecodeShape(query[0], query[1], 0, 0)
    return found


def _by_token(rows: int, heads: int, kv_heads: int, tensors: Sequence[Shape], dtypes: str) -> DecodeShape | None:
    """Attention whose query has a row per token. The table of blocks, integers of two axes, has a row per sequence; a
    table of more rows than tokens is made for the largest batch and does not tell."""
    kinds = [*dtypes.split(";"), *("" for _ in tensors)]
    tables = [
        shape[0]
        for shape, dtype in zip(tensors[2:], kinds[2:], strict=False)
        if len(shape) == 2 and dtype in _INDICES and 0 < shape[0] <= rows
    ]
    sequences = tables[0] if tables else rows
    tokens = -(-rows // sequences) if sequences else 0
    return DecodeShape(sequences, tokens, heads, kv_heads) if 0 < tokens <= DECODE_TOKENS else None
