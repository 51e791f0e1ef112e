"""SA005: matrix products in a row on the same left operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    Merging,
    NotApplicable,
    aggregated,
    chip,
    launches,
    narrowed,
    per_text,
    pipes,
    replay,
)
from advisors.columns import OPERATOR_TYPE, shares
from advisors.first_tensor import first_elements
from advisors.messages import message
from advisors.roofline.products import block_cost, matrix_products
from advisors.step_kernels import PIPE_COLUMNS, StepKernels, call_stack, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"


@advisor(
    "shape_affinity.shared_input",
    needs=(step_kernels, matrix_products, chip),
    wants=(pipes, replay, launches, HOST_EVENTS),
    about=(
        Column("input_shape", "text", "", "the operand that the products share", zh="输入 shape"),
        Column("widths", "text", "", "N of each of them", zh="宽度"),
        Column("dtype", "text", "", "dtype of the operand", zh="数据类型"),
    ),
    columns=(
        OPERATOR_TYPE,
        Column("products", "int", "count", "products that share an operand", zh="矩阵乘数"),
        Column("places", "float", "count", "how often per step", zh="位置数"),
        Column("rows", "int", "count", "M of the products", zh="行数"),
        Column("k", "int", "count", "length of the sum", zh="K"),
        Column("together", "int", "count", "N of the product that would replace them", zh="合并后"),
        Column("cores", "int", "count", "cube cores of the chip", zh="核数"),
        Column("most_blocks", "int", "count", "blocks of the largest of them", zh="最大分块数"),
        Column(
            "cost_ratio",
            "float",
            "ratio",
            "blocks of the one over those of all of them, by rounds and block size",
            zh="代价比",
        ),
        Column("total_ns", "float", "ns", "time of the products per step", zh="合计"),
        Column(
            "together_ns",
            "float",
            "ns",
            "time if they were one, per step: the largest of them with as many more rounds of blocks, or where "
            "loading takes the time with as many more bytes, spread over more cores",
            zh="合并后",
        ),
        Column("split_ns", "float", "ns", "time to split the result again, per step, by its bytes", zh="切分"),
        Column("gain_ns", "float", "ns", "total_ns less both", zh="收益"),
        Column(
            "saving_ns",
            "float",
            "ns",
            "how much shorter a step is, from a replay of launches and kernels; without launches, gain_ns",
            zh="节省",
        ),
        Column(
            "launch_saving_ns",
            "float",
            "ns",
            "part of saving_ns beyond gain_ns: the device waits less for launches",
            zh="下发节省",
        ),
        *shares("saving_ns", "gain_ns"),
    ),
    params=("reach",),
)
def shared_input(facts: Facts, params: Params) -> Observations:
    """Matrix products in a row on the same left operand, which could be one with the weights side by side."""
    kernels = facts[step_kernels]
    cores = facts[chip].cube_cores
    frame = kernels.frame
    distinct = facts[matrix_products].set_index("signature")
    place = np.flatnonzero((frame["operator_class"] == "matmul").to_numpy())
    products = narrowed(frame, ("signature", "duration_ns")).iloc[place].join(distinct, on="signature", how="left")
    products["place"], products["chain"] = place, np.cumsum(kernels.breaks)[place]
    previous = products.shift(1)
    same = (products["left_axis"] == "k") & (products["chain"] == previous["chain"])
    for name in ("left_shape", "left_axis", "left_format", "dtype", "m", "k", "batch"):
        same &= products[name] == previous[name]
    distance = products["place"] - previous["place"]
    same &= (distance <= params["reach"] + 1) & ~_overwritten(frame, products, distance, int(params["reach"]))
    products["run"] = np.cumsum(~same.to_numpy())
    products = products[products["run"].map(products["run"].value_counts()) > 1]
    if products.empty:
        raise NotApplicable(message("shape_affinity.no_shared_input"))
    products["blocks"], products["cost"] = block_cost(products["m"], products["n"], products["batch"], cores)
    products["bytes"] = (
        products["left_bytes"]
        + products["right_bytes"]
        + products["element_bytes"] * products["m"] * products["n"] * products["batch"]
    )
    products["mac"], products["loads"] = _busy(facts, products["place"].to_numpy())
    products["width"] = products["n"].astype("int64").astype(str)
    runs = aggregated(
        products,
        "run",
        input_shape=("left_shape", "first"),
        widths=("width", ", ".join),
        dtype=("dtype", "first"),
        operator=("operator", "first"),
        products=("n", "size"),
        rows=("m", "first"),
        k=("k", "first"),
        batch=("batch", "first"),
        together=("n", "sum"),
        most_blocks=("blocks", "max"),
        apart=("cost", "sum"),
        total_ns=("duration_ns", "sum"),
    ).set_index("run")
    merged_blocks, runs["merged"] = block_cost(runs["rows"], runs["together"], runs["batch"], cores)
    largest = products.sort_values(["cost", "blocks", "duration_ns"], kind="stable").drop_duplicates("run", keep="last")
    largest = largest.set_index("run").reindex(runs.index)
    runs["together_ns"] = _merged_ns(largest, runs, np.minimum(merged_blocks, cores), facts)
    bandwidth = kernels.bandwidth if np.isfinite(kernels.bandwidth) else _best_bandwidth(facts[matrix_products])
    written = largest["element_bytes"] * runs["rows"] * runs["together"] * runs["batch"]
    runs["split_ns"] = 2 * written / bandwidth * 1e9 + kernels.least_ns
    grouped = runs.groupby(["input_shape", "widths", "dtype"], sort=True)
    whole = ["products", "rows", "k", "together", "most_blocks"]
    table = grouped[["operator", *whole, "apart", "merged"]].first()
    table = table.join(grouped[["total_ns", "together_ns", "split_ns"]].sum())
    table["places"] = grouped.size()
    replayed = facts.get(replay)
    mergings = [_merging(kernels, products, runs.loc[index]) for index in grouped.groups.values()]
    table["saved"] = np.nan if replayed is None else np.array(replayed.saved_by_each(mergings), dtype=np.float64)
    table["merging"] = np.arange(len(table))
    table = table.reset_index().astype(dict.fromkeys(whole, "int64"))
    for name in ("places", "total_ns", "together_ns", "split_ns", "saved"):
        table[name] = table[name] / kernels.steps
    table["cores"] = cores
    table["cost_ratio"] = np.minimum(table["merged"] / table["apart"], 1.0)
    table["gain_ns"] = np.maximum(table["total_ns"] - table["together_ns"] - table["split_ns"], 0.0)
    table["saving_ns"] = table["saved"].where(table["saved"].notna(), table["gain_ns"])
    table["launch_saving_ns"] = np.maximum(table["saving_ns"] - table["gain_ns"], 0.0)
    table = table.sort_values("saving_ns", ascending=False, kind="stable").reset_index(drop=True)
    table["share_of_step"] = table["saving_ns"] / kernels.wall_ns
    table["share_of_computing"] = table["gain_ns"] / kernels.kernel_ns

    def evidence(row: int) -> list[Reference]:
        alike = runs
        for name in ("input_shape", "widths", "dtype"):
            alike = alike[alike[name] == table[name][row]]
        listed = frame.iloc[products.loc[products["run"].isin(alike.index), "place"].to_numpy()]
        return [
            kernel_rows(message("shape_affinity.shared_rows"), listed, PIPE_COLUMNS),
            *call_stack(facts, listed),
        ]

    def cure(row: int) -> Merging:
        return mergings[int(table["merging"][row])]

    return Observations(table, evidence, cure=cure)


def _busy(facts: Facts, place: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Of kernels: the part of the time in which the cube computes, 1 where not recorded; and whether loading is what
    keeps them busiest, no where not recorded."""
    ratios = facts.get(pipes)
    if ratios is None:
        return np.ones(len(place)), np.zeros(len(place), dtype=np.bool_)
    kernel_pipes = ratios.iloc[facts[step_kernels].frame["row"].to_numpy()[place]]
    mac = kernel_pipes["aic_mac"].to_numpy(dtype=np.float64)
    return np.where(mac > 0, mac, 1.0), (kernel_pipes["bound"] == "aic_mte2").to_numpy()


def _best_bandwidth(products: pd.DataFrame) -> float:
    """B/s of the product that loads and writes fastest."""
    written = products["element_bytes"] * products["m"] * products["n"] * products["batch"]
    return float(((products["left_bytes"] + products["right_bytes"] + written) / products["mean_ns"]).max()) * 1e9


def _merged_ns(largest: pd.DataFrame, runs: pd.DataFrame, used: Floats, facts: Facts) -> Floats:
    """What each run of products takes as one, from the largest of them. Where the cube is what is busy, it takes as
    many times as long as it has more rounds of blocks. Where loading is, it moves its bytes with more of the cores,
    each as fast as it does now, all of them no faster than the product of the profile that moves most; and computes
    besides. Never longer than the products apart."""
    cores = facts[chip].cube_cores
    took = largest["duration_ns"].to_numpy(dtype=np.float64)
    rounds = took * (runs["merged"] / largest["cost"]).to_numpy(dtype=np.float64)
    element, rows, batch = largest["element_bytes"], runs["rows"], runs["batch"]
    # The shared operand is read once.
    moved = largest["left_bytes"] + element * batch * runs["together"] * (runs["k"] + rows)
    reached = (largest["bytes"] / took).to_numpy(dtype=np.float64)
    spread = reached * used / np.minimum(largest["blocks"].to_numpy(dtype=np.float64), cores)
    limit = np.maximum(reached, _best_bandwidth(facts[matrix_products]) / 1e9)
    loading = moved.to_numpy(dtype=np.float64) / np.minimum(spread, limit)
    computing = np.where(largest["loads"], largest["mac"] * rounds, rounds)
    together = np.where(largest["loads"], np.maximum(loading, computing), computing)
    return np.asarray(np.minimum(together, runs["total_ns"]), dtype=np.float64)


def _merging(kernels: StepKernels, products: pd.DataFrame, runs: pd.DataFrame) -> Merging:
    """These runs of products as one product and one split each."""
    members = products[products["run"].isin(runs.index)]
    last = (members["run"] != members["run"].shift(-1)).to_numpy()
    number = np.searchsorted(runs.index.to_numpy(), members["run"].to_numpy())
    durations = members["duration_ns"].to_numpy(dtype=np.float64)
    # The kernel of the last product stands for the split.
    split = np.bincount(number[last], weights=durations[last], minlength=len(runs))
    apart = runs["total_ns"].to_numpy(dtype=np.float64) - split
    before, after = np.concatenate([apart, split]), np.concatenate([runs["together_ns"], runs["split_ns"]])
    tasks = kernels.frame["work"].to_numpy()[members["place"].to_numpy()]
    return Merging(tasks, number + last * len(runs), before, after)


def _overwritten(frame: pd.DataFrame, products: pd.DataFrame, distance: pd.Series, reach: int) -> pd.Series:
    """Whether a kernel between a product and the one before writes a tensor of the operand's size."""
    written_sizes = per_text(frame["output_shapes"], first_elements).to_numpy(dtype=np.int64)
    operand_sizes = per_text(frame["input_shapes"], first_elements).to_numpy(dtype=np.int64)[
        products["place"].to_numpy()
    ]
    result = np.zeros(len(products), dtype=np.bool_)
    for back in range(1, reach + 1):
        between = (distance > back).to_numpy()
        result |= between & (written_sizes[np.maximum(products["place"].to_numpy() - back, 0)] == operand_sizes)
    return pd.Series(result, index=products.index)
