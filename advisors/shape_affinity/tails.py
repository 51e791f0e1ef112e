"""SA001, SA002: last axes of the operands of matrix products that load badly."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    Merging,
    NotApplicable,
    launches,
    matching,
    per_text,
    pipes,
    replay,
)
from advisors.columns import MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.first_tensor import first_tail
from advisors.messages import message
from advisors.roofline.products import TILED, matrix_products
from advisors.step_kernels import PIPE_COLUMNS, StepKernels, call_stack, kernel_rows, records, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Integers: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

LINE = 512
"""Bytes that the loads of the cube cores come in: a tail axis should be a multiple (docs/sources.md#tail-axis)."""

STRIDE = 16 * 1024
"""Bytes that a tail axis should not be a multiple of (docs/sources.md#tail-axis)."""

_TRANSDATA = re.compile(r"TransData", re.I)
_TO_TILED = re.compile(rf"^{TILED}")


def loads_badly(tail_bytes: Integers) -> Bools:
    """Whether last axes of so many bytes load badly: no multiples of 512 B, or multiples of 16 KB."""
    return np.asarray((tail_bytes % LINE != 0) | (tail_bytes % STRIDE == 0), dtype=np.bool_)


def good_tail(length: int, *element_bytes: int) -> int:
    """The nearest length of a tail axis, from ``length`` up, that is a multiple of 512 B and not of 16 KB, with
    elements of each of these sizes.

    >>> good_tail(50257, 2), good_tail(151936, 2), good_tail(8192, 2), good_tail(4096, 2)
    (50432, 152064, 8448, 4096)
    >>> good_tail(50257, 4), good_tail(50257, 2, 4), good_tail(4096, 2, 4)
    (50304, 50432, 4352)
    """
    step = max(LINE // min(element_bytes), 1)
    multiple = -(-length // step) * step
    while any(multiple * size % STRIDE == 0 for size in element_bytes):
        multiple += step
    return multiple


@advisor(
    "shape_affinity.tails",
    needs=(step_kernels, matrix_products),
    wants=(pipes, launches, HOST_EVENTS, replay),
    about=(
        Column("axis", "int", "count", "length of the last axis of the operands", zh="轴"),
        Column("dtype", "text", "", "their dtype", zh="数据类型"),
    ),
    columns=(
        Column("tail_bytes", "int", "B", "bytes of that axis", zh="尾轴字节数"),
        Column("unaligned", "bool", "", "not a multiple of 512 B", zh="未对齐"),
        Column("strided", "bool", "", "a multiple of 16 KB", zh="跨步访问"),
        Column("multiple", "int", "count", "elements in 512 B, of the smallest dtype with that axis", zh="倍数"),
        Column(
            "good",
            "int",
            "count",
            "nearest length that is a multiple of 512 B and not of 16 KB, in all dtypes with that axis",
            zh="合适取值",
        ),
        Column("added_share", "float", "ratio", "how much longer that is", zh="增加占比"),
        OPERATOR_TYPE,
        Column("example", "text", "", "the product that takes most: left x right operand as stored", zh="示例"),
        Column("kernels", "float", "count", "products with such an operand, per step", zh="kernel 数"),
        TOTAL_NS,
        Column("summed_ns", "float", "ns", "part of it in products that sum along that axis", zh="合计"),
        Column("mixed_ns", "float", "ns", "part of it in kernels that need the vector cores too (MIX_AIC)", zh="混合"),
        Column("conversion_ns", "float", "ns", "TransData of operands with that axis, per step", zh="转换"),
        Column("tflops", "float", "TFLOP/s", "what these products reach", zh="TFLOPS"),
        Column(
            "peer_tflops",
            "float",
            "TFLOP/s",
            "what products of similar size with good tails reach in this profile",
            zh="同类 TFLOPS",
        ),
        Column("measured", "bool", "", "there are such products to compare with", zh="实测"),
        Column(
            "gain_ns",
            "float",
            "ns",
            "time saved per step with the good length: at the speed of the others or by the assumed gain, less the "
            "longer axis, and no more than the cube does not compute; and the TransData",
            zh="收益",
        ),
        Column(
            "saving_ns",
            "float",
            "ns",
            "how much shorter a step is, from a replay of launches and kernels; without launches, gain_ns",
            zh="节省",
        ),
        *shares("saving_ns", "gain_ns"),
    ),
    params=("operand_share", "similar", "assumed_gain"),
    evidence=(
        Column("left_shape", "text", "", "shape of the left operand", zh="左矩阵 shape"),
        Column("right_shape", "text", "", "shape of the right operand", zh="右矩阵 shape"),
        Column("core", "text", "", "the kind of core that it runs on", zh="核类型"),
        MEAN_NS,
    ),
)
def tails(facts: Facts, params: Params) -> Observations:
    """Last axes of the operands of matrix products that load badly, by length."""
    kernels = facts[step_kernels]
    table = facts[matrix_products]
    table = table[(table["element_bytes"] > 0) & (table["total_ns"] > 0)].reset_index(drop=True)
    if table.empty:
        raise NotApplicable(message("shape_affinity.no_products"))
    tails = _tails(table, params["operand_share"])
    good = ~tails.bad
    speed = (table["flops"] / table["mean_ns"]).to_numpy(dtype=np.float64)
    table["slowest"], table["peer"] = _peer_speeds(table, good, speed, params["similar"])
    bad = _with_good_tails(table, tails, _computing(facts, table), params["assumed_gain"])
    converted = _converted_tails(kernels.frame)
    axes = [_axis(one, kernels, converted) for _, one in bad.groupby(["tail", "dtype"], sort=True)]
    frame = pd.DataFrame(axes or [_GOOD_ROW]).sort_values("gain_ns", ascending=False, kind="stable", ignore_index=True)
    changes = _shorter(kernels, bad, converted, frame["axis"]) if axes else []
    saving = None
    if (replayed := facts.get(replay)) is not None and axes:  # an axis or two; a replay is of the whole step
        saving = [saved / kernels.steps for saved in replayed.saved_by_each(changes)]
    frame["saving_ns"] = frame["gain_ns"] if saving is None else saving
    frame["share_of_step"] = frame["saving_ns"] / kernels.wall_ns
    frame["share_of_computing"] = frame["gain_ns"] / kernels.kernel_ns

    def evidence(row: int) -> list[Reference]:
        products = bad[(bad["tail"] == frame["axis"][row]) & (bad["dtype"] == frame["dtype"][row])]
        listed = kernels.frame[kernels.frame["signature"].isin(products["signature"])]
        shown = pd.concat(
            [products.head(6), table[good].sort_values("total_ns", ascending=False, kind="stable").head(4)]
        )
        shown = shown.assign(tflops=shown["flops"] / shown["mean_ns"] / 1e3, peer_tflops=shown["peer"] / 1e3)
        names = ["left_shape", "right_shape", "core", "kernels", "mean_ns", "tflops", "peer_tflops"]
        return [
            Metric(message("shape_affinity.compared"), records(shown[names])),
            kernel_rows(message("shape_affinity.product_rows"), listed, PIPE_COLUMNS),
            *call_stack(facts, listed),
        ]

    return Observations(frame, evidence, cure=lambda row: changes[row])


def _shorter(kernels: StepKernels, bad: pd.DataFrame, converted: Integers, axes: pd.Series) -> list[Merging]:
    """The products and conversions of each axis, taking as much less; at least and at most as `_with_good_tails`."""
    took = kernels.frame["duration_ns"].to_numpy(dtype=np.float64)
    signature = kernels.frame["signature"].to_numpy()
    count = int(signature.max()) + 1
    tails = np.zeros(count, dtype=np.int64)
    tails[bad["signature"]] = bad["tail"]
    tail = np.where(converted > 0, converted, tails[signature])

    def change(axis: int, column: str) -> Merging:
        less = np.zeros(count)
        less[bad["signature"]] = bad[column] / (bad["kernels"] * bad["mean_ns"])
        share = np.where(converted > 0, 1.0, less[signature])
        affected = np.flatnonzero((tail == axis) & (share > 0))
        after = took[affected] * (1 - share[affected])
        return Merging.none(kernels.frame["work"].to_numpy()[affected], took[affected], after)

    return [
        replace(change(axis, "saved"), least=change(axis, "least"), most=change(axis, "most"))
        for axis in axes.to_list()
    ]


def _axis(bad: pd.DataFrame, kernels: StepKernels, converted: Integers) -> dict[str, object]:
    """What is observed of the products with one bad tail of one dtype. ``converted``: see `_converted_tails`."""
    total, peer = bad["total_ns"].to_numpy(), bad["peer"].to_numpy()
    example = bad.iloc[int(total.argmax())]
    axis, dtype, element_bytes, good = (example[name] for name in ("tail", "dtype", "element_bytes", "good"))
    multiple = LINE // example["smallest"]
    compared = np.isfinite(peer)
    known_ns = fsum(total[compared])
    conversions = kernels.frame["duration_ns"].to_numpy()[
        (converted == axis) & (kernels.frame["input_dtypes"] == dtype).to_numpy()
    ]
    conversion_ns = float(conversions.sum()) / kernels.steps
    total_ns = fsum(total)
    return {
        "axis": axis,
        "dtype": dtype,
        "tail_bytes": axis * element_bytes,
        "unaligned": axis * element_bytes % LINE != 0,
        "strided": axis * element_bytes % STRIDE == 0,
        "multiple": multiple,
        "good": good,
        "added_share": good / axis - 1,
        "operator": example["operator"],
        "example": f"{example['left_shape']} x {example['right_shape']}",
        "kernels": fsum(bad["kernels"]),
        "total_ns": total_ns,
        "summed_ns": fsum(total[bad["summed"].to_numpy()]),
        "mixed_ns": fsum(total[(bad["core"] == "MIX_AIC").to_numpy()]),
        "conversion_ns": conversion_ns,
        "tflops": fsum(bad["flops"] * bad["kernels"]) / total_ns / 1e3,
        "peer_tflops": fsum(peer[compared] * total[compared]) / known_ns / 1e3 if known_ns > 0 else np.nan,
        "measured": known_ns > 0,
        "gain_ns": fsum(bad["saved"]) + conversion_ns,
    }


_GOOD_ROW = {
    **dict.fromkeys(("axis", "tail_bytes", "multiple", "good"), 0),
    **dict.fromkeys(("added_share", "kernels", "total_ns", "summed_ns", "mixed_ns", "conversion_ns", "gain_ns"), 0.0),
    **dict.fromkeys(("unaligned", "strided", "measured"), False),
    **dict.fromkeys(("tflops", "peer_tflops"), float("nan")),
    **dict.fromkeys(("operator", "example")),
    "dtype": "",
}
"""What is observed where every tail is good: one row, so that the rules pass."""


def _computing(facts: Facts, table: pd.DataFrame) -> Floats:
    """How much of the duration of each product the cube computes; 0 where that was not recorded."""
    ratios = facts.get(pipes)
    if ratios is None:
        return np.zeros(len(table))
    kernels = facts[step_kernels]
    busy = ratios["aic_mac"].to_numpy()[kernels.frame["row"].to_numpy()]
    means = pd.Series(busy).groupby(kernels.frame["signature"].to_numpy()).mean()
    return table["signature"].map(means).fillna(0.0).to_numpy(dtype=np.float64)


def _with_good_tails(table: pd.DataFrame, tails: _Tails, computing: Floats, assumed_gain: float) -> pd.DataFrame:
    """The products with a bad tail, the largest such operand first, with the ``good`` length of it, one for all dtypes
    of that axis, and ns per step that are ``saved``: what the product takes less with that length, which it then has to
    compute whole.

    Its speed is then that of its peers or, without peers, higher by the assumed gain; but never more than computing
    leaves: what keeps the cube busy today is not lost in loading. ``least``: saved at the speed of the slowest peer;
    ``most``: where all loading is hidden behind what the cube computes."""
    rows = tails.rows
    bad = table.iloc[rows].assign(tail=tails.length[rows], summed=tails.summed[rows])
    mean, flops, peer = (bad[name].to_numpy() for name in ("mean_ns", "flops", "peer"))
    sizes = {tail: _element_sizes(table, tail) for tail in set(bad["tail"].tolist())}
    good = np.array([good_tail(tail, *sizes[tail]) for tail in bad["tail"].tolist()], dtype=np.int64)
    smallest = np.array([min(sizes[tail]) for tail in bad["tail"].tolist()], dtype=np.int64)
    longer = good / bad["tail"].to_numpy()
    at_peer = flops / peer * longer
    after = np.where(np.isfinite(at_peer), at_peer, mean * (1 - assumed_gain) * longer)
    computes = mean * computing[rows] * longer
    at_slowest = flops / bad["slowest"].to_numpy() * longer
    afters = {
        "saved": after,
        "least": np.where(np.isfinite(at_slowest), at_slowest, after),
        "most": np.where(computes > 0, computes, after),
    }
    kernels = bad["kernels"].to_numpy()
    saved = {name: np.maximum(mean - np.maximum(one, computes), 0.0) * kernels for name, one in afters.items()}
    return bad.assign(good=good, smallest=smallest, **saved)


def _element_sizes(table: pd.DataFrame, tail: int) -> list[int]:
    """Bytes of an element, of every dtype that products read with this last axis."""
    own = (table["left_tail"] == tail) | (table["right_tail"] == tail)
    return sorted(set(table.loc[own, "element_bytes"].tolist()))


@dataclass(frozen=True)
class _Tails:
    """The tail of each product: of its larger operand whose tail is ``bad``. ``summed``: the product sums along it.
    ``rows``: the products with such an operand, the largest first."""

    length: Integers
    summed: Bools
    bad: Bools
    rows: Integers


def _tails(table: pd.DataFrame, least: float) -> _Tails:
    """A product whose two operands are bad counts once, under the axis of the larger one. ``least``: part of what the
    product reads, from which on an operand matters."""
    tails, sizes, formats, axes = (
        np.stack([table[f"{side}_{what}"].to_numpy() for side in ("left", "right")])
        for what in ("tail", "bytes", "format", "axis")
    )
    total = tails * table["element_bytes"].to_numpy()
    matters = sizes >= least * sizes.sum(axis=0)
    bad = matters & (formats != TILED) & loads_badly(total)
    side = np.where(bad, sizes, -1).argmax(axis=0)
    each = np.arange(len(table))
    found = np.flatnonzero(bad.any(axis=0))
    rows = found[np.lexsort((found, side[found], -sizes[side[found], found]))]
    return _Tails(tails[side, each], np.isin(axes[side, each], ["k", ""]), bad.any(axis=0), rows)


def _peer_speeds(table: pd.DataFrame, good: Bools, speed: Floats, similar: float) -> tuple[Floats, Floats]:
    """FLOP/ns that the slowest and the middle one of the good products reach, among those of the same dtype whose work
    and rows are within a factor ``similar``; NaN where there is none. Products are few."""
    flops, rows = table["flops"].to_numpy(), (table["m"] * table["batch"]).to_numpy(dtype=np.float64)
    dtype = table["dtype"].to_numpy()
    near = np.abs(np.log(flops[:, None] / flops[None, :])) <= np.log(similar)
    near &= np.abs(np.log(rows[:, None] / rows[None, :])) <= np.log(similar)
    near &= (dtype[:, None] == dtype[None, :]) & good[None, :]
    candidates = np.where(near, speed[None, :], np.nan)
    some = near.any(axis=1)
    slowest, middle = np.full(len(table), np.nan), np.full(len(table), np.nan)
    slowest[some] = np.nanmin(candidates[some], axis=1)
    middle[some] = np.nanmedian(candidates[some], axis=1)
    return slowest, middle


def _converted_tails(frame: pd.DataFrame) -> Integers:
    """The last axis of what each kernel reads if it is a TransData to the tiled format, 0 for all others."""
    converts = matching(frame["type"], _TRANSDATA) & matching(frame["output_formats"], _TO_TILED)
    return np.where(converts, per_text(frame["input_shapes"], first_tail).to_numpy(dtype=np.int64), 0)
