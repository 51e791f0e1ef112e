"""Kernels of given shapes that fill a step."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from advisor_core.api.testing import JudgedRule, Scene, judge_rule

STEP_US = 10_000
CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
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


def judged(rule: str, scene: Scene, *without: str, **about: Any) -> JudgedRule:
    return judge_rule(rule, scene.store(*without, **{"chip": CHIP, **about}))


def kinds(found: JudgedRule) -> list[str]:
    return [advice.kind for advice in found.first.advice]


CORES = st.sampled_from([8, 20, 24, 32, 36])
