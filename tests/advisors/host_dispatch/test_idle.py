"""HD001: idle time of the device."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from advisor_core.api.testing import judge_rule
from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.totals import ledger
from advisor_core.testing.scene import PYTHON_THREAD
from tests.advisors.build import ACL_THREAD
from tests.advisors.host_dispatch.scenes import busy, late, synchronised
from tests.facts.test_judged_parts import serving
from tests.facts.test_parts import DECODE, PREFILL


def test_idle_fires_and_adds_up() -> None:
    found = judge_rule("HD001", late().store())
    assert found.state == "fail"
    seen = found.first.observation
    assert seen["idle_ns"] == 300_000 and seen["host_late_ns"] == 290_000
    assert seen["idle_share"] == pytest.approx(0.5) and seen["gaps"] == 1
    assert found.first.severity == "high" and found.first.impact_ns == 300_000
    assert seen["slow_host_share"] == pytest.approx(290 / 300)


def test_idle_is_silent_on_a_busy_device() -> None:
    assert judge_rule("HD001", busy().store()).state == "pass"


def test_idle_without_device_tasks_cannot_answer() -> None:
    scene = late()
    assert judge_rule("HD001", scene.store("kernels", "device_tasks")).state == "cannot_answer"


def test_idle_of_unknown_cause_asks_for_a_trace() -> None:
    found = judge_rule("HD001", late().store("flows", "host_events"))
    assert found.first.observation["unknown_share"] == 1
    assert found.first.observation["host_late_ns"] is None, "without launches nobody knows who was late"
    assert [advice.kind for advice in found.first.advice] == ["collect", "investigate"]


def test_order_of_rows_does_not_matter() -> None:
    scene, shuffled = synchronised(held=60), synchronised(held=60)
    random.Random(1).shuffle(shuffled.rows["host_events"])
    for rule in ("HD001", "HD002", "HD004", "HD006"):
        first, second = judge_rule(rule, scene.store()), judge_rule(rule, shuffled.store())
        assert first.state == second.state
        pd.testing.assert_frame_equal(first.observed.frame, second.observed.frame)  # type: ignore[union-attr]


def test_unavailable_says_what_to_collect() -> None:
    store = late().store("host_events", "flows")
    with pytest.raises(Unavailable) as reason:
        store.view((launches,), ())
    assert reason.value.reason.en and reason.value.reason.zh


def test_threads_of_the_scene_are_those_of_the_facts() -> None:
    activity = late().store()[host_activity]
    assert activity.feeders == {PYTHON_THREAD} and ACL_THREAD not in activity.launchers


def test_a_busy_prefill_does_not_hide_an_idle_decode() -> None:
    """Of all steps 8 % are idle, and 75 % of decode."""
    scene = serving((PREFILL, 1000, 0), *[(DECODE, 10, 30)] * 3)
    store = scene.store()
    found = judge_rule("HD001", store)
    seen = found.first.observation
    assert found.state == "fail" and found.verdict is not None and len(found.verdict.rows) == 1
    assert seen["recorded_part"] == "decode" and seen["idle_ns"] == 600_000 and seen["step_ns"] == 7_840_000
    assert seen["idle_share"] == pytest.approx(600 / 810) and seen["idle_ns"] / seen["step_ns"] < 0.1
    assert (seen["gaps"], seen["largest_gap_ns"]) == (20, 30_000)
    assert found.first.title.en.startswith("The device is idle for 74.1 % of decode")
    assert "解码（decode）" in found.first.title.zh.replace("\\", "")
    assert found.first.severity == "medium", "it is less than a fifth of the step"


def test_the_rows_of_the_parts_are_the_idle_time_of_the_steps() -> None:
    scene = serving((PREFILL, 100, 40), *[(DECODE, 10, 30)] * 3)
    store = scene.store()
    observed = judge_rule("HD001", store).observed
    assert observed is not None
    rows = observed.frame.set_index("recorded_part")
    whole = store[ledger]
    assert set(rows.index) == {"prefill", "decode"}
    assert rows["idle_ns"].sum() == whole.loc[whole["path"].str.startswith("idle"), "ns"].sum()
    assert rows["largest_gap_ns"].to_dict() == {"prefill": 40_000, "decode": 30_000}


def test_a_recording_of_one_part_is_judged_as_a_whole() -> None:
    found = judge_rule("HD001", late().store())
    assert "recorded_part" not in found.first.observation
    assert found.first.title.en == "The device is idle for 50.0 % of the step"
    assert found.first.title.zh == "device 空闲占 step 的 50.0 %"
