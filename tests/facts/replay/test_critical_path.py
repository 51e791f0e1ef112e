"""Every moment of a step has one owner on the critical path, and it is the right one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.replay.critical_path import critical_path
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from tests.advisors.real import real_rank


def owners(store: FactStore) -> pd.Series:
    """us by owner, after a check that the stretches tile the steps."""
    path, windows = store[critical_path], store[steps]
    for number, (begin, finish) in enumerate(zip(windows["start_ns"], windows["end_ns"], strict=True)):
        own = path[path["step"] == number]
        assert own["start_ns"].iloc[0] == begin and own["end_ns"].iloc[-1] == finish
        assert (own["start_ns"].iloc[1:].to_numpy() == own["end_ns"].iloc[:-1].to_numpy()).all()
    lasts = path["end_ns"] - path["start_ns"]
    return lasts.groupby(path["path"].astype(str)).sum() / 1000


def test_where_the_host_is_late_the_time_is_the_hosts() -> None:
    """The host works 100 us for each of ten kernels of 5 us, which start 10 us after their launch."""
    scene = Scene().step(1, -100, 1_100)
    for number in range(10):
        scene.event("cpu_op", "aten::mul", 100 * number - 90, 95)
        scene.kernel(100 * number + 10, 5, "Mul", launched=100 * number, op="aten::add")
    found = owners(scene.store())
    assert found["idle/launch_latency"] == 10 and found["compute/elementwise"] == 5
    # The step begins with its first task, 10 us after the first launch.
    assert found.filter(like="idle/host/").sum() == 890


def test_where_the_device_is_behind_the_time_is_the_devices() -> None:
    scene = Scene().step(1, -20, 1_100)
    for number in range(10):
        scene.kernel(100 * number, 100, "Mul", launched=number - 15, op="aten::mul")
    found = owners(scene.store())
    assert found["compute/elementwise"] == 1_000
    assert found.filter(like="idle/host/").sum() == 0


def test_a_kernel_beside_a_collective_that_ends_later_owns_nothing() -> None:
    scene = Scene().step(1, -20, 600)
    scene.kernel(0, 100, "MatMul", launched=-10, op="aten::mm")
    scene.collective(100, 300, [(100, 400, None)], launched=-8)
    scene.kernel(100, 250, "Mul", launched=-6, op="aten::mul")
    scene.kernel(400, 50, "MatMul", launched=-4, op="aten::mm")
    found = owners(scene.store())
    assert (found["compute/matmul"], found.filter(like="communication").sum()) == (150, 300)
    assert found["communication/covered"] == 250
    assert "compute/elementwise" not in found


@pytest.mark.parametrize("rank", [0, 1])
def test_alexnet_waits_for_its_host_and_then_for_other_ranks(profiles: Path, rank: int) -> None:
    found = owners(real_rank(profiles, "alexnet-ddp-text-level1", rank))
    # Until the first collective is launched, 29 ms after the first task of the step, the host is what is waited for.
    assert 20_000 < found.filter(like="idle/host/").sum() < 32_000
    assert found.filter(like="communication").sum() > 90_000 and found.filter(like="compute/").sum() < 5_000
