"""NS035: kernels between the heavy ones that pass tensors on to each other, and what one kernel for each would save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    Facts,
    Merging,
    NotApplicable,
    Shape,
    aggregated,
    elements,
    launches,
    replay,
    shapes_of,
)
from advisors.columns import savings, shares
from advisors.fusion.computations import vocabulary
from advisors.fusion.regions import COPIES, Regions, fusion_regions
from advisors.layers.layers import Layers, layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.network_structure.memory_bound_chains import series_text
from advisors.roofline.work import KernelWork, kernel_work
from advisors.step_kernels import EVIDENCE_COLUMNS, StepKernels, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"

_KINDS = 12
"""So many kinds of regions are measured, those with most to gain: the replay of each takes time."""


@advisor(
    "network_structure.regions",
    needs=(step_kernels, fusion_regions, kernel_work),
    wants=(replay, layers, launches, HOST_EVENTS),
    about=(
        Column("chain", "text", "", "the operator types of the region in order, in short", zh="算子链"),
        Column("shape", "text", "", "its largest tensor", zh="shape"),
    ),
    columns=(
        Column("regions", "float", "count", "regions of this kind per step", zh="区域数"),
        Column("kernels", "float", "count", "kernels of a region", zh="kernel 数"),
        Column("in_layers", "float", "count", "layers of the model in which it runs", zh="所在层数"),
        Column("of_layers", "float", "count", "layers of these stacks, or of all of them", zh="总层数"),
        Column(
            "zero_filled",
            "bool",
            "",
            "most of them fill a tensor with zeros and write a part of it",
            zh="先清零再写入部分",
        ),
        Column("saved_launches", "float", "count", "kernels that need not be launched, per step", zh="节省的下发次数"),
        Column("moved_bytes", "float", "B", "bytes that a region reads and writes", zh="搬运字节"),
        Column(
            "fused_bytes",
            "float",
            "B",
            "of it: what comes from outside and what others read, each once",
            zh="融合后搬运字节",
        ),
        Column("region_ns", "float", "ns", "time of the regions per step", zh="区域耗时"),
        Column(
            "fused_ns",
            "float",
            "ns",
            "time of one kernel for each, per step: its bytes at the bandwidth reached, what the shortest kernels "
            "take, and what copies take beyond their bytes",
            zh="融合算子",
        ),
        *savings("region_ns less fused_ns"),
        Column(
            "bandwidth",
            "float",
            "B/s",
            "what large elementwise kernels of this profile reach; without such kernels, the best kernel of the region",
            zh="带宽",
        ),
        *shares("saving_ns", "kernel_saving_ns"),
    ),
    evidence=PLACES,
)
def regions(facts: Facts, params: Params) -> Observations:
    """Kernels that pass tensors on to each other between matrix products, convolutions and attentions, and that belong
    to no named computation: by kind, what they move and take, and what one kernel for each region would."""
    own = facts[step_kernels]
    own.require_tensors()
    found = facts[fusion_regions]
    if not len(found.moved):
        raise NotApplicable(message("regions.none"))
    table = _by_region(own, found, facts[kernel_work])
    kinds = _by_kind(table, own)
    of_kind = [
        np.flatnonzero(((table["chain"] == chain) & (table["shape"] == shape)).to_numpy())
        for chain, shape in zip(kinds["chain"], kinds["shape"], strict=True)
    ]
    merged = [_merging(own, found, table, numbers) for numbers in of_kind]
    members = [found.members[np.isin(found.region_of, numbers)] for numbers in of_kind]
    replayed = facts.get(replay)
    kernel_saving = kinds["kernel_saving_ns"].to_numpy(dtype=np.float64)
    saving = (
        kernel_saving if replayed is None else np.array(replayed.saved_by_each(merged), dtype=np.float64) / own.steps
    )
    model = facts.get(layers)
    places = [_layers_of(model, rows) for rows in members]
    frame = kinds.assign(
        saving_ns=saving,
        launch_saving_ns=np.maximum(saving - kernel_saving, 0.0),
        in_layers=[inside for inside, _ in places],
        of_layers=[count for _, count in places],
        share_of_step=saving / own.wall_ns,
        share_of_computing=kernel_saving / own.kernel_ns,
    )

    def evidence(row: int) -> list[Reference]:
        longest = int(of_kind[row][table["region_ns"].to_numpy()[of_kind[row]].argmax()])
        example = own.frame.iloc[found.members[found.region_of == longest]]
        return [
            Rows(message("regions.example"), KERNELS, example["row"].to_numpy(dtype=np.int64), EVIDENCE_COLUMNS),
            kernel_rows(message("regions.rows"), own.frame.iloc[members[row]]),
            *origin(facts, own.frame.iloc[members[row]]),
        ]

    return Observations(frame, evidence, cure=lambda row: merged[row])


def _by_region(own: StepKernels, found: Regions, measured: KernelWork) -> pd.DataFrame:
    """One row per region, by number."""
    part = own.frame.iloc[found.members]
    took = part["duration_ns"].to_numpy(dtype=np.float64)
    moved = (measured.per_kernel(own, "read") + measured.per_kernel(own, "written"))[found.members]
    speed = moved / np.maximum(took, 1) * 1e9
    types = part["type"].astype(str).to_numpy()
    is_copy = np.isin(types, _of_operations(types, COPIES))
    # The memory does not make a copy take longer than its bytes: the strides do, which one kernel has as well.
    strided = np.where(is_copy, took - moved / own.bandwidth * 1e9 - own.least_ns, 0.0)
    rows = pd.DataFrame(
        {
            "region": found.region_of,
            "type": types,
            "shape": _largest_shapes(own)[part["signature"].to_numpy()],
            "took": took,
            "moved": moved,
            "speed": speed,
            "fills": np.isin(types, _of_operations(types, ("zeros",))),
            "strided": np.maximum(np.nan_to_num(strided), 0.0),
            "bytes": part["bytes"].to_numpy(),
        }
    )
    rows = rows.sort_values(["region", "bytes"], ascending=[True, False], kind="stable")
    shapes = rows.groupby("region")["shape"].first()
    by_region = aggregated(
        rows.sort_index(),
        "region",
        chain=("type", series_text),
        kernels=("type", "size"),
        region_ns=("took", "sum"),
        moved_bytes=("moved", np.sum),
        best=("speed", "max"),
        fills=("fills", "any"),
        strided=("strided", "sum"),
    ).set_index("region")
    sums: pd.DataFrame = by_region.assign(shape=shapes, fused_bytes=found.moved)
    sums["bandwidth"], begin = own.reached(sums["best"])
    fused = sums["fused_bytes"] / sums["bandwidth"] * 1e9 + begin + sums["strided"]
    sums["fused_ns"] = np.fmin(fused.fillna(np.inf), sums["region_ns"])
    return sums


def _of_operations(types: npt.NDArray[np.object_], operations: Sequence[str]) -> list[str]:
    """Those of the operator types that do one of the operations of `computations.yaml`."""
    words = vocabulary()
    return [name for name in np.unique(types).tolist() if words.operation_of(name) in operations]


def _largest_shapes(own: StepKernels) -> npt.NDArray[np.object_]:
    """The largest tensor of each signature."""
    firsts = own.frame.iloc[own.firsts]
    texts = firsts["input_shapes"].astype(str) + ";" + firsts["output_shapes"].astype(str)
    largest: list[Shape] = [max(shapes_of(text), key=lambda shape: elements(shape)) for text in texts]
    return np.array([",".join(map(str, shape)) for shape in largest], dtype=np.object_)


def _by_kind(table: pd.DataFrame, own: StepKernels) -> pd.DataFrame:
    """One row per kind, those with most to gain first: kernel time, and the idle time in front of kernels."""
    kinds = aggregated(
        table,
        ["chain", "shape"],
        regions=("kernels", "size"),
        zero_filled=("fills", "mean"),
        in_all=("kernels", "sum"),
        kernels=("kernels", "mean"),
        moved_bytes=("moved_bytes", "mean"),
        fused_bytes=("fused_bytes", "mean"),
        region_ns=("region_ns", "sum"),
        fused_ns=("fused_ns", "sum"),
        bandwidth=("bandwidth", "max"),
    )
    kinds["zero_filled"] = kinds["zero_filled"] > 1 / 2
    kinds["saved_launches"] = kinds["in_all"] - kinds["regions"]
    for name in ("regions", "saved_launches", "region_ns", "fused_ns"):
        kinds[name] = kinds[name] / own.steps
    kinds["kernel_saving_ns"] = kinds["region_ns"] - kinds["fused_ns"]
    idle_ns = max(own.wall_ns - own.kernel_ns, 0.0) / len(own.frame) * own.steps
    gain = kinds["kernel_saving_ns"] + kinds["saved_launches"] * idle_ns
    order = np.argsort(-gain.to_numpy(), kind="stable")[:_KINDS]
    ordered: pd.DataFrame = kinds.iloc[order].drop(columns="in_all").reset_index(drop=True)
    return ordered


def _merging(own: StepKernels, found: Regions, table: pd.DataFrame, numbers: Ints) -> Merging:
    inside = np.isin(found.region_of, numbers)
    mine = table.iloc[numbers]
    return Merging(
        own.frame["work"].to_numpy()[found.members[inside]],
        np.searchsorted(numbers, found.region_of[inside]),
        mine["region_ns"].to_numpy(dtype=np.float64),
        mine["fused_ns"].to_numpy(dtype=np.float64),
    )


def _layers_of(model: Layers | None, rows: Ints) -> tuple[float, float]:
    """The layers in which the kernels run, and those of their stacks, or of all stacks where they run outside of
    layers; unknown where no layers are."""
    if model is None:
        return np.nan, np.nan
    counts = model.towers.set_index("tower")["layers"]
    inside = rows[model.layer[rows] >= 0]
    if not len(inside):
        return 0.0, float(counts.sum())
    places = np.unique(np.stack([model.tower[inside], model.layer[inside]], axis=1), axis=0)
    return float(len(places)), float(counts[np.unique(places[:, 0])].sum())
