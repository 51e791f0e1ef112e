"""SA011: what attention over an unaligned length costs, where the recording has an aligned one to hold it against."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.testing import Scene, judge_rule, measure
from advisors.shape_affinity.attention_length import attention_length
from tests.advisors.real import real_rank


def attentions(*lengths: tuple[int, float], heads: int = 32, other: int = 0) -> Scene:
    """A fused attention of each length in so many us; ``other``: heads of those after the first, where they differ."""
    scene, now = Scene(), 0.0
    for number, (length, us) in enumerate(lengths):
        shape = f"1,{other if other and number else heads},{length},128 BF16"
        scene.tensors(now, us, "FlashAttentionScore", [shape] * 3, [shape], core="MIX_AIC")
        now += us + 10
    return scene


def test_an_unaligned_length_is_held_against_the_nearest_aligned_one() -> None:
    """4,000 keys in 1,500 us beside 4,096 in 1,048.576: as long an operation would make 1,000; padded, 1,048.576."""
    store = attentions((4000, 1_500), (4096, 1_048.576), (2048, 500)).store()
    seen = measure(attention_length, store).frame.iloc[0]
    assert (seen["keys"], seen["aligned_keys"]) == (4000, 4096)
    assert seen["slower"] == pytest.approx(0.5) and seen["saving_ns"] == pytest.approx(1_500_000 - 1_048_576)
    found = judge_rule("SA011", store)
    assert found.state == "fail" and found.first.severity == "low"
    assert found.first.impact_ns == pytest.approx(451_424, abs=1)


def crossed(*sizes: tuple[int, int, float], masked: int = -1) -> Scene:
    """A fused attention of so many queries and keys in so many us each; ``masked``: the one with a causal mask."""
    scene, now = Scene(), 0.0
    for number, (queries, keys, us) in enumerate(sizes):
        query, key = (f"1,32,{length},128 BF16" for length in (queries, keys))
        mask = ["2048,2048 BOOL"] if number == masked else []
        scene.tensors(now, us, "FlashAttentionScore", [query, key, key, *mask], [query], core="MIX_AIC")
        now += us + 10
    return scene


def test_where_only_the_queries_are_unaligned_nothing_is_said_of_the_keys() -> None:
    store = crossed((1000, 1024, 500), (1024, 1024, 300)).store()
    seen = measure(attention_length, store).frame.iloc[0]
    assert (seen["queries"], seen["keys"], seen["aligned_queries"], seen["aligned_keys"]) == (1000, 1024, 1024, 1024)
    assert seen["slower"] == pytest.approx(500 / 1000 / (300 / 1024) - 1)


@pytest.mark.parametrize(
    "scene",
    [
        crossed((4000, 4096, 1_500), (128, 4096, 30)),
        crossed((4000, 4000, 1_500), (4096, 4096, 500), masked=1),
        attentions((4000, 1_500), (4096, 0)),
    ],
    ids=["far fewer queries", "half of it masked", "no time"],
)
def test_other_queries_or_masks_or_kernels_of_no_time_are_no_measure(scene: Scene) -> None:
    assert np.isnan(measure(attention_length, scene.store()).frame.iloc[0]["slower"])


def test_padding_that_adds_as_much_as_it_saves_is_not_advised() -> None:
    assert judge_rule("SA011", attentions((4000, 1_040), (4096, 1_048.576)).store()).state == "pass"


@pytest.mark.parametrize(
    "scene",
    [
        attentions((4000, 1_500)),
        attentions((4000, 1_500), (1024, 70)),
        attentions((4000, 1_500), (4096, 1_000), other=16),
    ],
    ids=["alone", "far shorter", "other channels"],
)
def test_without_an_aligned_one_like_it_the_cost_is_unknown(scene: Scene) -> None:
    assert judge_rule("SA011", scene.store()).state == "cannot_answer"


def test_aligned_lengths_and_single_tokens_are_no_question() -> None:
    assert judge_rule("SA011", attentions((4096, 1_000), (2048, 300)).store()).state == "not_applicable"


def test_recorded_attentions_are_aligned(profiles: Path) -> None:
    """8,192 queries and keys."""
    assert judge_rule("SA011", real_rank(profiles, "msprof-op-summary", 0)).state == "not_applicable"
