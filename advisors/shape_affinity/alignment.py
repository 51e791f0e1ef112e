"""GSA001: matrix products whose axes are no multiples of what tensor cores load at once.

The shapes are those of the framework's operator: left ``[..., M, K]``, right ``[..., K, N]``, a bias before them. How
the operands lie in memory is not recorded, so N and K count both; M is the number of tokens or samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd, prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import DTYPE_BYTES, HOST_EVENTS, Facts, NotApplicable, Shortening, launches, shapes_of
from advisors.columns import KERNELS_PER_STEP, OPERATOR_TYPE, TOTAL_NS
from advisors.messages import message
from advisors.roofline.bounds import roofline
from advisors.step_kernels import StepKernels, call_stack, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

LINE = 128
"""Bytes up to which an alignment is told: a line of the cache, and what NVIDIA's guide asks for on A100."""


@advisor(
    "shape_affinity.alignment",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS, roofline),
    about=(
        Column("m", "int", "count", "rows of the result", zh="M"),
        Column("n", "int", "count", "columns of the result", zh="N"),
        Column("k", "int", "count", "length of the sum", zh="K"),
        Column("dtype", "text", "", "dtype of the operands", zh="数据类型"),
    ),
    columns=(
        OPERATOR_TYPE,
        KERNELS_PER_STEP,
        TOTAL_NS,
        Column("alignment", "int", "B", "largest power of two, up to 128, in the bytes of N and K", zh="对齐"),
        Column("tflops", "float", "TFLOP/s", "what these products reach", zh="TFLOPS"),
        Column(
            "peer_tflops",
            "float",
            "TFLOP/s",
            "what aligned products of similar size reach in this profile",
            zh="同类 TFLOPS",
        ),
        Column("measured", "bool", "", "there are such products to compare with", zh="实测"),
        Column(
            "gain_ns",
            "float",
            "ns",
            "less time per step at the speed of these, or as fast as memory moves its bytes; 0 without any",
            zh="收益",
        ),
        Column("share_of_total", "float", "ratio", "total_ns over the step", zh="占总量"),
        Column("share_of_step", "float", "ratio", "gain_ns over the step", zh="占 step"),
    ),
    params=("aligned", "similar"),
)
def alignment(facts: Facts, params: Params) -> Observations:
    """Matrix products by the alignment of their axes, against aligned ones of similar size.

    At the speed of these a product may take less time than its bytes do: a narrow one moves more of them for its
    arithmetic. What moving them takes at least stays."""
    kernels = facts[step_kernels]
    products = _products(kernels)
    if not len(products):
        raise NotApplicable(message("alignment.none"))
    flops = 2.0 * products["batch"] * products["m"] * products["n"] * products["k"]
    tflops = flops * products["kernels"] / products["total_ns"] / 1e3  # FLOP per ns are 1e-3 TFLOP/s
    is_aligned = (products["alignment"] >= params["aligned"]).to_numpy()
    slowest, peers, quickest = np.array(
        [_peers(flops, tflops, is_aligned, products["dtype"], row, params["similar"]) for row in range(len(products))]
    ).T

    most_gain_ns = np.maximum(products["total_ns"] - _moving_ns(facts, kernels, products["signatures"]), 0.0)

    def gained(at: np.ndarray) -> pd.Series:
        quicker = products["total_ns"] * np.where(~is_aligned & (at > tflops), 1 - tflops / at, 0.0)
        return quicker.clip(upper=most_gain_ns)

    gain_ns, least_ns, most_ns = gained(peers), gained(slowest), gained(quickest)
    table = products.drop(columns=["batch", "signatures"]).assign(
        tflops=tflops,
        peer_tflops=peers,
        measured=np.isfinite(peers),
        gain_ns=gain_ns,
        share_of_total=products["total_ns"] / kernels.wall_ns,
        share_of_step=gain_ns / kernels.wall_ns,
    )

    def rows_of(index: int) -> pd.DataFrame:
        return kernels.frame[kernels.frame["signature"].isin(products["signatures"].iloc[index])]

    def evidence(index: int) -> list[Reference]:
        rows = rows_of(index)
        return [kernel_rows(message("alignment.rows"), rows), *call_stack(facts, rows)]

    def cure(index: int) -> Shortening:
        change = kernels.shorter(rows_of(index))
        least, most = (replace(change, by_ns=round(gained_ns[index])) for gained_ns in (least_ns, most_ns))
        return replace(change, least=least, most=most)

    return Observations(table, evidence, cure=cure)


def _moving_ns(facts: Facts, kernels: StepKernels, signatures: pd.Series) -> Floats:
    """ns per step that the kernels of each row need at least to move their bytes; 0 where that is not known."""
    if roofline not in facts:
        return np.zeros(len(signatures))
    own = kernels.frame["signature"].to_numpy()
    least = np.bincount(own, np.nan_to_num(facts[roofline].memory_ns))
    return np.array([least[np.unique(of)].sum() for of in signatures]) / kernels.steps


def _products(kernels: StepKernels) -> pd.DataFrame:
    """One row per M, N, K and dtype of the products whose shapes and dtype tell them."""
    frame = kernels.frame[kernels.frame["operator_class"] == "matmul"]
    per_kernel = frame.groupby("signature")["duration_ns"].agg(["size", "sum"])
    firsts = frame.drop_duplicates("signature").set_index("signature")
    texts = firsts[["type", "input_shapes", "input_dtypes"]].astype(str)
    rows: list[dict[str, object]] = []
    for signature, attributes in zip(texts.index, texts.to_dict("records"), strict=True):
        if (dimensions := _dimensions(attributes)) is not None:
            rows.append({**dimensions, "signatures": signature, **_durations(per_kernel, signature)})
    if not rows:
        return pd.DataFrame()
    keys = ["m", "n", "k", "dtype"]
    sums: dict[str, Any] = {"signatures": list, "operator": "first", "batch": "first", "alignment": "first"}
    table = pd.DataFrame(rows).groupby(keys, sort=True).agg({**sums, "kernels": "sum", "total_ns": "sum"}).reset_index()
    table[["kernels", "total_ns"]] /= kernels.steps
    return table


def _durations(per_kernel: pd.DataFrame, signature: int) -> dict[str, object]:
    return {"kernels": per_kernel.at[signature, "size"], "total_ns": per_kernel.at[signature, "sum"]}


def _dimensions(attributes: Mapping[Any, str]) -> dict[str, object] | None:
    """M, N, K of a product, ``None`` where the shapes or the dtype are not known."""
    dtypes = attributes["input_dtypes"].split(";")
    operands = [
        (shape, dtype)
        for shape, dtype in zip(shapes_of(attributes["input_shapes"]), dtypes, strict=False)
        if len(shape) > 1
    ]
    if len(operands) < 2:
        return None
    (left, dtype), (right, _) = operands[-2:]
    size = DTYPE_BYTES.get(dtype, 0)
    if not size or left[-1] != right[-2] or not prod(left) or not prod(right):
        return None
    n, k = right[-1], left[-1]
    batch = prod(right[:-2])
    return {
        "operator": attributes["type"],
        "batch": batch,
        "m": prod(left) // k // batch,
        "n": n,
        "k": k,
        "dtype": dtype,
        "alignment": gcd(gcd(n * size, k * size), LINE),
    }


def _peers(
    flops: pd.Series, speed: pd.Series, is_aligned: np.ndarray, dtypes: pd.Series, row: int, similar: float
) -> tuple[float, float, float]:
    """TFLOP/s of the slowest, at the median and of the quickest of the aligned products of the same dtype and about as
    much work; NaN without any."""
    is_peer = (
        is_aligned & (dtypes == dtypes.iloc[row]).to_numpy() & (flops / flops.iloc[row]).between(1 / similar, similar)
    )
    peers = speed[is_peer]
    return float(peers.min()), float(peers.median()), float(peers.max())
