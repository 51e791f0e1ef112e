"""CO011: pipeline stages that compute for different times."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from tests.advisors.communication_job.scenes import stage


def job(*, slots: int = 4, **about: object) -> Mapping[int, FactStore]:
    """Computing as in a real job whose last stage has the output layer and the loss: 231, 231, 400 and 401 ms."""
    return {
        0: stage(0, 231_000, slots=slots, wait=169_000, **about),
        1: stage(1, 231_000, slots=slots, wait=169_000, **about),
        2: stage(2, 400_000, slots=slots, wait=1_000, loss=150_000, **about),
        3: stage(3, 401_000, slots=slots, wait=1_000, loss=150_000, **about),
    }


def test_the_longer_stage_is_named_with_what_it_does_more() -> None:
    found = judge_rule("CO011", job())
    seen = found.first.observation
    assert (seen["stage"], seen["stages"], seen["stage_ranks"], seen["is_last"]) == (1, 2, "2, 3", True)
    assert seen["computing_ns"] == 400_000_000 and seen["mean_computing_ns"] == 315_500_000
    assert seen["operator"] == "CrossEntropyLoss" and seen["operator_excess_ns"] == pytest.approx(150_000_000)
    assert seen["micro_batches"] == 4
    # Three of four micro-batches wait for the longest stage: 3/4 of 400 - 315.5 ms.
    assert found.first.impact_ns == pytest.approx(0.75 * 84_500_000)
    assert found.first.severity == "high"
    assert found.observed is not None and found.observed.ranks is not None
    assert found.observed.ranks(0) == [0, 1]
    stages, types, kernels = found.evidence()
    assert [row["stage_ranks"] for row in stages.rows] == ["0, 1", "2, 3"]
    assert types.rows[0]["type"] == "CrossEntropyLoss"
    assert kernels.rows[0]["duration"] == pytest.approx(62_500_000)


def test_more_micro_batches_leave_more_of_it() -> None:
    assert judge_rule("CO011", job(slots=20)).first.impact_ns == pytest.approx(0.95 * 84_500_000)


def test_sends_and_receives_of_their_own_count_micro_batches_as_well() -> None:
    scenes = {rank: stage(rank, 231_000 if rank < 2 else 400_000, slots=4, wait=1000, batched=False) for rank in (0, 2)}
    assert judge_rule("CO011", scenes).first.observation["micro_batches"] == 4


def test_one_slow_rank_does_not_make_a_stage_long() -> None:
    scenes = dict(job()) | {rank: stage(rank, 231_000, slots=4, wait=1_000) for rank in (1, 2)}
    scenes[3] = stage(3, 400_000, slots=4)
    assert judge_rule("CO011", scenes).state == "pass"


def test_groups_that_were_not_recorded_follow_from_the_sizes() -> None:
    found = judge_rule("CO011", job(groups={}, world_size=4))
    assert found.first.observation["stage_ranks"] == "2, 3"


def test_stage_states() -> None:
    whole = job()
    assert judge_rule("CO011", {rank: whole[rank] for rank in (0, 1)}).state == "cannot_answer"
    assert judge_rule("CO011", job(groups={})).state == "cannot_answer"
    alone = {rank: Scene(rank=rank).kernel(0, 10).store() for rank in (0, 1)}
    assert judge_rule("CO011", alone).state == "not_applicable"
    even = {rank: stage(rank, 300_000, slots=4, wait=1_000) for rank in range(4)}
    assert judge_rule("CO011", even).state == "pass"
    ring = job(parallel={"pp": 1, "cp": 2})
    assert judge_rule("CO011", ring).state == "not_applicable"


def test_layers_are_moved_by_the_option_of_each_framework() -> None:
    """`--num-layer-list` is MindSpeed-LLM's; MindSpeed calls it `--pipeline-num-transformer-layers`."""
    (moving,) = [one for one in judge_rule("CO011", job()).first.advice if "--num-layer-list" in one.text.en]
    for text in (moving.text.en, moving.text.zh):
        mindspeed, llm = (text.index(name) for name in ("--pipeline-num-transformer-layers", "--num-layer-list"))
        assert text.rindex("MindSpeed", 0, mindspeed) != text.index("MindSpeed-LLM")
        assert text.rindex("MindSpeed-LLM", 0, llm) > mindspeed
    assert "memory" in moving.risk.en and "--noop-layers" in moving.risk.en
