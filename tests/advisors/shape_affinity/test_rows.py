"""SA003: rows against vector cores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.roofline.products import balance
from tests.advisors.shape_affinity.scenes import CHIP, VECTOR, judged, kinds, until_the_end

SMALL = {"ai_core_num": 20, "aiv_num": 40, "aic_frequency": 1650}


def rows(number: int, *, type_: str = "RmsNorm", blocks: int = 40, us: float = 1000) -> Scene:
    scene = Scene().tensors(0, us, type_, [f"{number},7168 BF16", "7168 BF16"], [f"{number},7168 BF16"], core=VECTOR)
    return until_the_end(scene.busy(blocks))


def test_rows_that_leave_cores_idle_fire() -> None:
    """The guide's example: a batch of 48 on 40 vector cores."""
    found = judged("SA003", rows(48), chip=SMALL)
    seen = found.first.observation
    assert (seen["operator"], seen["rows"], seen["cores"], seen["rounds"]) == ("RmsNorm", 48, 40, 2)
    assert (seen["fewer"], seen["more"]) == (40, 80) and seen["efficiency"] == pytest.approx(0.6)
    assert found.first.impact_ns == 400_000 and found.first.severity == "medium"
    assert kinds(found) == ["investigate", "config"]
    assert [one.hazards for one in found.first.advice] == [[], ["crash"]]


def test_a_norm_is_no_reason_for_another_batch_in_training() -> None:
    """Another micro-batch changes memory, a pipeline and often the loss: what a last round of a norm costs is less."""
    scene = rows(48).tensors(5000, 1, "RmsNormGrad", core=VECTOR)
    assert kinds(judged("SA003", scene, chip=SMALL)) == ["investigate"]


def test_fewer_rows_than_cores_cannot_become_fewer() -> None:
    found = judged("SA003", rows(16, blocks=16), chip=SMALL)
    assert found.first.impact_ns == 600_000 and kinds(found) == ["investigate", "config"]


@pytest.mark.parametrize(
    ("scene", "chip", "state"),
    [
        (rows(48), CHIP, "pass"),  # 48 cores
        (rows(64), SMALL, "pass"),
        (rows(80), SMALL, "pass"),
        (rows(41, us=200), SMALL, "pass"),  # 97.5 us of 10 ms
        (rows(16, blocks=40), SMALL, "not_applicable"),  # divides the rows as well
        (rows(321), SMALL, "not_applicable"),  # nine rounds
        (rows(48, us=4.9), SMALL, "not_applicable"),
        (rows(48, type_="Add"), SMALL, "not_applicable"),  # divides anywhere
        (rows(48, type_="AscendQuantV2"), SMALL, "not_applicable"),
        (rows(48, type_="GroupNormSilu"), SMALL, "not_applicable"),  # its groups are not in the shapes
    ],
)
def test_rows_that_fill_the_cores_are_silent(scene: Scene, chip: dict[str, int], state: str) -> None:
    assert judged("SA003", scene, chip=chip).state == state


@pytest.mark.parametrize("type_", ["AddRmsNorm", "LayerNormV4", "SoftmaxV2", "DynamicQuant", "AddRmsNormDynamicQuant"])
def test_operators_that_reduce_rows_are_seen(type_: str) -> None:
    assert judged("SA003", rows(48, type_=type_), chip=SMALL).state == "fail"


def test_rows_are_all_axes_but_the_last() -> None:
    scene = Scene().tensors(0, 1000, "RmsNorm", ["2,3,8,7168 BF16"], ["2,3,8,7168 BF16"], core=VECTOR).busy(40)
    assert judged("SA003", until_the_end(scene), chip=SMALL).first.observation["rows"] == 48
    scene = Scene().tensors(0, 1000, "RmsNorm", ["7168 BF16"], ["7168 BF16"], core=VECTOR)
    assert judged("SA003", until_the_end(scene), chip=SMALL).state == "not_applicable"


@given(st.integers(1, 3000), st.integers(1, 64))
def test_balance_is_work_over_the_slots_that_pass(blocks: int, cores: int) -> None:
    left, rounds = blocks, 0
    while left > 0:
        left, rounds = left - cores, rounds + 1
    assert float(balance(blocks, cores)) == pytest.approx(blocks / (rounds * cores))
