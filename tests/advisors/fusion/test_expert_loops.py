"""NS039: experts that run one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene, judge_rule
from advisors.fusion.expert_loops import expert_loops
from advisors.fusion.regions import fusion_regions
from tests.advisors.fusion.chains import YARDSTICK, Kernel

HIDDEN, INNER, TOKENS = 64, 48, 1000
ALL = f"{TOKENS},{HIDDEN} BF16"
ATTENTION: Kernel = ("FlashAttentionScore", 50, (ALL, ALL, ALL), (ALL,))


def product(rows: int, depth: int, columns: int) -> Kernel:
    return ("MatMulV3", 20, (f"{rows},{depth} BF16", f"{depth},{columns} BF16"), (f"{rows},{columns} BF16",))


def expert(rows: int, inner: int = INNER) -> list[Kernel]:
    """Its rows are taken, go through two projections with a gate between them, are weighted and added to the others."""
    own, gates, gate = f"{rows},{HIDDEN} BF16", f"{rows},{2 * inner} BF16", f"{rows},{inner} BF16"
    return [
        ("Index", 5, (ALL, f"{rows} INT64"), (own,)),
        product(rows, HIDDEN, 2 * inner),
        ("Slice", 5, (gates,), (gate,)),
        ("Swish", 5, (gate,), (gate,)),
        ("Slice", 5, (gates,), (gate,)),
        ("Mul", 5, (gate, gate), (gate,)),
        product(rows, inner, HIDDEN),
        ("Mul", 5, (own, f"{rows},1 BF16"), (own,)),
        ("InplaceIndexAdd", 5, (ALL, f"{rows} INT64", own), (ALL,)),
    ]


def expert_backward(rows: int) -> list[Kernel]:
    """The gradients of weight and input of each projection; the gradient of the gate between them."""
    inner = f"{rows},{INNER} BF16"
    return [
        product(HIDDEN, rows, INNER),
        product(rows, HIDDEN, INNER),
        ("SiluGrad", 5, (inner, inner), (inner,)),
        product(INNER, rows, HIDDEN),
        product(rows, INNER, HIDDEN),
    ]


def scene_of(kernels: Sequence[Kernel]) -> Scene:
    scene, at = Scene().step(1, -10, 10_000), 0.0
    for type_, duration, reads, writes in kernels:
        scene.tensors(at, duration, type_, reads, writes)
        at += duration
    return scene


def loops_in(*kernels: Kernel) -> list[tuple[int, int, int]]:
    """Of each loop the first kernel, the number behind the last one and the experts."""
    found = scene_of([*kernels, ("Sign", 1, ("3 FLOAT",), ("3 FLOAT",))]).store()[expert_loops]
    members = [found.members[found.loop_of == number] for number in range(len(found.experts))]
    return [(int(own[0]), int(own[-1]) + 1, int(count)) for own, count in zip(members, found.experts, strict=True)]


def test_experts_differ_in_their_rows_only() -> None:
    experts = [kernel for rows in (40, 7, 90, 12) for kernel in expert(rows)]
    router = product(TOKENS, HIDDEN, 4)
    assert loops_in(ATTENTION, router, *experts, ATTENTION) == [(2, 2 + 4 * 9, 4)]


def test_loops_that_follow_each_other_share_no_kernel() -> None:
    layers = [[kernel for rows in (40, 7, 90, 12) for kernel in expert(rows, inner)] for inner in (INNER, INNER + 8)]
    (first, end, _), (start, last, _) = loops_in(ATTENTION, *layers[0], *layers[1], ATTENTION)
    assert (first, end) == (1, start) and last == 1 + 8 * 9


def test_backward_the_gradients_of_weights_sum_over_the_rows() -> None:
    experts = [kernel for rows in (40, 7, 90) for kernel in expert_backward(rows)]
    assert loops_in(ATTENTION, *experts) == [(1, 1 + 3 * 5, 3)]


def test_backward_the_first_expert_has_nothing_to_add_its_gradients_to() -> None:
    """Rows of a gradient are put in front of an expert and behind it into a tensor of zeros; from the second on these
    are added up. What follows the last one is no part of the loop, nor is a sum that follows it."""
    zeros, put = ("ZerosLike", 5, (ALL,), (ALL,)), ("IndexPutV2", 5, (ALL,), (ALL,))
    add, cast = ("Add", 5, (ALL, ALL), (ALL,)), ("Cast", 5, (ALL,), (ALL,))
    rows = (40, 7, 90)
    kernels = [
        kernel
        for number, count in enumerate(rows)
        for kernel in (zeros, put, *([add] if number else []), *expert_backward(count), put, *([add] if number else []))
    ]
    # The sum behind the last expert may belong to what follows.
    assert loops_in(ATTENTION, cast, *kernels, cast) == [(2, 2 + len(kernels) - 1, 3)]
    assert loops_in(ATTENTION, cast, *kernels, zeros, cast) == [(2, 2 + len(kernels) + 1, 3)]


@pytest.mark.parametrize(
    "kernels",
    [
        [kernel for _ in range(6) for kernel in expert(40)],
        [kernel for rows in (40, 7) for kernel in expert(rows)],
        [kernel for rows in (40, 7, 90) for kernel in (*expert(rows)[:6], ATTENTION, *expert(rows)[6:])],
        [kernel for rows in (40, 7, 90) for kernel in (product(rows, 64, 96), product(rows, 48, 64))],
    ],
    ids=["layers, all of the same size", "two", "attention between", "nothing passes from product to product"],
)
def test_what_only_looks_like_experts(kernels: list[Kernel]) -> None:
    assert loops_in(*kernels) == []


def test_gradients_of_query_key_and_value_are_no_experts() -> None:
    """Two products each, which differ in one size too: the channels. Sums of gradients lie between them."""
    gradients = [
        kernel
        for channels in (96, 32, 16)
        for kernel in (
            product(channels, TOKENS, HIDDEN),
            product(TOKENS, channels, HIDDEN),
            ("Add", 5, (ALL, ALL), (ALL,)),
        )
    ]
    assert loops_in(ATTENTION, *gradients) == []


@given(st.lists(st.integers(2, 500), min_size=3, max_size=6), st.integers(0, 3))
def test_a_loop_is_as_long_as_its_experts(rows: list[int], before: int) -> None:
    kernels = [*(product(TOKENS, HIDDEN, 5) for _ in range(before)), *(k for count in rows for k in expert(count))]
    found = loops_in(ATTENTION, *kernels)
    assert found == ([] if len(set(rows)) == 1 else [(1 + before, 1 + before + 9 * len(rows), len(rows))])


def test_what_grouped_products_would_take() -> None:
    counts = (400, 70, 900, 120)
    scene = scene_of([YARDSTICK, *(kernel for rows in counts for kernel in expert(rows))])
    seen = judge_rule("NS039", scene.store()).first.observation
    assert (seen["loops"], seen["experts"], seen["kernels"], seen["grouped_kernels"]) == (1, 4, 36, 5)
    assert (seen["least_rows"], seen["most_rows"]) == (70, 900)
    assert seen["loop_ns"] == 4 * 75_000 and seen["product_ns"] == 4 * 40_000 and seen["backward_ns"] == 0
    # Each row as it goes into and comes out of both projections, 2 bytes an element, at 1 TB/s.
    moved = sum(counts) * (HIDDEN + 2 * INNER + INNER + HIDDEN) * 2
    assert seen["bandwidth"] == pytest.approx(1e12)
    assert seen["fused_ns"] == pytest.approx(160_000 + moved / 1000)
    assert seen["saving_ns"] == pytest.approx(140_000 - moved / 1000, abs=1)  # whole ns
    assert seen["chain"] == "MatMulV3 + Slice + Swish + Slice + …"


def test_tiles_of_grouped_products_share_all_cores() -> None:
    """Each product of 20 us has 6 blocks, on a chip with 24 cores."""
    counts = (400, 70, 900, 120)
    scene = scene_of([YARDSTICK, *(kernel for rows in counts for kernel in expert(rows))])
    for row in scene.rows["kernels"]:
        row |= {"block_dim": 6, "core": "AI_CORE"} if row["type"] == "MatMulV3" else {}
    chip = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
    seen = judge_rule("NS039", scene.store(chip=chip)).first.observation
    moved = sum(counts) * (HIDDEN + 2 * INNER + INNER + HIDDEN) * 2
    assert seen["product_ns"] == 160_000
    assert seen["fused_ns"] == pytest.approx(160_000 * 6 / 24 + moved / 1000)


def test_kernels_of_experts_are_in_no_region() -> None:
    kernels = [kernel for rows in (400, 70, 900) for kernel in expert_backward(rows)]
    found = scene_of([ATTENTION, *kernels]).store()[fusion_regions]
    assert not np.intersect1d(found.members, np.arange(1, 16)).size


def test_without_such_experts_there_is_nothing_to_judge() -> None:
    assert judge_rule("NS039", scene_of([YARDSTICK, ATTENTION]).store()).state == "not_applicable"


@pytest.mark.parametrize(
    ("asks", "before", "waits"),
    [((0, 1, 2, 3), "Swish", 4), ((0, 1, 2, 3), "Index", 4), ((2,), "Swish", 0)],
    ids=["for every expert", "before its first kernel", "once"],
)
def test_waits_for_the_rows_of_each_expert_go_with_the_loop(asks: tuple[int, ...], before: str, waits: int) -> None:
    """An expert has nine kernels of 5 to 20 us, 75 us together; the host launches one every us. Where it asks for the
    rows of an expert it waits for the device before it goes on. That of the first expert can come before the loop."""
    scene, now, device = Scene().step(1, -10, 2_000), 0.0, 0.0
    for number, rows in enumerate((40, 7, 90, 12)):
        for place, (type_, took, reads, writes) in enumerate(
            [YARDSTICK, *expert(rows)] if not number else expert(rows)
        ):
            if number in asks and type_ == before:
                scene.event("cpu_op", "aten::item", now, device + 4 - now)
                scene.event("runtime", "AscendCL@aclrtSynchronizeStream", now + 1, device + 2 - now)
                now = device + 5
            device = max(device, now + 10)
            scene.tensors(device, took, type_, reads, writes, launched=now, op=f"aten::op{place}")
            device, now = device + took, now + 1
    seen = judge_rule("NS039", scene.store()).first.observation
    assert seen["host_waits"] == waits
    # Behind each wait the device has nothing to do for 15 us; without a change of the waits one of them at most is won.
    assert (seen["launch_saving_ns"] > 30_000) is bool(waits)
