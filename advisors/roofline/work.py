"""The work of every kernel, and the only place where it is computed: operations of the matrix unit, bytes moved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import PROFILE, Column, Facts, fact, launches, picked
from advisors.roofline.attention import attention_of
from advisors.roofline.convolutions import convolution_flops
from advisors.roofline.products import gathered_of, grouped_of, product_of
from advisors.roofline.traffic import Traffic, sizes, traffic_of
from advisors.step_kernels import SIGNATURE, StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

GROUPED = re.compile(r"grouped|gmm", re.I)
GATHERED = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.I)

_ALL_GROUPS = 4
"""Rows per group from which nearly every group has some: 98 % of the groups where rows fall on them by chance."""

COLUMNS = (
    Column("signature", "int", "", "as in the frame of step_kernels"),
    Column("operator", "text", "", "operator type"),
    Column("operator_class", "text", "", "class in the ledger"),
    Column("kind", "text", "", "product, grouped, convolution, attention, or vector: none of them"),
    Column("work", "text", "", "what it computes in words, as far as shapes tell: M x N x K of a product, '' unknown"),
    Column("dtype", "text", "", "type of the operands of the matrix unit"),
    Column("flops", "float", "FLOP", "operations of the matrix unit; 0 none, unknown where shapes do not tell"),
    Column("read", "float", "B", "bytes read at least"),
    Column("written", "float", "B", "bytes written at least"),
)


@dataclass(frozen=True)
class KernelWork:
    """``table``: one row per distinct kernel, by ``signature``, which counts from 0. ``traffic``: its tensors."""

    table: pd.DataFrame
    traffic: tuple[Traffic, ...]

    def per_kernel(self, own: StepKernels, name: str) -> Floats:
        """A column of ``table`` for each row of the frame of `StepKernels`."""
        values = self.table[name].to_numpy(dtype=np.float64)
        return np.asarray(values[own.frame["signature"].to_numpy()], dtype=np.float64)


@fact("kernel_work", needs=(step_kernels, PROFILE), wants=(launches,), frames={"table": COLUMNS})
def kernel_work(facts: Facts) -> KernelWork:
    """What each distinct kernel of the steps computes and moves, from its recorded shapes.

    Products: 2 x M x N x K, also batched, grouped and with transposed or tiled operands; convolutions and their
    gradients: 2 x places x weights; attention: 4 x queries x keys x channels, half of it where it may be causal, and
    2.5 times as much in the gradient. Unknown stays unknown: without shapes, over a paged cache, on an AI CPU, and
    where an operator of a GPU launches several kernels, which all have its inputs.
    """
    own = facts[step_kernels]
    divided = _divided(facts, own.frame)
    texts = picked(own.frame, own.firsts, (*SIGNATURE, "output_formats", "operator_class", "core"))
    rows, moved = [], []
    for signature, text in enumerate(texts.to_dict("records")):
        row, traffic = _work(text, signature in divided)
        rows.append({"signature": signature, **row})
        moved.append(traffic)
    return KernelWork(pd.DataFrame(rows, columns=[column.name for column in COLUMNS]), tuple(moved))


def _divided(facts: Facts, frame: pd.DataFrame) -> frozenset[int]:
    """The signatures of kernels of which an operator launches several, where kernels have the inputs of operators."""
    launched = facts.get(launches)
    if launched is None or facts[PROFILE].vocabulary.core_counters:
        return frozenset()
    operator = launched.frame["op_row"].to_numpy()[frame["work"].to_numpy()]
    known = operator >= 0
    several = np.bincount(operator[known], minlength=1)[np.maximum(operator, 0)] > 1
    return frozenset(frame["signature"].to_numpy()[known & several].tolist())


@dataclass(frozen=True)
class _Computed:
    """What a kernel computes. ``groups``: of a grouped product, 0 else or unknown."""

    kind: str
    flops: float
    words: str
    dtype: str
    groups: int = 0


def _work(text: Mapping[Any, Any], divided: bool) -> tuple[dict[str, object], Traffic]:
    operator, shapes, results = text["type"], text["input_shapes"], text["output_shapes"]
    dtypes = text["input_dtypes"].split(";")
    reads = sizes(shapes, text["input_dtypes"], text["input_formats"])
    written_as = text["output_dtypes"] or ";".join(dtypes[:1] * (results.count(";") + 1) if results else [])
    writes = sizes(results, written_as, text["output_formats"])
    computed = _computed(text, dtypes)
    if computed.kind == "grouped":
        reads = _of_groups(reads, computed.groups, shapes)
    vector = computed.kind == "vector"
    traffic = traffic_of(operator, reads, writes) if vector else Traffic(reads, writes)
    recorded = shapes or results or text["input_dtypes"]
    untold = divided if vector else computed.kind == "attention" and not computed.words
    if text["core"] == "AI_CPU" or not recorded or untold:
        traffic = Traffic((float("nan"),), (float("nan"),))
    row = {
        "operator": operator,
        "operator_class": text["operator_class"],
        "kind": computed.kind,
        "work": computed.words,
        "dtype": computed.dtype,
        "flops": computed.flops,
        "read": float(traffic.read),
        "written": float(traffic.written),
    }
    return row, traffic


def _computed(text: Mapping[Any, Any], dtypes: list[str]) -> _Computed:
    operator, shapes, formats = text["type"], text["input_shapes"], text["input_formats"]
    results = text["output_shapes"]
    match text["operator_class"]:
        case "matmul":
            return _product(operator, shapes, formats, results, dtypes)
        case "convolution":
            flops = convolution_flops(operator, shapes, formats, results, text["output_formats"])
            floating = next((dtype for dtype in dtypes if dtype.startswith(("FLOAT", "BF", "INT8"))), dtypes[0])
            return _Computed("convolution", _number(flops), "", floating)
        case "attention":
            found = attention_of(operator, shapes, results)
            words = "" if found is None else f"{found.batch} x {found.queries} x {found.keys} x {found.width}"
            return _Computed("attention", _number(None if found is None else found.flops), words, dtypes[0])
        case _:
            return _Computed("vector", 0.0, "", dtypes[0])


def _product(operator: str, shapes: str, formats: str, results: str, dtypes: list[str]) -> _Computed:
    if GROUPED.search(operator):
        flops, groups = grouped_of(shapes, results) or (None, 0)
        return _Computed("grouped", _number(flops), f"{groups} groups" if groups else "", dtypes[0], groups)
    if GATHERED.search(operator):
        return _Computed("product", _number(gathered_of(shapes, results)), "", dtypes[0])
    product = product_of(shapes, formats, results)
    if product is None:
        return _Computed("product", float("nan"), "", dtypes[0])
    batch = f"{product.batch} x " if product.batch > 1 else ""
    words = f"{batch}{product.m} x {product.n} x {product.k}"
    return _Computed("product", float(product.flops), words, dtypes[product.first])


def _number(flops: float | None) -> float:
    return float("nan") if flops is None else float(flops)


def _of_groups(reads: tuple[float, ...], groups: int, shapes: str) -> tuple[float, ...]:
    """The sizes of what a grouped product reads: not all weights are read where there are few rows for many groups."""
    rows = int(shapes.split(",")[0]) if groups else 0
    return reads if rows >= _ALL_GROUPS * groups else (*reads[:1], float("nan"), *reads[2:])


FACTS = (kernel_work,)
