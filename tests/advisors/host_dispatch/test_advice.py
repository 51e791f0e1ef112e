"""Advice about dispatch: the task queue, graphs, binding, the allocator."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.names.settings import clash
from tests.advisors.build import ACL_THREAD
from tests.advisors.host_dispatch.scenes import ACTIVITIES, calling, late, queued, specs


@pytest.mark.parametrize("rule", [*(f"HD{number:03}" for number in range(1, 15)), "HD021"])
def test_advice_begins_with_what_is_safe(rule: str) -> None:
    given = specs(rule)
    assert not given[0].hazards and all(advice.risk is not None for advice in given if advice.hazards or advice.set)


def training(scene: Scene) -> Scene:
    return scene.event("user_annotation", "Optimizer.step#AdamW.step", -8, 2)


def queue(scene: Scene) -> Scene:
    return scene.event("enqueue", "Enqueue@aten::conv2d", 395, 1).event(
        "dequeue", "Dequeue@aten::conv2d", 397, 1, ACL_THREAD
    )


def captured(scene: Scene) -> Scene:
    """The same, with kernels that belong to a graph."""
    for row in scene.rows["kernels"]:
        row["model"] = 1
    return scene


def levels(scene: Scene) -> list[str]:
    """The values of TASK_QUEUE_ENABLE that are advised, in order."""
    found = judge_rule("HD021", scene.store())
    if found.state != "fail":
        return []
    return [one.set["TASK_QUEUE_ENABLE"] for one in found.first.advice if "TASK_QUEUE_ENABLE" in one.set]


def test_the_task_queue_is_switched_on_before_it_is_raised() -> None:
    assert levels(training(calling())) == ["1"], "the queue is off: what empties it is not in the trace"
    assert levels(training(late())) == [], "with nothing to hand over it would save nothing"
    assert levels(training(queued())) == ["2"]


def test_level_2_is_for_training_and_not_given_twice() -> None:
    assert levels(queued()) == []
    assert levels(calling()) == ["1"]
    raised = training(queued()).add("memory_record", component="WORKSPACE", time_us=0)
    assert levels(raised) == [], "the pool of its own tells that 2 is set"


def test_level_2_is_never_given_where_graphs_are_captured() -> None:
    found = judge_rule("HD021", captured(training(queued())).store()).first
    assert all(one.set.get("TASK_QUEUE_ENABLE") != "2" for one in found.advice)
    assert any("TASK_QUEUE_ENABLE=2" in text.en for text in found.withheld), "and the report says why"


def test_level_2_names_the_other_processes_of_the_job() -> None:
    (advice,) = [one for one in specs("HD021") if one.set.get("TASK_QUEUE_ENABLE") == "2"]
    assert "graph-capture" in advice.excludes
    assert advice.risk is not None and "rollout workers (vLLM, SGLang) of an RL job" in advice.risk.en
    assert "rollout worker（vLLM、SGLang）" in advice.risk.zh


def test_the_task_queue_is_no_first_advice() -> None:
    off = judge_rule("HD021", training(calling()).store()).first.advice
    assert off[0].kind == "investigate" and "who set it why" in off[0].text.en, "somebody may have had a reason"
    assert [one.hazards for one in off if one.set.get("TASK_QUEUE_ENABLE") == "1"] == [["hang", "accuracy"]]
    on = judge_rule("HD021", training(queued()).store()).first.advice
    assert [one.hazards for one in on if one.set.get("TASK_QUEUE_ENABLE") == "2"] == [["crash"]]


def test_in_inference_why_no_graph_runs_is_asked_before_graphs_are_advised() -> None:
    first, *others = judge_rule("HD002", queue(late()).store()).first.advice
    assert "vllm" not in first.text.en.lower(), "which software serves is not recorded"
    assert "--enforce-eager" in others[0].text.en and not others[0].hazards and others[0].unless is None
    graph = next(one for one in others if one.hazards)
    assert {"graph-capture", "TASK_QUEUE_ENABLE=1"} <= set(graph.uses) and "TASK_QUEUE_ENABLE=2" in graph.excludes
    assert set(graph.hazards) == {"hang", "crash", "accuracy"}, "models are known for which this mode does all three"
    assert all("training" not in (one.unless.en if one.unless else "") for one in others)
    running = judge_rule("HD002", captured(queue(late())).store()).first.advice
    assert not any("torch.npu.NPUGraph" in one.text.en for one in running), "the model runs as a graph already"
    assert not any("--enforce-eager" in one.text.en for one in running)


def test_graph_mode_and_level_2_cannot_stand_together() -> None:
    graphs = [one for one in specs("HD002") if "graph-capture" in one.uses and "cudagraph_mode" in one.text.en]
    for rule in ("HD021", "ME001", "ME002"):
        for other in specs(rule):
            if other.set.get("TASK_QUEUE_ENABLE") == "2":
                assert graphs and all(
                    clash(one.uses, one.excludes, ["TASK_QUEUE_ENABLE=2"], other.excludes) for one in graphs
                )


def test_binding_says_what_the_modes_do_and_that_of_another_software_does_not_replace_it() -> None:
    serving, general = (
        one for one in specs("HD002") if "enable_cpu_binding" in one.text.en or "CPU_AFFINITY_CONF" in one.set
    )
    assert serving.holds_for.software == ["vllm-ascend"] and serving.holds_for.phase == ["prefill", "decode"]
    assert serving.risk is not None and "Not together with `CPU_AFFINITY_CONF`" in serving.risk.en
    (bound,) = [one for one in judge_rule("HD002", queue(late()).store()).first.advice if one.set == general.set]
    assert "thread-binding" in bound.excludes, "one of them, not both"
    assert not clash(serving.uses, serving.excludes, bound.uses, bound.excludes), "nobody knows that the job is vLLM"
    assert general.set == {"CPU_AFFINITY_CONF": "2"} and "310P" not in general.holds_for.chip
    assert "equal share" in general.text.en and "均分" in general.text.zh
    advice = judge_rule("HD002", queue(training(late())).store()).first.advice
    assert [one.set for one in advice if "ores" in one.text.en and one.kind == "env"] == [general.set]


@pytest.mark.parametrize("rule", ["HD009", "ME001", "ME002"])
def test_segments_that_grow_are_not_for_sleep_mode(rule: str) -> None:
    growing = {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}
    (advice,) = [one for one in specs(rule) if one.set == growing]
    assert "sleep-mode" in advice.excludes and advice.unless is None
    assert advice.risk is not None and "sleep mode" in advice.risk.en and "append" in advice.risk.en


@pytest.mark.parametrize(
    ("recorded", "advised"),
    [
        ("", "expandable_segments:True"),
        ("base_addr_aligned_kb:8", "base_addr_aligned_kb:8,expandable_segments:True"),
        ("page_size:1g,expandable_segments:true", None),
    ],
)
def test_segments_that_grow_are_added_to_what_is_set(recorded: str, advised: str | None) -> None:
    category, name = ACTIVITIES["HD009"]
    store = late().event(category, name, 90, 210).store(variables={"PYTORCH_NPU_ALLOC_CONF": recorded})
    values = [one.set.get("PYTORCH_NPU_ALLOC_CONF", "") for one in judge_rule("HD009", store).first.advice]
    assert next((value for value in values if "expandable" in value and "page_size" not in value), None) == advised
