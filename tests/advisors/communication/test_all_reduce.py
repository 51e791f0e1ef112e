"""CO006: AllReduce."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import advised, moving, naming, training


def test_all_reduce_fires_for_half_of_its_time() -> None:
    found = judge_rule("CO006", moving().store(parallel={"tp": 2}))
    assert found.first.impact_ns == 200_000 and found.first.confidence == "low"
    assert found.first.observation["tensor_parallel"] == 2


def test_all_reduce_is_split_by_what_the_framework_has() -> None:
    trained, served = advised("CO006", training(moving())), advised("CO006", moving())
    assert naming(trained, "--use-distributed-optimizer") and naming(trained, "--sequence-parallel")
    assert not naming(served, "--use-distributed-optimizer") and not naming(served, "--sequence-parallel")


def test_all_reduce_leaves_out_what_waiting_made_late() -> None:
    scene = Scene().kernel(0, 1000)
    scene.collective(600, 500, [(600, 1000, 5), (1000, 1100, None)])
    scene.collective(1100, 100, [(1100, 1200, None)])
    assert judge_rule("CO006", scene.store()).first.observation["transmit_ns"] == 100_000


def test_all_reduce_states() -> None:
    assert judge_rule("CO006", moving(overlap=1.0).store()).state == "pass"
    other = Scene().kernel(0, 600).collective(600, 400, [(600, 1000, None)], operation="allGather")
    assert judge_rule("CO006", other.store()).state == "not_applicable"
    assert judge_rule("CO006", moving().store("communication_tasks")).state == "cannot_answer"
