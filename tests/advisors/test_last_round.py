"""PB021: blocks that are no multiple of the cores, and what their last round leaves idle."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import JudgedRule, Scene, judge_rule, measure
from advisors.pipeline_bound.kernels import kernels
from tests.advisors.real import real_rank

CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}


def divided(blocks: int, *, type_: str = "ReduceSum", us: float = 1_000, at_work: float | None = None) -> Scene:
    """A kernel of so many blocks in a step of 10 ms. ``at_work``: part of the time of 48 cores in which they work."""
    scene = Scene().tensors(0, us, type_, ["4096,1024 BF16"], ["4096,1024 BF16"], core="AI_VECTOR_CORE")
    scene.busy(blocks, aiv_vec=0.9 * us)
    if at_work is not None:
        scene.rows["kernels"][-1]["aiv_cycles"] = at_work * us * 48 * 1_800
    scene.kernel(4_000, 100, "MatMulV3", core="AI_CORE").busy(24, aic_mac=90)
    scene.rows["kernels"][-1] |= {"aic_ns": 100_000.0, "aic_cycles": 100 * 24 * 1_800}
    return scene.kernel(9_999, 1, "ReduceSum", core="AI_VECTOR_CORE")


def judged(scene: Scene) -> JudgedRule:
    return judge_rule("PB021", scene.store(chip=CHIP))


def test_fifty_two_blocks_on_forty_eight_cores_leave_nearly_half_of_their_time_idle() -> None:
    found = judged(divided(52))
    seen = found.first.observation
    assert (seen["blocks"], seen["cores"], seen["rounds"]) == (52, 48, 2)
    assert seen["last_round_idle"] == pytest.approx(1 - 52 / 96)
    assert found.first.impact_ns == pytest.approx(1_000_000 * (1 - 52 / 96), abs=1)
    assert found.first.severity == "medium"


def test_what_measured_cycles_leave_is_the_most() -> None:
    """A kernel that divides its blocks again keeps the cores busier than whole blocks would."""
    found = judged(divided(52, at_work=0.8))
    assert found.first.observation["last_round_idle"] == pytest.approx(0.2)
    assert judged(divided(52, at_work=0.95)).state == "pass"


def test_cycles_that_leave_more_idle_do_not_count_for_the_last_round() -> None:
    found = judged(divided(52, at_work=0.3))
    assert found.first.observation["last_round_idle"] == pytest.approx(1 - 52 / 96)


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (divided(96), "pass"),
        (divided(12), "not_applicable"),
        (divided(52, us=40), "not_applicable"),
        (divided(52, type_="RmsNorm"), "not_applicable"),
    ],
    ids=["full rounds", "fewer blocks than cores", "a short kernel", "rows are judged by another rule"],
)
def test_other_kernels_are_left_alone(scene: Scene, state: str) -> None:
    assert judged(scene).state == state


def test_recorded_kernels_leave_idle_what_their_blocks_say(profiles: Path) -> None:
    """256 blocks on 48 cores: a ninth by the rounds, 10.3 % by the cycles of the kernel; of 0.1 ms that is little."""
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    table = measure(kernels, store).frame
    row = table[(table["operator"] == "MaxPoolGradWithArgmaxV1") & (table["blocks"] == 256)].iloc[0]
    assert row["rounds"] == 6 and 1 - row["blocks"] / (row["rounds"] * row["cores"]) == pytest.approx(1 / 9)
    assert row["last_round_idle"] == pytest.approx(0.103, abs=0.002)
    assert row["last_round_idle"] == pytest.approx(1 - row["at_work"])
    assert judge_rule("PB021", store).state == "pass"
