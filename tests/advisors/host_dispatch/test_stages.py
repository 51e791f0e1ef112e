"""What kernels go through, by operator type."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.facts import launches, work
from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisors.host_dispatch.stages import STAGES, stage_times, stages
from tests.advisors.layers.test_layers import facts_of


def view_of(store: FactStore) -> TableView:
    (view,) = stages.draw(store.view(stages.needs, stages.wants))
    assert isinstance(view, TableView)
    return view


def test_waiting_is_divided_by_what_the_device_does_meanwhile() -> None:
    scene = Scene().step(1, -10, 1000)
    # Launched at 10; another kernel runs from 0 to 100, and nothing from there to 130.
    scene.kernel(0, 100, launched=-5).kernel(130, 50, "Relu", launched=10)
    # Two more of a type: the mean of 20 and 40 behind it, and of 5 and 15 with nothing.
    scene.kernel(200, 40, launched=195).kernel(245, 10, "Gelu", launched=220).kernel(300, 60, launched=296)
    scene.kernel(375, 30, "Gelu", launched=320)
    rows = {row[0]: row[1:] for row in view_of(scene.store()).data.rows}
    assert rows["Relu"] == [1, 0, 0, 90_000, 30_000, 50_000]
    assert rows["Gelu"] == [2, 0, 0, 30_000, 10_000, 20_000]


def test_the_stages_of_real_kernels_are_the_whole_way_from_the_queue_to_the_end(profiles: Path) -> None:
    store = facts_of(profiles / "ascend" / "alexnet-ddp-text-level1" / "rank0_ascend_pt")
    times, device, launched = stage_times(store), store[work], store[launches].frame
    assert (times[list(STAGES)] >= 0).all().all()
    first = times[times["type"] == "Conv2D"].iloc[0]
    # Dequeue@Conv2D at 702967.72 us, less the 13.565 us by which the clock of the host is ahead.
    row = int(device.index[(device["type"] == "Conv2D").to_numpy()][0])
    assert launched.at[row, "taken_ns"] == 1_736_408_883_702_967_720 - 13_565
    assert first[list(STAGES)].sum() == device.at[row, "end_ns"] - launched.at[row, "entered_ns"]
    assert first["running"] == pytest.approx(313_886, abs=1)
