"""Steps replayed with fewer kernels, against hand-made timelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor_core.api.facts import HostChange, Merging, Replay, replay, union
from advisor_core.api.testing import Scene
from advisor_core.facts.replay.changes import Changing
from tests.facts.replay.test_host_changes import items


def merged(tasks: list[int], before: float, after: float) -> Merging:
    one = np.zeros(len(tasks), dtype=np.int64)
    return Merging(np.array(tasks, dtype=np.int64), one, np.array([before * 1000]), np.array([after * 1000]))


def launched_every(interval: float, kernel: float, count: int = 10) -> Scene:
    """``count`` kernels of ``kernel`` us; the host launches one every ``interval`` us, which starts 10 us later."""
    scene, free = Scene().step(1, -20, 10_000), 0.0
    for number in range(count):
        launch = number * interval
        start = max(launch + 10, free)
        free = start + kernel
        scene.kernel(start, kernel, launched=launch, op="aten::mul")
    return scene


def saved_us(scene: Scene, merging: Merging) -> float:
    found = scene.store()[replay]
    assert isinstance(found, Replay)
    return found.saved_by(merging) / 1000


def test_nothing_is_saved_where_no_kernel_goes() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert saved_us(launched_every(100, 2), Merging(nothing, nothing, np.zeros(0), np.zeros(0))) == 0


def test_a_slow_host_is_spared_the_launches_that_go_away() -> None:
    """Four kernels of 2 us become one of 2 us: three launches, of 100 us each."""
    assert saved_us(launched_every(100, 2), merged([3, 4, 5, 6], 8, 2)) == 300


def test_a_quick_host_spares_the_device_its_kernels() -> None:
    assert saved_us(launched_every(2, 100), merged([3, 4, 5, 6], 400, 150)) == 250


def test_the_host_becomes_the_bottleneck_where_the_device_gets_quicker() -> None:
    """Ten kernels of 30 us, launched every 25 us, end at 10 + 10 x 30 us. With four of them as one of 5 us, the device
    is done with that one at 105 us and waits for the next, which is launched at 100 us and starts at 110: three
    kernels of 30 us follow."""
    assert saved_us(launched_every(25, 30), merged([3, 4, 5, 6], 120, 5)) == 310 - (110 + 3 * 30)


def test_a_pause_of_the_host_within_the_chain_stays() -> None:
    """A collection of 5 ms before the third kernel of the chain is no cost of its operator: four times the usual is."""
    scene = Scene().step(1, -20, 20_000)
    for number in range(10):
        launch = number * 100 + (5_000 if number >= 5 else 0)
        scene.kernel(launch + 10, 2, launched=launch, op="aten::mul")
    assert saved_us(scene, merged([3, 4, 5, 6], 8, 2)) == 100 + 400 + 100


def test_a_call_that_waits_for_the_device_is_reached_by_host_and_device() -> None:
    """Two turns of a loop: five kernels are launched, one every 10 us, and the host waits for the last. In the first
    the kernels take 50 us each and are what it waits for; in the second 1 us, and it waits for its own launches."""
    scene, launch = Scene().step(1, -20, 10_000), 0.0
    for kernel in (50, 1):
        free = 0.0
        for _ in range(5):
            start = max(launch + 5, free)
            free = start + kernel
            scene.kernel(start, kernel, launched=launch, op="aten::mul")
            launch += 10
        scene.event("runtime", "AscendCL@aclrtSynchronizeStream", launch, free + 2 - launch)
        launch = free + 12
    assert saved_us(scene, merged([0, 1, 2], 150, 60)) == 90
    # The launches of the second turn take 40 us until the last; two of them go away.
    assert saved_us(scene, merged([5, 6, 7], 3, 1)) == 20


def test_a_collective_waits_for_the_kernel_before_it_and_holds_up_the_one_behind_it() -> None:
    """The collective waits for the first kernel, and 20 us after it the last one starts. When the first two kernels are
    one of 50 us, it begins 50 us earlier; that the second is no longer there saves nothing, as it was hidden."""
    scene = Scene().step(1, -20, 10_000)
    for number, start in enumerate((0, 100, 200, 550)):
        scene.kernel(start, 100, launched=number - 10, op="aten::mul")
    scene.collective(100, 430, [(100, 530, None)], launched=-9.5)
    assert saved_us(scene, merged([0, 1], 200, 50)) == 50


@pytest.mark.parametrize(("gap", "saved"), [(20, 250 + 3 * 20), (95, 250)])
def test_time_between_launched_tasks_goes_with_a_kernel_only_where_it_is_short(gap: float, saved: float) -> None:
    scene = Scene().step(1, -20, 10_000)
    for number in range(10):
        scene.kernel(number * (100 + gap), 100, launched=number - 15, op="aten::mul")
    assert saved_us(scene, merged([3, 4, 5, 6], 400, 150)) == saved


@pytest.mark.parametrize("linked", [True, False])
def test_tasks_without_a_launch_follow_the_one_before(linked: bool) -> None:
    scene = launched_every(2, 100)
    if not linked:
        scene.rows["flows"] = [row for row in scene.rows["flows"] if row["flow"] not in (4, 5)]
    assert saved_us(scene, merged([3, 4, 5, 6], 400, 150)) == 250


def test_waits_between_merged_kernels_go_once() -> None:
    """Ten turns of 10 + 20 + 5 + 60 us, in each of which the host waits 34 us longer than it works. Of the third to the
    sixth kernel one stays, of 20 us, and nobody waits for these four."""
    scene = items(10)
    found = scene.store()[replay]
    assert isinstance(found, Replay)
    starts = np.array([turn * 95_000 + 1_000 for turn in (2, 3, 4, 5)])
    waits = HostChange(union(starts, starts + 34_000))
    merging = merged([2, 3, 4, 5], 80, 20)
    both = replace(merging, waits=waits)
    assert found.saved_by(both) > found.saved_by(merging)
    graphs = [Changing(found.recorded).changed(changes) for changes in ([both], [merging, waits], [both, waits])]
    assert all((graph.duration == graphs[0].duration).all() for graph in graphs)


def test_a_change_of_no_kernel_is_known_to_change_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = Merging(nothing, nothing, np.zeros(0), np.zeros(0))
    assert none.changes_nothing and HostChange().changes_nothing
    assert not merged([1, 2], 4, 2).changes_nothing
    waits = HostChange(union(np.array([0]), np.array([5_000])))
    assert not waits.changes_nothing and not replace(none, waits=waits).changes_nothing
