"""The drawings of the roofline: what they say and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.api import Text
from advisor_core.api.renderers import BarsView, Cell, HeatmapView, TableView
from advisor_core.api.testing import Scene
from advisors.roofline.drawings import bounds
from advisors.roofline.first_looks import first_looks
from tests.advisors.real import real_rank
from tests.once import ResultOf
from tests.sample.small import small


def english(cell: Cell) -> str:
    assert isinstance(cell, Text)
    return cell.en


CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}


def test_the_views_of_a_small_step() -> None:
    scene = Scene().tensors(0, 1000, "MatMulV3", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"])
    scene.tensors(1000, 200, "Relu", ["8192,4096 FLOAT"], ["8192,4096 FLOAT"], core="AI_VECTOR_CORE")
    views = {view.id: view for view in bounds.draw(scene.store(chip=CHIP))}
    chip, shares, times, above, products = (
        views[f"{name}-rank0"] for name in ("peaks", "roofline", "bounds", "above", "products")
    )
    assert "Ascend 910B2" in chip.title.en and "1.60 TB/s" in chip.title.zh
    assert "compute bound" in shares.title.en and "MFU 32 %" in shares.title.en and "受计算限制" in shares.title.zh
    assert isinstance(shares, HeatmapView) and isinstance(times, HeatmapView) and isinstance(products, HeatmapView)
    took, least = 1000 + 200, 2 * 4096**3 / 353.8944e12 * 1e6 + 2 * 4 * 8192 * 4096 / 1.6e12 * 1e6
    assert times.data.values[0] == pytest.approx([1000 * least, 1000 * (took - least)], abs=2)
    assert isinstance(above, BarsView) and [row.label for row in above.data.rows] == ["MatMulV3", "Relu"]
    assert products.data.rows == ["MatMulV3 4096 x 4096 x 4096 BF16 (1 x 1000.0 µs)"]
    assert products.data.values[0][0] == pytest.approx(0.3884, abs=1e-4)


def test_layers_of_a_recording_have_bounds(profiles: Path) -> None:
    views = {view.id: view for view in bounds.draw(real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0))}
    layers = views["bounds-rank0-stack0"]
    assert isinstance(layers, HeatmapView) and layers.data.columns == ["0", "1"]
    for least, above in zip(*layers.data.values, strict=True):
        assert least is not None and above is not None and 0 < above < least < 9_540_000
    head = views["roofline-rank0"]
    assert "idle time without a recorded cause" in head.title.en, "only kernels were recorded"


def test_a_run_draws_them_for_each_rank(result_of: ResultOf, profiles: Path) -> None:
    result = result_of(profiles / "ascend" / "gpt3-kernel-details-only_ascend_pt")
    names = {view.id for view in result.views}
    assert {"peaks-rank0", "roofline-rank0", "bounds-rank0", "above-rank0", "products-rank0"} <= names
    assert not [one for one in result.diagnostics if one.severity == "error"]


def test_phases_of_an_iteration_have_their_own_rows(result_of: ResultOf, shared_sample: Callable[..., Path]) -> None:
    """Decoding moves weights, the update computes, and for the reward the device waits."""
    result = result_of(shared_sample(small("healthy-rl")))
    assert not [one for one in result.diagnostics if one.severity == "error"]
    (view,) = (view for view in result.views if view.id == "roofline-rank0")
    assert isinstance(view, HeatmapView)
    bounds_of = dict(row.en.split(": ", 1) for row in view.data.rows if not isinstance(row, str))
    bounds_of |= dict(row.en.rsplit(": ", 1) for row in view.data.rows if not isinstance(row, str))
    told = {name: bounds_of[name].split(",")[0] for name in ("rollout: decode", "update_actor", "reward")}
    assert told == {"rollout: decode": "memory bound", "update_actor": "compute bound", "reward": "host bound"}


def test_a_step_bound_by_computing_leads_to_the_classes_that_compute() -> None:
    scene = Scene().tensors(0, 1000, "MatMulV3", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"])
    scene.tensors(1000, 200, "Relu", ["8192,4096 FLOAT"], ["8192,4096 FLOAT"], core="AI_VECTOR_CORE")
    (view,) = first_looks.draw(scene.store(chip=CHIP))
    assert isinstance(view, TableView) and view.data.entries == [["compute/matmul"]]
    name, bound, _, first, problems = view.data.rows[0]
    assert (english(bound), problems) == ("compute bound", None)
    assert "products" in english(first) and english(name)


def test_a_recording_of_copies_is_bound_by_them() -> None:
    scene = Scene()
    for number in range(6):
        scene.tensors(100 * number, 90, "TensorMove", ["8192,4096 BF16"], ["8192,4096 BF16"], core="AI_VECTOR_CORE")
    scene.tensors(600, 100, "MatMulV3", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"])
    (view,) = first_looks.draw(scene.store(chip=CHIP))
    assert isinstance(view, TableView) and "bound by copies" in view.title.en
    assert view.data.entries == [["compute/copy", "idle/copy", "idle/host/copy"]]


def test_a_report_names_the_problems_of_the_class_of_the_step(
    result_of: ResultOf, shared_sample: Callable[..., Path]
) -> None:
    """For the reward the device waits for the host: the problems there claim idle time."""
    result = result_of(shared_sample(small("healthy-rl")))
    (view,) = (view for view in result.views if view.id == "first-looks-rank0")
    assert isinstance(view, TableView)
    rows = {english(row[0]): row for row in view.data.rows}
    assert english(rows["reward"][1]) == "host bound"
    named = {english(row[-1]) for row in view.data.rows}
    assert "" not in named
    numbers = {problem.number for problem in result.problems}
    for text in named - {"none"}:
        assert set(text.split(" and ")[0].split(", ")) <= numbers
