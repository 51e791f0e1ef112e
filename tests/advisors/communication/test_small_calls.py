"""CO005: small packets."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import MB, advised, decoding, naming, training
from tests.advisors.cures import cure_of, shorter


def packets(*, small: int) -> Scene:
    """One operation of 64 MB in 3.2 ms (20 GB/s) and ``small`` ones of 1 MB in 150 us each."""
    scene = Scene().kernel(0, 100).collective(100, 3200, [(100, 3300, None)], size=64 * MB)
    for number in range(small):
        start = 3300.0 + 150 * number
        scene.collective(start, 150, [(start, start + 150, None)], size=MB)
    return scene


def packets_of(operation: str) -> Scene:
    """Ten small packets of this operation, and a large one."""
    scene = packets(small=10)
    for table in ("kernels", "communication_tasks", "collectives", "collective_bandwidth"):
        for row in scene.rows[table]:
            row["name"] = row["name"].replace("allReduce", operation)
    return scene


def found_kind(operation: str) -> tuple[bool, bool]:
    """What is said of the kind of the operations: that data is divided or summed, and that they are point to point."""
    seen = judge_rule("CO005", packets_of(operation).store()).first.observation
    assert seen["operation"] == operation
    return bool(seen["divides_or_sums"]), bool(seen["point_to_point"])


def test_small_packets_cost_what_each_takes_whatever_its_size() -> None:
    found = judge_rule("CO005", packets(small=10).store())
    seen = found.first.observation
    assert seen["small_calls"] == 10 and seen["calls"] == 11
    assert seen["best_bandwidth"] == pytest.approx(20e9)
    # The line through (1 MB, 150 us) and (64 MB, 3200 us) starts at 101.59 us; one of ten messages stays.
    fixed = 150_000 - (3200 - 150) / 63 * 1000
    assert seen["fixed_ns"] == pytest.approx(fixed)
    assert seen["saveable_ns"] == pytest.approx(9 * fixed)
    assert found.first.severity == "high"


def test_small_packets_of_one_size_are_held_against_the_best_bandwidth() -> None:
    scene = packets(small=10)
    for table in ("kernels", "communication_tasks"):
        scene.rows[table][1 if table == "kernels" else 0]["name"] = "hcom_allGather__100_0_1"
    for table in ("collectives", "collective_bandwidth"):
        for row in scene.rows[table]:
            row["name"] = row["name"].replace("allReduce__100_0_", "allGather__100_0_")
    found = judge_rule("CO005", scene.store())
    # 1 MB takes 50 us at the 20 GB/s of the large operation, so that 100 of 150 us are lost.
    assert found.first.observation["fixed_ns"] is None
    assert found.first.observation["saveable_ns"] == pytest.approx(9 * 100_000)


def test_small_packets_are_judged_by_time_and_not_by_number() -> None:
    scene = packets(small=2).kernel(4000, 100_000)
    assert judge_rule("CO005", scene.store()).state == "pass"


def test_small_packets_of_training_go_into_buckets_and_those_of_inference_are_fewer_with_more_replicas() -> None:
    trained, served = advised("CO005", training(packets(small=10))), advised("CO005", decoding(packets(small=10)))
    assert "bucket_cap_mb" in trained[1].text.en and not naming(served, "bucket_cap_mb")
    assert not naming(served, "flat buffer") and naming(served, "--tensor-parallel-size")
    assert found_kind("allReduce") == (True, False)
    assert found_kind("send") == (False, True) and found_kind("alltoall") == (False, False)
    assert naming(served, "hccl_op_expansion_mode") == [served[-1]] and not naming(trained, "hccl_op_expansion_mode")


def test_gradients_are_not_reduced_by_an_all_gather() -> None:
    """Buckets of gradients leave the number of AllGathers as it is."""
    for operation, reduces in (("allReduce", True), ("reduceScatter", True), ("allGather", False)):
        scene = training(packets_of(operation))
        assert judge_rule("CO005", scene.store()).first.observation["reduces"] == reduces
        advice = advised("CO005", scene)
        assert bool(naming(advice, "bucket_cap_mb")) == reduces


def test_small_over_rdma_has_its_own_limit() -> None:
    scene = Scene().kernel(0, 100).collective(100, 3200, [(100, 3300, None)], size=64 * MB, transport="RDMA")
    for number in range(10):
        start = 3300.0 + 150 * number
        scene.collective(start, 150, [(start, start + 150, None)], size=2 * MB, transport="RDMA")
    assert judge_rule("CO005", scene.store()).state == "pass"
    assert judge_rule("CO005", scene.store(), small_rdma=4 * MB).state == "fail"


def test_small_packets_states() -> None:
    assert judge_rule("CO005", packets(small=10).store("collective_bandwidth")).state == "cannot_answer"
    assert judge_rule("CO005", packets(small=10).store("communication_tasks")).state == "cannot_answer"


def test_the_cure_moves_the_small_ones_with_the_last_of_them_and_leaves_the_large_one() -> None:
    store = packets(small=10).store()
    found = judge_rule("CO005", store)
    less = shorter(store, cure_of(found))
    assert len(less) == 10 and 1 not in less  # the large one is the first behind the kernel
    assert [less[row] for row in range(2, 11)] == [150_000] * 9 and less[11] < 0
    assert sum(less.values()) == pytest.approx(found.first.impact_ns, abs=10)
