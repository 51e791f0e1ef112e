"""SA005: products on the same operand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.roofline.products import block_cost
from tests.advisors.shape_affinity.scenes import CORES, STEP_US, VECTOR, judged, times, until_the_end


def shared(
    us: float = 400, *, m: int = 64, widths: tuple[int, ...] = (1536, 576), between: int = 0, **writes: str
) -> Scene:
    """The guide's example: the products before latent attention, one after the other on the same activation."""
    scene = Scene()
    for number, width in enumerate(widths):
        start = number * 1000
        times(scene, start, us, f"{m},7168", f"7168,{width}", f"{m},{width}")
        for extra in range(between):
            out = writes.get("out", f"{m},{width}")
            scene.tensors(start + us + extra, 1, "Cast", [f"{m},{width} FLOAT"], [f"{out} BF16"], core=VECTOR)
    return until_the_end(scene)


@pytest.mark.parametrize("between", [0, 2])
def test_products_on_the_same_input_fire(between: int) -> None:
    found = judged("SA005", shared(between=between), "flows")
    seen = found.first.observation
    assert (seen["input_shape"], seen["widths"], seen["dtype"]) == ("64,7168", "1536, 576", "BF16")
    assert (seen["products"], seen["places"], seen["together"]) == (2, 1, 2112)
    assert (seen["most_blocks"], seen["cores"]) == (12, 24)
    # 12 and 5 blocks of 128 x 128 take a round each, 17 take one: half the time.
    assert seen["cost_ratio"] == 0.5 and seen["total_ns"] == 800_000 and seen["together_ns"] == 400_000
    # The result is read and written once more, as fast as the larger product moves its tensors.
    bandwidth = (64 * 7168 + 7168 * 1536 + 64 * 1536) * 2 / 400_000
    assert seen["split_ns"] == pytest.approx(2 * 2 * 64 * 2112 / bandwidth)
    assert found.first.impact_ns == pytest.approx(400_000 - 2 * 2 * 64 * 2112 / bandwidth, abs=1)
    assert found.first.severity == "medium" and found.first.idle_ns == 0
    first, merge = found.first.advice
    assert not first.hazards and merge.hazards == ["accuracy"] and merge.risk is not None
    assert len(found.evidence()[0].rows) == 2


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (shared(us=90), "pass"),  # 90 us of 10 ms
        (shared(m=8192), "pass"),  # the cores are full anyway
        (shared(between=3), "not_applicable"),  # too far apart
        (shared(between=1, out="64,7168"), "not_applicable"),  # something of the input's size was written
        (shared(widths=(1536,)), "not_applicable"),
    ],
)
def test_other_products_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA005", scene, "flows").state == state


def test_products_that_wait_for_their_weights_share_the_loads_of_all_cores() -> None:
    """Twelve of 24 cores load 22.9 MB in 400 us; merged, 17 cores load 31.4 MB: 387 us, if the memory gives as much.
    It does where another product of the profile moves more; otherwise the 400 us grow with the bytes."""

    def loading(scene: Scene) -> float:
        for row in scene.rows["kernels"]:
            row |= {"aic_mte2_us": 0.9 * row["duration_us"], "aic_mac_us": 0.1 * row["duration_us"]}
        return float(judged("SA005", scene, "flows").first.observation["together_ns"])

    moved, merged = ((64 * 7168 + 7168 * width + 64 * width) * 2 for width in (1536, 2112))
    assert loading(shared()) == pytest.approx(400_000 * merged / moved)
    faster = times(shared(), 3000, 400, "4096,7168", "7168,7168", "4096,7168")
    assert loading(faster) == pytest.approx(400_000 * merged / moved * 12 / 17)


def test_merged_products_save_a_launch_beside_the_split() -> None:
    """Three products of 20 us, one launched every 100 us: a product and a split stay, the rest of the step comes 100 us
    sooner."""
    scene = Scene()
    for number, width in enumerate((512, 256, 256, 0)):
        if width:
            times(scene, 100.0 * number, 20, "64,7168", f"7168,{width}", f"64,{width}")
        else:
            scene.kernel(100.0 * number, 500, "ReduceSum", core=VECTOR)
    seen = judged("SA005", scene).first.observation
    assert seen["saving_ns"] == 100_000 and seen["launch_saving_ns"] == 100_000 - seen["gain_ns"]


@pytest.mark.parametrize("change", [{"start_us": 2000, "stream": 9}, {"step": 2}])
def test_streams_and_steps_end_a_run(change: dict[str, int]) -> None:
    scene = shared()
    scene.rows["kernels"][1] |= change
    if "step" in change:
        scene.rows["kernels"][2] |= change
    assert judged("SA005", scene).state == "not_applicable"


def test_a_collective_ends_a_run() -> None:
    assert judged("SA005", shared().collective(500, 100)).state == "not_applicable"


def test_gradients_of_weights_share_a_shape_and_no_tensor() -> None:
    """The left operand is stored with the summed axis first: the output gradients of two layers, say."""
    scene = Scene()
    for number in range(2):
        times(scene, number * 1000, 400, "7168,64", "7168,576", "64,576")
    assert judged("SA005", until_the_end(scene)).state == "not_applicable"


def test_places_are_counted_per_step() -> None:
    scene = Scene()
    for step in (1, 2):
        for start, width in ((0, 1536), (400, 576), (1000, 1536), (1400, 576)):
            left, right, out = "64,7168", f"7168,{width}", f"64,{width}"
            times(scene, (step - 1) * STEP_US + start, 300, left, right, out)
            scene.rows["kernels"][-1]["step"] = step
        scene.tensors(
            (step - 1) * STEP_US + 800, 100, "Mul", ["64,7168 BF16"], ["64,7168 BF16"], core=VECTOR, step=step
        )
    scene.kernel(2 * STEP_US - 1, 1, "ReduceSum", core=VECTOR, step=2)
    seen = judged("SA005", scene, "flows").first.observation
    assert seen["places"] == 2 and seen["products"] == 2 and seen["total_ns"] == 1_200_000


@given(st.lists(st.integers(1, 4000), min_size=2, max_size=4), st.integers(1, 2000), CORES)
def test_one_product_costs_no_more_rounds_than_several(widths: list[int], m: int, cores: int) -> None:
    def plain(n: int) -> int:
        return min(math.ceil(math.ceil(m / 128) * math.ceil(n / base) / cores) * base for base in (256, 128))

    one = pd.Series([1] * len(widths))
    _, costs = block_cost(one * m, pd.Series(widths), one, cores)
    assert costs.tolist() == [plain(width) for width in widths]
    _, merged = block_cost(one[:1] * m, pd.Series([sum(widths)]), one[:1], cores)
    assert merged[0] == plain(sum(widths))
