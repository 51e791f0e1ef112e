"""What the device would have done had the host not waited, against hand-made timelines."""

from __future__ import annotations

import numpy as np
import pytest

from tests.advisors.build import Scene, outcome


def items(count: int, *, kernel: float = 20, host: float = 60) -> Scene:
    """Each step of the loop launches a kernel of ``kernel`` us and reads its result; then Python takes ``host`` us to
    launch the next. A kernel starts 10 us after its launch, the host returns 5 us after its end."""
    scene = Scene().step(1, -20, 10_000)
    launch = 0.0
    for _ in range(count):
        start, end = launch + 10, launch + 10 + kernel
        scene.kernel(start, kernel, launched=launch, op="aten::norm")
        scene.event("cpu_op", "aten::item", launch + 1, end + 5 - launch - 1)
        scene.event("cann", "AscendCL@aclrtSynchronizeStream", launch + 2, end + 3 - launch - 2)
        launch = end + 5 + host
    return scene


def test_reading_back_every_result_costs_the_lead_of_the_host() -> None:
    """Every turn takes 10 + 20 + 5 + 60 us, of which the host needs 61 by itself: nine turns save 34 us each."""
    seen = outcome("HD004", items(10).store()).first.observation
    assert seen["saved_ns"] == 9 * 34_000


def test_a_device_that_is_the_bottleneck_cannot_be_sped_up_beyond_its_work() -> None:
    """Nine gaps of 75 us lie between ten kernels of 100 us; without waiting they follow each other at once."""
    found = outcome("HD004", items(10, kernel=100).store())
    assert found.first.observation["saved_ns"] == 9 * 75_000
    assert found.first.severity == "high"


@pytest.mark.parametrize(("waited", "saved"), [(0, 50), (400, 0)])
def test_a_collective_that_waits_for_another_rank_ends_no_sooner(waited: float, saved: float) -> None:
    scene = Scene().step(1, -20, 2_000).kernel(0, 100, op="aten::mul")
    scene.event("cpu_op", "aten::item", 50, 90).event("cann", "AscendCL@aclrtSynchronizeStream", 55, 80)
    scene.kernel(150, 100, launched=145, op="aten::mm")
    planes = [(250, 250 + waited, 1)] if waited else []
    scene.collective(250, waited + 100, [*planes, (250 + waited, 350 + waited, None)])
    found = outcome("HD004", scene.store())
    frame = found.observed.frame  # type: ignore[union-attr]
    assert np.isclose(float(frame["saved_ns"].iloc[0]), saved * 1_000)
