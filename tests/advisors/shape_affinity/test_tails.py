"""SA001, SA002: last axes that load badly."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import JudgedRule, Scene, judge_rule
from advisors.shape_affinity.tails import good_tail
from tests.advisors.shape_affinity.scenes import CHIP, VECTOR, judged, kinds, times, until_the_end


def kernels_alone(rule: str, scene: Scene, **about: Any) -> JudgedRule:
    """Without launches: what the kernels take less is what the step takes less."""
    return judged(rule, scene, "flows", **about)


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


def test_an_axis_in_two_dtypes_gets_one_length() -> None:
    """A vocabulary of 50,257 in BF16 and, for the loss, in FP32: 50,304 is aligned in FP32 alone."""
    scene = times(Scene(), 0, 3000, "4096,2048", "2048,50257", "4096,50257")
    times(scene, 3000, 6000, "4096,50257", "50257,2048", "4096,2048", dtype="FLOAT")
    found = kernels_alone("SA001", until_the_end(scene))
    assert found.observed is not None
    lengths = found.observed.frame.set_index("dtype")[["good", "multiple"]]
    assert lengths.loc["BF16"].tolist() == lengths.loc["FLOAT"].tolist() == [50432, 256]


def test_a_product_with_two_bad_axes_counts_once_under_the_larger_operand() -> None:
    found = kernels_alone("SA001", until_the_end(times(Scene(), 0, 3000, "5003,4099", "4099,2049", "5003,2049")))
    assert found.observed is not None and found.observed.frame["axis"].tolist() == [4099]
    assert found.first.impact_ns == pytest.approx(3_000_000 * (1 - 0.9 * 4352 / 4099), abs=1)


def test_unaligned_advice_follows_the_axis_and_the_kind_of_run() -> None:
    inference = kernels_alone("SA001", unaligned())
    assert [advice.text.en.split(",")[0] for advice in inference.first.advice] == [
        "If the operand is a weight that no embedding shares",
        "If tensor parallelism divides this axis",
        "If this axis is not a vocabulary",
        "If the operand is a weight of a linear layer or of experts",
    ]
    assert all(advice.risk for advice in inference.first.advice)
    changes = ["accuracy", "crash"]
    assert [advice.hazards for advice in inference.first.advice] == [[], changes, ["accuracy"], changes]
    vocabulary = times(Scene(), 0, 2000, "4096,50257", "50257,2048", "4096,2048")
    vocabulary.tensors(5000, 1, "RmsNormGrad", core=VECTOR)
    first = kernels_alone("SA001", until_the_end(vocabulary)).first
    said = [advice.text.en.split(",")[0] for advice in first.advice]
    assert said[2:] == [*["If this axis is the vocabulary"] * 2, "If this axis is not a vocabulary"]
    assert [advice.hazards for advice in first.advice] == [[], changes, changes, changes, ["accuracy"]]
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
    found = judge_rule("SA001", until_the_end(scene).store(chip=CHIP)).observed
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
    assert kinds(found) == ["code", "config"]
    assert [one.hazards for one in found.first.advice] == [[], ["accuracy", "crash"]]


@pytest.mark.parametrize("scene", [strided(930), strided(1200, peer=False), unaligned()])
def test_strided_axis_is_silent_where_nothing_is_measured_slower(scene: Scene) -> None:
    """930 us are 148 TFLOP/s, more than 0.9 of the peer's 163."""
    assert kernels_alone("SA002", scene).state == "pass"


def test_each_of_the_two_rules_has_its_own_axes() -> None:
    assert kernels_alone("SA001", strided(1200)).state == "pass"


def test_products_that_take_no_time_have_no_speed() -> None:
    """Exports have kernels of 0 us."""
    assert kernels_alone("SA001", unaligned(0, peer=False)).state == "not_applicable"
