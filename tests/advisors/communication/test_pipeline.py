"""CO008: waiting in the pipeline."""

from __future__ import annotations

from advisor_core.api.testing import judge_rule
from tests.advisors.communication.scenes import moving, staged


def test_pipeline_counts_batched_sends_that_the_bubble_misses() -> None:
    scene = staged(wait=400).add("step_trace", step=1, bubble_ns=0.0)
    found = judge_rule("CO008", scene.store(parallel={"pp": 2}))
    seen = found.first.observation
    assert found.first.impact_ns == 400_000 and found.first.severity == "high"
    assert seen["bubble_ns"] == 0 and seen["stages"] == 2 and seen["data_included"] is False


def test_pipeline_without_planes_includes_the_data() -> None:
    found = judge_rule("CO008", staged(wait=400).store("communication_tasks"))
    assert found.first.impact_ns == 420_000 and found.first.observation["data_included"] is True
    assert "collect" in [advice.kind for advice in found.first.advice]


def test_pipeline_states() -> None:
    assert judge_rule("CO008", staged(wait=5).store()).state == "pass"
    assert judge_rule("CO008", moving().store()).state == "not_applicable"
    gone = staged(wait=400).store("kernels", "device_tasks", "communication_tasks")
    assert judge_rule("CO008", gone).state == "cannot_answer"
