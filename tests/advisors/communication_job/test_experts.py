"""CO012: experts that get different numbers of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from tests.advisors.build import book

GROUPED = "aclnnGroupedMatmulV4_GroupedMatmul_GroupedMatmul"


def expert(
    rank: int, loads: Sequence[float], *, rows: int = 0, layers: int = 2, typed: bool = True, **about: object
) -> FactStore:
    """A rank with experts: per layer an exchange of tokens, grouped products for as many us as its load says, and the
    exchange back, which waits for the rank with most. ``typed``: operator types and shapes are recorded."""
    scene = Scene(rank=rank).step(1, -10, 1e6)
    time, most = 0.0, max(loads)
    for _ in range(layers):
        for wait, computing in ((0.0, loads[rank]), (most - loads[rank], 0.0)):
            end = time + wait + 10
            scene.collective(time, wait + 10, [(time, end - 10, 1), (end - 10, end, None)], operation="alltoallv")
            if computing and not typed:
                scene.tensors(end, computing, "", name=GROUPED)
            elif computing:
                scene.tensors(end, computing, "GroupedMatmul", [f"{rows},8 BF16", "8,8 BF16"], [f"{rows},8 BF16"])
            time = end + computing
    return scene.store(**{"groups": {"7100": (0, 1, 2)}, "parallel": {"ep": 3}, **about})


LOADS = (300, 300, 900)


def test_the_rank_with_most_tokens_is_named() -> None:
    found = judge_rule("CO012", {rank: expert(rank, LOADS, rows=LOADS[rank] * 2) for rank in range(3)})
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
    served = judge_rule("CO012", ranks).first.advice
    assert not served[0].hazards and served[1].hazards == ["crash", "accuracy"]
    assert "--enable-eplb" in served[1].text.en and "DYNAMIC_EPLB" in served[1].text.en
    assert "model runner" in served[1].risk.en and "1024 tokens" in served[1].risk.en
    assert not any("--moe-" in advice.text.en for advice in served)
    trained = [
        advice for advice in book("communication")["CO012"].rule.advice if advice.holds_for.phase == ["training"]
    ]
    assert [advice.hazards for advice in trained] == [["crash", "accuracy"], ["crash", "accuracy"]]
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
    found = judge_rule("CO012", turns)
    assert found.first.impact_ns == 600_000
    assert found.first.observation["ratio"] == pytest.approx(1.5)
    assert found.first.observation["rows_ratio"] is None


def test_names_of_kernels_are_enough() -> None:
    """Level 0 records no types: what it names as grouped products are experts, and without a name nothing is known."""
    ranks = {rank: expert(rank, LOADS, typed=False) for rank in range(3)}
    found = judge_rule("CO012", ranks)
    assert found.first.impact_ns == 800_000
    assert found.first.observation["rows_ratio"] is None
    nothing = Scene().kernel(0, 10, "").store()
    assert judge_rule("CO012", {0: nothing}).state == "cannot_answer"


def test_expert_states() -> None:
    even = {rank: expert(rank, (300, 300, 300), rows=600) for rank in range(3)}
    assert judge_rule("CO012", even).state == "pass"
    assert judge_rule("CO012", {0: even[0]}).state == "cannot_answer"
    nameless = {rank: expert(rank, LOADS, rows=LOADS[rank], groups={}) for rank in range(3)}
    assert judge_rule("CO012", nameless).state == "cannot_answer"
    assert judge_rule("CO012", {0: Scene().kernel(0, 10).store()}).state == "not_applicable"
    local = Scene().kernel(0, 10, "GroupedMatmul").store()
    assert judge_rule("CO012", {0: local}).state == "not_applicable"
