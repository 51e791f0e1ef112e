"""Stages of a pipeline and groups of experts: which part is longest, and what even parts would save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from advisor_core.facts.store import FactStore
from tests.advisors.build import Scene, book, outcome

STAGES = {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}


def stage(
    rank: int, computing: float, *, slots: int, wait: float = 0, loss: float = 0, batched: bool = True, **about: object
) -> FactStore:
    """A rank of a pipeline of two stages: ``slots`` micro-batches of ``computing`` us in all, ``loss`` of it on
    another operator, between exchanges that wait for ``wait`` us in all and move data for 10 us each."""
    scene = Scene(rank=rank).step(1, -10, 1e6)
    time, exchanges = 0.0, slots + 1
    apart = ("send", "receive") if rank < 2 else ("receive",)
    for _ in range(slots):
        for operation in ("batchSendRecv",) if batched else apart:
            time = _exchange(scene, time, wait / exchanges, operation)
        scene.kernel(time, (computing - loss) / slots)
        time += (computing - loss) / slots
        if loss:
            scene.kernel(time, loss / slots, "CrossEntropyLoss")
            time += loss / slots
    for _ in range(1 if batched else slots):
        time = _exchange(scene, time, wait / exchanges, "batchSendRecv" if batched else "send")
    groups = {"groups": {"7100": STAGES[rank]}, "parallel": {"pp": 2}, **about}
    return scene.store(**groups)


def _exchange(scene: Scene, time: float, wait: float, operation: str) -> float:
    scene.collective(
        time, wait + 10, [(time, time + wait, 1), (time + wait, time + wait + 10, None)], operation=operation
    )
    return time + wait + 10


def job(*, slots: int = 4, **about: object) -> Mapping[int, FactStore]:
    """Computing as in a real job whose last stage has the output layer and the loss: 231, 231, 400 and 401 ms."""
    return {
        0: stage(0, 231_000, slots=slots, wait=169_000, **about),
        1: stage(1, 231_000, slots=slots, wait=169_000, **about),
        2: stage(2, 400_000, slots=slots, wait=1_000, loss=150_000, **about),
        3: stage(3, 401_000, slots=slots, wait=1_000, loss=150_000, **about),
    }


# --- CO011


def test_the_longer_stage_is_named_with_what_it_does_more() -> None:
    found = outcome("CO011", job())
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
    assert [row["ranks"] for row in stages.rows] == ["0, 1", "2, 3"]
    assert types.rows[0]["type"] == "CrossEntropyLoss"
    assert kernels.rows[0]["duration"] == pytest.approx(62_500_000)


def test_more_micro_batches_leave_more_of_it() -> None:
    assert outcome("CO011", job(slots=20)).first.impact_ns == pytest.approx(0.95 * 84_500_000)


def test_sends_and_receives_of_their_own_count_micro_batches_as_well() -> None:
    scenes = {rank: stage(rank, 231_000 if rank < 2 else 400_000, slots=4, wait=1000, batched=False) for rank in (0, 2)}
    assert outcome("CO011", scenes).first.observation["micro_batches"] == 4


def test_one_slow_rank_does_not_make_a_stage_long() -> None:
    scenes = dict(job()) | {rank: stage(rank, 231_000, slots=4, wait=1_000) for rank in (1, 2)}
    scenes[3] = stage(3, 400_000, slots=4)
    assert outcome("CO011", scenes).state == "pass"


def test_groups_that_were_not_recorded_follow_from_the_sizes() -> None:
    found = outcome("CO011", job(groups={}, world_size=4))
    assert found.first.observation["stage_ranks"] == "2, 3"


def test_stage_states() -> None:
    whole = job()
    assert outcome("CO011", {rank: whole[rank] for rank in (0, 1)}).state == "cannot_answer"
    assert outcome("CO011", job(groups={})).state == "cannot_answer"
    alone = {rank: Scene(rank=rank).kernel(0, 10).store() for rank in (0, 1)}
    assert outcome("CO011", alone).state == "not_applicable"
    even = {rank: stage(rank, 300_000, slots=4, wait=1_000) for rank in range(4)}
    assert outcome("CO011", even).state == "pass"
    ring = job(parallel={"pp": 1, "cp": 2})
    assert outcome("CO011", ring).state == "not_applicable"


def test_layers_are_moved_by_the_option_of_each_framework() -> None:
    """`--num-layer-list` is MindSpeed-LLM's; MindSpeed calls it `--pipeline-num-transformer-layers`."""
    first = outcome("CO011", job()).first.advice[0]
    for text in (first.text.en, first.text.zh):
        mindspeed, llm = (text.index(name) for name in ("--pipeline-num-transformer-layers", "--num-layer-list"))
        assert text.rindex("MindSpeed", 0, mindspeed) != text.index("MindSpeed-LLM")
        assert text.rindex("MindSpeed-LLM", 0, llm) > mindspeed
    assert not first.hazards and "--noop-layers" in first.risk.en


# --- CO013


def test_few_micro_batches_leave_slots_empty() -> None:
    """Of two stages with two micro-batches one slot of three is empty."""
    even = {rank: stage(rank, 300_000, slots=2, wait=150_000) for rank in range(4)}
    found = outcome("CO013", even)
    seen = found.first.observation
    assert seen["bubble_share"] == pytest.approx(1 / 3) and seen["micro_batches"] == 2
    assert found.first.impact_ns == 150_000_000 and found.first.severity == "high"
    assert outcome("CO011", even).state == "pass"


def test_recomputation_and_schedules_are_not_mistaken_for_each_other() -> None:
    """`--recompute-in-advance` shortens the critical path; `--recompute-in-bubble` saves memory."""
    advice = book("communication")["CO013"].rule.advice
    (ahead,) = [one for one in advice if "--recompute-in-advance" in one.text.en]
    (other,) = [one for one in advice if "dualpipev" in one.text.en]
    assert ahead.risk is not None and other.risk is not None
    assert "--recompute-in-bubble" not in ahead.text.en and "saves memory instead" in ahead.risk.en
    assert "--overlap-grad-reduce" in other.risk.en and "--untie-embeddings-and-output-weights" in other.risk.en
    assert len(advice) <= 6 and not advice[0].hazards


def test_bubble_states() -> None:
    many = {rank: stage(rank, 300_000, slots=8, wait=40_000) for rank in range(4)}
    assert outcome("CO013", many).state == "pass"
    assert outcome("CO013", {0: many[0]}).state == "cannot_answer"
    assert outcome("CO013", {0: Scene().kernel(0, 10).store()}).state == "not_applicable"


# --- CO012


def expert(rank: int, loads: Sequence[float], *, rows: int = 0, layers: int = 2, **about: object) -> FactStore:
    """A rank with experts: per layer an exchange of tokens, grouped products for as many us as its load says, and the
    exchange back, which waits for the rank with most."""
    scene = Scene(rank=rank).step(1, -10, 1e6)
    time, most = 0.0, max(loads)
    for _ in range(layers):
        for wait, computing in ((0.0, loads[rank]), (most - loads[rank], 0.0)):
            end = time + wait + 10
            scene.collective(time, wait + 10, [(time, end - 10, 1), (end - 10, end, None)], operation="alltoallv")
            if computing:
                scene.tensors(end, computing, "GroupedMatmul", [f"{rows},8 BF16", "8,8 BF16"], [f"{rows},8 BF16"])
            time = end + computing
    return scene.store(**{"groups": {"7100": (0, 1, 2)}, "parallel": {"ep": 3}, **about})


LOADS = (300, 300, 900)


def test_the_rank_with_most_tokens_is_named() -> None:
    found = outcome("CO012", {rank: expert(rank, LOADS, rows=LOADS[rank] * 2) for rank in range(3)})
    seen = found.first.observation
    assert seen["longest_rank"] == 2 and seen["group"] == "0, 1, 2" and seen["exchanges"] == 2
    assert seen["computing_ns"] == 1_800_000 and seen["mean_computing_ns"] == 1_000_000
    assert seen["ratio"] == pytest.approx(900 / 500) and seen["rows_ratio"] == pytest.approx(1.8)
    assert seen["longest_wait_ns"] == pytest.approx(1_200_000, rel=0.01)
    # In each of two layers 900 us where 500 would do.
    assert found.first.impact_ns == 800_000 and found.first.severity == "high"
    assert found.observed is not None and found.observed.ranks is not None
    assert found.observed.ranks(0) == [0, 1]
    assert len(found.evidence()) == 2


def test_experts_are_evened_out_by_what_the_phase_has() -> None:
    """Serving has EPLB, whose settings differ by model runner; what changes training can cost quality and says so."""
    ranks = {rank: expert(rank, LOADS, rows=LOADS[rank] * 2) for rank in range(3)}
    served = outcome("CO012", ranks).first.advice
    assert "--enable-eplb" in served[0].text.en and "DYNAMIC_EPLB" in served[0].text.en
    assert "model runner" in served[0].risk.en and "1024 tokens" in served[0].risk.en
    assert not any("--moe-" in advice.text.en for advice in served)
    trained = [
        advice for advice in book("communication")["CO012"].rule.advice if advice.holds_for.phase == ["training"]
    ]
    assert [advice.hazards for advice in trained] == [["accuracy"], ["accuracy"]]
    assert all(advice.risk is not None and "ompare the loss" in advice.risk.en for advice in trained)


def test_ranks_that_are_longest_in_turn_cost_as_much() -> None:
    """Even sums do not help where every layer waits for its longest."""
    turns = {}
    for rank in range(2):
        scene, time = Scene(rank=rank).step(1, -10, 1e6), 0.0
        for layer in range(2):
            load = 900.0 if layer == rank else 300.0
            scene.collective(time, 10, [(time, time + 10, None)], operation="alltoallv")
            scene.kernel(time + 10, load, "GroupedMatmul")
            time += 910
        turns[rank] = scene.store(groups={"7100": (0, 1)}, parallel={"ep": 2})
    found = outcome("CO012", turns)
    assert found.first.impact_ns == 600_000
    assert found.first.observation["ratio"] == pytest.approx(1.5)
    assert found.first.observation["rows_ratio"] is None


def test_expert_states() -> None:
    even = {rank: expert(rank, (300, 300, 300), rows=600) for rank in range(3)}
    assert outcome("CO012", even).state == "pass"
    assert outcome("CO012", {0: even[0]}).state == "cannot_answer"
    nameless = {rank: expert(rank, LOADS, rows=LOADS[rank], groups={}) for rank in range(3)}
    assert outcome("CO012", nameless).state == "cannot_answer"
    assert outcome("CO012", {0: Scene().kernel(0, 10).store()}).state == "not_applicable"
    local = Scene().kernel(0, 10, "GroupedMatmul").store()
    assert outcome("CO012", {0: local}).state == "not_applicable"
