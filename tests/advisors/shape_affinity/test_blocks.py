"""SA004, SA007: blocks against cube cores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.roofline.products import best_balance, tiles
from advisors.shape_affinity.blocks import GROWTH, _grown
from tests.advisors.cures import cure_of, shorter
from tests.advisors.shape_affinity.scenes import CHIP, CORES, VECTOR, judged, kinds, times, until_the_end


def blocks_of(m: int, n: int, recorded: int, us: float = 1000) -> Scene:
    return until_the_end(times(Scene(), 0, us, f"{m},7168", f"{n},7168", f"{m},{n}", blocks=recorded))


def test_blocks_that_leave_cores_idle_fire() -> None:
    """128 x 1536: 6 blocks of 128 x 256 or 12 of 128 x 128, on 24 cores."""
    found = judged("SA004", blocks_of(128, 1536, 12))
    seen = found.first.observation
    assert (seen["m"], seen["n"], seen["k"], seen["blocks"], seen["rounds"]) == (128, 1536, 7168, 12, 1)
    assert seen["cores"] == 24 and seen["efficiency"] == 0.5 and seen["recorded_blocks"] == 12
    assert (seen["good_n"], seen["good_m"]) == (2816, 256)  # 22 of 24; 24 of 24
    assert found.first.impact_ns == 500_000 and found.first.severity == "high"
    assert kinds(found) == ["investigate", "code", "config"], (
        "tensor parallelism changes N by whole factors only: 2816 is not one"
    )


def test_a_size_that_is_another_model_is_not_advised() -> None:
    """N = 512 would have to become 2816."""
    found = judged("SA004", blocks_of(128, 512, 4))
    assert found.first.observation["good_n"] == 2816
    assert not any("tensor parallelism divides N" in advice.text.en for advice in found.first.advice)


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (blocks_of(128, 3072, 24), "pass"),
        (blocks_of(128, 2560, 20), "pass"),  # 20 of 24
        (blocks_of(128, 1536, 12, us=190), "pass"),  # 95 us of 10 ms
        (blocks_of(128, 1536, 24), "not_applicable"),  # the kernel divides finer, or K too
        (blocks_of(128, 1536, 12, us=9.9), "not_applicable"),
    ],
)
def test_blocks_that_fill_the_cores_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA004", scene).state == state


SIZE = st.integers(1, 9_000)


@given(SIZE, SIZE, st.integers(1, 40), CORES)
def test_blocks_are_counted_like_squares_on_paper(m: int, n: int, batch: int, cores: int) -> None:
    """Against laying blocks one by one; the better of the two widths is taken."""
    used = []
    for base in (256, 128):
        laid = len(range(0, m, 128)) * len(range(0, n, base)) * batch
        assert float(tiles(m, n, base, batch)) == laid
        used.append(laid / (math.ceil(laid / cores) * cores))
    assert float(best_balance(m, n, batch, cores)) == pytest.approx(max(used))


@given(st.integers(1, 3_000), st.integers(1, 3_000), st.integers(1, 3), CORES, st.booleans())
def test_a_grown_axis_is_the_first_that_fills_enough(m: int, n: int, batch: int, cores: int, grow_rows: bool) -> None:
    axis = m if grow_rows else n
    candidates = [axis, *((axis // 128 + step) * 128 for step in range(1, GROWTH + 1))]
    good = (size for size in candidates if best_balance(*((size, n) if grow_rows else (m, size)), batch, cores) >= 0.9)
    mine = (np.array([m]), np.array([n]), np.array([batch]))
    assert _grown(*mine, cores, 0.9, rows=grow_rows).tolist() == [next(good, axis)]


def tier(m: int, us: float = 1000, *, training: bool = False) -> Scene:
    scene = times(Scene(), 0, us, f"{m},7168", "7168,1536", f"{m},1536")
    return until_the_end(scene.tensors(5000, 1, "RmsNormGrad" if training else "RmsNorm", core=VECTOR))


def test_rows_just_above_a_tier_fire() -> None:
    found = judged("SA007", tier(160))
    seen = found.first.observation
    assert (seen["m"], seen["tier"], seen["tier_below"]) == (160, 256, 128)
    assert found.first.impact_ns == 375_000 and found.first.severity == "low"  # 3.75 % of the step
    assert found.first.confidence == "low" and kinds(found) == ["config"]
    assert judged("SA007", tier(160, 1400)).first.severity == "medium"


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (tier(192), "pass"),  # three quarters of the rows are there
        (tier(160, 260), "pass"),  # 97.5 us of 10 ms
        (tier(128), "not_applicable"),
        (tier(257), "not_applicable"),
        (tier(160, training=True), "not_applicable"),
    ],
)
def test_other_rows_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA007", scene).state == state


def test_a_batch_that_fills_the_cores_shortens_a_step_of_training_only() -> None:
    """Where requests are served a larger batch does more in the same time."""
    training = blocks_of(128, 1536, 12).event("user_annotation", "Optimizer.step#AdamW.step", -8, 2)
    assert shorter(training.store(chip=CHIP), cure_of(judged("SA004", training))) == {0: 500_000}
    served = judged("SA004", blocks_of(128, 1536, 12))
    assert served.observed is not None and served.observed.cure is not None
    assert served.observed.cure(served.first.row) is None
