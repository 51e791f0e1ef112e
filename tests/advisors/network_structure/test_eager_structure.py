"""What a compiled or fused model would not do: GNS001 to GNS003, and the classes of GNS006."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene
from tests.advisors.build import host
from tests.advisors.network_structure.scenes import Kernel, scene_of

MUL: Kernel = ("Mul", 10, ("8,8 BF16",), ("8,8 BF16",))
ADD: Kernel = ("Add", 30, ("8,8 BF16",), ("8,8 BF16",))
PRODUCT: Kernel = ("MatMulV3", 100, ("8,8 BF16", "8,8 BF16"), ("8,8 BF16",))
SOFTMAX: Kernel = ("SoftmaxV2", 50, ("8,8 BF16",), ("8,8 BF16",))


def measured(advisor: str, scene: Scene) -> dict[str, object]:
    made = host().advisors[f"network_structure.{advisor}"]
    store = scene.store()
    observed = made.measure(store.view(made.needs, made.wants), {})
    assert observed.evidence(0)
    (row,) = made.conform(observed.frame).to_dict("records")
    return row


def test_neighbours_that_only_read_and_write_are_a_series() -> None:
    """Two series of two and three kernels; the longest kernel of each stays."""
    found = measured("memory_bound_chains", scene_of(MUL, ADD, PRODUCT, MUL, MUL, ADD, PRODUCT, ADD, PRODUCT))
    assert (found["chains"], found["kernels"]) == (2, 5)
    assert found["chain_ns"] == 40_000 + 50_000 and found["saving_ns"] == 10_000 + 20_000
    assert found["chain"] == "Mul + Add" and found["share_of_computing"] == pytest.approx(30 / 1000)


def test_a_series_ends_where_a_collective_ran_between_its_kernels() -> None:
    scene = Scene().step(1, -10, 1020).tensors(0, 10, "Mul").collective(20, 10).tensors(40, 10, "Mul")
    scene.tensors(50, 30, "Add").tensors(80, 900, "MatMulV3")
    found = measured("memory_bound_chains", scene)
    assert (found["chains"], found["kernels"], found["saving_ns"]) == (1, 2, 10_000)


def test_a_softmax_between_two_products_is_attention_written_out() -> None:
    found = measured("written_out_attention", scene_of(PRODUCT, MUL, SOFTMAX, PRODUCT, filler="Add"))
    assert (found["attentions"], found["kernels"]) == (1, 2)
    assert (found["between_ns"], found["product_ns"]) == (60_000, 200_000)


@pytest.mark.parametrize("kernels", [(PRODUCT, SOFTMAX), (SOFTMAX, PRODUCT), (PRODUCT, *[MUL] * 7, SOFTMAX, PRODUCT)])
def test_a_softmax_without_products_near_it_on_both_sides_is_none(kernels: tuple[Kernel, ...]) -> None:
    assert measured("written_out_attention", scene_of(*kernels, filler="Add"))["attentions"] == 0


def test_the_update_of_the_parameters_and_the_waiting_in_it() -> None:
    """Three kernels of 10 us, launched inside the mark, with gaps of 20 and 40 us; one before it does not count."""
    scene = Scene().step(1, -10, 1020).kernel(0, 50, launched=-5).event("cpu_op", "Optimizer.step#SGD.step", 60, 140)
    for start in (100, 130, 180):
        scene.kernel(start, 10, "Add", launched=start - 20)
    scene.kernel(260, 740, launched=250)
    found = measured("optimizer_step", scene)
    assert (found["optimizer"], found["kernels"]) == ("SGD", 3)
    assert (found["kernel_ns"], found["host_ns"], found["idle_ns"]) == (30_000, 140_000, 60_000)
    assert found["share_of_step"] == pytest.approx(60 / 1000)


def test_kernels_of_the_update_are_no_series() -> None:
    scene = Scene().step(1, -10, 1020).event("cpu_op", "Optimizer.step#SGD.step", 60, 140)
    scene.tensors(0, 10, "Mul", launched=-9).tensors(10, 30, "Add", launched=-5)
    for start in (100, 110, 120):
        scene.tensors(start, 10, "Add", launched=start - 20)
    assert measured("memory_bound_chains", scene)["kernels"] == 2


def test_classes_share_out_the_kernel_time() -> None:
    made = host().advisors["network_structure.classes"]
    store = scene_of(MUL, ADD, PRODUCT).store()
    frame = made.conform(made.measure(store.view(made.needs, made.wants), {}).frame).set_index("operator_class")
    assert frame["total_ns"].to_dict() == {"elementwise": 40_000, "matmul": 960_000}
    assert frame.loc["elementwise", "largest_type"] == "Add" and frame.loc["elementwise", "kernels"] == 2
    assert frame["share_of_computing"].sum() == pytest.approx(1)
