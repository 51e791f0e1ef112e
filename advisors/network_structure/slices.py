"""NS002: matrix products whose result is cut by several slices."""

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
    chip,
    launches,
    matching,
    per_text,
)
from advisors.columns import shares
from advisors.first_tensor import first_elements, first_tail
from advisors.fusion.chains import fusion_chains
from advisors.messages import message
from advisors.roofline.products import block_cost, matrix_products
from advisors.step_kernels import call_stack, kernel_rows, step_kernels

_PART = re.compile(r"^(Strided)?Slice\w*$", re.I)


@advisor(
    "network_structure.slices",
    needs=(step_kernels, fusion_chains),
    wants=(launches, HOST_EVENTS, matrix_products, chip),
    about=(
        Column("input_shape", "text", "", "the tensor that is sliced", zh="输入 shape"),
        Column("dtype", "text", "", "its dtype", zh="数据类型"),
    ),
    columns=(
        Column("parts", "text", "", "shapes of the slices", zh="份数"),
        Column("slices", "int", "count", "slices of one tensor", zh="切片数"),
        Column("tensors", "float", "count", "tensors that are sliced like this, per step", zh="tensor 数"),
        Column("product", "text", "", "operator type that writes the tensor", zh="矩阵乘"),
        Column("slice_ns", "float", "ns", "time of the slices per step", zh="切片"),
        Column("in_chain_ns", "float", "ns", "part of slice_ns in chains that a fused kernel replaces", zh="链内耗时"),
        Column("loose_ns", "float", "ns", "the rest of slice_ns", zh="松散"),
        Column(
            "product_ns", "float", "ns", "time of the matrix products that write the tensors, per step", zh="矩阵乘"
        ),
        Column("cores", "float", "count", "cube cores of the chip", zh="核数"),
        Column(
            "least_blocks",
            "float",
            "count",
            "blocks of the smallest of the products, were the weight divided as the slices are",
            zh="最小分块数",
        ),
        Column(
            "divided_ns",
            "float",
            "ns",
            "time of the products per step, were the weight divided: theirs now, by rounds and size of blocks",
            zh="切分后",
        ),
        Column("loose_share", "float", "ratio", "loose_ns over the step", zh="松散占比"),
        *shares("slice_ns"),
    ),
)
def slices(facts: Facts, params: Params) -> Observations:
    """Matrix products whose result is cut by several slices."""
    kernels = facts[step_kernels]
    kernels.require_tensors()
    frame = kernels.frame
    position = np.arange(len(frame))
    is_product = (frame["operator_class"] == "matmul").to_numpy()
    group = np.cumsum(kernels.breaks)
    latest_product = np.maximum.accumulate(np.where(is_product, position, -1))
    input_elements = per_text(frame["input_shapes"], first_elements).to_numpy(dtype=np.int64)
    input_tail = per_text(frame["input_shapes"], first_tail).to_numpy(dtype=np.int64)
    output_elements = per_text(frame["output_shapes"], first_elements).to_numpy(dtype=np.int64)
    output_tail = per_text(frame["output_shapes"], first_tail).to_numpy(dtype=np.int64)
    product_row = np.maximum(latest_product, 0)
    is_slice = matching(frame["type"], _PART) & (latest_product >= 0) & (group == group[product_row])
    # The tensor may be seen in another shape than it was written in, but not with another last axis.
    is_slice &= (
        (input_elements == output_elements[product_row])
        & (input_tail == output_tail[product_row])
        & (output_elements < input_elements)
    )
    if not is_slice.any():
        raise NotApplicable(message("network_structure.no_slices"))
    slice_rows = frame[is_slice].assign(
        origin=product_row[is_slice],
        out_size=output_elements[is_slice],
        in_size=input_elements[is_slice],
        input_shape=frame["input_shapes"][is_slice].astype(str).str.split(";").str[0],
        dtype=frame["input_dtypes"][is_slice].astype(str).str.split(";").str[0],
        part=frame["output_shapes"][is_slice].astype(str),
        in_chain_ns=np.where(np.isin(position, facts[fusion_chains].members), frame["duration_ns"], 0)[is_slice],
    )
    tensors = aggregated(
        slice_rows,
        "origin",
        input_shape=("input_shape", "first"),
        dtype=("dtype", "first"),
        parts=("part", "; ".join),
        slices=("part", "size"),
        written=("out_size", "sum"),
        size=("in_size", "first"),
        slice_ns=("duration_ns", "sum"),
        in_chain_ns=("in_chain_ns", "sum"),
    ).set_index("origin")
    # Several slices that do not overlap are parts of one split.
    tensors = tensors[(tensors["slices"] > 1) & (tensors["written"] <= tensors["size"])]
    if tensors.empty:
        raise NotApplicable(message("network_structure.no_slices"))
    tensors["product_ns"] = frame["duration_ns"].to_numpy()[tensors.index]
    tensors["product"] = frame["type"].astype(str).to_numpy()[tensors.index]
    tensors = tensors.join(_divided(facts, slice_rows, tensors))
    tensors["told"] = tensors["divided_ns"].notna()
    grouped = aggregated(
        tensors,
        ["input_shape", "dtype"],
        sort=False,
        parts=("parts", "first"),
        slices=("slices", "max"),
        tensors=("slice_ns", "size"),
        product=("product", "first"),
        slice_ns=("slice_ns", "sum"),
        in_chain_ns=("in_chain_ns", "sum"),
        product_ns=("product_ns", "sum"),
        least_blocks=("least_blocks", "min"),
        divided_ns=("divided_ns", "sum"),
        told=("told", "min"),
    )
    result = grouped.sort_values("slice_ns", ascending=False, kind="stable", ignore_index=True)
    result["divided_ns"] = result["divided_ns"].where(result.pop("told"))
    result["cores"] = float(facts[chip].cube_cores) if facts.get(chip) is not None else np.nan
    for column in ("tensors", "slice_ns", "in_chain_ns", "product_ns", "divided_ns"):
        result[column] = result[column] / kernels.steps
    result["loose_ns"] = result["slice_ns"] - result["in_chain_ns"]
    result["loose_share"] = result["loose_ns"] / kernels.wall_ns
    result = result.assign(**kernels.shares(result["slice_ns"]))

    def tensors_of(row: int) -> pd.DataFrame:
        shape, dtype = result["input_shape"][row], result["dtype"][row]
        of_shape: pd.DataFrame = tensors[(tensors["input_shape"] == shape) & (tensors["dtype"] == dtype)]
        return of_shape

    def evidence(row: int) -> list[Reference]:
        of_shape = tensors_of(row)
        parts = slice_rows[slice_rows["origin"].isin(of_shape.index)]
        return [
            kernel_rows(message("network_structure.slice_rows"), parts),
            kernel_rows(message("network_structure.product_rows"), frame.iloc[of_shape.index.to_numpy()]),
            *call_stack(facts, parts),
        ]

    def cure(row: int) -> Shortening:
        parts = slice_rows[slice_rows["origin"].isin(tensors_of(row).index)]
        return kernels.shorter(parts[~np.isin(parts.index.to_numpy(), facts[fusion_chains].members)])

    return Observations(result, evidence, cure=cure)


def _divided(facts: Facts, slice_rows: pd.DataFrame, tensors: pd.DataFrame) -> pd.DataFrame:
    """For each tensor (by the row of its product) the blocks of the smallest product and the time of all of them, were
    there one product for each slice; unknown where the chip, or which rows and columns the slices keep, is not."""
    device, products = facts.get(chip), facts.get(matrix_products)
    unknown = pd.DataFrame({"least_blocks": np.nan, "divided_ns": np.nan}, index=tensors.index)
    if device is None or products is None:
        return unknown
    kernels = facts[step_kernels].frame
    whole = kernels.iloc[tensors.index][["signature"]].join(products.set_index("signature"), on="signature")
    whole.index = tensors.index
    parts = slice_rows[slice_rows["origin"].isin(tensors.index)].join(whole[["m", "n", "batch"]], on="origin")
    parts["columns"] = parts["out_size"] / parts["m"]
    # Each slice keeps all rows and some columns of one product.
    told = (parts["batch"] == 1) & (parts["columns"] % 1 == 0) & parts["columns"].between(1, parts["n"] - 1)
    told = told.groupby(parts["origin"]).transform("all")
    parts = parts[told]
    if parts.empty:
        return unknown
    parts["blocks"], parts["cost"] = block_cost(parts["m"], parts["columns"], parts["batch"], device.cube_cores)
    by_tensor = aggregated(parts, "origin", least_blocks=("blocks", "min"), apart=("cost", "sum")).set_index("origin")
    whole = whole.loc[by_tensor.index]
    _, cost = block_cost(whole["m"], whole["n"], whole["batch"], device.cube_cores)
    by_tensor["divided_ns"] = tensors["product_ns"] * by_tensor["apart"] / cost
    divided: pd.DataFrame = by_tensor[["least_blocks", "divided_ns"]].reindex(tensors.index)
    return divided
