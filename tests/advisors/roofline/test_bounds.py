"""Lower bounds of kernels and of parts of a step, and that no kernel of a recording is quicker than its bound."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.api.facts import Peaks, peaks
from advisor_core.api.testing import Scene
from advisor_core.contracts.missing import Unanswered
from advisor_core.facts.store import FactStore
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.roofline.boundness import Bound, Grade, Waiting, bound_of, grade_of
from advisors.roofline.bounds import Part, parts_of, roofline, roofline_of
from advisors.roofline.work import kernel_work
from advisors.step_kernels import step_kernels
from tests.advisors.build import host
from tests.programs.score import programs

CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
A2 = Scene().tensors(0, 50, "Add", ["8,4 BF16"], ["8,4 BF16"]).store(chip=CHIP)[peaks]
MOST = 1.05
"""Nominal clocks and bandwidths are known to about as much."""

VECTOR = "AI_VECTOR_CORE"
LARGE = "8192,8192 FLOAT"
BYTES = 4 * 8192 * 8192


def least(scene: Scene) -> np.ndarray:
    return scene.store(chip=CHIP)[roofline].least_ns


def test_operations_or_bytes_whichever_takes_longer() -> None:
    scene = Scene()
    scene.tensors(0, 2000, "MatMulV3", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"])
    scene.tensors(2010, 2000, "MatMulV3", ["8,8192 BF16", "8192,8192 BF16"], ["8,8192 BF16"])
    scene.tensors(4020, 2000, "Relu", [LARGE], [LARGE], core=VECTOR)
    found = scene.store(chip=CHIP)[roofline]
    weight = 2 * (8 * 8192 + 8192 * 8192 + 8 * 8192)
    expected = [2 * 4096**3 / 353.8944e12 * 1e9, weight / 1.6e12 * 1e9, 2 * BYTES / 1.6e12 * 1e9]
    assert found.least_ns == pytest.approx(expected)
    assert found.computes.tolist() == [True, False, False] and found.moves.tolist() == [False, True, True]


@pytest.mark.parametrize(("hf32", "flops_per_cycle"), [("YES", 4096), ("NO", 2048), ("", 4096)])
def test_fp32_that_may_be_shortened_has_the_higher_peak(hf32: str, flops_per_cycle: int) -> None:
    scene = Scene().tensors(0, 9000, "MatMulV3", ["4096,4096 FLOAT"] * 2, ["4096,4096 FLOAT"], hf32=hf32)
    assert least(scene) == pytest.approx([2 * 4096**3 / (24 * 1.8e9 * flops_per_cycle) * 1e9])


def test_a_kernel_may_read_from_the_cache_what_was_just_written() -> None:
    """134 MB fit into the cache: read from it at 4.75 TB/s, while it is written at 3.7 TB/s into the cache as well."""
    half = "4096,8192 FLOAT"
    scene = Scene().tensors(0, 300, "Add", [half], [half], core=VECTOR)
    scene.tensors(310, 50, "Relu", [half], [half], core=VECTOR)
    assert least(scene)[1] == pytest.approx(50_000), "as quick as it was, which the cache explains"
    scene = Scene().tensors(0, 300, "Add", [half], [half], core=VECTOR)
    scene.tensors(310, 20, "Relu", [half], [half], core=VECTOR)
    assert least(scene)[1] == pytest.approx(BYTES / 2 / (24 * 1.8e9 * 86) * 1e9), "quicker than the cache allows"
    alone = Scene().tensors(0, 50, "Relu", [half], [half], core=VECTOR)
    assert least(alone)[0] == pytest.approx(BYTES / 2 / 1.6e12 * 1e9), "nobody left it there: from memory"
    behind = Scene().kernel(0, 300, "Unheard").tensors(310, 50, "Relu", [half], [half], core=VECTOR)
    assert least(behind)[1] == pytest.approx(50_000), "the kernel before it may have written anything"


def test_a_weight_of_equal_size_is_another_one() -> None:
    """Two products on weights of 134 MB in a row: each reads its own from memory."""
    scene = Scene()
    for start in (0, 110):
        scene.tensors(start, 50, "MatMulV3", ["8,8192 BF16", "8192,8192 BF16"], ["8,8192 BF16"])
    assert least(scene)[1] > 83_000


def test_attention_that_is_quicker_than_its_scores_leaves_some_out() -> None:
    tensors = ["1,32,16384,128 BF16"] * 3 + ["2048,2048 BOOL"]
    scene = Scene().tensors(0, 1000, "FlashAttentionScore", tensors, ["1,32,16384,128 BF16"], core="MIX_AIC")
    assert np.isnan(least(scene)[0])


def test_an_unknown_chip_has_no_bounds() -> None:
    with pytest.raises(Unanswered):
        Scene().tensors(0, 50, "Relu", [LARGE], [LARGE], core=VECTOR).store()[roofline]


def part(wall: float, computing: float, memory: float, known: float, least_ns: float) -> Part:
    return Part(wall, known, known, least_ns, computing, computing, computing, memory, 0.0, 1.6e12)


@pytest.mark.parametrize(
    ("shares", "waiting", "bound"),
    [
        ((0.61, 0.1), (0.1, 0.29), Bound.COMPUTING),
        ((0.5, 0.41), (0.0, 0.0), Bound.MEMORY),
        ((0.3, 0.3), (0.3, 0.1), Bound.COMMUNICATION),
        ((0.3, 0.2), (0.21, 0.29), Bound.HOST),
        ((0.3, 0.3), (0.1, 0.3), Bound.HOST),
        ((0.59, 0.39), (0.0, 0.0), Bound.BALANCED),
    ],
)
def test_the_first_large_share_bounds_the_step(
    shares: tuple[float, float], waiting: tuple[float, float], bound: Bound
) -> None:
    found = part(1e6, 1e6 * shares[0], 1e6 * shares[1], 1e6 * sum(shares), 5e5)
    assert bound_of(found, Waiting(1e6 * waiting[0], 1e6 * waiting[1])) == bound


def test_kernels_without_a_bound_leave_the_class_open() -> None:
    found = Part(1e6, 1e6, 5e5, 4e5, 3e5, 3e5, 3e5, 2e5, 0.0, 1.6e12)
    assert bound_of(found) == Bound.UNKNOWN
    assert [grade_of(part(1e6, 1e6, 0, 1e6, least_ns)) for least_ns in (8e5, 6e5, 4e5)] == [
        Grade.GOOD,
        Grade.FAIR,
        Grade.POOR,
    ]
    assert grade_of(part(1e6, 0, 1e6, 1e6, 8e5)) == Grade.FAIR, "of the memory 250 of 300 are good"
    assert grade_of(part(0, 0, 0, 0, 0)) == Grade.UNKNOWN
    few_known = Part(1e6, 1e6, 1.2e5, 5e4, 5e4, 5e4, 5e4, 0.0, 0.0, 1.6e12)
    assert grade_of(few_known) == Grade.UNKNOWN, "the others may be at their bounds"


def test_sums_of_parts_are_those_of_the_step() -> None:
    scene = Scene()
    for start in (0, 3000):
        scene.tensors(start, 1000, "MatMulV3", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"])
        scene.tensors(start + 1010, 1500, "Relu", [LARGE], [LARGE], core=VECTOR)
    found = scene.store(chip=CHIP)[roofline]
    groups, again = np.array([0, 1, 0, -1]), np.array([False, False, True, False])
    first, second = parts_of(found, groups, 2, 1, again, None)
    assert (first.kernel_ns, second.kernel_ns) == (2_000_000, 1_500_000)
    assert first.hfu == pytest.approx(2 * 4096**3 / 353.8944e12 / 1e-3)
    assert first.mfu == pytest.approx(first.hfu / 2), "the second one is a recomputation"
    assert second.bandwidth == pytest.approx(2 * BYTES / 1.6e12 / 1.5e-3)
    assert (first.by_computing_ns, second.by_memory_ns, second.mfu) == (2_000_000, 1_500_000, 0)


# --- sanity: the model against recordings


def too_quick(facts: FactStore, chip: Peaks | None = None) -> tuple[pd.DataFrame, int]:
    """The kernels that took less than their bound, and how many kernels have one."""
    own = facts[step_kernels]
    found = facts[roofline] if chip is None else roofline_of(own, facts[kernel_work], chip)
    ratio = found.least_ns / np.maximum(found.duration_ns, 1)
    frame = own.frame.assign(ratio=ratio, first=facts[kernel_work].table["dtype"].to_numpy()[own.frame["signature"]])
    return frame[ratio > MOST], int(np.isfinite(ratio).sum())


def test_no_kernel_of_a_recording_is_above_the_peak(profiles: Path) -> None:
    """Real recordings of Ascend chips and GPUs. Where one is above, the model is wrong."""
    loaders = host().loaders
    bounded = 0
    for folder in sorted([*(profiles / "ascend").iterdir(), *(profiles / "kineto").iterdir()]):
        for source in discover(list(loaders.values()), folder):
            facts = fact_store(host(), loaders[source.loader].load(source))
            if facts.get(roofline) is None:
                continue
            wrong, known = too_quick(facts)
            shown = wrong[["type", "name", "duration_ns", "ratio", "input_shapes"]].head().to_string()
            assert wrong.empty, f"{source.directory.name}: {shown}"
            bounded += known
    assert bounded > 10_000


@pytest.mark.parametrize(
    "folder",
    programs(Path(os.environ.get("NPU_ADVISOR_PROGRAMS", "/nonexistent"))),
    ids=lambda folder: str(folder.name),
)
def test_no_kernel_of_a_program_is_above_the_peak(folder: Path) -> None:
    """Their durations are a model: bytes at 1.2 TB/s, or operations of products at 250 TFLOP/s. It holds for kernels of
    vectors and for products on 16 bits that list no addend before their operands; for FP32 it is above the peak, for
    convolutions it leaves out a length of the window, and attention counts as a product of its tensors."""
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), folder)
    facts = fact_store(host(), loaders[source.loader].load(source))
    work = facts[kernel_work].table
    known = (work["flops"] >= 0) & (work["read"] >= 0) & (work["written"] >= 0)
    quick, _ = too_quick(facts, A2)
    modelled = (work["kind"] == "vector") | ((work["kind"] == "product") & (work["dtype"] != "FLOAT"))
    wrong = quick[modelled.to_numpy()[quick["signature"]] & ~quick["input_shapes"].astype(str).str.match(r"^\d+;")]
    assert wrong.empty, wrong[["type", "duration_ns", "ratio", "input_shapes"]].head().to_string()
    assert known.mean() > 0.9


def test_idle_time_without_a_recorded_cause_is_not_called_the_hosts() -> None:
    found = part(1e6, 1e5, 1e5, 2e5, 1e5)
    assert bound_of(found, Waiting(0, 8e5, 5e5)) == Bound.IDLE
    assert bound_of(found, Waiting(0, 8e5, 3e5)) == Bound.HOST


@pytest.mark.parametrize(("copies", "bound"), [(5.1e5, Bound.COPIES), (4.9e5, Bound.COMPUTING)])
def test_copies_are_a_class_where_they_take_most(copies: float, bound: Bound) -> None:
    """Even where kernels compute meanwhile."""
    assert bound_of(part(1e6, 9e5, 9e5, 7e5, 1e5), Waiting(copies=copies)) == bound


def test_operations_and_bytes_of_a_part_are_told_where_most_of_it_is_counted() -> None:
    """A step of convolutions without shapes does not compute at 0 % of the peak."""
    counted = Part(1e6, 8e5, 4e5, 2e5, 1e5, 1e5, 1e5, 1e5, 1.6e8, 1.6e12)
    assert (counted.mfu, counted.hfu, counted.bandwidth) == pytest.approx((0.1, 0.1, 0.1))
    few = replace(counted, known_ns=3.9e5)
    assert np.isnan([few.mfu, few.hfu, few.bandwidth]).all()
