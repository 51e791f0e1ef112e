"""Shapes and cores: every rule fires with the numbers of a calculation by hand, stays silent on the good shape and
cannot answer; the formulas against plain references; real kernels against the export itself."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisors.products import balance, best_balance, matrix_products, product_of, tiles
from advisors.shape_affinity import GROWTH, _cost, _decode_shape, _grown, good_tail, more_sequences
from tests.advisors.build import Outcome, Scene, outcome
from tests.advisors.real import real_rank

STEP_US = 10_000
CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
SMALL = {"ai_core_num": 20, "aiv_num": 40, "aic_frequency": 1650}
VECTOR = "AI_VECTOR_CORE"


def until_the_end(scene: Scene) -> Scene:
    """A step of 10 ms."""
    return scene.kernel(STEP_US - 1, 1, "ReduceSum", core=VECTOR)


def times(
    scene: Scene,
    start: float,
    us: float,
    left: str,
    right: str,
    out: str,
    *,
    dtype: str = "BF16",
    formats: tuple[str, str] = ("ND", "ND"),
    type_: str = "MatMulV3",
    core: str = "AI_CORE",
    blocks: int = 24,
) -> Scene:
    """A product; its operands as stored."""
    reads = [f"{left} {dtype} {formats[0]}", f"{right} {dtype} {formats[1]}"]
    return scene.tensors(start, us, type_, reads, [f"{out} {dtype}"], core=core).busy(blocks)


def judged(rule: str, scene: Scene, *without: str, **about: Any) -> Outcome:
    return outcome(rule, scene.store(*without, **{"chip": CHIP, **about}))


def kernels_alone(rule: str, scene: Scene, **about: Any) -> Outcome:
    """Without launches: what the kernels take less is what the step takes less."""
    return judged(rule, scene, "flows", **about)


def kinds(found: Outcome) -> list[str]:
    return [advice.kind for advice in found.first.advice]


# --- SA001


def unaligned(us: float = 1000, *, peer: bool = True, convert: float = 0, **more: Any) -> Scene:
    """K = 5001 in 16 bit: 10,002 bytes. The peer sums over 4864 = 19 x 256 in 500 us."""
    scene = times(Scene(), 0, us, "4096,5001", "5001,2048", "4096,2048", **more)
    if peer:
        times(scene, 3000, 500, "4096,4864", "4864,2048", "4096,2048")
    if convert:
        scene.tensors(4000, convert, "TransData", ["4096,5001 BF16"], ["313,256,16,16 BF16 FRACTAL_NZ"], core=VECTOR)
    return until_the_end(scene)


def test_unaligned_axis_fires_at_the_speed_of_its_peers() -> None:
    found = kernels_alone("SA001", unaligned(convert=100, core="MIX_AIC"))
    seen = found.first.observation
    assert (seen["axis"], seen["dtype"], seen["tail_bytes"]) == (5001, "BF16", 10_002)
    assert seen["good"] == 5120 and seen["multiple"] == 256 and seen["added_share"] == pytest.approx(119 / 5001)
    assert seen["example"] == "4096,5001 x 5001,2048" and seen["operator"] == "MatMulV3"
    assert seen["total_ns"] == seen["summed_ns"] == seen["mixed_ns"] == 1_000_000 and seen["kernels"] == 1
    assert seen["conversion_ns"] == 100_000
    assert seen["tflops"] == pytest.approx(2 * 4096 * 5001 * 2048 / 1000e-6 / 1e12)
    assert seen["peer_tflops"] == pytest.approx(2 * 4096 * 4864 * 2048 / 500e-6 / 1e12)
    # K = 5120 at the peer's speed: 500 us x 5120 / 4864; and no TransData.
    assert found.first.impact_ns == pytest.approx(1_000_000 - 500_000 * 5120 / 4864 + 100_000, abs=1)
    assert found.first.severity == "high" and found.first.confidence == "medium"
    assert [type(reference).__name__ for reference in found.evidence()] == ["Metric", "Rows"]


def chained(interval: float) -> Scene:
    """Four products with K = 5001, one of 4864 for comparison, each launched ``interval`` us after the one before."""
    scene, free = Scene(), 0.0
    for number, inner in enumerate((5001, 5001, 5001, 5001, 4864)):
        launched = interval * number - 20
        start = max(free, launched + 20)
        us = 1000 if inner == 5001 else 500
        reads = [f"4096,{inner} BF16", f"{inner},2048 BF16"]
        scene.tensors(start, us, "MatMulV3", reads, ["4096,2048 BF16"], launched=launched).busy(24)
        free = start + us
    return scene


def test_a_quicker_product_saves_nothing_where_the_step_follows_the_host() -> None:
    """Launched ahead, four products save what they take less; where each is launched when the one before is done, the
    device would only wait."""
    gain = 4 * (1_000_000 - 500_000 * 5120 / 4864)
    ahead = judged("SA001", chained(10)).first
    assert ahead.observation["gain_ns"] == pytest.approx(gain, abs=4)
    assert ahead.impact_ns == pytest.approx(gain, rel=0.01)
    behind = judged("SA001", chained(1000))
    assert behind.state == "pass" and behind.observed is not None
    assert behind.observed.frame["gain_ns"].max() == pytest.approx(gain, abs=4)


def test_unaligned_axis_without_peers_assumes_a_cautious_gain() -> None:
    found = kernels_alone("SA001", unaligned(2000, peer=False))
    assert found.first.observation["measured"] is False and found.first.observation["peer_tflops"] is None
    assert found.first.impact_ns == pytest.approx(2_000_000 * (1 - 0.9 * 5120 / 5001), abs=1)  # 157 us


def test_what_the_cube_computes_today_is_not_saved() -> None:
    """Busy for 600 of 1000 us, it needs 600 x 5120 / 5001 for the longer axis."""
    scene = unaligned()
    scene.rows["kernels"][0] |= {"aic_mac_us": 600}
    assert kernels_alone("SA001", scene).first.impact_ns == pytest.approx(1_000_000 - 600_000 * 5120 / 5001, abs=1)
    scene.rows["kernels"][0] |= {"aic_mac_us": 970}
    assert kernels_alone("SA001", scene).state == "pass"  # nothing left to save


def test_a_short_axis_that_would_be_padded_to_many_times_its_length_is_silent() -> None:
    """Heads of 64 channels: 128 bytes. Four times the work is no remedy."""
    scene = times(Scene(), 0, 1000, "32,2048,64", "32,64,2048", "32,2048,2048", type_="BatchMatMulV2")
    found = kernels_alone("SA001", until_the_end(scene))
    assert found.state == "pass" and found.observed is not None
    row = found.observed.frame.iloc[0]
    assert row["unaligned"] and row["axis"] == 64 and row["added_share"] == 3 and row["gain_ns"] == 0


@pytest.mark.parametrize(
    "scene",
    [
        times(Scene(), 0, 2000, "4096,5120", "5120,2048", "4096,2048"),
        times(Scene(), 0, 2000, "4096,2048", "313,128,16,16", "4096,5001", formats=("ND", "FRACTAL_NZ")),
        times(Scene(), 0, 2000, "16384,2048", "2048,101", "16384,101"),  # 0.6 % of what is read
        times(Scene(), 0, 2000, "4096,2560", "2560,2048", "4096,2048", dtype="FLOAT"),  # 10,240 bytes
    ],
    ids=["aligned", "tiled", "small", "aligned-fp32"],
)
def test_good_axes_are_silent(scene: Scene) -> None:
    assert kernels_alone("SA001", until_the_end(scene)).state == "pass"


def test_the_same_operand_in_another_type_has_another_alignment() -> None:
    """1000 elements: 2000 bytes in 16 bit, 4000 in 32 bit; 1024 and 1024. 640: 1280 bytes and 2560 = 5 x 512."""
    for length, dtype, good in ((1000, "BF16", 1024), (1000, "FLOAT", 1024), (640, "BF16", 768), (640, "INT8", 1024)):
        found = judged(
            "SA001",
            until_the_end(times(Scene(), 0, 9000, "4096,2560", f"2560,{length}", f"4096,{length}", dtype=dtype)),
        )
        assert found.observed is not None
        assert found.observed.frame[["axis", "good"]].to_numpy().tolist() == [[length, good]]


def test_a_product_with_two_bad_axes_counts_once_under_the_larger_operand() -> None:
    found = kernels_alone("SA001", until_the_end(times(Scene(), 0, 3000, "5003,4099", "4099,2049", "5003,2049")))
    assert found.observed is not None and found.observed.frame["axis"].tolist() == [4099]
    assert found.first.impact_ns == pytest.approx(3_000_000 * (1 - 0.9 * 4352 / 4099), abs=1)


def test_unaligned_advice_follows_the_axis_and_the_kind_of_run() -> None:
    inference = kernels_alone("SA001", unaligned())
    assert [advice.text.en.split(":")[0] for advice in inference.first.advice[1:]] == [
        "If this axis is not a vocabulary",
        "If the operand is a weight",
    ]
    assert all(advice.risk for advice in inference.first.advice)
    assert [advice.hazards for advice in inference.first.advice] == [[], ["accuracy"], ["accuracy"]]
    vocabulary = times(Scene(), 0, 2000, "4096,50257", "50257,2048", "4096,2048")
    vocabulary.tensors(5000, 1, "RmsNormGrad", core=VECTOR)
    first = kernels_alone("SA001", until_the_end(vocabulary)).first
    said = [advice.text.en.split(":")[0] for advice in first.advice]
    assert said[0] == "If this axis is the vocabulary" and said[-1] == "If this axis is not a vocabulary"
    assert first.observation["good"] == 50_432 and first.observation["good"] * 2 % 512 == 0


@pytest.mark.parametrize("rule", ["SA001", "SA002", "SA003", "SA004", "SA005", "SA006", "SA007"])
def test_rules_on_shapes_without_kernels_types_or_shapes(rule: str) -> None:
    def everything() -> Scene:
        scene = unaligned()
        scene.tensors(5000, 500, "RmsNorm", ["48,7168 BF16"], ["48,7168 BF16"], core=VECTOR)
        query = "8,32,1,128 BF16"
        return scene.tensors(6000, 500, "IncreFlashAttention", [query] + ["8,4,4096,128 BF16"] * 2, [query])

    assert judged(rule, everything(), "kernels", "device_tasks").state == "cannot_answer"
    for missing in (("type", "core"), ("input_shapes", "output_shapes")):
        scene = everything()
        for row in scene.rows["kernels"]:
            row |= dict.fromkeys(missing, "")
        assert judged(rule, scene).state == "cannot_answer", missing
    if rule not in ("SA001", "SA002"):
        assert judged(rule, everything(), chip={}).state == "cannot_answer"
    assert judged(rule, until_the_end(Scene().kernel(0, 1000, "Add", core=VECTOR))).state == "not_applicable"


@given(st.integers(1, 200_000), st.sampled_from([1, 2, 4, 8]))
def test_good_tail_is_the_next_length_that_loads_well(length: int, size: int) -> None:
    expected = next(n for n in count(length) if n * size % 512 == 0 and n * size % 16384 != 0)
    assert good_tail(length, size) == expected


@given(
    st.lists(
        st.tuples(st.sampled_from([64, 512, 4096]), st.sampled_from([256, 257, 8192, 5000]), st.integers(100, 900)),
        min_size=1,
        max_size=7,
        unique_by=lambda product: product[:2],
    )
)
def test_tails_agree_with_a_plain_reference(products: list[tuple[int, int, int]]) -> None:
    """[m, k] x [k, 2048] in 16 bit, each once; peers are the good ones within a factor 8 in work and rows."""
    scene = Scene()
    for number, (m, k, us) in enumerate(products):
        times(scene, number * 1000, us, f"{m},{k}", f"{k},2048", f"{m},2048")
    found = outcome("SA001", until_the_end(scene).store(chip=CHIP)).observed
    assert found is not None

    def bad(m: int, k: int) -> bool:
        """The right operand ends in 2048, which is good; the left one matters from a tenth of both."""
        return (k * 2 % 512 != 0 or k * 2 % 16384 == 0) and m >= 0.1 * (m + 2048)

    expected: dict[int, float] = defaultdict(float)
    for m, k, us in products:
        if not bad(m, k):
            continue
        peers = [
            m2 * k2 / us2
            for m2, k2, us2 in products
            if not bad(m2, k2) and 1 / 8 <= m * k / (m2 * k2) <= 8 and 1 / 8 <= m / m2 <= 8
        ]
        after = m * k / float(np.median(peers)) if peers else us * 0.9
        expected[k] += max(us - after * good_tail(k, 2) / k, 0) * 1000
    if not expected:
        assert found.frame["gain_ns"].tolist() == [0.0]
        return
    assert dict(zip(found.frame["axis"], found.frame["gain_ns"], strict=True)) == pytest.approx(
        dict(expected), abs=1e-3
    )


# --- SA002


def strided(us: float, *, peer: bool = True) -> Scene:
    """K = 8192 in 16 bit: 16 KiB."""
    scene = times(Scene(), 0, us, "4096,8192", "8192,2048", "4096,2048")
    if peer:
        times(scene, 3000, 500, "4096,4864", "4864,2048", "4096,2048")
    return until_the_end(scene)


def test_strided_axis_fires_where_it_is_slower() -> None:
    found = kernels_alone("SA002", strided(1200))
    seen = found.first.observation
    assert (seen["axis"], seen["tail_bytes"], seen["good"]) == (8192, 16384, 8448)
    at_peer = 500 * 8192 / 4864 * 8448 / 8192
    assert found.first.impact_ns == pytest.approx((1200 - at_peer) * 1000, abs=1)
    assert found.first.severity == "medium" and found.first.confidence == "low"
    assert kinds(found) == ["code", "code"]
    assert [one.hazards for one in found.first.advice] == [[], ["accuracy"]]


@pytest.mark.parametrize("scene", [strided(930), strided(1200, peer=False), unaligned()])
def test_strided_axis_is_silent_where_nothing_is_measured_slower(scene: Scene) -> None:
    """930 us are 148 TFLOP/s, more than 0.9 of the peer's 163."""
    assert kernels_alone("SA002", scene).state == "pass"


def test_each_of_the_two_rules_has_its_own_axes() -> None:
    assert kernels_alone("SA001", strided(1200)).state == "pass"


# --- SA003


def rows(number: int, *, type_: str = "RmsNorm", blocks: int = 40, us: float = 1000) -> Scene:
    scene = Scene().tensors(0, us, type_, [f"{number},7168 BF16", "7168 BF16"], [f"{number},7168 BF16"], core=VECTOR)
    return until_the_end(scene.busy(blocks))


def test_rows_that_leave_cores_idle_fire() -> None:
    """The guide's example: a batch of 48 on 40 vector cores."""
    found = judged("SA003", rows(48), chip=SMALL)
    seen = found.first.observation
    assert (seen["operator"], seen["rows"], seen["cores"], seen["rounds"]) == ("RmsNorm", 48, 40, 2)
    assert (seen["fewer"], seen["more"]) == (40, 80) and seen["efficiency"] == pytest.approx(0.6)
    assert found.first.impact_ns == 400_000 and found.first.severity == "medium"
    assert kinds(found) == ["config", "config"] and found.first.advice[0].risk is not None


def test_fewer_rows_than_cores_cannot_become_fewer() -> None:
    found = judged("SA003", rows(16, blocks=16), chip=SMALL)
    assert found.first.impact_ns == 600_000 and kinds(found) == ["config"]


@pytest.mark.parametrize(
    ("scene", "chip", "state"),
    [
        (rows(48), CHIP, "pass"),  # 48 cores
        (rows(64), SMALL, "pass"),
        (rows(80), SMALL, "pass"),
        (rows(41, us=200), SMALL, "pass"),  # 97.5 us of 10 ms
        (rows(16, blocks=40), SMALL, "not_applicable"),  # divides the rows as well
        (rows(321), SMALL, "not_applicable"),  # nine rounds
        (rows(48, us=4.9), SMALL, "not_applicable"),
        (rows(48, type_="Add"), SMALL, "not_applicable"),  # divides anywhere
        (rows(48, type_="AscendQuantV2"), SMALL, "not_applicable"),
        (rows(48, type_="GroupNormSilu"), SMALL, "not_applicable"),  # its groups are not in the shapes
    ],
)
def test_rows_that_fill_the_cores_are_silent(scene: Scene, chip: dict[str, int], state: str) -> None:
    assert judged("SA003", scene, chip=chip).state == state


@pytest.mark.parametrize("type_", ["AddRmsNorm", "LayerNormV4", "SoftmaxV2", "DynamicQuant", "AddRmsNormDynamicQuant"])
def test_operators_that_reduce_rows_are_seen(type_: str) -> None:
    assert judged("SA003", rows(48, type_=type_), chip=SMALL).state == "fail"


def test_rows_are_all_axes_but_the_last() -> None:
    scene = Scene().tensors(0, 1000, "RmsNorm", ["2,3,8,7168 BF16"], ["2,3,8,7168 BF16"], core=VECTOR).busy(40)
    assert judged("SA003", until_the_end(scene), chip=SMALL).first.observation["rows"] == 48
    scene = Scene().tensors(0, 1000, "RmsNorm", ["7168 BF16"], ["7168 BF16"], core=VECTOR)
    assert judged("SA003", until_the_end(scene), chip=SMALL).state == "not_applicable"


@given(st.integers(1, 3000), st.integers(1, 64))
def test_balance_is_work_over_the_slots_that_pass(blocks: int, cores: int) -> None:
    left, rounds = blocks, 0
    while left > 0:
        left, rounds = left - cores, rounds + 1
    assert float(balance(blocks, cores)) == pytest.approx(blocks / (rounds * cores))


# --- SA004


def blocks_of(m: int, n: int, recorded: int, us: float = 1000) -> Scene:
    return until_the_end(times(Scene(), 0, us, f"{m},7168", f"{n},7168", f"{m},{n}", blocks=recorded))


def test_blocks_that_leave_cores_idle_fire() -> None:
    """128 x 1536: 6 blocks of 128 x 256 or 12 of 128 x 128, on 24 cores."""
    found = judged("SA004", blocks_of(128, 1536, 12))
    seen = found.first.observation
    assert (seen["m"], seen["n"], seen["k"], seen["blocks"], seen["rounds"]) == (128, 1536, 7168, 12, 1)
    assert seen["cores"] == 24 and seen["efficiency"] == 0.5 and seen["recorded_blocks"] == 12
    assert (seen["good_n"], seen["good_m"]) == (2816, 256)  # 22 of 24; 24 of 24
    assert found.first.impact_ns == 500_000 and found.first.severity == "high"
    assert kinds(found) == ["config", "code"], "tensor parallelism changes N by whole factors only: 2816 is not one"


def test_a_size_that_is_another_model_is_not_advised() -> None:
    """N = 512 would have to become 2816."""
    found = judged("SA004", blocks_of(128, 512, 4))
    assert found.first.observation["good_n"] == 2816
    assert [advice.text.en.split()[0] for advice in found.first.advice] == ["Raise", "Merge"]


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (blocks_of(128, 3072, 24), "pass"),
        (blocks_of(128, 2560, 20), "pass"),  # 20 of 24
        (blocks_of(128, 1536, 12, us=190), "pass"),  # 95 us of 10 ms
        (blocks_of(128, 1536, 24), "not_applicable"),  # the kernel divides finer, or K too
        (blocks_of(128, 1536, 12, us=9.9), "not_applicable"),
    ],
)
def test_blocks_that_fill_the_cores_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA004", scene).state == state


SIZE = st.integers(1, 9_000)
CORES = st.sampled_from([8, 20, 24, 32, 36])


@given(SIZE, SIZE, st.integers(1, 40), CORES)
def test_blocks_are_counted_like_squares_on_paper(m: int, n: int, batch: int, cores: int) -> None:
    """Against laying blocks one by one; the better of the two widths is taken."""
    used = []
    for base in (256, 128):
        laid = len(range(0, m, 128)) * len(range(0, n, base)) * batch
        assert float(tiles(m, n, base, batch)) == laid
        used.append(laid / (math.ceil(laid / cores) * cores))
    assert float(best_balance(m, n, batch, cores)) == pytest.approx(max(used))


@given(st.integers(1, 3_000), st.integers(1, 3_000), st.integers(1, 3), CORES, st.booleans())
def test_a_grown_axis_is_the_first_that_fills_enough(m: int, n: int, batch: int, cores: int, grow_rows: bool) -> None:
    axis = m if grow_rows else n
    candidates = [axis, *((axis // 128 + step) * 128 for step in range(1, GROWTH + 1))]
    good = (size for size in candidates if best_balance(*((size, n) if grow_rows else (m, size)), batch, cores) >= 0.9)
    mine = (np.array([m]), np.array([n]), np.array([batch]))
    assert _grown(*mine, cores, 0.9, rows=grow_rows).tolist() == [next(good, axis)]


# --- SA005


def shared(
    us: float = 400, *, m: int = 64, widths: tuple[int, ...] = (1536, 576), between: int = 0, **writes: str
) -> Scene:
    """The guide's example: the products before latent attention, one after the other on the same activation."""
    scene = Scene()
    for number, width in enumerate(widths):
        start = number * 1000
        times(scene, start, us, f"{m},7168", f"7168,{width}", f"{m},{width}")
        for extra in range(between):
            out = writes.get("out", f"{m},{width}")
            scene.tensors(start + us + extra, 1, "Cast", [f"{m},{width} FLOAT"], [f"{out} BF16"], core=VECTOR)
    return until_the_end(scene)


@pytest.mark.parametrize("between", [0, 2])
def test_products_on_the_same_input_fire(between: int) -> None:
    found = judged("SA005", shared(between=between), "flows")
    seen = found.first.observation
    assert (seen["input_shape"], seen["widths"], seen["dtype"]) == ("64,7168", "1536, 576", "BF16")
    assert (seen["products"], seen["places"], seen["together"]) == (2, 1, 2112)
    assert (seen["most_blocks"], seen["cores"]) == (12, 24)
    # 12 and 5 blocks of 128 x 128 take a round each, 17 take one: half the time.
    assert seen["cost_ratio"] == 0.5 and seen["total_ns"] == 800_000 and seen["together_ns"] == 400_000
    # The result is read and written once more, as fast as the larger product moves its tensors.
    bandwidth = (64 * 7168 + 7168 * 1536 + 64 * 1536) * 2 / 400_000
    assert seen["split_ns"] == pytest.approx(2 * 2 * 64 * 2112 / bandwidth)
    assert found.first.impact_ns == pytest.approx(400_000 - 2 * 2 * 64 * 2112 / bandwidth, abs=1)
    assert found.first.severity == "medium" and found.first.idle_ns == 0
    assert found.first.advice[0].risk is not None
    assert len(found.evidence()[0].rows) == 2


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (shared(us=90), "pass"),  # 90 us of 10 ms
        (shared(m=8192), "pass"),  # the cores are full anyway
        (shared(between=3), "not_applicable"),  # too far apart
        (shared(between=1, out="64,7168"), "not_applicable"),  # something of the input's size was written
        (shared(widths=(1536,)), "not_applicable"),
    ],
)
def test_other_products_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA005", scene, "flows").state == state


def test_products_that_wait_for_their_weights_share_the_loads_of_all_cores() -> None:
    """Twelve of 24 cores load 22.9 MB in 400 us; merged, 17 cores load 31.4 MB: 387 us, if the memory gives as much.
    It does where another product of the profile moves more; otherwise the 400 us grow with the bytes."""

    def loading(scene: Scene) -> float:
        for row in scene.rows["kernels"]:
            row |= {"aic_mte2_us": 0.9 * row["duration_us"], "aic_mac_us": 0.1 * row["duration_us"]}
        return float(judged("SA005", scene, "flows").first.observation["together_ns"])

    moved, merged = ((64 * 7168 + 7168 * width + 64 * width) * 2 for width in (1536, 2112))
    assert loading(shared()) == pytest.approx(400_000 * merged / moved)
    faster = times(shared(), 3000, 400, "4096,7168", "7168,7168", "4096,7168")
    assert loading(faster) == pytest.approx(400_000 * merged / moved * 12 / 17)


def test_merged_products_save_a_launch_beside_the_split() -> None:
    """Three products of 20 us, one launched every 100 us: a product and a split stay, the rest of the step comes 100 us
    sooner."""
    scene = Scene()
    for number, width in enumerate((512, 256, 256, 0)):
        if width:
            times(scene, 100.0 * number, 20, "64,7168", f"7168,{width}", f"64,{width}")
        else:
            scene.kernel(100.0 * number, 500, "ReduceSum", core=VECTOR)
    seen = judged("SA005", scene).first.observation
    assert seen["saving_ns"] == 100_000 and seen["launch_saving_ns"] == 100_000 - seen["gain_ns"]


@pytest.mark.parametrize("change", [{"start_us": 2000, "stream": 9}, {"step": 2}])
def test_streams_and_steps_end_a_run(change: dict[str, int]) -> None:
    scene = shared()
    scene.rows["kernels"][1] |= change
    if "step" in change:
        scene.rows["kernels"][2] |= change
    assert judged("SA005", scene).state == "not_applicable"


def test_a_collective_ends_a_run() -> None:
    assert judged("SA005", shared().collective(500, 100)).state == "not_applicable"


def test_gradients_of_weights_share_a_shape_and_no_tensor() -> None:
    """The left operand is stored with the summed axis first: the output gradients of two layers, say."""
    scene = Scene()
    for number in range(2):
        times(scene, number * 1000, 400, "7168,64", "7168,576", "64,576")
    assert judged("SA005", until_the_end(scene)).state == "not_applicable"


def test_places_are_counted_per_step() -> None:
    scene = Scene()
    for step in (1, 2):
        for start, width in ((0, 1536), (400, 576), (1000, 1536), (1400, 576)):
            left, right, out = "64,7168", f"7168,{width}", f"64,{width}"
            times(scene, (step - 1) * STEP_US + start, 300, left, right, out)
            scene.rows["kernels"][-1]["step"] = step
        scene.tensors(
            (step - 1) * STEP_US + 800, 100, "Mul", ["64,7168 BF16"], ["64,7168 BF16"], core=VECTOR, step=step
        )
    scene.kernel(2 * STEP_US - 1, 1, "ReduceSum", core=VECTOR, step=2)
    seen = judged("SA005", scene, "flows").first.observation
    assert seen["places"] == 2 and seen["products"] == 2 and seen["total_ns"] == 1_200_000


@given(st.lists(st.integers(1, 4000), min_size=2, max_size=4), st.integers(1, 2000), CORES)
def test_one_product_costs_no_more_rounds_than_several(widths: list[int], m: int, cores: int) -> None:
    def plain(n: int) -> int:
        return min(math.ceil(math.ceil(m / 128) * math.ceil(n / base) / cores) * base for base in (256, 128))

    one = pd.Series([1] * len(widths))
    _, costs = _cost(one * m, pd.Series(widths), one, cores)
    assert costs.tolist() == [plain(width) for width in widths]
    _, merged = _cost(one[:1] * m, pd.Series([sum(widths)]), one[:1], cores)
    assert merged[0] == plain(sum(widths))


# --- SA006


def decode(query: str, key: str, *, core: str = "MIX_AIC", blocks: int = 8, us: float = 1000) -> Scene:
    reads = [f"{query} BF16", f"{key} BF16", f"{key} BF16"]
    scene = Scene().tensors(0, us, "IncreFlashAttention", reads, [f"{query} BF16"], core=core)
    return until_the_end(scene.busy(blocks))


def test_attention_with_few_heads_fires() -> None:
    found = judged("SA006", decode("2,32,1,128", "2,4,4096,128"))
    seen = found.first.observation
    assert (seen["sequences"], seen["kv_heads"], seen["parallel"], seen["cores"]) == (2, 4, 8, 24)
    assert seen["query_shape"] == "2,32,1,128" and (seen["good_sequences"], seen["good_efficiency"]) == (6, 1)
    assert seen["efficiency"] == pytest.approx(1 / 3) and seen["blocks"] == 8
    assert found.first.impact_ns == 666_667 and found.first.severity == "high"
    assert kinds(found) == ["config", "investigate", "config"]


@pytest.mark.parametrize(
    ("cores", "heads", "sequences", "better"),
    [(24, 4, 2, 6), (24, 1, 30, 48), (24, 8, 4, 6), (20, 8, 3, 5), (20, 8, 1, 2)],
)
def test_more_sequences_never_advises_fewer(cores: int, heads: int, sequences: int, better: int) -> None:
    found = more_sequences(pd.Series([sequences]), np.array([float(heads)]), pd.Series([cores]))
    assert found.tolist() == [better]


def test_attention_on_vector_cores_counts_those() -> None:
    found = judged("SA006", decode("8,4,1,128", "8,4,4096,128", core=VECTOR, blocks=32))
    assert found.first.observation["cores"] == 48 and found.first.impact_ns == 333_333


def test_attention_that_reports_more_blocks_may_divide_the_cache() -> None:
    assert judged("SA006", decode("2,32,1,128", "2,4,4096,128", blocks=24)).first.severity == "low"


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (decode("6,32,1,128", "6,4,4096,128"), "pass"),
        (decode("5,32,1,128", "5,4,4096,128"), "pass"),  # 20 of 24
        (decode("2,32,1,128", "2,4,4096,128", us=140), "pass"),  # 93 us of 10 ms
        (decode("2,32,2048,128", "2,4,2048,128"), "not_applicable"),  # a prompt
        (decode("8,1,4096", "8,2048,512"), "cannot_answer"),  # hides the heads
    ],
)
def test_attention_is_silent(scene: Scene, state: str) -> None:
    assert judged("SA006", scene).state == state


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4), st.sampled_from([64, 128]))
def test_layouts_of_attention_tell_the_same(batch: int, heads: int, groups: int, tokens: int, channels: int) -> None:
    """The same step of decoding in three layouts; where heads and tokens cannot be told apart, nothing is claimed."""
    q, cache = heads * groups, 4096
    bnsd = f"{batch},{q},{tokens},{channels};{batch},{heads},{cache},{channels}"
    bsnd = f"{batch},{tokens},{q},{channels};{batch},{cache},{heads},{channels}"
    paged = f"{batch},{q},{channels};900,128,{heads},{channels}"
    assert _decode_shape(paged) == (batch, heads)
    if tokens < q:
        assert _decode_shape(bnsd) == (batch, heads)
    if tokens <= q:
        assert _decode_shape(bsnd) == (batch, heads)


# --- SA007


def tier(m: int, us: float = 1000, *, training: bool = False) -> Scene:
    scene = times(Scene(), 0, us, f"{m},7168", "7168,1536", f"{m},1536")
    return until_the_end(scene.tensors(5000, 1, "RmsNormGrad" if training else "RmsNorm", core=VECTOR))


def test_rows_just_above_a_tier_fire() -> None:
    found = judged("SA007", tier(160))
    seen = found.first.observation
    assert (seen["m"], seen["tier"], seen["tier_below"]) == (160, 256, 128)
    assert found.first.impact_ns == 375_000 and found.first.severity == "low"  # 3.75 % of the step
    assert found.first.confidence == "low" and kinds(found) == ["config"]
    assert judged("SA007", tier(160, 1400)).first.severity == "medium"


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (tier(192), "pass"),  # three quarters of the rows are there
        (tier(160, 260), "pass"),  # 97.5 us of 10 ms
        (tier(128), "not_applicable"),
        (tier(257), "not_applicable"),
        (tier(160, training=True), "not_applicable"),
    ],
)
def test_other_rows_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA007", scene).state == state


# --- M, N and K


@given(
    st.lists(st.integers(1, 9), max_size=2),
    st.integers(1, 99),
    st.integers(1, 99),
    st.integers(1, 99),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_products_are_read_back_from_their_shapes(
    batch: list[int], m: int, n: int, k: int, flip_left: bool, flip_right: bool, plain_right: bool
) -> None:
    """Whichever operand is stored transposed, and with a batch or without; a plain right operand makes it one."""

    def text(*axes: int) -> str:
        return ",".join(map(str, axes))

    left = text(*batch, *((k, m) if flip_left else (m, k)))
    right = text(*(() if plain_right else batch), *((n, k) if flip_right else (k, n)))
    found = product_of(f"{left};{right};7", "ND;ND;ND", text(*batch, m, n))
    assert found is not None and found.flops == 2 * math.prod(batch) * m * n * k
    merged = plain_right or not batch
    assert (found.m, found.batch) == ((math.prod(batch) * m, 1) if merged else (m, math.prod(batch)))
    assert (found.n, found.k) == (n, k)
    assert found.left_tail == (m if flip_left else k) and found.right_tail == (k if flip_right else n)
    assert found.right_axis == ("" if n == k else "k" if flip_right else "n")


@pytest.mark.parametrize(
    ("shapes", "formats", "out"),
    [
        ("8,16", "ND", "8,4"),
        ("8,16;16", "ND;ND", "8"),
        ("8,16;17,4", "ND;ND", "8,4"),
        ("", "", ""),
        ("0,16;16,4", "ND;ND", "0,4"),
        ("1,1,16,16;1,1,16,16", "FRACTAL_NZ;FRACTAL_NZ", "8,4"),
        ("8,2,64,16;8,1,16,32", "ND;ND", "8,2,64,32"),  # a batch that is repeated
    ],
)
def test_shapes_that_do_not_tell_are_left_alone(shapes: str, formats: str, out: str) -> None:
    assert product_of(shapes, formats, out) is None


@pytest.mark.parametrize("type_", ["GroupedMatmul", "MatmulAllReduce", "AllGatherMatmul", "MatmulReduceScatter"])
def test_products_of_several_ranks_or_groups_are_no_plain_products(type_: str) -> None:
    scene = until_the_end(times(Scene(), 0, 1000, "128,7168", "7168,1536", "128,1536", type_=type_))
    assert len(scene.store(chip=CHIP)[matrix_products]) == 0


# --- the real profile, calculated from the csv file


def products_in_file(profiles: Path, rank: int) -> list[tuple[str, str, float, float]]:
    """(left, right, TFLOP/s, us) of every product of the export, which are [32, k] x [n, k] and the like, in FP32."""
    folder = profiles / "ascend" / "alexnet-ddp-text-level1" / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    found = []
    with (folder / "kernel_details.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["Type"].startswith("MatMul"):
                left, right = row["Input Shapes"].strip('"').split(";")[:2]
                out = [int(axis) for axis in row["Output Shapes"].strip('"').split(",")]
                elements = math.prod(int(axis) for axis in left.split(","))
                us = float(row["Duration(us)"])
                found.append((left, right, 2 * out[0] * out[1] * (elements / out[0]) / us / 1e6, us))
    return found


def test_alexnet_axes_of_16_kib_agree_with_the_csv_file(profiles: Path) -> None:
    """An operand that ends in 4096 FP32 numbers is 16 KiB wide; small operands (under a tenth) do not count."""
    mine = []
    for left, right, tflops, us in products_in_file(profiles, 0):
        shapes = [[int(axis) for axis in text.split(",")] for text in (left, right)]
        sizes = [math.prod(shape) for shape in shapes]
        if any(shape[-1] == 4096 and size >= 0.1 * sum(sizes) for shape, size in zip(shapes, sizes, strict=True)):
            mine.append((tflops, us))
    assert len(mine) == 7
    found = outcome("SA002", real_rank(profiles, "alexnet-ddp-text-level1", 0)).observed
    assert found is not None
    row = found.frame.set_index("axis").loc[4096]
    assert row["tail_bytes"] == 16_384 and row["strided"] and not row["unaligned"] and row["kernels"] == 7
    total = sum(us for _, us in mine)
    assert row["total_ns"] == pytest.approx(total * 1e3) and total == pytest.approx(363.166)
    assert row["tflops"] == pytest.approx(sum(tflops * us for tflops, us in mine) / total)
    # The axes of 9216 and 1000 numbers are 36,864 = 72 x 512 and 4000 bytes.
    assert set(found.frame["axis"]) == {4096}


def test_alexnet_blocks_agree_with_the_csv_file(profiles: Path) -> None:
    """[32, 4096] x [1000, 4096]: 8 blocks of 128 x 128 for 24 cores. The kernel reports 21: it divides otherwise."""
    found = outcome("SA004", real_rank(profiles, "alexnet-ddp-text-level1", 0)).observed
    assert found is not None
    row = found.frame[(found.frame["n"] == 1000) & (found.frame["m"] == 32)].iloc[0]
    spent = [us for left, right, _, us in products_in_file(profiles, 0) if (left, right) == ("32,4096", "1000,4096")]
    assert row["total_ns"] == pytest.approx(1e3 * sum(spent)) and sum(spent) == pytest.approx(57.241)
    assert (row["blocks"], row["recorded_blocks"], row["efficiency"]) == (8, 21, pytest.approx(1 / 3))
    whole = [us for left, right, _, us in products_in_file(profiles, 0) if (left, right) == ("32,9216", "4096,9216")]
    widest = found.frame[found.frame["n"] == 4096].sort_values("gain_ns").iloc[-1]
    assert (widest["blocks"], widest["recorded_blocks"]) == (16, 16)  # here the kernel divides as the rule says
    assert widest["gain_ns"] == pytest.approx(1e3 * sum(whole) * 8 / 24)


def test_alexnet_says_nothing_of_relevance(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    assert {rule: outcome(rule, store).state for rule in ("SA001", "SA002", "SA003", "SA004")} == dict.fromkeys(
        ("SA001", "SA002", "SA003", "SA004"), "pass"
    )
    assert {outcome(rule, store).state for rule in ("SA005", "SA006", "SA007")} == {"not_applicable"}
    low = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert {outcome(f"SA00{number}", low).state for number in range(1, 8)} == {"cannot_answer"}
