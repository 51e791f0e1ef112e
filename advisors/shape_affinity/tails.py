"""SA001, SA002: last axes of the operands of matrix products that load badly."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
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

Floats = npt.NDArray[np.float64]

LINE = 512
"""Bytes that the loads of the cube cores come in: a tail axis should be a multiple (docs/sources.md#tail-axis)."""

STRIDE = 16 * 1024
"""Bytes that a tail axis should not be a multiple of (docs/sources.md#tail-axis)."""

_TRANSDATA = re.compile(r"TransData", re.I)


def good_tail(length: int, element_bytes: int) -> int:
    """The nearest length of a tail axis, from ``length`` up, that is a multiple of 512 B and not of 16 KB.

    >>> good_tail(50257, 2), good_tail(151936, 2), good_tail(8192, 2), good_tail(4096, 2)
    (50432, 152064, 8448, 4096)
    """
    step = max(LINE // element_bytes, 1)
    multiple = -(-length // step) * step
    return multiple + step if multiple * element_bytes % STRIDE == 0 else multiple


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
        Column("multiple", "int", "count", "elements in 512 B", zh="倍数"),
        Column("good", "int", "count", "nearest length that is a multiple of 512 B and not of 16 KB", zh="合适取值"),
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
    table = table[table["element_bytes"] > 0].reset_index(drop=True)
    if table.empty:
        raise NotApplicable(message("shape_affinity.no_products"))
    sides = pd.concat([_side(table, side, params["operand_share"]) for side in ("left", "right")], ignore_index=True)
    good = ~table["signature"].isin(sides.loc[sides["bad"], "signature"])
    speed = table["flops"] / table["mean_ns"]
    peer = _peer_speed(table, good.to_numpy(), speed.to_numpy(dtype=np.float64), params["similar"])
    table = table.assign(peer=peer, computing=_computing(facts, table), flops_total=table["flops"] * table["kernels"])
    bad = sides[sides["bad"]].merge(table, on="signature")
    # A product whose two operands are bad counts once, under the axis of the larger one.
    bad = bad.sort_values("bytes", ascending=False, kind="stable").drop_duplicates("signature")
    pairs = zip(bad["tail"], bad["element_bytes"], strict=True)
    bad["good"] = np.array([good_tail(int(tail), int(size)) for tail, size in pairs], dtype=np.int64)
    bad["saved"] = _saved(bad, params["assumed_gain"])
    frame = _by_axis(bad, _conversions(kernels)) if len(bad) else pd.DataFrame([_good_row()])
    changes = _shorter(kernels, bad, frame["axis"]) if len(bad) else []
    saving = None
    if (replayed := facts.get(replay)) is not None and len(bad):  # an axis or two; a replay is of the whole step
        saving = [replayed.saved_by(change) / kernels.steps for change in changes]
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


def _shorter(kernels: StepKernels, bad: pd.DataFrame, axes: pd.Series) -> list[Merging]:
    """The products and conversions of each axis, taking as much less."""
    frame = kernels.frame
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    less = (bad["saved"] / (bad["kernels"] * bad["mean_ns"])).set_axis(bad["signature"])
    share = frame["signature"].map(less).fillna(0.0).to_numpy(dtype=np.float64)
    tails = frame["signature"].map(bad.set_index("signature")["tail"]).fillna(0).to_numpy(dtype=np.int64)
    converted = _conversion_tails(frame).reindex(frame.index, fill_value=0).to_numpy()
    share, tails = np.where(converted > 0, 1.0, share), np.where(converted > 0, converted, tails)
    changes = []
    for axis in axes.to_list():
        affected = np.flatnonzero((tails == axis) & (share > 0))
        after = took[affected] * (1 - share[affected])
        changes.append(Merging.none(frame["work"].to_numpy()[affected], took[affected], after))
    return changes


def _by_axis(bad: pd.DataFrame, conversions: pd.Series) -> pd.DataFrame:
    """The products with a bad tail, by its length and dtype; the one that takes most is the example."""
    ranked = bad.sort_values("total_ns", ascending=False, kind="stable")
    ranked = ranked.assign(
        axis=ranked["tail"],
        example=ranked["left_shape"] + " x " + ranked["right_shape"],
        summed_ns=ranked["total_ns"].where(ranked["summed"], 0.0),
        mixed_ns=ranked["total_ns"].where(ranked["core"] == "MIX_AIC", 0.0),
        known_ns=ranked["total_ns"].where(ranked["peer"].notna(), 0.0),
        peer_work=(ranked["peer"] * ranked["total_ns"]).fillna(0.0),
    )
    grouped = ranked.groupby(["axis", "dtype"], sort=True)
    table = grouped[["operator", "example", "element_bytes", "good"]].first()
    amounts = ["kernels", "total_ns", "summed_ns", "mixed_ns", "known_ns", "peer_work", "flops_total", "saved"]
    table = table.join(grouped[amounts].sum()).reset_index()
    table["tail_bytes"] = table["axis"] * table["element_bytes"]
    table["unaligned"] = table["tail_bytes"] % LINE != 0
    table["strided"] = table["tail_bytes"] % STRIDE == 0
    table["multiple"] = LINE // table["element_bytes"]
    table["added_share"] = table["good"] / table["axis"] - 1
    keys = pd.MultiIndex.from_frame(table[["axis", "dtype"]])
    table["conversion_ns"] = conversions.reindex(keys).fillna(0.0).to_numpy()
    table["tflops"] = table["flops_total"] / table["total_ns"] / 1e3
    table["measured"] = table["known_ns"] > 0
    table["peer_tflops"] = (table["peer_work"] / table["known_ns"].where(table["measured"])) / 1e3
    table["gain_ns"] = table["saved"] + table["conversion_ns"]
    return table.sort_values("gain_ns", ascending=False, kind="stable").reset_index(drop=True)


def _good_row() -> dict[str, object]:
    """What is observed where every tail is good: one row, so that the rules pass."""
    numbers = dict.fromkeys(("axis", "tail_bytes", "multiple", "good"), 0)
    amounts = dict.fromkeys(("added_share", "kernels", "total_ns", "summed_ns", "mixed_ns", "conversion_ns"), 0.0)
    flags = dict.fromkeys(("unaligned", "strided", "measured"), False)
    unknown = {"tflops": np.nan, "peer_tflops": np.nan, "gain_ns": 0.0, "dtype": "", "operator": None, "example": None}
    return {**numbers, **amounts, **flags, **unknown}


def _computing(facts: Facts, table: pd.DataFrame) -> Floats:
    """How much of the duration of each product the cube computes; 0 where that was not recorded."""
    ratios = facts.get(pipes)
    if ratios is None:
        return np.zeros(len(table))
    kernels = facts[step_kernels]
    busy = ratios["aic_mac"].to_numpy()[kernels.frame["row"].to_numpy()]
    means = pd.Series(busy).groupby(kernels.frame["signature"].to_numpy()).mean()
    return table["signature"].map(means).fillna(0.0).to_numpy(dtype=np.float64)


def _saved(bad: pd.DataFrame, assumed_gain: float) -> Floats:
    """ns per step that each product takes less with the good length of its axis, which it then has to compute whole.

    Its speed is then that of its peers or, without peers, higher by the assumed gain; but never more than computing
    leaves: what keeps the cube busy today is not lost in loading."""
    mean, longer = bad["mean_ns"].to_numpy(dtype=np.float64), (bad["good"] / bad["tail"]).to_numpy(dtype=np.float64)
    at_peer = (bad["flops"] / bad["peer"]).to_numpy(dtype=np.float64) * longer
    after = np.where(np.isfinite(at_peer), at_peer, mean * (1 - assumed_gain) * longer)
    after = np.maximum(after, mean * bad["computing"].to_numpy(dtype=np.float64) * longer)
    return np.asarray(np.maximum(mean - after, 0.0) * bad["kernels"], dtype=np.float64)


def _side(table: pd.DataFrame, side: str, least: float) -> pd.DataFrame:
    """One operand of each product: its tail, whether that is bad, and whether the product sums along it (``k``)."""
    tail, size = table[f"{side}_tail"], table["element_bytes"]
    total = tail * size
    matters = table[f"{side}_bytes"] >= least * (table["left_bytes"] + table["right_bytes"])
    stored = table[f"{side}_format"] != TILED
    summed = table[f"{side}_axis"].isin(["k", ""])
    return pd.DataFrame(
        {
            "signature": table["signature"],
            "tail": tail,
            "summed": summed,
            "bytes": table[f"{side}_bytes"],
            "bad": matters & stored & ((total % LINE != 0) | (total % STRIDE == 0)),
        }
    )


def _peer_speed(table: pd.DataFrame, good: npt.NDArray[np.bool_], speed: Floats, similar: float) -> Floats:
    """FLOP/ns that the middle one of the good products reaches, among those of the same dtype whose work and rows are
    within a factor ``similar``; NaN where there is none. Products are few: distinct shapes, not kernels."""
    flops, rows = table["flops"].to_numpy(), (table["m"] * table["batch"]).to_numpy(dtype=np.float64)
    dtype = table["dtype"].to_numpy()
    near = np.abs(np.log(flops[:, None] / flops[None, :])) <= np.log(similar)
    near &= np.abs(np.log(rows[:, None] / rows[None, :])) <= np.log(similar)
    near &= (dtype[:, None] == dtype[None, :]) & good[None, :]
    candidates = np.where(near, speed[None, :], np.nan)
    some = near.any(axis=1)
    result = np.full(len(table), np.nan)
    result[some] = np.nanmedian(candidates[some], axis=1)
    return result


def _conversions(kernels: StepKernels) -> pd.Series:
    """TransData into the tiled format per step, by last axis and dtype of what they read."""
    tail = _conversion_tails(kernels.frame)
    conversions = kernels.frame.loc[tail.index]
    return conversions["duration_ns"].groupby([tail, conversions["input_dtypes"].astype(str)]).sum() / kernels.steps


def _conversion_tails(frame: pd.DataFrame) -> pd.Series:
    """The last axis of what TransData converts to the tiled format, by row of the kernel."""
    conversions = frame[matching(frame["type"], _TRANSDATA) & frame["output_formats"].astype(str).str.startswith(TILED)]
    return per_text(conversions["input_shapes"], first_tail).astype("int64")
