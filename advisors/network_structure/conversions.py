"""NS003 to NS006, NS052 and NS053: kernels that only hand over to the next operator what another one wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    Groups,
    Shortening,
    aggregated,
    frame_of,
    launches,
    matching,
    narrowed,
)
from advisors.columns import KERNELS_PER_STEP, TOTAL_NS, TYPE, shares
from advisors.fusion.chains import fusion_chains
from advisors.fusion.computations import vocabulary
from advisors.messages import message
from advisors.step_kernels import StepKernels, call_stack, kernel_rows, named_kernels, records

CONVERSIONS = ("format_conversion", "cast", "transpose", "concat", "cut", "index")
_CUTS = re.compile(r"Slice|Split|AsStrided|ViewCopy|Unpack|Unstack", re.I)
"""Types that copy a part of a tensor, or a view of it whose elements do not lie one behind the other."""
_INDEXES = re.compile(r"^(?!.*(cache|kv|IndexCopy)).*(Gather|Index|Scatter|Take|NonZero)", re.I)
"""Types that read or write where another tensor says, but for those that write caches of keys and values (static caches
of transformers by ``index_copy_``). Embeddings are left out: they look up what the model learns."""
_QUANTISES = re.compile(r"quant", re.I)
_INSIDE = re.compile(r"^aclnn(?!NpuFormatCast|TransMatmulWeight)")
"""Names of kernels that an operator runs besides its own work. Code asks for the conversions ``aclnnNpuFormatCast`` and
``aclnnTransMatmulWeight``: https://gitcode.com/cann/ops-math, conversion/npu_format_cast and trans_matmul_weight."""

_SIDES = ("before", "after")
_OF_LARGEST = {"type": "type", "input": "reads", "output": "writes"}


@advisor(
    "network_structure.conversions",
    needs=(named_kernels,),
    wants=(fusion_chains, launches, HOST_EVENTS),
    about=(Column("conversion", "text", "", "format_conversion, cast, transpose, concat, cut or index", zh="转换"),),
    columns=(
        KERNELS_PER_STEP,
        TOTAL_NS,
        Column("by_name", "bool", "", "the names of the kernels tell them, as no types were recorded", zh="由名称判断"),
        Column("largest_ns", "float", "ns", "time per step of the shape that takes most", zh="最大"),
        Column("largest_type", "text", "", "operator type of that shape", zh="最大的类型"),
        Column(
            "largest_input", "text", "", "what it reads: shape, dtype and format of its first tensor", zh="最大输入"
        ),
        Column("largest_output", "text", "", "what it writes", zh="最大输出"),
        Column("before", "text", "", "the operator that usually runs before it", zh="之前"),
        Column("after", "text", "", "the operator that usually runs after it", zh="之后"),
        Column(
            "back_and_forth_ns",
            "float",
            "ns",
            "part of total_ns in conversions that a later one undoes, as far as shapes tell",
            zh="往返转换",
        ),
        Column(
            "in_chain_ns",
            "float",
            "ns",
            "part of total_ns in chains that a fused kernel replaces; unknown where names alone tell the types",
            zh="链内耗时",
        ),
        Column("loose_ns", "float", "ns", "the rest of total_ns", zh="松散"),
        Column(
            "inside_ns",
            "float",
            "ns",
            "part of total_ns in kernels that an aclnn operator runs inside itself",
            zh="内部",
        ),
        *shares("loose_ns"),
    ),
    params=("reach",),
    evidence=(
        TYPE,
        Column("reads", "text", "", "the tensor that it reads", zh="读取"),
        Column("writes", "text", "", "the tensor that it writes", zh="写入"),
    ),
)
def conversions(facts: Facts, params: Params) -> Observations:
    """Kernels that only hand over to the next operator what another one wrote: convert, join, cut or pick."""
    kernels = facts[named_kernels]
    part = _part(kernels)
    kind = part["conversion"].map({name: number for number, name in enumerate(CONVERSIONS)}).to_numpy(dtype=np.int64)
    took = part["duration_ns"].to_numpy()

    def per_step(of: np.ndarray | slice) -> np.ndarray:
        return np.bincount(kind[of], took[of], len(CONVERSIONS)) / kernels.steps

    members = facts[fusion_chains].members if fusion_chains in facts else np.zeros(0, dtype=np.int64)
    chained = part.index.isin(members)
    total, in_chain = per_step(slice(None)), per_step(chained)
    if fusion_chains not in facts:
        in_chain[np.unique(kind[_may_be_chained(part)])] = np.nan
    result = frame_of(
        {
            "conversion": CONVERSIONS,
            "by_name": not kernels.typed,
            "kernels": np.bincount(kind, minlength=len(CONVERSIONS)) / kernels.steps,
            "total_ns": total,
            "back_and_forth_ns": np.nan,
            "in_chain_ns": in_chain,
            "loose_ns": total - in_chain,
            "inside_ns": per_step(matching(part["name"], _INSIDE)),
        },
        len(CONVERSIONS),
    )
    unknown = {"largest_ns": np.nan, **dict.fromkeys((*(f"largest_{name}" for name in _OF_LARGEST), *_SIDES))}
    result = result.assign(**(_of_largest(part, kind, kernels.steps) if kernels.typed else unknown))
    if kernels.shaped:
        result["back_and_forth_ns"] = per_step(_undone(part, kernels, int(params["reach"])))
    result = result.assign(**kernels.shares(result["loose_ns"]))

    def evidence(row: int) -> list[Reference]:
        rows = part[part["conversion"] == result["conversion"][row]]
        told = ["type", "reads", "writes", "before", "after"]
        by_shape = aggregated(rows, told, sort=False, kernels=("duration_ns", "size"), total_ns=("duration_ns", "sum"))
        top = by_shape.sort_values("total_ns", ascending=False, kind="stable").head(10)
        columns = ("name", "type", "start_ns", "duration_ns", "input_shapes", "input_formats", "output_formats")
        return [
            Metric(message("network_structure.conversions"), records(top)),
            kernel_rows(message("network_structure.conversion_rows"), rows, columns),
            *call_stack(facts, rows),
        ]

    def cure(row: int) -> Shortening:
        loose = part[~chained]
        return kernels.shorter(loose[loose["conversion"] == result["conversion"][row]])

    return Observations(result, evidence, cure=cure)


def _part(kernels: StepKernels) -> pd.DataFrame:
    """The kernels that convert, with their neighbours and what they read and write, by row of the kernel."""
    frame = kernels.frame
    types = frame["type"].astype(object).to_numpy()
    starts_chain, ends_chain = kernels.breaks, np.append(kernels.breaks[1:], True)
    # Quantising has a class with the casts, but it computes scales and is there on purpose.
    kind = _kind(frame)
    converts = (kind != "") & ~matching(frame["type"], _QUANTISES)
    described_by = [f"{side}_{what}" for side in ("input", "output") for what in ("shapes", "dtypes", "formats")]
    found: pd.DataFrame = narrowed(frame, ["name", "duration_ns", "row", "work", *described_by])[converts]
    part: pd.DataFrame = narrowed(found, ("name", "duration_ns", "row", "work")).assign(
        conversion=kind[converts],
        type=types[converts],
        before=np.where(starts_chain, "", np.roll(types, 1))[converts],
        after=np.where(ends_chain, "", np.roll(types, -1))[converts],
        reads=described(found, "input"),
        writes=described(found, "output"),
    )
    return part


def _kind(frame: pd.DataFrame) -> np.ndarray:
    """The conversion of each kernel, empty for other kernels."""
    classes = frame["operator_class"].astype(object).to_numpy()
    of_slices = np.where(
        matching(frame["type"], _CUTS), "cut", np.where(matching(frame["type"], _INDEXES), "index", "")
    )
    kind = np.where(np.isin(classes, CONVERSIONS), classes, np.where(classes == "slice", of_slices, ""))
    return np.asarray(kind, dtype=object)


def described(part: pd.DataFrame, side: str) -> pd.Series:
    """Shape, dtype and format of the first tensor: ``4096,4096 BF16 ND``."""
    groups = Groups(part, [f"{side}_{what}" for what in ("shapes", "dtypes", "formats")], sort=False)
    texts = [" ".join(str(text).split(";", 1)[0] for text in of) for of in zip(*groups.keys().values(), strict=True)]
    distinct = np.array([text.strip() for text in texts], dtype=object)
    return pd.Series(distinct[groups.codes], index=part.index, dtype="str")


def _may_be_chained(part: pd.DataFrame) -> np.ndarray:
    """Mask of the kernels of a type that computations are made of: a fused kernel may do their work as well, which only
    shapes tell."""
    computed = {kind: bool(vocabulary().operation_of(kind)) for kind in part["type"].unique()}
    return part["type"].map(computed).to_numpy(dtype=np.bool_)


def _of_largest(part: pd.DataFrame, kind: np.ndarray, steps: int) -> dict[str, object]:
    """The columns that tell the shape of each conversion that takes most time, and what usually stands beside it.
    ``kind``: the conversion of each kernel, by its place in `CONVERSIONS`."""
    largest = _largest(part, [*_OF_LARGEST.values()], sort=False)

    def of_kinds(found: Mapping[str, Mapping[str, Any]], name: str) -> list[Any]:
        return [found.get(kind, {}).get(name) for kind in CONVERSIONS]

    tensors = ((name, np.array(of_kinds(largest, name), dtype=object)[kind]) for name in ("reads", "writes"))
    same = np.logical_and.reduce([part[name].to_numpy(dtype=object) == of_largest for name, of_largest in tensors])
    columns = {f"largest_{name}": (largest, column) for name, column in _OF_LARGEST.items()}
    columns |= {side: (_largest(part[same & (part[side] != "")], [side], sort=True), side) for side in _SIDES}
    return {
        "largest_ns": np.array([took or 0 for took in of_kinds(largest, "took")]) / steps,
        **{shown: [text or None for text in of_kinds(*column)] for shown, column in columns.items()},
    }


def _largest(rows: pd.DataFrame, what: list[str], *, sort: bool) -> dict[str, dict[str, Any]]:
    """Per conversion that ``what`` on which most time is spent, with that time as ``took``; of equals the first, by
    name if they are to be sorted."""
    sums = aggregated(rows, ["conversion", *what], sort=sort, took=("duration_ns", "sum"))
    ranked = np.argsort(-sums["took"].to_numpy(), kind="stable")
    _, first = np.unique(sums["conversion"].to_numpy(dtype=object)[ranked], return_index=True)
    names = ("conversion", *what, "took")
    columns = (sums[name].take(ranked[first]).tolist() for name in names)
    found = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return {values["conversion"]: values for values in found}


def _undone(part: pd.DataFrame, kernels: StepKernels, reach: int) -> np.ndarray:
    """Conversions followed, with at most ``reach`` kernels between and no border, by one that reads what they wrote
    and writes what they read; and those that undo them."""
    at, count = part.index.to_numpy(), len(part)
    reads, writes = (part[name].to_numpy(dtype=object) for name in ("reads", "writes"))
    _, tensors = np.unique(np.concatenate([reads, writes]), return_inverse=True)
    read, written = tensors[:count], tensors[count:]
    does = np.column_stack([np.cumsum(kernels.breaks)[at], read, written])
    inverse = does[:, [0, 2, 1]]
    _, codes = np.unique(np.concatenate([does, inverse]), axis=0, return_inverse=True)
    # The nearest later conversion in the opposite direction: one number for what a kernel does and its place.
    places, undone = codes[:count] * count + np.arange(count), codes[count:] * count + np.arange(count)
    in_order = np.argsort(places)
    following = np.searchsorted(places[in_order], undone, side="right").clip(max=count - 1)
    later = in_order[following]
    near = (places[later] > undone) & (codes[later] == codes[count:]) & (at[later] - at <= reach + 1)
    paired = np.zeros(count, dtype=np.bool_)
    paired[near] = True
    paired[later[near]] = True
    return paired
