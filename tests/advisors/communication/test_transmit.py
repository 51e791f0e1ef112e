"""CO003: moving data while nothing computes."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.names.settings import clash
from tests.advisors.communication.scenes import (
    CHIPS,
    MB,
    advised,
    buckets,
    decoding,
    moving,
    naming,
    specs,
    training,
    waiting,
)
from tests.advisors.cures import cure_of, shorter


def test_transmit_counts_what_overlap_can_hide() -> None:
    """Of a row that begins when computing has ended the last operation stays; of one on its own a half."""
    found = judge_rule("CO003", buckets(100, 200, 50).store())
    assert found.first.observation["time_ns"] == 350_000 and found.first.severity == "high"
    # the last takes 50 us, an average one 116.67: a flag at the end does not make everything before it hideable
    assert found.first.impact_ns == pytest.approx(350_000 * 2 / 3, abs=1)
    assert judge_rule("CO003", buckets(100, 200, 150).store()).first.impact_ns == 300_000
    assert judge_rule("CO003", moving().store()).first.impact_ns == 200_000


def test_transmit_can_hide_no_more_than_was_computed() -> None:
    assert judge_rule("CO003", buckets(100, 200, 150, compute=70).store()).first.impact_ns == 70_000


def test_at_least_nothing_is_ready_in_the_first_half_of_what_makes_the_data() -> None:
    store = buckets(100, 200, 150, compute=70).store()
    cure = cure_of(judge_rule("CO003", store))
    usual, least = (sum(shorter(store, cure.bound(at)).values()) for at in ("usual", "least"))
    assert (usual, least) == (pytest.approx(70_000, abs=3), pytest.approx(35_000, abs=3))


def test_transmit_that_began_under_computing_is_longer_than_what_could_hide_it() -> None:
    assert judge_rule("CO003", buckets(100, 200, 150, begin=950).store()).state == "pass"
    assert judge_rule("CO003", moving(overlap=0.75).store()).state == "pass"
    # Neither does a long transfer that began while computing went on for a millisecond.
    assert judge_rule("CO003", buckets(9000, 9000, begin=4000, compute=5000).store()).state == "pass"
    # A few us at the end of a kernel are no overlap.
    assert judge_rule("CO003", buckets(100, 200, 150, begin=980).store()).first.impact_ns == pytest.approx(280_000)


def test_small_kernels_between_transfers_do_not_end_their_row() -> None:
    scene = buckets(100, 100, 100, 100, gap=20)
    for number in range(3):
        scene.kernel(1100 + 120 * number, 20)
    assert judge_rule("CO003", scene.store()).first.impact_ns == 300_000


def test_transmit_does_not_count_waiting_nor_what_waiting_made_late() -> None:
    assert judge_rule("CO003", waiting().store()).first.impact_ns == 45_000
    # 400 us of waiting under computing, then two transfers that would have been hidden had nobody waited
    scene = Scene().kernel(0, 1000)
    scene.collective(600, 500, [(600, 1000, 5), (1000, 1100, None)])
    scene.collective(1100, 100, [(1100, 1200, None)])
    found = judge_rule("CO003", scene.store())
    assert found.observed is not None and found.state == "pass"
    assert found.observed.frame["late_ns"].item() == 100_000


def test_transmit_states() -> None:
    assert judge_rule("CO003", moving(overlap=1.0).store()).state == "pass"
    assert judge_rule("CO003", moving().store("communication_tasks")).state == "cannot_answer"


@pytest.mark.parametrize(("size", "advised"), [(300 * MB, False), (600 * MB, True)])
def test_buffer_is_advised_by_the_message_and_not_by_the_bytes_on_links(size: int, advised: bool) -> None:
    """Of 8 ranks each moves 2 x 7/8 of the message: 300 MB on the links are a message of 171 MB."""
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 1000, None)], size=size)
    found = judge_rule("CO003", scene.store(groups={"7100": list(range(8))}))
    buffers = naming(found.first.advice, "hccl_buffer_size")
    assert bool(buffers) is advised
    assert found.first.observation["largest_bytes"] == pytest.approx(size / (2 * 7 / 8))
    for advice in buffers:
        # 343 MB; the value that is given is measured, never a constant
        assert "327 MiB" in advice.text.en and "327 MiB" in advice.text.zh
        assert not advice.set and "twice this size" in advice.risk.en


def test_the_flag_of_mindspeed_for_buffers_is_not_advised() -> None:
    """In most of its versions the size is printed and reaches no group: get_nccl_options_wrapper in
    mindspeed/core/hccl_buffer/adaptor.py asks only for the adaptive flag."""
    assert not naming(specs("CO003"), "`--hccl-group-buffer`")


def test_buckets_are_for_training() -> None:
    (overlap,) = naming(advised("CO003", training(buckets(100, 200, 50))), "--overlap-grad-reduce")
    assert {"--moe-fb-overlap", "--schedules-method"} <= set(overlap.excludes)
    assert overlap.risk is not None and "memory bandwidth" in overlap.risk.en
    assert not naming(advised("CO003", buckets(100, 200, 50)), "--overlap-grad-reduce")


def test_products_are_fused_with_collectives_by_what_the_phase_has() -> None:
    """MC2 of MindSpeed is for training on A2."""
    names = {"--use-ascend-mc2", "--use-ascend-coc", "enable_fused_mc2"}

    def found(scene: Scene, chip: str) -> set[str]:
        given = advised("CO003", scene, chip=CHIPS[chip])
        assert all(
            set(one.hazards) & {"crash", "accuracy"} and one.risk for name in names for one in naming(given, name)
        )
        return {name for name in names if naming(given, name)}

    assert found(training(buckets(100, 200, 50)), "A2 A3") == {"--use-ascend-mc2", "--use-ascend-coc"}
    assert found(training(buckets(100, 200, 50)), "950") == {"--use-ascend-coc"}
    assert found(decoding(buckets(100, 200, 50)), "A2 A3") == set()
    assert found(buckets(100, 200, 50), "A2 A3") == set()


def test_what_moves_decides_what_is_advised() -> None:
    """Tokens that are exchanged have other remedies than gradients and activations that are summed."""

    def exchange() -> Scene:
        scene = buckets(100, 200, 50)
        for table in ("kernels", "communication_tasks", "collectives", "collective_bandwidth"):
            for row in scene.rows[table]:
                row["name"] = row["name"].replace("allReduce", "alltoallv")
        return scene

    seen = judge_rule("CO003", exchange().store()).first.observation
    assert (seen["divides_or_sums"], seen["all_to_all"]) == (False, True)
    seen = judge_rule("CO003", buckets(100, 200, 50).store()).first.observation
    assert (seen["divides_or_sums"], seen["all_to_all"]) == (True, False)
    given = advised("CO003", training(exchange()), chip=CHIPS["A2 A3"])
    assert naming(given, "--moe-alltoall-overlap-comm")
    assert not naming(given, "--overlap-grad-reduce") and not naming(given, "--use-ascend")
    served = advised("CO003", decoding(exchange()), chip=CHIPS["A2 A3"])
    assert naming(served, "enable_fused_mc2") and not naming(served, "--moe-alltoall-overlap-comm")


def test_the_two_ways_to_fuse_exclude_each_other_and_aiv() -> None:
    (mc2,) = naming(specs("CO003"), "--use-ascend-mc2")
    (coc,) = naming(specs("CO003"), "--use-ascend-coc")
    assert clash(mc2.uses, mc2.excludes, coc.uses, coc.excludes)
    for fused in (mc2, *naming(specs("CO003"), "enable_fused_mc2")):
        (aiv,) = naming(specs("CO005"), "hccl_op_expansion_mode")
        assert clash(fused.uses, fused.excludes, aiv.uses, aiv.excludes)


def test_the_cure_hides_the_first_transfers_as_far_as_they_can_be() -> None:
    store = buckets(100, 200, 150).store()
    found = judge_rule("CO003", store)
    assert found.first.impact_ns == 300_000
    assert shorter(store, cure_of(found)) == {1: 100_000, 2: 200_000}
