"""What runs inside of kernels, as far as times of pipes and cores tell it: bounds, and no guess between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisors.pipeline_bound.inside import inside
from tests.advisors.real import real_rank

CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
HEADS = ("bubble_least", "bubble_most", "overlap", "balance")


def table(store: FactStore) -> TableView | None:
    drawn = inside.draw(store.view(inside.needs, inside.wants))
    assert all(isinstance(view, TableView) for view in drawn)
    return drawn[0] if drawn else None  # type: ignore[return-value]


def measured(scene: Scene) -> dict[str, object]:
    view = table(scene.store(chip=CHIP))
    assert view is not None
    heads = ("operator", "core", "total", *HEADS)
    return next(dict(zip(heads, row, strict=True)) for row in view.data.rows if row[0] == "MatMulV3")


def kernel(core: float, *, duration: float = 100, **pipes: float) -> Scene:
    """A product of 100 us whose cube cores work for ``core`` of it."""
    scene = Scene().step(1, 0, 1_000).kernel(0, duration, "MatMulV3", core="AI_CORE").busy(24, **pipes)
    scene.rows["kernels"][-1] |= {"aic_ns": 1_000 * core, "aic_cycles": core * 24 * 1_800}
    return scene


def test_pipes_that_together_fill_less_than_the_kernel_leave_a_bubble_for_certain() -> None:
    seen = measured(kernel(90, aic_mac=30, aic_mte2=20))
    assert seen["bubble_least"] == pytest.approx(0.5) and seen["bubble_most"] == pytest.approx(0.7)
    assert seen["overlap"] == 0, "30 and 20 us fit into 90 one after the other"
    assert seen["balance"] == pytest.approx(0.9)


def test_pipes_that_do_not_fit_one_after_the_other_overlap_for_certain() -> None:
    """70 us of computing and 60 of loading in 95: 35 of the 60 lie side by side at least."""
    seen = measured(kernel(95, aic_mac=70, aic_mte2=60))
    assert seen["overlap"] == pytest.approx(35 / 60, abs=1e-4)
    assert (seen["bubble_least"], seen["bubble_most"]) == (0, pytest.approx(0.3))


@pytest.mark.parametrize(
    ("mac", "load", "good", "poor"), [(90.0, 0.0, 100, 0), (40.0, 20.0, 0, 100), (50.0, 40.0, 0, 0)]
)
def test_the_title_grades_what_is_certain_and_leaves_the_rest_open(
    mac: float, load: float, good: int, poor: int
) -> None:
    view = table(kernel(95, aic_mac=mac, aic_mte2=load).store(chip=CHIP))
    assert view is not None
    assert f"less than 15 % (good) in {good} % of their time, for more than 30 % (poor) in {poor} %" in view.title.en


def test_of_more_blocks_than_cores_the_cores_in_use_count() -> None:
    """48 blocks on 24 cores: the cycles of all cores over 24 of them, not over 48 blocks. Another kernel of 24 blocks
    tells the clock."""
    scene = kernel(90, aic_mac=80, aic_mte2=10)
    scene.rows["kernels"][-1]["block_dim"] = 48
    for number in range(4):
        scene.kernel(200 + 100 * number, 90, "MatMulV2", core="AI_CORE").busy(24, aic_mac=80)
        scene.rows["kernels"][-1] |= {"aic_ns": 90_000.0, "aic_cycles": 90 * 24 * 1_800}
    assert measured(scene)["balance"] == pytest.approx(0.9)


def test_short_kernels_are_left_out_as_start_and_end_rule_them() -> None:
    assert table(kernel(9, duration=10, aic_mac=5).store(chip=CHIP)) is None


def test_kernels_of_a_recorded_job(profiles: Path) -> None:
    """The only MatMulV3 of the file, by hand from its row."""
    view = table(real_rank(profiles, "alexnet-ddp-text-level1", 0))
    assert view is not None
    rows = {(row[0], row[1]): row[2:] for row in view.data.rows}
    took, bubble_least, bubble_most, overlap, balance = rows["MatMulV3", "AI_CORE"]
    assert took == 75_901 and bubble_least == 0 and overlap == 0
    assert bubble_most == pytest.approx(1 - 59.527 / 75.901, abs=2e-3)
    assert balance == pytest.approx(0.956, abs=2e-3)
    convolution = rows["Conv2D", "AI_CORE"]
    assert isinstance(convolution[3], float) and convolution[3] > 0.75, "0.75 and 0.81 of one duration"
