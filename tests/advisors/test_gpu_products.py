"""GPB003: products on a GPU against what large products reached on GPUs of its model, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.testing import GPU, JudgedRule, Scene, judge_rule
from tests.advisors.cures import cure_of, shorter

A100 = {"multiprocessors": 108, "compute_capability": 8.0, "memory_bytes": 79 << 30}
V100 = {"multiprocessors": 80, "compute_capability": 7.0, "memory_bytes": 16 << 30}
MI300X = {"multiprocessors": 304, "compute_capability": 9.4, "memory_bytes": 192 << 30}
PEAK = 108 * 2048 * 1410e6 / 1e12
"""TFLOP/s of an A100 in 16 bits: 311.9, of which 82 % were reached."""
CUBE_US = 2 * 4096**3 / PEAK / 1e6
"""A product of 4096 x 4096 x 4096 at the peak: 440.7 us."""


def products(*took: float, m: int = 4096, dtype: str = "BF16") -> Scene:
    """Products of ``m`` x 4096 x 4096, of ``m`` and each a row more, one after the other."""
    scene, start = Scene(words=GPU).step(1, -10, 10_010), 0.0
    for number, us in enumerate(took):
        rows = m + number
        reads = [f"{rows},4096 {dtype}", f"4096,4096 {dtype}"]
        scene.tensors(start, us, "aten::mm", reads, [f"{rows},4096 {dtype}"], name="gemm", launched=-8)
        start += us
    return scene


def judged(scene: Scene, chip: dict[str, Any], maker: str = "NVIDIA") -> JudgedRule:
    return judge_rule("GPB003", scene.store(chip=chip, vendor="gpu", maker=maker))


def test_half_of_what_can_be_had_is_told() -> None:
    found = judged(products(CUBE_US / 0.41), A100)
    seen = found.first.observation
    assert seen["efficiency"] == pytest.approx(0.41, rel=1e-3) and seen["reachable"] == 0.82
    # bytes of two operands and the result at 2,039 GB/s
    assert seen["ridge"] == pytest.approx(CUBE_US * 1e-6 / (3 * 4096**2 * 2 / 2.039e12), rel=1e-3)
    assert found.first.impact_ns == pytest.approx(CUBE_US / 0.41 * 1e3 * (1 - 0.41 / (0.84 * 0.82)), rel=1e-3)


@pytest.mark.parametrize(
    ("scene", "chip", "maker", "state"),
    [
        (products(CUBE_US / 0.51), A100, "NVIDIA", "pass"),  # 0.62 of 82 %
        (products(CUBE_US / 0.41, m=64), A100, "NVIDIA", "not_applicable"),  # bound by the weight
        (products(CUBE_US / 0.41, dtype="FLOAT"), A100, "NVIDIA", "not_applicable"),  # TF32 may be off
        (products(CUBE_US / 0.41, dtype="FLOAT16"), V100, "NVIDIA", "cannot_answer"),  # nobody measured it
        (products(500), MI300X, "AMD", "fail"),  # 21 % of 1,307 TFLOP/s
        (products(270), MI300X, "AMD", "pass"),  # 39 %, which is 65 % of what was reached
        (products(CUBE_US / 0.41), {}, "NVIDIA", "cannot_answer"),
    ],
)
def test_state(scene: Scene, chip: dict[str, Any], maker: str, state: str) -> None:
    assert judged(scene, chip, maker).state == state


def test_only_what_fits_the_gpu_is_advised() -> None:
    of_amd = judged(products(500), MI300X, "AMD").first.advice
    assert {name for one in of_amd for name in one.set} == {"PYTORCH_TUNABLEOP_ENABLED"}
    of_nvidia = judged(products(CUBE_US / 0.41), A100).first.advice
    assert not any(one.set for one in of_nvidia) and "nvidia-smi" in of_nvidia[0].text.en


def test_at_the_least_it_becomes_as_good_as_the_next_better_product() -> None:
    scene = products(1000, 900, 600)
    cure = cure_of(judged(scene, A100))
    store = scene.store(chip=A100, vendor="gpu", maker="NVIDIA")
    assert cure.least is not None
    (saved,) = shorter(store, cure.least).values()
    assert saved == pytest.approx(1_000_000 * (1 - 900 / 1000 * 4096 / 4097), rel=1e-3)
    (usual,) = shorter(store, cure).values()
    assert usual > saved
