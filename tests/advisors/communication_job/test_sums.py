"""Who is late by the sums of every rank."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import judge_rule
from advisor_core.facts.store import FactStore
from advisor_core.testing import fact_store, profile, table
from tests.advisors.build import host


def coarse(rank: int, computing: float, communicating: float, idle: float, **about: object) -> FactStore:
    """A rank of which only the sums of one step are recorded, us."""
    parts = {"computing": computing, "uncovered_communication": communicating, "free": idle}
    row: dict[str, float] = {"step": 1, "overlapped_ns": 0.0, "communication_ns": communicating * 1000}
    row |= {f"{name}_ns": value * 1000 for name, value in parts.items()}
    return fact_store(host(), profile(rank=rank, coarse=True, **about), step_trace=table("step_trace", [row]))


def job(*parts: tuple[float, float, float], **about: object) -> dict[int, FactStore]:
    return {rank: coarse(rank, *own, **about) for rank, own in enumerate(parts)}


def test_the_rank_that_communicates_least_is_late() -> None:
    found = judge_rule("CO015", job((100, 500, 400), (100, 100, 800), (100, 300, 600)))
    seen = found.first.observation
    assert (seen["late"], seen["saveable_ns"], seen["longest_wait_ns"]) == (1, 200_000, 400_000)
    assert (seen["idle_excess_ns"], seen["computing_excess_ns"], seen["by_idle"]) == (300_000, 0, True)
    assert found.first.severity == "high" and seen["late_coarse"] is True
    kinds = [advice.kind for advice in found.first.advice]
    assert kinds == ["collect", "investigate", "investigate"]
    assert found.first.advice[1].text.en.startswith("Its device idles longer")


def test_a_device_that_is_late_is_told_apart() -> None:
    found = judge_rule("CO015", job((200, 500, 300), (600, 100, 300), (200, 490, 310)))
    assert found.first.observation["by_idle"] is False
    assert found.first.advice[1].text.en.startswith("Its device computes longer")


@pytest.mark.parametrize(
    "parts",
    [((100, 500, 400), (100, 495, 405), (100, 495, 405)), ((100, 500, 400), (100, 100, 80))],
    ids=["even", "steps of other lengths"],
)
def test_nobody_is_late(parts: tuple[tuple[float, float, float], ...]) -> None:
    assert judge_rule("CO015", job(*parts)).state == "pass"


def test_stages_of_a_pipeline_are_not_compared_with_each_other() -> None:
    even = ((100, 500, 400), (100, 500, 400), (300, 300, 400), (300, 300, 400))
    assert judge_rule("CO015", job(*even, parallel={"pp": 2}, world_size=4)).state == "pass"
    assert judge_rule("CO015", job(*even[1:3], world_size=4)).first.observation["late"] == 1


def test_one_rank_has_nobody_to_be_compared_with() -> None:
    assert judge_rule("CO015", job((100, 500, 400))).state == "not_applicable"
