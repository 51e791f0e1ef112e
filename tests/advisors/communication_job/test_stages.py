"""CO011: pipeline stages that compute for different times."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor_core.api.advisors import KernelsTake
from advisor_core.api.testing import JudgedRule, Scene, judge_rule
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


def cured(found: JudgedRule) -> KernelsTake:
    assert found.observed is not None and found.observed.cure is not None
    cure = found.observed.cure(0)
    assert isinstance(cure, KernelsTake)
    return cure


def of_layers(first: int, last: int, slower: float = 1.0) -> JudgedRule:
    """Two stages of so many kernels of 1 ms and of ``slower`` ms, four micro-batches."""
    times = {0: (first, 1_000.0), 2: (last, 1_000 * slower)}
    return judge_rule(
        "CO011",
        {rank: stage(rank, count * each, slots=4, layer=each, wait=1_000) for rank, (count, each) in times.items()},
    )


def test_a_stage_that_is_slow_at_the_same_kernels_stays_slow_with_the_same_work() -> None:
    """Ten layers on either stage, a kernel for each of four micro-batches, of 1.5 ms on the second: the layers are
    even, its chip is not. Only less work would make it as short as the other one: with 12 and 8 layers 48 ms each."""
    found = of_layers(40, 40, 1.5)
    assert found.first.observation["slowness"] == pytest.approx(1.2)
    assert (found.first.observation["stage_layers"], found.first.observation["even_layers"]) == ("10, 10", "10, 10")
    assert "take 120.0 % of the mean of all stages on stage 1" in found.first.advice[0].text.en
    cure = cured(found)
    assert cure.share == {0: pytest.approx(1.0), 2: pytest.approx(1.0)}
    assert cure.most is not None and cure.most.share == {0: pytest.approx(48 / 40), 2: pytest.approx(48 / 60)}
    assert found.first.impact_ns == pytest.approx(0.75 * 12_000_000)


def test_uneven_and_slow_the_work_is_shared_out_and_the_speed_stays() -> None:
    """10 layers of 1 ms and 20 of 1.5 ms: 15 each then, and 18 and 12 if the slow one got less to do."""
    found = of_layers(40, 80, 1.5)
    cure = cured(found)
    (told,) = [one.text.en for one in found.first.advice if "even as whole layers" in one.text.en]
    assert "10, 20 layers" in told and "15, 15 are" in told
    assert cure.share == {0: pytest.approx(60 / 40), 2: pytest.approx(90 / 120)}
    assert cure.most is not None and cure.most.share == {0: pytest.approx(72 / 40), 2: pytest.approx(72 / 120)}


def test_stages_of_the_same_speed_and_stages_without_shapes_take_the_same_time_then() -> None:
    for found, times in ((of_layers(40, 80), {0: 40, 2: 80}), (judge_rule("CO011", job()), {0: 231, 2: 400})):
        cure, mean = cured(found), sum(times.values()) / 2
        assert found.first.observation["slowness"] == 1
        assert not any("same type, shapes" in advice.text.en for advice in found.first.advice)
        assert cure.most is not None
        for share in (cure.share, cure.most.share):
            assert {rank: share[rank] for rank in times} == {
                rank: pytest.approx(mean / of) for rank, of in times.items()
            }


def test_layers_that_are_as_even_as_whole_layers_can_be_are_no_problem() -> None:
    """The loss makes the second stage a quarter longer, and a layer more on the first would double that."""
    scenes = {
        0: stage(0, 80_000, slots=4, layer=10_000, wait=1_000),
        2: stage(2, 100_000, slots=4, layer=10_000, loss=20_000, wait=1_000),
    }
    found = judge_rule("CO011", scenes)
    assert found.state == "pass" and found.observed is not None
    assert found.observed.frame["ratio"].iloc[0] > 1.05 and found.observed.frame["stage_layers"].iloc[0] == "2, 2"


def test_few_kernels_in_common_tell_nothing_of_the_speed() -> None:
    """What both have is a tenth of the first stage."""
    scenes = {
        0: stage(0, 100_000, slots=4, loss=90_000, layer=250, wait=1_000),
        2: stage(2, 200_000, slots=4, layer=500, wait=1_000),
    }
    assert judge_rule("CO011", scenes).first.observation["slowness"] == 1


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
