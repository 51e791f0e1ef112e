"""NS060: layers that take longer than others with the same kernels."""

from __future__ import annotations

import random

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisors.layers.layers import layers

LAYERS, PASSES = 6, 4
LAYER = (
    ("MatMulV3", ("512,256 BF16", "256,768 BF16"), "512,768 BF16", 40.0),
    ("FlashAttentionScore", ("1,4,512,64 BF16", "1,4,512,64 BF16", "1,4,512,64 BF16"), "1,4,512,64 BF16", 60.0),
    ("MatMulV3", ("512,256 BF16", "256,256 BF16"), "512,256 BF16", 20.0),
    ("Add", ("512,256 BF16", "512,256 BF16"), "512,256 BF16", 10.0),
    ("MatMulV3", ("512,256 BF16", "256,1024 BF16"), "512,1024 BF16", 50.0),
    ("Gelu", ("512,1024 BF16",), "512,1024 BF16", 10.0),
    ("MatMulV3", ("512,1024 BF16", "1024,256 BF16"), "512,256 BF16", 50.0),
)


def model(slower: dict[tuple[int, int], float], *, jitter: float = 0.005, seed: int = 0) -> Scene:
    """Steps of a model. ``slower``: pass and layer to how many times its attention takes."""
    draw, scene, now = random.Random(seed), Scene(), 100.0
    for number in range(PASSES):
        begin = now
        for layer in range(LAYERS):
            for type_, reads, written, usual in LAYER:
                times = slower.get((number, layer), 1.0) if "Attention" in type_ else 1.0
                lasts = usual * times * draw.uniform(1 - jitter, 1 + jitter)
                scene.tensors(now, lasts, type_, reads, [written], step=number + 1)
                now += lasts + 1
        scene.tensors(now, 30, "ArgMaxV2", ["512,256 BF16"], ["512 INT64"], step=number + 1)
        now += 50
        scene.step(number + 1, begin - 10, now - begin)
    return scene


def test_a_slow_layer_is_found_with_the_kernels_that_make_it_slow() -> None:
    scene = model({(number, 3): 2.0 for number in range(PASSES)})
    assert scene.store()[layers].towers["layers"].tolist() == [LAYERS]
    found = judge_rule("NS060", scene.store())
    assert found.state == "fail"
    assert found.first.observation["layer"] == 3
    assert found.first.observation["operator"] == "FlashAttentionScore"
    assert found.first.observation["operator_share"] == pytest.approx(1.0, abs=0.1)
    assert found.first.observation["excess_per_pass_ns"] == pytest.approx(60_000, rel=0.1)
    assert found.first.observation["excess_ns"] == pytest.approx(60_000, rel=0.1)  # a pass is a step
    assert [row.observation["layer"] for row in found.verdict.rows] == [3] if found.verdict else False


def test_a_layer_that_was_slow_once_is_jitter() -> None:
    assert judge_rule("NS060", model({(2, 3): 4.0}).store()).state == "pass"


@pytest.mark.parametrize("seed", range(3))
def test_layers_that_differ_by_chance_are_in_order(seed: int) -> None:
    assert judge_rule("NS060", model({}, jitter=0.2, seed=seed).store()).state == "pass"


def test_a_slow_pass_makes_no_layer_slow() -> None:
    assert judge_rule("NS060", model({(1, layer): 3.0 for layer in range(LAYERS)}).store()).state == "pass"
