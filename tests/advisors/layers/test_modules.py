"""Kernels by the modules that the profiler recorded."""

from __future__ import annotations

import pandas as pd
import pytest

from advisor_core.api.renderers import Heatmap
from advisor_core.api.testing import Scene
from advisors.layers.blocks import Pass
from advisors.layers.module_views import by_module, collapsed
from advisors.layers.modules import modules

GRADIENTS = 300
"""The thread of the backward pass."""


def module(scene: Scene, name: str, start: float, duration: float) -> Scene:
    return scene.event("python_function", f"nn.Module: {name}", start, duration)


def forward_and_backward() -> Scene:
    """A block of two linear layers and a norm of its own, and the gradient of the first of them on another thread."""
    scene = Scene().step(1, 0, 2000)
    module(scene, "Block_0", 100, 400)
    module(scene, "Linear_0", 110, 90)
    module(scene, "Linear_1", 210, 90)
    scene.kernel(300, 100, "MatMulV3", launched=150, op="aten::linear")
    scene.kernel(410, 50, "MatMulV3", launched=250, op="aten::linear")
    scene.kernel(470, 10, "Add", launched=400, op="aten::add")
    scene.event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 600, 100, GRADIENTS)
    scene.event("cpu_op", "aten::mm", 630, 40, GRADIENTS)
    scene.kernel(900, 70, "MatMulV3", launched=650)
    scene.event("runtime", "Node@launch", 649, 3, GRADIENTS)
    for end, time, thread in (("s", 147, 100), ("f", 600, GRADIENTS)):
        scene.add("flows", kind="forward_backward", end=end, flow=900, time_us=time, thread=thread, device=False)
    for row in scene.rows["flows"]:
        if row["kind"] == "host_to_device" and row["end"] == "s" and row["time_us"] == 650:
            row["thread"] = GRADIENTS
    scene.kernel(1000, 20, "ApplyAdamW", launched=800, op="Optimizer")
    return scene


def test_a_kernel_is_of_the_innermost_module_and_a_gradient_of_the_module_of_its_forward_operator() -> None:
    found = forward_and_backward().store()[modules]
    names = ["" if row < 0 else found.table["name"].iloc[row] for row in found.module.tolist()]
    assert names == ["Linear_0", "Linear_1", "Block_0", "Linear_0", ""]
    assert found.passes.tolist()[:4] == [Pass.FORWARD, Pass.FORWARD, Pass.FORWARD, Pass.BACKWARD]
    assert found.table["depth"].tolist() == [0, 1, 1]


def test_modules_of_one_class_and_caller_are_one_row_and_callers_have_their_time() -> None:
    store = forward_and_backward().store()
    (view,) = by_module.draw(store.view(by_module.needs, by_module.wants))
    assert isinstance(view.data, Heatmap)
    rows = {
        str(name): values for name, values in zip((row.en for row in view.data.rows), view.data.values, strict=True)
    }
    # forward, backward, sum, without inner modules
    assert rows == {
        "Block": [160_000, 70_000, 230_000, 10_000],
        "· Linear ×2": [150_000, 70_000, 220_000, 220_000],
    }


def test_an_arrow_to_the_gradients_of_several_modules_tells_nothing() -> None:
    scene = forward_and_backward()
    for end, time, thread in (("s", 247, 100), ("f", 601, GRADIENTS)):
        scene.add("flows", kind="forward_backward", end=end, flow=901, time_us=time, thread=thread, device=False)
    assert scene.store()[modules].module.tolist()[3] == -1


def test_without_names_of_modules_there_is_no_view() -> None:
    assert Scene().step(1, 0, 100).kernel(10, 10, op="aten::mm").store().get(modules) is None


@pytest.mark.parametrize("depth", [1, 3])
def test_the_same_class_below_other_callers_stays_apart(depth: int) -> None:
    table = pd.DataFrame(
        {
            "parent": [-1, 0, 0, *([1] * depth), *([2] * depth)],
            "name": ["A_0", "B_0", "C_0", *(f"L_{n}" for n in range(2 * depth))],
            "kind": ["A", "B", "C", *(["L"] * 2 * depth)],
        }
    )
    place, places = collapsed(table)
    assert places["kind"].tolist() == ["A", "B", "C", "L", "L"]
    assert places["instances"].tolist() == [1, 1, 1, depth, depth]
    assert places["depth"].tolist() == [0, 1, 1, 2, 2]
    assert place[0] == 0
