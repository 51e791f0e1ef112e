"""NS022: matrix products, attention and convolutions in FP32, and what a step would take in 16 bits.

A recording can have parts that compute in FP32 and others that do not (in reinforcement learning a reference model that
was loaded without a dtype, beside a rollout in BF16): those that do are judged by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    PROFILE,
    Facts,
    Merging,
    NotApplicable,
    Unavailable,
    context,
    parts,
    peaks,
    pipes,
    replay,
)
from advisors.columns import OPERATOR_CLASS, PER_STEP_NS
from advisors.fusion.chains import fusion_chains
from advisors.half_precision import Bools, named, narrowed_ns, products_ns, untyped, wide_kernels
from advisors.measuring import share
from advisors.messages import message
from advisors.network_structure.hot_share import PRODUCTS
from advisors.network_structure.updates import updating_kernels
from advisors.phases import Texts, phases_of
from advisors.roofline.products import matrix_products
from advisors.step_kernels import kernel_rows, records, step_kernels

_UNKNOWN = "unknown"
"""The part of a kernel of which nothing tells what it belongs to."""

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

CUBE_WORK = (*PRODUCTS, "convolution")


@advisor(
    "network_structure.precision",
    needs=(PROFILE, step_kernels, fusion_chains),
    wants=(matrix_products, peaks, pipes, replay, parts, context),
    columns=(
        Column("phases", "text", "", "the parts of the recording that it is about, none if unknown", zh="阶段"),
        Column("dense_ns", "float", "ns", "matrix products, attention and convolutions per step", zh="密集计算"),
        Column("fp32_ns", "float", "ns", "those that read FP32, per step", zh="FP32"),
        Column("fp32_share", "float", "ratio", "fp32_ns of dense_ns", zh="FP32 占比"),
        Column(
            "shortened_share",
            "float",
            "ratio",
            "part of fp32_ns in kernels that use a shortened FP32 (TF32), or may (HF32)",
            zh="缩短 FP32 占比",
        ),
        Column(
            "shortened_product_share",
            "float",
            "ratio",
            "the same of matrix products alone",
            zh="缩短 FP32 的矩阵乘占比",
        ),
        Column(
            "by_name_share",
            "float",
            "ratio",
            "part of fp32_ns in kernels whose names tell that, as no dtypes were recorded",
            zh="由名称判断占比",
        ),
        Column(
            "dense_saving_ns",
            "float",
            "ns",
            "what they take less on 16 bits: products by arithmetic and bytes, others by the assumed saving",
            zh="密集计算节省",
        ),
        Column(
            "other_saving_ns",
            "float",
            "ns",
            "what the other kernels on FP32 take less, by their bytes",
            zh="其他节省",
        ),
        Column(
            "saving_ns", "float", "ns", "how much shorter a step is with both, from a replay of the launches", zh="节省"
        ),
        Column("share_of_step", "float", "ratio", "saving_ns over the step", zh="占 step"),
        Column("share_of_computing", "float", "ratio", "both savings over the kernel time of the step", zh="占计算"),
    ),
    params=("saving", "reach", "fp32_part"),
    evidence=(
        OPERATOR_CLASS,
        PER_STEP_NS,
        Column("in_16_bits_ns", "float", "ns", "time per step in 16 bits", zh="16 位耗时"),
    ),
)
def precision(facts: Facts, params: Params) -> Observations:
    """How much of products, attention and convolutions is done in FP32, and what the step would take in 16 bits."""
    own = facts[step_kernels]
    frame = own.frame
    phases = phases_of(facts, frame)
    cube = frame["operator_class"].isin(CUBE_WORK).to_numpy()
    words = facts[PROFILE].vocabulary
    wide, unknown = wide_kernels(own, words), untyped(own)
    if cube.any() and not (wide | ~unknown)[cube].any():
        raise Unavailable(message("kernels.unshaped"), message("kernels.unshaped.collect"), ("level1",))
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    told = _in_fp32(phases, np.where(cube, took, 0.0), wide, params["fp32_part"])
    inside = np.isin(phases, told)
    cube, wide = cube & inside, wide & inside
    total = float(took[cube].sum()) / own.steps
    if not total:
        raise NotApplicable(message("network_structure.no_cube"))
    fp32 = wide & cube
    shortened = (frame["hf32"] == "YES").to_numpy() | named(own, words.tf32_kernels)
    may_tell = shortened | (frame["hf32"] != "").to_numpy() | named(own, words.fp32_kernels)
    products = fp32 & (frame["operator_class"] == "matmul").to_numpy()

    def part(kernels: Bools, of: Bools) -> float:
        return share(float(took[kernels & of].sum()), float(took[of].sum()))

    updates = updating_kernels(own, facts[fusion_chains])
    after = narrowed_ns(own, wide, cube, updates, params["saving"])
    if facts.knows(matrix_products, peaks, pipes):
        mac = facts[pipes]["aic_mac"].to_numpy()[frame["row"].to_numpy()]
        known = products_ns(own, facts[matrix_products], facts[peaks], mac, params["reach"])
        after = np.where(np.isfinite(known), known, after)
    saved = took - after
    shorter = np.flatnonzero(saved > 0)
    step = float(saved.sum())
    quicker = Merging.none(frame["work"].to_numpy()[shorter], took[shorter], after[shorter])
    if replay in facts:
        step = float(facts[replay].saved_by(quicker))
    result = pd.DataFrame(
        {
            "phases": [None if set(phases) == {_UNKNOWN} else ", ".join(told)],
            "dense_ns": [total],
            "fp32_ns": [float(took[fp32].sum()) / own.steps],
            "fp32_share": [part(fp32, cube)],
            "shortened_share": [part(shortened, fp32) if (may_tell & fp32).any() else np.nan],
            "shortened_product_share": [part(shortened, products) if (may_tell & products).any() else np.nan],
            "by_name_share": [part(unknown, fp32)],
            "dense_saving_ns": [float(saved[cube].sum()) / own.steps],
            "other_saving_ns": [float(saved[~cube].sum()) / own.steps],
            "saving_ns": [step / own.steps],
            "share_of_step": [step / own.steps / own.wall_ns],
            "share_of_computing": [float(saved.sum()) / own.steps / own.kernel_ns],
        }
    )

    def evidence(_: int) -> list[Reference]:
        told_by = ("name",) if (unknown & fp32).any() else ()
        recorded = ("hf32",) if (frame["hf32"] != "").any() else ()
        columns = ("type", *told_by, "start_ns", "duration_ns", "input_shapes", "input_dtypes", *recorded)
        by_class = pd.DataFrame(
            {"operator_class": frame["operator_class"].astype(str), "per_step_ns": took, "in_16_bits_ns": after}
        )
        by_class = by_class[saved > 0].groupby("operator_class")[["per_step_ns", "in_16_bits_ns"]].sum() / own.steps
        table = by_class.sort_values("per_step_ns", ascending=False, kind="stable").reset_index()
        return [
            kernel_rows(message("network_structure.fp32_rows"), frame[fp32], columns),
            Metric(message("network_structure.in_16_bits"), records(table)),
        ]

    return Observations(result, evidence, cure=lambda row: quicker)


def _in_fp32(phases: Texts, dense_ns: Floats, wide: Bools, least: float) -> list[str]:
    """The parts of the recording that spend at least this share of their dense time in FP32; all where none does.
    ``dense_ns``: by kernel, 0 for those that are no products, attention or convolutions."""
    names, number = np.unique(phases.astype(str), return_inverse=True)
    dense = np.bincount(number, dense_ns, minlength=len(names))
    in_fp32 = np.bincount(number, np.where(wide, dense_ns, 0.0), minlength=len(names))
    told = names[(dense > 0) & (in_fp32 >= least * dense)]
    return [str(name) for name in (told if len(told) else names[dense > 0])]
