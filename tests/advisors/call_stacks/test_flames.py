"""Flame graphs: the paths of calls, their times, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.facts import HOST_EVENTS, steps, union, work
from advisor_core.api.renderers import Flame, FlameView
from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.call_stacks import flames
from advisors.call_stacks.paths import DEEPEST
from tests.advisors.build import host

MAIN, BACKWARD = 100, 101


def drawn(scene: Scene) -> dict[str, Flame]:
    store = scene.store()
    views = flames.flames.draw(store.view(flames.flames.needs, flames.flames.wants))
    assert all(isinstance(view, FlameView) and view.title.zh != view.title.en for view in views)
    return {view.data.of: view.data for view in views if isinstance(view, FlameView)}


def stacks(flame: Flame) -> dict[str, float]:
    """us of each stack of its own, frames from the outermost on."""
    own = [took for _, _, took in flame.nodes]
    names: list[str] = []
    for caller, frame, took in flame.nodes:
        if caller >= 0:
            own[caller] -= took
        names.append(f"{names[caller]};{flame.frames[frame][0]}" if caller >= 0 else flame.frames[frame][0])
    return {name: took / 1000 for name, took in zip(names, own, strict=True) if took}


def python(scene: Scene, name: str, start: float, duration: float, thread: int = MAIN) -> Scene:
    return scene.event("python_function", name, start, duration, thread)


def module_step() -> Scene:
    """A call of a module with a product in it, launched at 20, that runs from 100 to 140."""
    scene = python(Scene(), "train.py(10): train", 0, 60)
    python(scene, "nn.Module: Linear_3", 5, 40)
    scene.event("cpu_op", "aten::mm", 10, 20, MAIN)
    scene.kernel(100, 40, "MatMul", launched=20)
    scene.rows["host_events"][-1]["thread"] = MAIN  # the launching call
    for arrow in scene.rows["flows"]:
        if arrow["end"] == "s":
            arrow["thread"] = MAIN
    return scene


def test_host_time_is_that_of_the_innermost_call() -> None:
    found = stacks(drawn(module_step())["host"])
    path = f"{MAIN};train.py(10): train"
    launch = next(name for name in found if name.startswith(f"{path};nn.Module: Linear;aten::mm;"))
    assert found == {
        path: 20,
        f"{path};nn.Module: Linear": 20,
        f"{path};nn.Module: Linear;aten::mm": 18,
        launch: 2,
    }


def test_device_time_is_that_of_what_launched_it() -> None:
    flame = drawn(module_step())["device"]
    assert stacks(flame) == {"train.py(10): train;nn.Module: Linear;aten::mm;MatMul": 40}
    assert [flame.frames[frame][1] for _, frame, _ in flame.nodes] == ["python", "module", "operator", "kernel"]


def test_numbers_of_steps_part_no_stack() -> None:
    scene = Scene()
    for step in (1, 2):
        scene.event("user_annotation", f"ProfilerStep#{step}", 100 * step, 90, MAIN)
        scene.event("cpu_op", "aten::mm", 100 * step + 10, 20, MAIN)
        scene.kernel(100 * step + 40, 10, "MatMul", launched=100 * step + 15, step=step)
    host = stacks(drawn(scene)["host"])
    assert host[f"{MAIN};aten::mm"] == 36, "20 of each step, less 2 of the call that launched"
    assert not any("ProfilerStep" in name for name in host)


def test_a_written_stack_stands_above_the_outermost_operator_alone() -> None:
    scene = Scene().event("cpu_op", "aten::linear", 0, 50, MAIN, call_stack="model.py(5): forward\nmain.py(9): main")
    scene.event("cpu_op", "aten::mm", 10, 20, MAIN, call_stack="model.py(5): forward\nmain.py(9): main")
    scene.kernel(100, 10, launched=20)
    scene.rows["host_events"][-1]["thread"] = 999
    found = stacks(drawn(scene)["host"])
    path = f"{MAIN};main.py(9): main;model.py(5): forward;aten::linear"
    assert found[path] == 30 and found[f"{path};aten::mm"] == 20


def test_recorded_functions_are_not_repeated_by_written_stacks() -> None:
    scene = python(Scene(), "main.py(9): main", 0, 60)
    scene.event("cpu_op", "aten::mm", 10, 20, MAIN, call_stack="main.py(9): main")
    scene.kernel(100, 10, launched=20)
    assert f"{MAIN};main.py(9): main;aten::mm" in stacks(drawn(scene)["host"])


def test_a_gradient_lies_below_the_call_of_what_it_is_of() -> None:
    scene = module_step()
    scene.event("cpu_op", "MmBackward0", 200, 30, BACKWARD)
    scene.kernel(300, 25, "MatMulBackward", launched=210)
    scene.rows["host_events"][-1]["thread"] = BACKWARD
    scene.rows["flows"][-2]["thread"] = BACKWARD
    for end, time, thread in (("s", 10, MAIN), ("f", 200, BACKWARD)):
        scene.add("flows", kind="forward_backward", flow=77, end=end, time_us=time, thread=thread, device=False)
    found = drawn(scene)
    assert stacks(found["device"])["train.py(10): train;nn.Module: Linear;MmBackward0;MatMulBackward"] == 25
    assert stacks(found["host"])[f"{BACKWARD};MmBackward0"] == 28, "on the host its thread is another"


def test_a_kernel_that_nothing_is_known_of_is_shown_as_that() -> None:
    scene = module_step()
    scene.kernel(500, 10, "Add")
    scene.rows["flows"] = scene.rows["flows"][:-2]
    flame = drawn(scene)["device"]
    assert ("", "unknown") in flame.frames and stacks(flame)[";Add"] == 10


def test_a_thread_that_only_waits_is_left_out() -> None:
    scene = python(module_step(), "threading.py(359): wait", 0, 1000, 7)
    assert not any(name.startswith("7;") for name in stacks(drawn(scene)["host"]))


def test_calls_of_the_runtime_alone_are_no_stacks() -> None:
    assert "host" not in drawn(Scene().kernel(100, 10))


def test_what_there_is_no_room_for_is_told_below_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = python(Scene(), "main.py(9): main", 0, 400)
    for number in range(9):
        scene.event("cpu_op", f"aten::op{number}", 10 + 40 * number, 10 + number, MAIN)
    scene.kernel(500, 10, launched=450)
    whole = drawn(scene)["host"]
    monkeypatch.setattr(flames, "MOST", 5)
    cut = drawn(scene)["host"]
    assert ("", "left_out") in cut.frames and ("", "left_out") not in whole.frames
    assert sum(stacks(cut).values()) == pytest.approx(sum(stacks(whole).values()))
    assert stacks(cut)[f"{MAIN};main.py(9): main"] == stacks(whole)[f"{MAIN};main.py(9): main"]


def test_the_deepest_calls_belong_to_the_one_above() -> None:
    scene = Scene()
    for depth in range(DEEPEST + 5):
        python(scene, f"f{depth}", depth, 2000 - 2 * depth)
    scene.event("cpu_op", "aten::mm", 900, 20, MAIN)
    scene.kernel(3000, 10, launched=2500)
    flame = drawn(scene)["host"]
    assert sum(stacks(flame).values()) == pytest.approx(2000 + 2)
    assert not any(name.startswith("aten") for name, _ in flame.frames)


def real(profiles: Path, name: str) -> tuple[FactStore, dict[str, Flame]]:
    loaders = host().loaders
    source = min(discover(list(loaders.values()), profiles / name), key=lambda source: source.rank)
    store = fact_store(host(), loaders[source.loader].load(source))
    views = flames.flames.draw(store.view(flames.flames.needs, flames.flames.wants))
    return store, {view.data.of: view.data for view in views if isinstance(view, FlameView)}


REAL = ("ascend/alexnet-ddp-text-level1", "ascend/alexnet-ddp-db-level1", "ascend/alexnet-ddp-text-level0")


@pytest.mark.parametrize("name", REAL)
def test_real_stacks_hold_all_time_of_device_and_threads(profiles: Path, name: str) -> None:
    """Sums over the raw rows: kernels and collectives of the only step, and what the events of each thread cover."""
    store, found = real(profiles, name)
    device, windows, events = store[work], store[steps], store[HOST_EVENTS]
    inside = device[device["start_ns"].between(windows["start_ns"].iloc[0], windows["end_ns"].iloc[0] - 1)]
    assert (
        sum(took for caller, _, took in found["device"].nodes if caller < 0)
        == (inside["end_ns"] - inside["start_ns"]).sum()
    )
    mark = events[events["name"].astype(str).str.startswith("ProfilerStep#")].iloc[0]
    threads = {found["host"].frames[frame][0]: took for caller, frame, took in found["host"].nodes if caller < 0}
    assert len(threads) >= 3
    for thread, took in threads.items():
        own = events[events["thread"] == int(thread)]
        start = own["start_ns"].to_numpy()
        covered = union(start, start + own["duration_ns"].to_numpy())
        assert took == covered.clip(mark["start_ns"], mark["start_ns"] + mark["duration_ns"]).total()


def test_real_kernels_have_modules_above_them(profiles: Path) -> None:
    """BERT on a GPU: the sum of its 60 kernels, and all its products below a module."""
    _, found = real(profiles, "kineto/bert-small-h100.json.gz")
    device = stacks(found["device"])
    assert sum(device.values()) == pytest.approx(307.197)
    products = [name for name in device if name.endswith("aten::addmm")]
    assert len(products) > 4 and all("nn.Module: " in name for name in products)
