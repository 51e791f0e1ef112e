"""CO013: few micro-batches."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.build import book
from tests.advisors.communication_job.scenes import stage


def test_few_micro_batches_leave_slots_empty() -> None:
    """Of two stages with two micro-batches one slot of three is empty."""
    even = {rank: stage(rank, 300_000, slots=2, wait=150_000) for rank in range(4)}
    found = judge_rule("CO013", even)
    seen = found.first.observation
    assert seen["bubble_share"] == pytest.approx(1 / 3) and seen["micro_batches"] == 2
    assert found.first.impact_ns == 150_000_000 and found.first.severity == "high"
    assert judge_rule("CO011", even).state == "pass"


def test_another_schedule_says_what_it_cannot_be_combined_with() -> None:
    advice = book("communication")["CO013"].rule.advice
    (other,) = [one for one in advice if "dualpipev" in one.text.en]
    assert other.risk is not None
    assert "--overlap-grad-reduce" in other.risk.en and "--untie-embeddings-and-output-weights" in other.risk.en
    assert len(advice) <= 5 and not advice[0].hazards


def test_bubble_states() -> None:
    many = {rank: stage(rank, 300_000, slots=8, wait=40_000) for rank in range(4)}
    assert judge_rule("CO013", many).state == "pass"
    assert judge_rule("CO013", {0: many[0]}).state == "cannot_answer"
    assert judge_rule("CO013", {0: Scene().kernel(0, 10).store()}).state == "not_applicable"
