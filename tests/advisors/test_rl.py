"""Phases of reinforcement learning: what they leave of the device, and how evenly ranks share them. Times are us."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from advisor_core.rules.model import AdviceSpec
from tests.advisors.build import book
from tests.advisors.cures import cure_of, saved

GRAPHS = "+actor_rollout_ref.rollout.engine_kwargs.vllm.compilation_config.cudagraph_mode"
RULES = ("RL001", "RL002", "RL003", "RL004")


def specs(rule: str) -> list[AdviceSpec]:
    return list(book("rl")[rule].rule.advice)


@pytest.mark.parametrize("rule", RULES)
def test_advice_begins_with_what_is_safe(rule: str) -> None:
    given = specs(rule)
    assert not given[0].hazards and all(advice.risk is not None for advice in given if advice.hazards or advice.set)


@pytest.mark.parametrize("rule", RULES)
def test_switches_that_are_on_by_default_are_only_checked(rule: str) -> None:
    """verl: balance_batch, chunked prefill, prefix caching, the asynchronous rollout are on; eager mode is off."""
    on = ("balance_batch", "enable_chunked_prefill", "enable_prefix_caching", "rollout.mode", "enforce_eager")
    for advice in specs(rule):
        assert not any(name in key for key in advice.set for name in on)
        if any(name in advice.text.en for name in on):
            assert "heck that" in advice.text.en and "default" in advice.text.en and "默认" in advice.text.zh


def decode(scene: Scene, start: float, passes: int, *, kernel: float, gap: float) -> float:
    """``passes`` kernels, each launched ``gap`` after the one before it ended; the end of the last."""
    for _ in range(passes):
        scene.kernel(start, kernel, launched=start - 1, op="aten::mm")
        start += kernel + gap
    return start - gap


def mark(scene: Scene, name: str, start: float, end: float) -> Scene:
    return scene.event("mstx", name, start, end - start)


def iteration(*, gap: float = 1, reward: float = 10, rank: int = 0, passes: int = 20, **about: Any) -> FactStore:
    """A rollout of ``passes`` kernels of 50 us, a reward on the host, an update of 1000 us."""
    scene = Scene(rank=rank).step(1, -20, 100_000)
    end = decode(scene, 0, passes, kernel=50, gap=gap)
    mark(scene, "generate_sequences", -10, end + 2)
    mark(scene, "compute_rm_score", end + 2, end + 2 + reward)
    start = end + 2 + reward
    mark(scene, "update_actor", start, start + 1001)
    scene.kernel(start + 1, 1000, launched=start, op="aten::mm")
    return scene.store(**about)


def test_phases_that_keep_the_device_busy() -> None:
    store = iteration()
    for rule in ("RL001", "RL003", "RL004"):
        assert judge_rule(rule, store).state == "pass", rule


def test_without_marks_the_rules_do_not_apply() -> None:
    store = decoded_only()
    for rule in ("RL001", "RL003", "RL004"):
        assert judge_rule(rule, store).state == "not_applicable"
    assert judge_rule("RL002", {0: store, 1: store}).state == "not_applicable"


def decoded_only() -> FactStore:
    scene = Scene().step(1, -20, 5000)
    decode(scene, 0, 10, kernel=50, gap=60)
    return scene.store()


def test_an_idle_phase_is_named_with_its_largest_cause() -> None:
    found = judge_rule("RL001", iteration(gap=30))
    assert found.state == "fail" and found.first.severity == "high"
    seen = found.first.observation
    # 20 kernels of 50 us, 19 gaps of 30 us, and 2 us after the last; the device begins with the first kernel
    assert seen["phase"] == seen["kind"] == "rollout"
    assert (seen["duration_ns"], seen["idle_ns"]) == (1_572_000, 572_000)
    assert seen["idle_share"] == pytest.approx(572 / 1572)
    assert seen["kernels"] == 20 and seen["mean_kernel_ns"] == 50_000 and seen["largest_gap_ns"] >= 30_000
    assert str(seen["cause"]).startswith("idle/") and 0 < seen["cause_share"] <= 1
    assert found.first.impact_ns == 572_000
    kinds = [type(item).__name__ for item in found.evidence()]
    assert kinds[0] == "Metric" and kinds.count("Interval") == 4


def test_a_small_phase_is_not_worth_a_finding() -> None:
    """The reward leaves the device idle, for less than 1 % of the step."""
    assert judge_rule("RL003", iteration(reward=15)).state == "pass"
    assert judge_rule("RL003", iteration(reward=400)).state == "fail"


def test_a_phase_without_device_work_is_the_host_s() -> None:
    found = judge_rule("RL003", iteration(reward=400))
    seen = found.first.observation
    assert seen["phase"] == "reward" and seen["idle_ns"] == 400_000 and seen["kernels"] == 0
    assert found.first.severity == "high" and found.first.impact_ns == 400_000
    assert [advice.kind for advice in found.first.advice] == ["investigate", "investigate"]
    first, _ = found.first.advice
    assert "`reward.num_workers`" in first.text.en and "launch_reward_fn_async" not in first.text.en
    assert judge_rule("RL001", iteration(reward=400)).state == "pass"  # told once


def test_a_rollout_that_is_launched_too_slowly() -> None:
    found = judge_rule("RL004", iteration(gap=60))
    assert found.state == "fail"
    seen = found.first.observation
    assert seen["late_share"] > 0.4 and seen["launch_ns"] >= seen["late_ns"]
    first, *others = found.first.advice
    # enforce_eager is off unless somebody switched it on
    assert "enforce_eager` is `False` (the default)" in first.text.en and not first.set
    first = next(one for one in others if one.set)
    assert set(first.hazards) == {"hang", "crash", "accuracy"}
    assert first.set == {GRAPHS: "FULL_DECODE_ONLY", "VLLM_ASCEND_TASK_QUEUE_ENABLE": "1"}
    assert "TASK_QUEUE_ENABLE=2" in first.risk.en


def test_a_rollout_that_replays_graphs_is_not_told_to_use_them() -> None:
    (advice,) = [one for one in specs("RL004") if one.set]
    assert advice.unless == "profile.graph_mode" and "graph-capture" in advice.uses


def test_only_a_rollout_is_told_to_use_graphs() -> None:
    assert judge_rule("RL004", iteration(gap=60, role="actor_update")).state == "not_applicable"
    assert judge_rule("RL004", iteration(gap=60, role="rollout_generate")).state == "fail"


def test_a_role_by_itself_is_a_phase() -> None:
    found = judge_rule("RL001", iteration(gap=30, role="actor_compute_log_prob"))
    assert found.first.observation["phase"] == "actor_compute_log_prob"
    assert found.first.observation["kind"] == "log_prob"
    assert any("use_dynamic_bsz" in advice.text.en for advice in found.first.advice)


# --- RL002


def rank(number: int, passes: int, longest: int, *, on_host: bool = False, **about: Any) -> FactStore:
    """A rollout of ``passes`` kernels of 100 us; then all ranks meet, by a collective that names rank 2 or on the host,
    and update for 1000 us."""
    scene = Scene(rank=number).step(1, -20, 100_000)
    end = decode(scene, 0, passes, kernel=100, gap=1)
    mark(scene, "generate_sequences", -10, end + 1)
    meet = longest * 101 + 20
    if not on_host:
        scene.collective(
            end + 2, meet - end - 2, [(end + 2, meet - 5, 2 if number != 2 else 0), (meet - 5, meet, None)]
        )
    mark(scene, "update_actor", meet, meet + 1001)
    scene.kernel(meet + 1, 1000, launched=meet, op="aten::mm")
    return scene.store(**{"groups": {"7100": [0, 1, 2]}, **about})


def job(counts: dict[int, int], **about: Any) -> dict[int, FactStore]:
    return {number: rank(number, passes, max(counts.values()), **about) for number, passes in counts.items()}


def test_the_rank_with_the_longest_rollout_is_named_with_what_the_others_wait() -> None:
    found = judge_rule("RL002", job({0: 10, 1: 12, 2: 30}))
    assert found.state == "fail" and found.first.severity == "high"
    seen = found.first.observation
    assert (seen["phase"], seen["longest_rank"], seen["shortest_rank"], seen["ranks"]) == ("rollout", 2, 0, 3)
    assert (seen["longest_ns"], seen["median_ns"], seen["shortest_ns"]) == (3_030_000, 1_212_000, 1_010_000)
    assert seen["spread"] == pytest.approx((3030 - 1212) / 3030)
    assert seen["behind_ns"] == pytest.approx(3_030_000 - (3030 + 1212 + 1010) / 3 * 1000)
    assert (seen["more_of"], seen["more_ns"]) == ("compute/matmul", 1_800_000)
    assert (seen["loser"], seen["leaf"], seen["whole_iteration"]) == (0, "communication/wait/rank 2", True)
    # rank 0 waits from 1011 to 3045 us, and would be done when the longest is 2020 us earlier
    assert seen["at_stake_ns"] == 2_020_000
    assert found.observed is not None and found.observed.ranks is not None
    assert list(found.observed.ranks(found.first.row)) == [0, 1]
    (by_rank,) = found.evidence()
    assert [row["rank"] for row in by_rank.rows] == [2, 1, 0]
    advice = found.first.advice
    assert "Compare rank 2" in advice[0].text.en and not advice[0].hazards
    assert "replicas" in advice[1].text.en and advice[1].hazards == ["crash"]
    # What changes what is learnt comes last and says how to notice.
    assert advice[-1].hazards == ["accuracy"]
    assert "`async_training.partial_rollout=True`" in advice[-1].text.en and "KL" in advice[-1].risk.en


def test_even_ranks_pass() -> None:
    assert judge_rule("RL002", job({0: 30, 1: 30, 2: 30})).state == "pass"
    assert judge_rule("RL002", job({0: 29, 1: 29, 2: 30})).state == "pass"


def test_waiting_within_a_phase_is_no_work_of_it() -> None:
    """Ranks 0 and 1 arrive early and wait inside of the mark: their phase lasts longest, and rank 2 is the cause."""
    stores = {}
    for number, passes in {0: 10, 1: 10, 2: 30}.items():
        scene = Scene(rank=number).step(1, -20, 100_000)
        end = decode(scene, 0, passes, kernel=100, gap=1)
        late = 2 if number != 2 else 0
        scene.collective(end + 1, 3100 - end, [(end + 1, 3090, late), (3090, 3100, None)])
        mark(scene, "generate_sequences", -10, 3110)
        mark(scene, "update_actor", 3110, 4200)
        scene.kernel(3150, 1000, launched=3149, op="aten::mm")
        stores[number] = scene.store(groups={"7100": [0, 1, 2]})
    seen = judge_rule("RL002", stores).first.observation
    assert seen["longest_rank"] == 2 and seen["leaf"] == "communication/wait/rank 2"


def test_waiting_on_the_host_is_idle_time() -> None:
    found = judge_rule("RL002", job({0: 10, 1: 12, 2: 30}, on_host=True))
    seen = found.first.observation
    assert (seen["loser"], seen["leaf"]) == (0, "idle")
    assert seen["at_stake_ns"] == 2_020_000


def test_of_a_role_by_itself_the_longest_rank_is_at_stake() -> None:
    stores = {}
    for number, passes in {0: 10, 1: 12, 2: 30}.items():
        scene = Scene(rank=number)
        decode(scene, 0, passes, kernel=100, gap=1)
        stores[number] = scene.store(role="rollout_generate")
    found = judge_rule("RL002", stores)
    seen = found.first.observation
    assert (seen["phase"], seen["kind"], seen["whole_iteration"]) == ("rollout_generate", "rollout", False)
    assert (seen["loser"], seen["leaf"]) == (2, "compute")
    assert seen["at_stake_ns"] == (3029 - 1009) * 1000
    assert seen["behind_ns"] == pytest.approx((3029 - (3029 + 1211 + 1009) / 3) * 1000)
    assert found.observed is not None and found.observed.ranks is not None
    assert list(found.observed.ranks(found.first.row)) == [2]
    # An asynchronous rollout is in no profile of the whole iteration; the phases of the training are.
    assert not any(advice.kind == "collect" for advice in found.first.advice)
    (collect,) = [one for one in specs("RL002") if one.kind == "collect"]
    assert collect.when == "not whole_iteration and kind != 'rollout'" and "discrete=False" in collect.text.en


def test_one_rank_cannot_be_compared() -> None:
    assert judge_rule("RL002", {0: iteration()}).state == "not_applicable"


def test_a_phase_that_goes_from_the_host_is_what_its_cure_leaves_out() -> None:
    """The 400 us of the reward go; a rollout, whose idle time has causes of its own, has no such change."""
    store = iteration(reward=400)
    assert saved(store, cure_of(judge_rule("RL003", store))) == 400_000
    rollout = judge_rule("RL001", iteration(gap=30))
    assert rollout.observed is not None and rollout.observed.cure is not None
    assert rollout.observed.cure(rollout.first.row) is None
