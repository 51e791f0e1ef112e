"""Scenes with collectives, and what is advised about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.result.finding import Advice
from advisor_core.rules.model import AdviceSpec
from tests.advisors.build import FILES, book

MB = 1_000_000

CHIPS = {
    "A2 A3": {"ai_core_num": "24", "aiv_num": "48"},
    "910A": {"ai_core_num": "32", "aiv_num": "32"},
    "950": {"ai_core_num": "32", "aiv_num": "64"},
}


def specs(rule: str) -> list[AdviceSpec]:
    return list(book(FILES[rule[:2]])[rule].rule.advice)


def training(scene: Scene) -> Scene:
    return scene.event("user_annotation", "Optimizer.step#AdamW.step", -8, 2)


def decoding(scene: Scene) -> Scene:
    """The same in decode: its first kernel computes attention over pages."""
    scene.rows["kernels"][0]["type"] = "PagedAttention"
    return scene


def advised(rule: str, scene: Scene, **about: Any) -> list[Advice]:
    return list(judge_rule(rule, scene.store(**about)).first.advice)


def naming(advice: Sequence[Advice | AdviceSpec], name: str) -> list[Any]:
    return [one for one in advice if name in one.text.en]


def waiting(*, covered: bool = False) -> Scene:
    """An AllReduce of 500 us: 400 us waiting for rank 5, then 90 us moving; a step of 1000 us."""
    scene = Scene().kernel(0, 500)
    scene.collective(500, 500, [(510, 910, 5), (510, 700, 3), (910, 1000, None)], size=64 * MB)
    if covered:
        scene.kernel(500, 500, stream=3)
    return scene


def moving(*, overlap: float = 0.0) -> Scene:
    """An AllReduce that moves data for 400 of 1000 us, covered by computing for ``overlap`` of it."""
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 1000, None)], size=64 * MB)
    if overlap:
        scene.kernel(600, 400 * overlap, stream=3)
    return scene


def buckets(*sizes: float, compute: float = 1000, begin: float | None = None, gap: float = 0) -> Scene:
    """Computing, then collectives in a row that move data for ``sizes`` us; the first starts at ``begin``."""
    scene = Scene().kernel(0, compute)
    start = compute if begin is None else begin
    for size in sizes:
        scene.collective(start, size, [(start, start + size, None)], size=64 * MB)
        start += size + gap
    return scene


def staged(*, wait: float) -> Scene:
    scene = Scene().kernel(0, 500)
    return scene.collective(
        500, wait + 20, [(500, 500 + wait, 1), (500 + wait, 520 + wait, None)], operation="batchSendRecv"
    )
