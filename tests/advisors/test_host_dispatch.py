"""Host dispatch: every rule fires, stays silent and cannot answer; formulas against plain references."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import DEVICE_TASKS, HOST_EVENTS, OPERATORS
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import launches
from advisor_core.facts.host.pauses import host_pauses
from advisor_core.facts.ledger.totals import ledger
from advisor_core.names.settings import clash
from advisor_core.rules.model import AdviceSpec
from advisor_core.testing import profile, table
from advisors.host_dispatch import _not_nested, outermost_calls
from tests.advisors.build import ACL, FILES, MAIN, Scene, book, outcome
from tests.advisors.real import real_rank

WORDS = profile().vocabulary


def late() -> Scene:
    """A gap of 300 us: the next kernel is launched 290 us into it, from within aten::conv2d."""
    scene = Scene().step(1, -10, 620)
    scene.kernel(0, 100, op="aten::mul")
    scene.event(
        "cpu_op", "aten::conv2d", 130, 270, call_stack="/train/model.py(7): forward;\n/train/train.py(3): main;"
    )
    return scene.kernel(400, 200, launched=390)


def busy() -> Scene:
    """Two kernels back to back, launched in time."""
    return Scene().step(1, -10, 620).kernel(0, 300, op="aten::mul").kernel(301, 299, launched=40, op="aten::conv2d")


# --- HD001, HD002


def test_idle_fires_and_adds_up() -> None:
    found = outcome("HD001", late().store())
    assert found.state == "fail"
    seen = found.first.observation
    assert seen["idle_ns"] == 300_000 and seen["host_late_ns"] == 290_000
    assert seen["idle_share"] == pytest.approx(0.5) and seen["gaps"] == 1
    assert found.first.severity == "high" and found.first.impact_ns == 300_000
    assert seen["slow_host_share"] == pytest.approx(290 / 300)


def test_idle_is_silent_on_a_busy_device() -> None:
    assert outcome("HD001", busy().store()).state == "pass"


def test_idle_without_device_tasks_cannot_answer() -> None:
    scene = late()
    assert outcome("HD001", scene.store("kernels", "device_tasks")).state == "cannot_answer"


def test_idle_of_unknown_cause_asks_for_a_trace() -> None:
    found = outcome("HD001", late().store("flows", "host_events"))
    assert found.first.observation["unknown_share"] == 1
    assert found.first.observation["host_late_ns"] is None, "without launches nobody knows who was late"
    assert [advice.kind for advice in found.first.advice] == ["collect", "investigate"]


def test_late_launch_names_the_operator_and_what_the_host_did() -> None:
    found = outcome("HD002", late().store())
    assert found.state == "fail" and found.first.severity == "high"
    seen = found.first.observation
    assert seen["operator"] == "aten::conv2d" and seen["operator_ns"] == 290_000
    # In Python until the operator begins, then in the operator until the launch; the launch call itself is runtime.
    assert (seen["python_ns"], seen["framework_ns"], seen["runtime_ns"]) == (30_000, 259_000, 1_000)
    assert seen["late_ns"] == 290_000 and seen["longest_ns"] == 290_000
    kinds = [type(reference).__name__ for reference in found.evidence()]
    assert kinds == ["Metric", "Metric", "Rows", "Rows", "Interval", "Stack"]


def test_late_launch_is_silent_when_launched_in_time() -> None:
    assert outcome("HD002", busy().store()).state == "pass"


def test_late_launch_without_arrows_cannot_answer() -> None:
    assert outcome("HD002", late().store("flows")).state == "cannot_answer"


def specs(rule: str) -> list[AdviceSpec]:
    return list(book(FILES[rule[:2]])[rule].rule.advice)


@pytest.mark.parametrize("rule", [f"HD{number:03}" for number in range(1, 15)])
def test_advice_begins_with_what_is_safe(rule: str) -> None:
    given = specs(rule)
    assert not given[0].hazards and all(advice.risk is not None for advice in given if advice.hazards or advice.set)


def training(scene: Scene) -> Scene:
    return scene.event("user_annotation", "Optimizer.step#AdamW.step", -8, 2)


def queue(scene: Scene) -> Scene:
    return scene.event("enqueue", "Enqueue@aten::conv2d", 395, 1).event("dequeue", "Dequeue@aten::conv2d", 397, 1, ACL)


def captured(scene: Scene) -> Scene:
    """The same, with kernels that belong to a graph."""
    for row in scene.rows["kernels"]:
        row["model"] = 1
    return scene


def levels(scene: Scene) -> list[str]:
    """The values of TASK_QUEUE_ENABLE that are advised, in order."""
    advice = outcome("HD002", scene.store()).first.advice
    return [one.set["TASK_QUEUE_ENABLE"] for one in advice if "TASK_QUEUE_ENABLE" in one.set]


def test_the_task_queue_is_switched_on_before_it_is_raised() -> None:
    assert levels(training(late())) == ["1"], "the queue is off: what empties it is not in the trace"
    assert levels(queue(training(late()))) == ["2"]


def test_level_2_is_for_training_and_not_given_twice() -> None:
    assert levels(queue(late())) == []
    assert levels(late()) == ["1"]
    raised = queue(training(late())).add("memory_record", component="WORKSPACE", time_us=0)
    assert levels(raised) == [], "the pool of its own tells that 2 is set"


def test_level_2_is_never_given_where_graphs_are_captured() -> None:
    found = outcome("HD002", captured(queue(training(late()))).store()).first
    assert all(one.set.get("TASK_QUEUE_ENABLE") != "2" for one in found.advice)
    assert any("TASK_QUEUE_ENABLE=2" in text.en for text in found.withheld), "and the report says why"


def test_level_2_names_the_other_processes_of_the_job() -> None:
    (advice,) = [one for one in specs("HD002") if one.set.get("TASK_QUEUE_ENABLE") == "2"]
    assert "graph-capture" in advice.excludes
    assert advice.risk is not None and "vLLM workers of an RL job" in advice.risk.en and "vLLM worker" in advice.risk.zh


def test_the_task_queue_is_no_first_advice() -> None:
    off = outcome("HD002", training(late()).store()).first.advice
    assert off[0].kind == "investigate" and "TASK_QUEUE_ENABLE=0" in off[0].text.en, "somebody may have had a reason"
    assert [one.hazards for one in off if one.set.get("TASK_QUEUE_ENABLE") == "1"] == [["hang", "accuracy"]]
    on = outcome("HD002", queue(training(late())).store()).first.advice
    assert [one.hazards for one in on if one.set.get("TASK_QUEUE_ENABLE") == "2"] == [["crash"]]
    assert not any("task queue is off" in one.text.en for one in on)


def test_in_inference_graph_mode_comes_first() -> None:
    first, *others = outcome("HD002", queue(late()).store()).first.advice
    assert {"graph-capture", "TASK_QUEUE_ENABLE=1"} <= set(first.uses) and "TASK_QUEUE_ENABLE=2" in first.excludes
    assert all("training" not in (one.unless.en if one.unless else "") for one in others)
    running = outcome("HD002", captured(queue(late())).store()).first.advice
    assert not any("torch.npu.NPUGraph" in one.text.en for one in running), "the model runs as a graph already"


def test_graph_mode_and_level_2_cannot_stand_together() -> None:
    graph, *_ = specs("HD002")
    for rule in ("HD002", "ME001", "ME002"):
        for other in specs(rule):
            if other.set.get("TASK_QUEUE_ENABLE") == "2":
                assert clash(graph.uses, graph.excludes, ["TASK_QUEUE_ENABLE=2"], other.excludes)


def test_binding_is_given_once_and_says_what_the_modes_do() -> None:
    serving, general = (
        one for one in specs("HD002") if "enable_cpu_binding" in one.text.en or "CPU_AFFINITY_CONF" in one.set
    )
    assert serving.holds_for.software == ["vllm-ascend"] and serving.holds_for.phase == ["prefill", "decode"]
    assert clash(serving.uses, serving.excludes, ["CPU_AFFINITY_CONF=2"], ["thread-binding"]), "one of them, not both"
    assert general.set == {"CPU_AFFINITY_CONF": "2"} and "310P" not in general.holds_for.chip
    assert "equal share" in general.text.en and "均分" in general.text.zh
    advice = outcome("HD002", queue(training(late())).store()).first.advice
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
    values = [one.set.get("PYTORCH_NPU_ALLOC_CONF", "") for one in outcome("HD009", store).first.advice]
    assert next((value for value in values if "expandable" in value and "page_size" not in value), None) == advised


# --- HD003


def operators(*, first: float = 50) -> Scene:
    """aten::conv2d costs the host 250 us and the device 100 us; its child and its first call must not count twice."""
    scene = late()
    for host in (first, 100, 100):
        scene.operator("DistributedDataParallel.forward", 5, host + 5, 50)
        scene.operator("aten::conv2d", host / 2, host, 50)
        scene.operator("Conv2D", host / 2, host / 2, 50, device_self=50)
    scene.operator("aten::item", 5, 400)
    return scene.operator("aten::_local_scalar_dense", 395, 395)


def test_operators_sum_outermost_calls_and_leave_waiting_out() -> None:
    found = outcome("HD003", operators().store(profiler={"schedule.warmup": 1}))
    seen = found.first.observation
    assert seen["operators"] == 1 and seen["operator"] == "aten::conv2d"
    assert seen["excess_ns"] == 100_000 and seen["left_out"] == 0
    assert seen["operator_calls"] == 3 and seen["operator_host_ns"] == pytest.approx(250_000 / 3)
    # The device was idle for 290 us behind a late launch of that operator; the excess is less.
    assert seen["idle_behind_ns"] == 100_000


def test_operators_leave_first_calls_out_unless_warmed_up() -> None:
    found = outcome("HD003", operators(first=900).store())
    assert found.first.observation["left_out"] == 1
    assert found.first.observation["excess_ns"] == 100_000


def test_operators_claim_no_more_than_the_idle_time_behind_them() -> None:
    scene = busy().operator("aten::conv2d", 500, 500, 10)
    found = outcome("HD003", scene.store(profiler={"schedule.warmup": 1}))
    assert found.state == "pass"


def test_options_of_the_queue_and_the_allocator_are_for_releases_that_stand_them() -> None:
    lazy = [one for one in specs("HD003") if "multi_stream_lazy_reclaim:True" in one.set.values()]
    assert [one.holds_for.versions for one in lazy] == [{"extension": ">=26.2.0"}], "older ones could crash with it"
    assert lazy[0].hazards == ["crash"]
    (fusion,) = [one for one in specs("HD003") if "TORCH_NPU_LAZY_FUSION" in one.set]
    assert fusion.holds_for.chip == ["A2", "A3"] and fusion.excludes == ["graph-capture"]


def test_operators_cannot_answer_without_operator_details() -> None:
    assert outcome("HD003", late().store("operators")).state == "cannot_answer"


def test_operators_of_interleaved_threads_cannot_answer() -> None:
    scene = late().operator("aten::a", 10, 100).operator("aten::b", 10, 300).operator("aten::c", 5, 5)
    assert outcome("HD003", scene.store()).state == "cannot_answer"


@st.composite
def call_trees(draw: st.DrawFn) -> list[tuple[int, str, int, int]]:
    """Calls in order of start as (depth, name, self, total), from a random tree."""
    calls: list[tuple[int, str, int, int]] = []

    def grow(depth: int) -> int:
        number = len(calls)
        calls.append((depth, "", 0, 0))
        own = draw(st.integers(1, 50)) * 1000
        total = own
        for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
            total += grow(depth + 1)
        name = draw(st.sampled_from(["aten::a", "aten::item", "Optimizer.step#SGD.step", "npu::b"]))
        calls[number] = (depth, name, own, total)
        return total

    for _ in range(draw(st.integers(1, 4))):
        grow(0)
    return calls


@given(call_trees())
def test_outermost_calls_agree_with_walking_the_tree(calls: list[tuple[int, str, int, int]]) -> None:
    expected = []
    under_operator: list[int] = []
    for number, (depth, name, _, total) in enumerate(calls):
        while under_operator and calls[under_operator[-1]][0] >= depth:
            under_operator.pop()
        if "#" in name:
            continue
        if not under_operator:
            inside = [number]
            for other in range(number + 1, len(calls)):
                if calls[other][0] <= depth:
                    break
                inside.append(other)
            expected.append((number, total, any("item" in calls[n][1] for n in inside)))
        under_operator.append(number)
    rows = [{"name": name, "host_self_ns": own, "host_total_ns": total} for _, name, own, total in calls]
    found = outermost_calls(table("operators", rows), WORDS)
    assert list(zip(found["row"], found["host_total_ns"], found["waits"], strict=True)) == expected


# --- HD004


def synchronised(*, held: float) -> Scene:
    """The host waits for the device until 150, 50 us longer than it is busy, and launches again at 300. It was held for
    ``held`` us while the device was busy."""
    scene = Scene().step(1, -20, 640)
    scene.kernel(0, 100, op="aten::mul")
    stack = "/site-packages/torch/_tensor.py(9): item;\n/train/train.py(42): log;\n/train/train.py(3): main;"
    scene.event("cpu_op", "aten::item", 99 - held, 53 + held, call_stack=stack)
    scene.event("cann", "AscendCL@aclrtSynchronizeStreamWithTimeout", 100 - held, 50 + held)
    return scene.kernel(310, 290, launched=300, op="aten::conv2d")


def test_sync_blames_the_rest_of_the_call_and_the_refilling_it_owes() -> None:
    found = outcome("HD004", synchronised(held=60).store())
    seen = found.first.observation
    assert seen["operator"] == "aten::item" and seen["place"] == "/train/train.py(42): log"
    assert seen["held_ns"] == 60_000
    assert seen["idle_ns"] == 50_000 + 60_000
    assert found.first.severity == "high"


def test_sync_that_only_waits_for_a_busy_device_is_silent() -> None:
    scene = Scene().step(1, -20, 640).kernel(0, 500, op="aten::mul").kernel(501, 99, launched=20)
    scene.event("cpu_op", "aten::item", 30, 469).event("cann", "AscendCL@aclrtSynchronizeStream", 31, 467)
    assert outcome("HD004", scene.store()).state == "pass"


def test_sync_without_a_trace_cannot_answer() -> None:
    assert outcome("HD004", synchronised(held=60).store("host_events")).state == "cannot_answer"


# --- HD005, HD007, HD008, HD009, HD012: activities

ACTIVITIES = {
    "HD005": ("cann", "AscendCL@aclopCompileAndExecute"),
    "HD007": ("cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "HD008": ("gc", "GC"),
    "HD009": ("cann", "AscendCL@aclrtMallocPhysical"),
    "HD012": ("cann", "AscendCL@aclrtMemcpy"),
}


@pytest.mark.parametrize("rule", ACTIVITIES)
def test_activity_fires_with_the_idle_time_meanwhile(rule: str) -> None:
    category, name = ACTIVITIES[rule]
    scene = late().event(category, name, 90, 210)
    found = outcome(rule, scene.store())
    assert found.state == "fail"
    # The call runs from 90 to 300; the device was busy until 100. Without it the next launch is 210 us earlier.
    assert found.first.observation["idle_ns"] == 200_000
    assert found.first.impact_ns == (200_000 if rule in ("HD005", "HD012") else 210_000)
    assert found.first.observation["calls"] == 1


@pytest.mark.parametrize("rule", ACTIVITIES)
def test_activity_behind_a_busy_device_is_silent(rule: str) -> None:
    category, name = ACTIVITIES[rule]
    scene = busy().event(category, name, 60, 200)
    found = outcome(rule, scene.store())
    assert found.state == "pass"


@pytest.mark.parametrize("rule", ACTIVITIES)
def test_activity_without_a_trace_cannot_answer(rule: str) -> None:
    assert outcome(rule, late().store("host_events", "flows")).state == "cannot_answer"


@pytest.mark.parametrize("rule", ["HD005", "HD009"])
def test_cann_activities_cannot_answer_where_the_level_records_no_calls(rule: str) -> None:
    scene = late()
    scene.rows["host_events"] = [row for row in scene.rows["host_events"] if row["category"] != "cann"]
    assert outcome(rule, scene.store()).state == "cannot_answer"


def test_private_formats_are_switched_off_in_training_on_a2_only() -> None:
    (formats,) = [one for one in specs("HD005") if "allow_internal_format" in one.text.en]
    assert (formats.holds_for.phase, formats.holds_for.chip) == (["training"], ["A2"])
    assert formats.excludes == ["nz-weights"] and "get_npu_format" in formats.text.en
    category, name = ACTIVITIES["HD005"]
    serving = outcome("HD005", late().event(category, name, 90, 210).store()).first.advice
    assert not any("allow_internal_format" in one.text.en for one in serving)
    assert "is_jit_compile_false()" in serving[0].text.en, "the mode in use can be read"


def test_garbage_collection_is_silent_only_if_it_was_recorded() -> None:
    assert outcome("HD008", late().store()).state == "cannot_answer"
    assert outcome("HD008", late().store(profiler={"gc_detect_threshold": 1})).state == "pass"


def test_no_data_loader_is_not_applicable() -> None:
    assert outcome("HD007", late().store()).state == "not_applicable"


def test_compilation_counts_nested_calls_once() -> None:
    scene = (
        late().event("cann", "AscendCL@aclopCompileAndExecute", 110, 190).event("cann", "AscendCL@opCompile", 120, 90)
    )
    seen = outcome("HD005", scene.store()).first.observation
    assert seen["calls"] == 1 and seen["total_ns"] == 190_000


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 30)), max_size=12))
def test_not_nested_agrees_with_comparing_all_pairs(calls: list[tuple[int, int, int]]) -> None:
    """Of calls of a thread that nest or follow each other, those that lie in no other."""
    kept: list[tuple[int, int, int]] = []
    for thread, start, length in calls:
        crossing = any(
            t == thread
            and s < start + length
            and start < s + n
            and not (s <= start and start + length <= s + n)
            and not (start <= s and s + n <= start + length)
            for t, s, n in kept
        )
        if not crossing and (thread, start, length) not in kept:
            kept.append((thread, start, length))
    expected = [
        not any(
            t == thread and (s, n) != (start, length) and s <= start and start + length <= s + n for t, s, n in kept
        )
        for thread, start, length in kept
    ]
    columns = np.array(kept, dtype=np.int64).reshape(-1, 3)
    assert _not_nested(columns[:, 0], columns[:, 1], columns[:, 2]).tolist() == expected


# --- HD006


def blocking(*, synchronised: int) -> Scene:
    scene = Scene().step(1, -20, 1000)
    for number in range(4):
        start = 200 * number
        scene.kernel(start, 50, launched=start - 5, op="aten::mul")
        if number < synchronised:
            scene.event("cann", "AscendCL@aclrtSynchronizeStreamWithTimeout", start - 3, 60)
    return scene


def test_launch_blocking_is_inferred_from_synchronisations() -> None:
    found = outcome("HD006", blocking(synchronised=3).store())
    assert found.state == "fail" and found.first.severity == "high"
    assert found.first.observation["synchronised_share"] == 0.75
    assert found.first.observation["recorded"] == "unknown"
    assert [advice.kind for advice in found.first.advice] == ["env", "investigate"]
    assert "memory" in found.first.advice[0].risk.en, "launches that do not wait take more of it"


def test_launch_blocking_is_taken_from_the_record() -> None:
    store = busy().store("host_events", "flows", variables={"ASCEND_LAUNCH_BLOCKING": "1"})
    found = outcome("HD006", store)
    assert found.state == "fail" and found.first.observation["recorded"] == "on"


def test_launch_blocking_is_silent() -> None:
    assert outcome("HD006", blocking(synchronised=2).store()).state == "pass"
    store = busy().store("host_events", "flows", variables={"ASCEND_LAUNCH_BLOCKING": ""})
    assert outcome("HD006", store).state == "pass"


def test_launch_blocking_unrecorded_and_without_calls_cannot_answer() -> None:
    assert outcome("HD006", busy().store("host_events", "flows")).state == "cannot_answer"


# --- HD010


def switching(*, early: float) -> Scene:
    scene = Scene().step(1, -600, 1600)
    for number in range(5):
        start = number * 200
        scene.kernel(start, 110, launched=start - early, op="aten::mul")
    return scene


def test_task_switch_fires_with_low_confidence() -> None:
    found = outcome("HD010", switching(early=500).store(profiler={"l2_cache": True}))
    assert found.state == "fail" and found.first.confidence == "low"
    seen = found.first.observation
    assert seen["gaps"] == 4 and seen["median_ns"] == 90_000 and seen["spread_ns"] == 0
    assert seen["median_lead_ns"] == 500_000 and seen["l2_cache"] == "on"
    assert found.first.impact_ns == 4 * 90_000 and found.first.severity == "medium"


def test_task_switch_is_silent_when_the_launch_was_late() -> None:
    assert outcome("HD010", switching(early=5).store()).state == "pass"


def test_task_switch_without_arrows_cannot_answer() -> None:
    assert outcome("HD010", switching(early=500).store("flows")).state == "cannot_answer"


# --- HD011


@pytest.mark.parametrize(
    ("variables", "state"),
    [
        ({"ASCEND_GLOBAL_LOG_LEVEL": "1"}, "fail"),
        ({"ASCEND_GLOBAL_LOG_LEVEL": "3"}, "pass"),
        ({"ASCEND_GLOBAL_LOG_LEVEL": ""}, "pass"),
        ({}, "cannot_answer"),
    ],
)
def test_log_level(variables: dict[str, str], state: str) -> None:
    assert outcome("HD011", busy().store(variables=variables)).state == state


# --- HD012


def test_copy_on_the_device_alone_counts() -> None:
    scene = Scene().step(1, -20, 640).kernel(0, 100, op="aten::mul")
    scene.event("cann", "AscendCL@aclrtMemcpyAsync", 90, 5)
    scene.add("device_tasks", name="MEMCPY_ASYNC", task_type="SDMA_SQE", stream=3, start_us=110, duration_us=150)
    scene.kernel(300, 300, launched=95, op="aten::conv2d")
    found = outcome("HD012", scene.store())
    assert found.first.observation["on_device_ns"] == 150_000
    assert any(getattr(reference, "table", None) is DEVICE_TASKS for reference in found.evidence())


# --- HD013


def two_steps(*, pause: float) -> Scene:
    scene = Scene().step(1, -10, 120).kernel(0, 100, op="aten::mul")
    start = 110 + pause
    return scene.step(2, start, 130).kernel(start + 20, 100, launched=start + 10, op="aten::mul", step=2)


def test_step_boundary_fires() -> None:
    found = outcome("HD013", two_steps(pause=200).store())
    # The first step of the framework ends at 110 and the next begins at 310; divided by two steps.
    assert found.first.impact_ns == 100_000 and found.first.severity == "high"


def test_step_boundary_is_silent() -> None:
    assert outcome("HD013", two_steps(pause=0).store()).state == "pass"


def test_step_boundary_states() -> None:
    assert outcome("HD013", late().store()).state == "not_applicable"
    assert outcome("HD013", two_steps(pause=200).store("flows")).state == "cannot_answer"


# --- the real profile


def test_alexnet_rank_0(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    idle = outcome("HD001", store).first.observation
    assert idle["step_ns"] == pytest.approx(136.58e6, rel=1e-3)
    assert idle["idle_ns"] == pytest.approx(25.744e6, rel=1e-3)  # the exporter's Free: 25.74 ms
    late_ones = outcome("HD002", store)
    assert late_ones.first.severity == "high"
    assert late_ones.first.observation["late_ns"] == pytest.approx(17.3e6, abs=1e6)
    assert late_ones.first.observation["operator"] == "aten::linear"
    assert late_ones.first.observation["task_queue"] == "on"
    compiling = outcome("HD005", store)
    assert compiling.first.observation["calls"] == 19  # the vendor's limit is 20 calls
    assert compiling.first.impact_ns == pytest.approx(2.7e6, abs=0.2e6)
    assert outcome("HD010", store).first.impact_ns == pytest.approx(4.7e6, abs=0.5e6)
    # The long synchronisation at the end of the step waits for a busy device: no finding.
    assert outcome("HD004", store).state == "pass"
    assert outcome("HD006", store).state == "pass"
    assert outcome("HD008", store).state == "cannot_answer"


def test_alexnet_operators_are_not_counted_twice(profiles: Path) -> None:
    """operator_details.csv lists the same calls as the trace, where nesting is plain from the times."""
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    calls = outermost_calls(store[OPERATORS], WORDS)
    events = store[HOST_EVENTS]
    events = events[(events["category"] == "cpu_op") & ~events["name"].astype(str).str.startswith("ProfilerStep")]
    events = events.sort_values("start_ns", kind="stable")
    expected = []
    reach: dict[int, int] = {}
    for row, (name, thread, start, length) in enumerate(
        zip(events["name"].astype(str), events["thread"], events["start_ns"], events["duration_ns"], strict=True)
    ):
        if "#" in name or name.endswith(".forward"):
            continue
        if start >= reach.get(thread, 0):
            expected.append((row, name))
            reach[thread] = start + length
    assert list(zip(calls["row"], calls["name"], strict=True)) == expected
    found = outcome("HD003", store).first.observation
    assert found["operators"] == 38 and found["operator"] == "aten::conv2d" and found["left_out"] == 0
    assert found["idle_behind_ns"] <= 17.9e6


def test_alexnet_level0(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert outcome("HD001", store).state == "fail"
    assert outcome("HD002", store).first.severity == "high"
    for rule in ("HD005", "HD009"):
        assert outcome(rule, store).state == "cannot_answer"


# --- robustness of formulas


def test_order_of_rows_does_not_matter() -> None:
    scene, shuffled = synchronised(held=60), synchronised(held=60)
    random.Random(1).shuffle(shuffled.rows["host_events"])
    for rule in ("HD001", "HD002", "HD004", "HD006"):
        first, second = outcome(rule, scene.store()), outcome(rule, shuffled.store())
        assert first.state == second.state
        pd.testing.assert_frame_equal(first.observed.frame, second.observed.frame)  # type: ignore[union-attr]


def test_unavailable_says_what_to_collect() -> None:
    store = late().store("host_events", "flows")
    with pytest.raises(Unavailable) as reason:
        store.view((launches,), ())
    assert reason.value.reason.en and reason.value.reason.zh


def test_threads_of_the_scene_are_those_of_the_facts() -> None:
    activity = late().store()[host_activity]
    assert activity.feeders == {MAIN} and ACL not in activity.launchers


# --- HD014: rare long pauses


def passages(*pauses: float, every: float = 40) -> Scene:
    """A layer of two operators, ten times over; the host takes ``every`` us from one operator to the next, and
    ``pauses`` us instead before the second operator of the layers from the fifth on."""
    scene, now = Scene(), 0.0
    for layer in range(10):
        extra = pauses[layer - 5] if 5 <= layer < 5 + len(pauses) else every
        for name, wait in (("aten::mm", every), ("aten::add", extra)):
            now += wait
            scene.event("cpu_op", name, now, 20)
            scene.kernel(now + 15, 10, launched=now + 10)
            now += 20
    return scene.step(1, -10, now + 10)


def test_pauses_are_what_the_same_passage_does_not_take_at_other_times() -> None:
    scene = passages(5_000)
    found = outcome("HD014", scene.store())
    seen = found.first.observation
    assert found.first.severity == "high"
    assert (seen["pauses"], seen["longest_ns"], seen["usual_ns"]) == (1, 4_960_000, 40_000)
    # The device waits for every launch: it loses the whole pause, and only that.
    assert seen["saved_ns"] == 4_960_000
    assert not seen["gc_recorded"]
    pauses = scene.store()[host_pauses]
    events = scene.store()[HOST_EVENTS]
    assert events["name"].iloc[pauses["before"]].tolist() == ["aten::mm"]
    assert events["name"].iloc[pauses["after"]].tolist() == ["aten::add"]


def test_a_pause_is_not_told_as_slow_host_work() -> None:
    late = outcome("HD002", passages(5_000).store())
    assert late.observed is not None
    # 19 turns of 60 us of which the kernel runs 10 and needs 5 from its launch.
    assert late.observed.frame["late_ns"].iloc[0] == pytest.approx(19 * 45_000)


@pytest.mark.parametrize(
    "scene",
    [
        passages(),
        passages(*[5_000] * 5),
        passages(300),
        passages(5_000, every=600),
        passages(5_000).event("gc", "GC", 400, 5_000),
        passages(5_000).event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 400, 5_000),
    ],
    ids=["none", "half of the time", "shorter than a ms", "less than ten times", "recorded gc", "data loader"],
)
def test_what_has_another_reason_is_no_pause(scene: Scene) -> None:
    assert outcome("HD014", scene.store()).state == "pass"


def test_pauses_without_a_trace_cannot_answer() -> None:
    assert outcome("HD014", passages(5_000).store("host_events", "flows")).state == "cannot_answer"


# --- booking: who held a queued task up


def queued(*, sync: bool) -> Scene:
    """The main thread puts a task into the queue at 110 and, with ``sync``, waits for the device from 120 to 450; the
    other thread takes until 390 to launch it. The device is idle from 100 to 400."""
    scene = Scene().step(1, -10, 520).kernel(0, 100, op="aten::mul")
    scene.event("cpu_op", "aten::add", 60, 60)
    scene.event("enqueue", "Enqueue", 110, 3, correlation=1)
    scene.event("dequeue", "Dequeue@aclnnAdd", 115, 285, thread=ACL, correlation=1)
    scene.event("cann", "AscendCL@aclnnAdd", 120, 275, thread=ACL)
    scene.add("kernels", type="Add", name="Add", core="AI_VECTOR_CORE", stream=2, step=1, start_us=400, duration_us=100)
    for end, time, thread, device in (("s", 390, ACL, False), ("f", 400, 2, True)):
        row = {"kind": "host_to_device", "end": end, "flow": 99, "time_us": time}
        scene.add("flows", thread=thread, device=device, **row)
    scene.event("cann", "Node@launch", 389, 3, thread=ACL, item="Add")
    if sync:
        scene.event("cpu_op", "aten::item", 119, 332).event("cann", "AscendCL@aclrtSynchronizeStream", 120, 330)
    return scene


@pytest.mark.parametrize("sync", [False, True])
def test_a_task_in_the_queue_is_held_up_by_the_thread_that_empties_it(sync: bool) -> None:
    booked = queued(sync=sync).store()[ledger].set_index("path")["ns"]
    assert booked["idle/host/framework"] == 10_000
    assert booked["idle/host/runtime"] == 390_000 - 110_000
    assert booked["idle/launch_latency"] == 10_000
    assert "idle/sync" not in booked
