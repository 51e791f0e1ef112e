"""What a compiled or fused model would not do: GNS001 to GNS003, and the classes of GNS006."""

from __future__ import annotations

import pytest

from advisor_core.api.facts import Change
from advisor_core.api.testing import Scene
from advisor_core.contracts.advisor import Observations
from advisor_core.contracts.cure import Cure
from advisor_core.facts.replay.nodes import TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.store import FactStore
from tests.advisors.build import host
from tests.advisors.cures import saved, shorter
from tests.advisors.network_structure.scenes import Kernel, scene_of

MUL: Kernel = ("Mul", 10, ("8,8 BF16",), ("8,8 BF16",))
ADD: Kernel = ("Add", 30, ("8,8 BF16",), ("8,8 BF16",))
PRODUCT: Kernel = ("MatMulV3", 100, ("8,8 BF16", "8,8 BF16"), ("8,8 BF16",))
SOFTMAX: Kernel = ("SoftmaxV2", 50, ("8,8 BF16",), ("8,8 BF16",))


def observations(advisor: str, store: FactStore) -> Observations:
    made = host().advisors[f"network_structure.{advisor}"]
    observed: Observations = made.measure(store.view(made.needs, made.wants), {})
    return observed


def cure(advisor: str, store: FactStore, promise_ns: int) -> Cure:
    """Of the only row, where the rule promises so much."""
    observed = observations(advisor, store)
    assert observed.cure is not None
    found = observed.cure(0)
    assert found is not None
    return found.promised(promise_ns)


def measured(advisor: str, scene: Scene) -> dict[str, object]:
    observed = observations(advisor, scene.store())
    assert observed.evidence(0)
    (row,) = host().advisors[f"network_structure.{advisor}"].conform(observed.frame).to_dict("records")
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


def test_what_clears_memory_belongs_to_the_kernel_behind_it() -> None:
    """It is no second kernel of a series, and does not end one either."""
    memset: Kernel = ("Memset", 2, (), ("8,8 BF16",))
    found = measured("memory_bound_chains", scene_of(MUL, memset, PRODUCT, MUL, memset, ADD, PRODUCT))
    assert (found["chains"], found["kernels"], found["chain_ns"]) == (1, 2, 40_000)


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


def test_the_cures_shorten_what_lies_between() -> None:
    series = scene_of(MUL, ADD, PRODUCT, MUL, MUL, ADD, PRODUCT, ADD, PRODUCT).store()
    # Half of the 90 us in series.
    half = {0: 5_000, 1: 15_000, 3: 5_000, 4: 5_000, 5: 15_000}
    assert shorter(series, cure("memory_bound_chains", series, 45_000)) == half
    attention = scene_of(PRODUCT, MUL, SOFTMAX, PRODUCT, filler="Add").store()
    assert shorter(attention, cure("written_out_attention", attention, 60_000)) == {1: 10_000, 2: 50_000}


def test_an_update_in_one_kernel_is_launched_once() -> None:
    """Four kernels of 10 us, which the host launches every 50 us: it saves three launches, and their work stays."""
    scene = Scene().step(1, -10, 1020).kernel(0, 50, launched=-5).event("cpu_op", "Optimizer.step#SGD.step", 60, 200)
    for number in range(4):
        scene.kernel(120 + 50 * number, 10, "Add", launched=105 + 50 * number)
    scene.kernel(320, 600, launched=310)
    store = scene.store()
    one = cure("optimizer_step", store, 0)
    recorded = store[rank_graph]
    assert isinstance(recorded, RankGraph) and isinstance(one, Change)
    assert one.apply(recorded, recorded.graph).duration[recorded.nodes.kind == TASK].tolist() == [
        50_000, 40_000, 0, 0, 0, 600_000,
    ]  # fmt: skip
    assert saved(store, one) == 150_000
