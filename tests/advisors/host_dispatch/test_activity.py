"""HD005, HD007, HD008, HD009, HD012: activities of the host that keep the device waiting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import judge_rule
from advisors.host_dispatch.activity import _not_nested
from tests.advisors.host_dispatch.scenes import ACTIVITIES, busy, late


@pytest.mark.parametrize("rule", ACTIVITIES)
def test_activity_fires_with_the_idle_time_meanwhile(rule: str) -> None:
    category, name = ACTIVITIES[rule]
    scene = late().event(category, name, 90, 210)
    found = judge_rule(rule, scene.store())
    assert found.state == "fail"
    # The call runs from 90 to 300; the device was busy until 100. Without it the next launch is 210 us earlier.
    assert found.first.observation["idle_ns"] == 200_000
    assert found.first.impact_ns == (200_000 if rule in ("HD005", "HD012") else 210_000)
    assert found.first.observation["calls"] == 1


@pytest.mark.parametrize("rule", ACTIVITIES)
def test_activity_behind_a_busy_device_is_silent(rule: str) -> None:
    category, name = ACTIVITIES[rule]
    scene = busy().event(category, name, 60, 200)
    found = judge_rule(rule, scene.store())
    assert found.state == "pass"


@pytest.mark.parametrize("rule", ACTIVITIES)
def test_activity_without_a_trace_cannot_answer(rule: str) -> None:
    assert judge_rule(rule, late().store("host_events", "flows")).state == "cannot_answer"


@pytest.mark.parametrize("rule", ["HD005", "HD009"])
def test_cann_activities_cannot_answer_where_the_level_records_no_calls(rule: str) -> None:
    scene = late()
    scene.rows["host_events"] = [row for row in scene.rows["host_events"] if row["category"] != "runtime"]
    assert judge_rule(rule, scene.store()).state == "cannot_answer"


def test_the_mode_of_compilation_is_asked_before_it_is_changed() -> None:
    category, name = ACTIVITIES["HD005"]
    first, *others = judge_rule("HD005", late().event(category, name, 90, 210).store()).first.advice
    assert "is_jit_compile_false()" in first.text.en, "the mode in use can be read"
    (change,) = [one for one in others if "set_compile_mode" in one.text.en]
    assert change.hazards == ["accuracy", "crash"] and not first.hazards


def test_garbage_collection_is_silent_only_if_it_was_recorded() -> None:
    assert judge_rule("HD008", late().store()).state == "cannot_answer"
    assert judge_rule("HD008", late().store(profiler={"gc_detect_threshold": 1})).state == "pass"


def test_no_data_loader_is_not_applicable() -> None:
    assert judge_rule("HD007", late().store()).state == "not_applicable"


def test_compilation_counts_nested_calls_once() -> None:
    scene = (
        late()
        .event("runtime", "AscendCL@aclopCompileAndExecute", 110, 190)
        .event("runtime", "AscendCL@opCompile", 120, 90)
    )
    seen = judge_rule("HD005", scene.store()).first.observation
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


@pytest.mark.parametrize("name", ["aclrtMallocHost", "aclrtFreeHost", "aclrtMallocHostWithCfg", "aclrtFreeHostWithCfg"])
def test_memory_of_the_host_is_not_that_of_the_device(name: str) -> None:
    assert judge_rule("HD009", late().event("runtime", f"AscendCL@{name}", 90, 210).store()).state == "pass"


@pytest.mark.parametrize("name", ["aclrtMalloc", "aclrtFree", "aclrtMallocAlign32", "aclrtFreePhysical"])
def test_memory_of_the_device_is_found_by_the_name_of_the_call(name: str) -> None:
    assert judge_rule("HD009", late().event("runtime", f"AscendCL@{name}", 90, 210).store()).state == "fail"
