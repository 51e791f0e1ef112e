"""HD019: tilings that the host computes because shapes change."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule


def growing(*, tiled: bool, same: bool = False) -> Scene:
    """Four steps of 10 ms: in each, ten kernels of 0.2 ms, each launched when a tiling of 0.5 ms is done."""
    scene = Scene()
    for step in range(4):
        begin = 10_000.0 * step
        scene.step(step + 1, begin, 10_000)
        for number in range(10):
            at = begin + 800.0 * number + 700
            rows = 8 if same else 8 * (step + 1)
            scene.tensors(at, 200, "Add", [f"{rows},{number} FLOAT"], [f"{rows},{number} FLOAT"])
            scene.rows["kernels"][-1] |= {"step": step + 1, "op_state": "dynamic" if number else "static"}
            if tiled:
                scene.event("runtime", "AscendCL@Add_Tiling", at - 550, 500)
    return scene


def test_tilings_in_every_step_cost_what_a_replay_without_them_saves() -> None:
    found = judge_rule("HD019", growing(tiled=True).store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    # the recording begins with the first task, after the first of the forty tilings
    assert (seen["calls"], seen["total_ns"]) == (39 / 4, 39 / 4 * 500_000)
    assert (seen["operator"], seen["shapes"], seen["varying_share"]) == ("Add", 40, 1.0)
    assert seen["dynamic_share"] == pytest.approx(0.9)
    assert isinstance(seen["saved_ns"], float) and 2_000_000 < seen["saved_ns"] <= 5_000_000


def test_shapes_that_come_back_put_the_cache_in_question() -> None:
    seen = judge_rule("HD019", growing(tiled=True, same=True).store()).first
    assert seen.observation["varying_share"] == 0
    assert len(seen.advice_numbers) == 2


def test_without_tilings_nothing_is_found() -> None:
    assert judge_rule("HD019", growing(tiled=False).store()).state == "pass"


def test_tilings_of_a_call_that_compiles_belong_to_it() -> None:
    scene = growing(tiled=True)
    for row in [row for row in scene.rows["host_events"] if row["name"].endswith("_Tiling")]:
        scene.event("runtime", "AscendCL@aclopCompileAndExecute", row["start_us"] - 2, 510)
    found = judge_rule("HD019", scene.store())
    assert found.state == "pass" and found.observed is not None and found.observed.frame["calls"].tolist() == [0]
