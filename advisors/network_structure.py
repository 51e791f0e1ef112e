"""Inefficient use of operators by the network; unfused chains are in `fusion.py`."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    Unavailable,
    chip,
    context,
    elements,
    launches,
    matching,
    per_text,
    pipes,
    shapes_of,
)
from advisors.fewer_kernels import Merging, step_replay
from advisors.fusion import Chains, fusion_chains
from advisors.half_precision import narrowed_ns, products_ns, wide_kernels
from advisors.messages import message
from advisors.products import matrix_products
from advisors.step_kernels import StepKernels, call_stack, kernel_rows, records, step_kernels

PRODUCTS = ("attention", "matmul")
CUBE_WORK = (*PRODUCTS, "convolution")
CONVERSIONS = ("format_conversion", "cast", "transpose", "concat")

_PART = re.compile(r"^(Strided)?Slice\w*$", re.I)
_SOFTMAX = re.compile(r"(?<!log)softmax(?!crossentropy)", re.I)
_QUANTISES = re.compile(r"quant", re.I)
_INSIDE = re.compile(r"^aclnn")
_NORM = re.compile(r"^(Add)?(RmsNorm|LayerNorm)(V\d)?$", re.I)
_CAST = re.compile(r"^Cast$", re.I)
_NARROW = ("FLOAT16", "BF16")

_SHARES = (
    Column("share_of_step", "float", "ratio", "over the step"),
    Column("share_of_computing", "float", "ratio", "over the kernel time of the step"),
)


def first_dtype(text: str) -> str:
    """The dtype of the first tensor."""
    return text.split(";", 1)[0]


def first_elements(text: str) -> int:
    """How many elements the first tensor has; 0 where none is recorded."""
    shapes = shapes_of(text)
    return elements(shapes[0]) if shapes else 0


def first_tail(text: str) -> int:
    """The last axis of the first tensor; 0 for a scalar or where none is recorded."""
    shapes = shapes_of(text)
    return shapes[0][-1] if shapes and shapes[0] else 0


@advisor(
    "network_structure.hot_share",
    needs=(step_kernels, context, fusion_chains),
    columns=(
        Column("phase", "text", "", "training, prefill, decode or unknown"),
        Column("hot_share", "float", "ratio", "attention and matrix products of all kernel time"),
        Column("expected_share", "float", "ratio", "what the phase should show"),
        Column("hot_ns", "float", "ns", "attention and matrix products per step"),
        Column("kernel_ns", "float", "ns", "all kernels per step but those of the optimizer"),
        Column("excess_ns", "float", "ns", "kernel time beyond what the expected share implies"),
        Column("largest_other", "text", "", "the class that takes most of the rest"),
        Column("largest_other_share", "float", "ratio", "its part of all kernel time"),
        Column("share_of_step", "float", "ratio", "excess_ns over the step"),
    ),
    params=("full_share", "decode_share"),
)
def hot_share(facts: Facts, params: Params) -> Observations:
    """How much of the kernel time of a language model is attention and matrix products. The optimizer is left out: its
    time goes with the parameters and not with the tokens, and the expected shares speak of the layers."""
    own = facts[step_kernels]
    chains = facts[fusion_chains]
    frame, phase = own.frame[~_updates(own, chains)], str(facts[context]["phase"])
    kernel_ns = float(frame["duration_ns"].sum()) / own.steps
    by_class = frame.groupby("operator_class", observed=True)["duration_ns"].sum() / own.steps
    hot = float(by_class.reindex(PRODUCTS).fillna(0).sum())
    products = float(by_class.get("matmul", 0.0))
    attends = bool(by_class.get("attention", 0.0)) or bool(matching(frame["type"], _SOFTMAX).any())
    if not attends or not products or products < float(by_class.get("convolution", 0.0)):
        raise NotApplicable(message("network_structure.no_attention"))
    # Where the phase is not known, the lower share cannot be wrong.
    expected = params["full_share"] if phase in ("training", "prefill") else params["decode_share"]
    rest = by_class.drop([*PRODUCTS, "optimizer"], errors="ignore").sort_values(ascending=False, kind="stable")
    excess = max(kernel_ns - hot / expected, 0.0)
    row = {
        "phase": phase,
        "hot_share": hot / kernel_ns,
        "expected_share": expected,
        "hot_ns": hot,
        "kernel_ns": kernel_ns,
        "excess_ns": excess,
        "largest_other": str(rest.index[0]) if len(rest) else None,
        "largest_other_share": float(rest.iloc[0]) / kernel_ns if len(rest) else None,
        "share_of_step": excess / own.wall_ns,
    }

    def evidence(_: int) -> list[Reference]:
        table = by_class.sort_values(ascending=False, kind="stable").rename("per_step_ns").reset_index()
        table["operator_class"] = table["operator_class"].astype(str)
        table["share"] = table["per_step_ns"] / kernel_ns
        rest_rows = frame[~frame["operator_class"].isin(PRODUCTS)]
        return [
            Metric(message("network_structure.by_class"), records(table), {"per_step_ns": "ns", "share": "ratio"}),
            kernel_rows(message("network_structure.not_hot"), rest_rows),
        ]

    return Observations(pd.DataFrame([row]), evidence)


@advisor(
    "network_structure.slices",
    needs=(step_kernels, fusion_chains),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("input_shape", "text", "", "the tensor that is sliced"),
        Column("dtype", "text", "", "its dtype"),
    ),
    columns=(
        Column("parts", "text", "", "shapes of the slices"),
        Column("slices", "int", "count", "slices of one tensor"),
        Column("tensors", "float", "count", "tensors that are sliced like this, per step"),
        Column("product", "text", "", "operator type that writes the tensor"),
        Column("slice_ns", "float", "ns", "time of the slices per step"),
        Column("in_chain_ns", "float", "ns", "part of slice_ns in chains that a fused kernel replaces"),
        Column("loose_ns", "float", "ns", "the rest of slice_ns"),
        Column("product_ns", "float", "ns", "time of the matrix products that write the tensors, per step"),
        Column("loose_share", "float", "ratio", "loose_ns over the step"),
        Column("share_of_step", "float", "ratio", "slice_ns over the step"),
        Column("share_of_computing", "float", "ratio", "slice_ns over the kernel time of the step"),
    ),
)
def slices(facts: Facts, params: Params) -> Observations:
    """Matrix products whose result is cut by several slices."""
    own = facts[step_kernels]
    own.require_shapes()
    frame = own.frame
    position = np.arange(len(frame))
    is_product = (frame["operator_class"] == "matmul").to_numpy()
    group = np.cumsum(own.breaks)
    latest = np.maximum.accumulate(np.where(is_product, position, -1))
    size = per_text(frame["input_shapes"], first_elements).to_numpy(dtype=np.int64)
    tail = per_text(frame["input_shapes"], first_tail).to_numpy(dtype=np.int64)
    out_size = per_text(frame["output_shapes"], first_elements).to_numpy(dtype=np.int64)
    out_tail = per_text(frame["output_shapes"], first_tail).to_numpy(dtype=np.int64)
    origin = np.maximum(latest, 0)
    cuts = matching(frame["type"], _PART) & (latest >= 0) & (group == group[origin])
    # The tensor may be seen in another shape than it was written in, but not with another last axis.
    cuts &= (size == out_size[origin]) & (tail == out_tail[origin]) & (out_size < size)
    chosen = frame[cuts].assign(
        origin=origin[cuts],
        out_size=out_size[cuts],
        in_size=size[cuts],
        input_shape=frame["input_shapes"][cuts].astype(str).str.split(";").str[0],
        dtype=frame["input_dtypes"][cuts].astype(str).str.split(";").str[0],
        part=frame["output_shapes"][cuts].astype(str),
        in_chain_ns=np.where(np.isin(position, facts[fusion_chains].members), frame["duration_ns"], 0)[cuts],
    )
    cut = chosen.groupby("origin", sort=True).agg(
        input_shape=("input_shape", "first"),
        dtype=("dtype", "first"),
        parts=("part", "; ".join),
        slices=("part", "size"),
        written=("out_size", "sum"),
        size=("in_size", "first"),
        slice_ns=("duration_ns", "sum"),
        in_chain_ns=("in_chain_ns", "sum"),
    )
    # Several slices that do not overlap are parts of one split.
    cut = cut[(cut["slices"] > 1) & (cut["written"] <= cut["size"])]
    if cut.empty:
        raise NotApplicable(message("network_structure.no_slices"))
    cut["product_ns"] = frame["duration_ns"].to_numpy()[cut.index]
    cut["product"] = frame["type"].astype(str).to_numpy()[cut.index]
    grouped = cut.groupby(["input_shape", "dtype"], sort=False).agg(
        parts=("parts", "first"),
        slices=("slices", "max"),
        tensors=("slice_ns", "size"),
        product=("product", "first"),
        slice_ns=("slice_ns", "sum"),
        in_chain_ns=("in_chain_ns", "sum"),
        product_ns=("product_ns", "sum"),
    )
    result = grouped.sort_values("slice_ns", ascending=False, kind="stable").reset_index()
    for name in ("tensors", "slice_ns", "in_chain_ns", "product_ns"):
        result[name] = result[name] / own.steps
    result["loose_ns"] = result["slice_ns"] - result["in_chain_ns"]
    result["loose_share"] = result["loose_ns"] / own.wall_ns
    result = result.assign(**own.shares(result["slice_ns"]))

    def evidence(row: int) -> list[Reference]:
        shape, dtype = result["input_shape"][row], result["dtype"][row]
        mine = cut[(cut["input_shape"] == shape) & (cut["dtype"] == dtype)]
        parts = chosen[chosen["origin"].isin(mine.index)]
        return [
            kernel_rows(message("network_structure.slice_rows"), parts),
            kernel_rows(message("network_structure.product_rows"), frame.iloc[mine.index.to_numpy()]),
            *call_stack(facts, parts),
        ]

    return Observations(result, evidence)


@advisor(
    "network_structure.conversions",
    needs=(step_kernels, fusion_chains),
    wants=(launches, HOST_EVENTS),
    about=(Column("conversion", "text", "", "format_conversion, cast, transpose or concat"),),
    columns=(
        Column("kernels", "float", "count", "kernels per step"),
        Column("total_ns", "float", "ns", "their time per step"),
        Column("largest_ns", "float", "ns", "time per step of the shape that takes most"),
        Column("largest_type", "text", "", "operator type of that shape"),
        Column("largest_input", "text", "", "what it reads: shape, dtype and format of its first tensor"),
        Column("largest_output", "text", "", "what it writes"),
        Column("before", "text", "", "the operator that usually runs before it"),
        Column("after", "text", "", "the operator that usually runs after it"),
        Column("back_and_forth_ns", "float", "ns", "part of total_ns in conversions that a later one undoes"),
        Column("in_chain_ns", "float", "ns", "part of total_ns in chains that a fused kernel replaces"),
        Column("loose_ns", "float", "ns", "the rest of total_ns"),
        Column("inside_ns", "float", "ns", "part of total_ns in kernels that an aclnn operator runs inside itself"),
        Column("share_of_step", "float", "ratio", "loose_ns over the step"),
        Column("share_of_computing", "float", "ratio", "loose_ns over the kernel time of the step"),
    ),
    params=("reach",),
)
def conversions(facts: Facts, params: Params) -> Observations:
    """Kernels that only convert between what one operator writes and what the next one wants."""
    own = facts[step_kernels]
    frame = own.frame
    types = frame["type"].astype(str).to_numpy()
    starts_chain, ends_chain = own.breaks, np.append(own.breaks[1:], True)
    before = np.where(starts_chain, "", np.roll(types, 1))
    after = np.where(ends_chain, "", np.roll(types, -1))
    # Quantising has a class with the casts, but it computes scales and is there on purpose.
    mine = frame["operator_class"].isin(CONVERSIONS).to_numpy() & ~matching(frame["type"], _QUANTISES)
    part = frame[mine].assign(
        conversion=frame["operator_class"][mine].astype(str),
        before=before[mine],
        after=after[mine],
        reads=_described(frame[mine], "input"),
        writes=_described(frame[mine], "output"),
    )
    part["undone"] = _undone(part, own, int(params["reach"]))
    empty = pd.DataFrame({"conversion": list(CONVERSIONS)}).set_index("conversion")
    totals = part.groupby("conversion").agg(kernels=("duration_ns", "size"), total_ns=("duration_ns", "sum"))
    chained = part[part.index.isin(facts[fusion_chains].members)]
    totals["in_chain_ns"] = chained.groupby("conversion")["duration_ns"].sum()
    totals["inside_ns"] = part[matching(part["name"], _INSIDE)].groupby("conversion")["duration_ns"].sum()
    totals["back_and_forth_ns"] = part[part["undone"]].groupby("conversion")["duration_ns"].sum()
    shapes = ["conversion", "type", "reads", "writes"]
    by_shape = part.assign(type=types[mine]).groupby(shapes, sort=False)["duration_ns"].sum()
    ranked = by_shape.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates("conversion")
    neighbours = [_most(part.merge(ranked, on=["conversion", "reads", "writes"]), side) for side in ("before", "after")]
    ranked = ranked.rename(
        columns={
            "duration_ns": "largest_ns",
            "type": "largest_type",
            "reads": "largest_input",
            "writes": "largest_output",
        }
    ).set_index("conversion")
    result = empty.join(totals).join(ranked).join(neighbours[0]).join(neighbours[1]).reset_index()
    numbers = ["kernels", "total_ns", "largest_ns", "back_and_forth_ns", "in_chain_ns", "inside_ns"]
    result[numbers] = result[numbers].fillna(0.0) / own.steps
    result["loose_ns"] = result["total_ns"] - result["in_chain_ns"]
    texts = ["largest_type", "largest_input", "largest_output", "before", "after"]
    result[texts] = result[texts].astype(object).where(result[texts].notna() & (result[texts] != ""), None)
    result = result.assign(**own.shares(result["loose_ns"]))

    def evidence(row: int) -> list[Reference]:
        rows = part[part["conversion"] == result["conversion"][row]].assign(type=lambda one: one["type"].astype(str))
        by_shape = rows.groupby(["type", "reads", "writes", "before", "after"], sort=False)["duration_ns"].agg(
            kernels="size", total_ns="sum"
        )
        top = by_shape.sort_values("total_ns", ascending=False, kind="stable").head(10).reset_index()
        units = {"kernels": "count", "total_ns": "ns"}
        columns = ("name", "type", "start_ns", "duration_ns", "input_shapes", "input_formats", "output_formats")
        return [
            Metric(message("network_structure.conversions"), records(top), units),
            kernel_rows(message("network_structure.conversion_rows"), rows, columns),
            *call_stack(facts, rows),
        ]

    return Observations(result, evidence)


def _described(part: pd.DataFrame, side: str) -> pd.Series:
    """Shape, dtype and format of the first tensor: ``4096,4096 BF16 ND``."""
    names = [f"{side}_shapes", f"{side}_dtypes", f"{side}_formats"]
    words = [part[name].astype(str).str.split(";").str[0] for name in names]
    return words[0].str.cat(words[1], sep=" ").str.cat(words[2], sep=" ").str.strip()


def _most(rows: pd.DataFrame, side: str) -> pd.Series:
    """Per conversion the neighbour that most time stands next to."""
    ranked = rows[rows[side] != ""].groupby(["conversion", side])["duration_ns_x"].sum()
    top = ranked.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates("conversion")
    return top.set_index("conversion")[side]


def _undone(part: pd.DataFrame, own: StepKernels, reach: int) -> np.ndarray:
    """Conversions followed, with at most ``reach`` kernels between and no border, by one that reads what they wrote
    and writes what they read; and those that undo them."""
    group = np.cumsum(own.breaks)[part.index]
    here = pd.DataFrame({"group": group, "reads": part["reads"], "writes": part["writes"], "at": part.index})
    there = here.rename(columns={"reads": "writes", "writes": "reads", "at": "later"})
    # The nearest later conversion in the opposite direction.
    pairs = pd.merge_asof(
        here.sort_values("at"),
        there.sort_values("later"),
        left_on="at",
        right_on="later",
        by=["group", "reads", "writes"],
        direction="forward",
        allow_exact_matches=False,
    )
    near = pairs[pairs["later"] - pairs["at"] <= reach + 1]
    paired = set(near["at"]) | set(near["later"].astype("int64"))
    return np.asarray(part.index.isin(paired))


@advisor(
    "network_structure.norm_cast_matmul",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS),
    about=(Column("norm", "text", "", "operator type of the normalisation"),),
    columns=(
        Column("chains", "float", "count", "chains per step"),
        Column("dtype", "text", "", "what the normalisation writes"),
        Column("cast_ns", "float", "ns", "time of the casts per step"),
        Column("product_ns", "float", "ns", "time of the FP32 products per step"),
        Column("total_ns", "float", "ns", "both"),
        *_SHARES,
    ),
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
            *call_stack(facts, frame.iloc[cast[mine]]),
        ]

    return Observations(result, evidence)


@advisor(
    "network_structure.ai_cpu",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("operator", "text", "", "operator type"),
        Column("dtypes", "text", "", "dtypes of its inputs"),
    ),
    columns=(
        Column("kernels", "float", "count", "kernels per step"),
        Column("total_ns", "float", "ns", "their time per step"),
        Column("longest_ns", "float", "ns", "the longest of them"),
        Column("double", "bool", "", "it reads or writes DOUBLE"),
        Column("narrow_integer", "bool", "", "it reads INT16, INT8 or UINT8"),
        *_SHARES,
    ),
)
def ai_cpu(facts: Facts, params: Params) -> Observations:
    """Operators that run on the AI CPU instead of the AI Core."""
    own = facts[step_kernels]
    mine = own.frame[own.frame["core"] == "AI_CPU"]
    if mine.empty:
        raise NotApplicable(message("network_structure.no_ai_cpu"))
    mine = mine.assign(
        operator=mine["type"].astype(str),
        dtypes=mine["input_dtypes"].astype(str),
        out=mine["output_dtypes"].astype(str),
    )
    grouped = mine.groupby(["operator", "dtypes"], sort=True).agg(
        kernels=("duration_ns", "size"),
        total_ns=("duration_ns", "sum"),
        longest_ns=("duration_ns", "max"),
        out=("out", "first"),
    )
    result = grouped.sort_values("total_ns", ascending=False, kind="stable").reset_index()
    both = result["dtypes"].astype(str) + ";" + result["out"].astype(str)
    result["double"] = both.str.contains("DOUBLE|COMPLEX128").astype(bool)
    result["narrow_integer"] = result["dtypes"].astype(str).str.contains("INT16|INT8").astype(bool)
    result["longest_ns"] = result["longest_ns"].astype("float64")
    for name in ("kernels", "total_ns"):
        result[name] = result[name] / own.steps
    result = result.drop(columns="out").assign(**own.shares(result["total_ns"]))

    def evidence(row: int) -> list[Reference]:
        rows = mine[(mine["operator"] == result["operator"][row]) & (mine["dtypes"] == result["dtypes"][row])]
        return [kernel_rows(message("network_structure.ai_cpu_rows"), rows), *call_stack(facts, rows)]

    return Observations(result, evidence)


@advisor(
    "network_structure.precision",
    needs=(step_kernels, fusion_chains),
    wants=(matrix_products, chip, pipes, step_replay),
    columns=(
        Column("cube_ns", "float", "ns", "matrix products, attention and convolutions per step"),
        Column("fp32_ns", "float", "ns", "those that read FP32, per step"),
        Column("fp32_share", "float", "ratio", "fp32_ns of cube_ns"),
        Column("hf32_share", "float", "ratio", "part of fp32_ns in kernels that may use HF32"),
        Column(
            "cube_saving_ns",
            "float",
            "ns",
            "what they take less on 16 bits: products by arithmetic and bytes, others by the assumed saving",
        ),
        Column("vector_saving_ns", "float", "ns", "what the other kernels on FP32 take less, by their bytes"),
        Column("saving_ns", "float", "ns", "how much shorter a step is with both, from a replay of the launches"),
        Column("share_of_step", "float", "ratio", "saving_ns over the step"),
        Column("share_of_computing", "float", "ratio", "both savings over the kernel time of the step"),
    ),
    params=("saving", "reach"),
)
def precision(facts: Facts, params: Params) -> Observations:
    """How much of the work of the cube cores is done in FP32, and what the step would take in 16 bits."""
    own = facts[step_kernels]
    frame = own.frame
    cube = frame["operator_class"].isin(CUBE_WORK).to_numpy()
    if cube.any() and not (frame.loc[cube, "input_dtypes"] != "").any():
        raise Unavailable(message("kernels.unshaped"), message("kernels.unshaped.collect"), ("level1",))
    cube = cube & (frame["input_dtypes"] != "").to_numpy()
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    total = float(took[cube].sum()) / own.steps
    if not total:
        raise NotApplicable(message("network_structure.no_cube"))
    wide = wide_kernels(own) & cube
    fp32 = float(took[wide].sum()) / own.steps
    hf32 = float(took[wide & (frame["hf32"] == "YES").to_numpy()].sum()) / own.steps
    updates = _updates(own, facts[fusion_chains])
    after = narrowed_ns(own, cube, updates, params["saving"])
    if facts.knows(matrix_products, chip, pipes):
        mac = facts[pipes]["aic_mac"].to_numpy()[frame["row"].to_numpy()]
        known = products_ns(own, facts[matrix_products], facts[chip], mac, params["reach"])
        after = np.where(np.isfinite(known), known, after)
    saved = took - after
    shorter = np.flatnonzero(saved > 0)
    step = float(saved.sum())
    if step_replay in facts:
        quicker = Merging.none(frame["work"].to_numpy()[shorter], took[shorter], after[shorter])
        step = float(facts[step_replay].saved_ns(quicker))
    result = pd.DataFrame(
        {
            "cube_ns": [total],
            "fp32_ns": [fp32],
            "fp32_share": [fp32 / total],
            "hf32_share": [hf32 / fp32 if fp32 else np.nan],
            "cube_saving_ns": [float(saved[cube].sum()) / own.steps],
            "vector_saving_ns": [float(saved[~cube].sum()) / own.steps],
            "saving_ns": [step / own.steps],
            "share_of_step": [step / own.steps / own.wall_ns],
            "share_of_computing": [float(saved.sum()) / own.steps / own.kernel_ns],
        }
    )

    def evidence(_: int) -> list[Reference]:
        columns = ("type", "start_ns", "duration_ns", "input_shapes", "input_dtypes", "hf32")
        by_class = pd.DataFrame(
            {"operator_class": frame["operator_class"].astype(str), "per_step_ns": took, "in_16_bits_ns": after}
        )
        by_class = by_class[saved > 0].groupby("operator_class")[["per_step_ns", "in_16_bits_ns"]].sum() / own.steps
        table = by_class.sort_values("per_step_ns", ascending=False, kind="stable").reset_index()
        units = {"per_step_ns": "ns", "in_16_bits_ns": "ns"}
        return [
            kernel_rows(message("network_structure.fp32_rows"), frame[wide], columns),
            Metric(message("network_structure.in_16_bits"), records(table), units),
        ]

    return Observations(result, evidence)


def _updates(own: StepKernels, chains: Chains) -> np.ndarray:
    """Which kernels update parameters: those of optimizers, written out or not."""
    unfused = chains.of(np.flatnonzero(chains.frame["pattern"].str.startswith("optimizer").to_numpy()))
    inside = np.isin(np.arange(len(own.frame)), unfused)
    return np.asarray(inside | (own.frame["operator_class"] == "optimizer").to_numpy())


ADVISORS = (hot_share, slices, conversions, norm_cast_matmul, ai_cpu, precision)
