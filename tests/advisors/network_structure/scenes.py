"""Scenes of kernels one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.testing import Scene

Kernel = tuple[str, float, Sequence[str], Sequence[str]]
FILLER = "MatMulV3"


def scene_of(*kernels: Kernel, wall: float = 1000, filler: str = FILLER) -> Scene:
    """The kernels back to back from 0, and one more that fills the step up to ``wall`` us."""
    scene = Scene().step(1, -10, wall + 20)
    at = 0.0
    for type_, duration, reads, writes in kernels:
        scene.tensors(at, duration, type_, reads, writes)
        at += duration
    if at < wall:
        scene.tensors(at, wall - at, filler, ("7,3 BF16", "3,5 BF16"), ("7,5 BF16",))
    return scene


def kinds(found: object) -> list[str]:
    return [advice.kind for advice in found.first.advice]  # type: ignore[attr-defined]


TENSOR = ("64,96 FLOAT ND",)
