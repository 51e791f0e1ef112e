"""Communication: every rule fires, stays silent and cannot answer; formulas against plain references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.tables import COMMUNICATION_TASKS
from advisor_core.names.settings import clash
from advisor_core.result.finding import Advice
from advisor_core.rules.model import AdviceSpec
from advisors.communication import _median_of_others
from tests.advisors.build import FILES, Scene, book, outcome
from tests.advisors.real import real_rank

MB = 1_000_000
CHIPS = {
    "A2 A3": {"ai_core_num": "24", "aiv_num": "48"},
    "910A": {"ai_core_num": "32", "aiv_num": "32"},
    "950": {"ai_core_num": "32", "aiv_num": "64"},
}


def specs(rule: str) -> list[AdviceSpec]:
    return list(book(FILES[rule[:2]])[rule].rule.advice)


def training(scene: Scene) -> Scene:
    return scene.event("user_annotation", "Optimizer.step#AdamW.step", -8, 2)


def decoding(scene: Scene) -> Scene:
    """The same in decode: its first kernel computes attention over pages."""
    scene.rows["kernels"][0]["type"] = "PagedAttention"
    return scene


def advised(rule: str, scene: Scene, **about: Any) -> list[Advice]:
    return list(outcome(rule, scene.store(**about)).first.advice)


def naming(advice: Sequence[Advice | AdviceSpec], name: str) -> list[Any]:
    return [one for one in advice if name in one.text.en]


@pytest.mark.parametrize("rule", [f"CO{number:03}" for number in range(1, 15)])
def test_advice_begins_with_what_is_safe(rule: str) -> None:
    given = specs(rule)
    assert not given[0].hazards and all(advice.risk is not None for advice in given if advice.hazards or advice.set)


@pytest.mark.parametrize("rule", [f"CO{number:03}" for number in range(1, 15)])
def test_nothing_is_set_for_a_process_that_is_meant_for_one_group(rule: str) -> None:
    """AIV for every group hangs jobs with several groups; a larger buffer for every group takes memory for each."""
    for advice in specs(rule):
        assert not {"HCCL_OP_EXPANSION_MODE", "HCCL_BUFFSIZE"} & set(advice.set)


def waiting(*, covered: bool = False) -> Scene:
    """An AllReduce of 500 us: 400 us waiting for rank 5, then 90 us moving; a step of 1000 us."""
    scene = Scene().kernel(0, 500)
    scene.collective(500, 500, [(510, 910, 5), (510, 700, 3), (910, 1000, None)], size=64 * MB)
    if covered:
        scene.kernel(500, 500, stream=3)
    return scene


def moving(*, overlap: float = 0.0) -> Scene:
    """An AllReduce that moves data for 400 of 1000 us, covered by computing for ``overlap`` of it."""
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 1000, None)], size=64 * MB)
    if overlap:
        scene.kernel(600, 400 * overlap, stream=3)
    return scene


# --- CO001


def test_overlap_fires_and_says_what_it_is() -> None:
    found = outcome("CO001", waiting().store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert seen["uncovered_ns"] == 500_000 and seen["overlap_ratio"] == 0
    assert seen["waiting_share"] == pytest.approx(0.8) and seen["moving_share"] == pytest.approx(0.18)


def test_waiting_in_a_pipeline_is_judged_by_its_own_rules() -> None:
    found = outcome("CO001", staged(wait=400).store(parallel={"pp": 2}))
    assert found.first.observation["pipeline_share"] == pytest.approx(400 / 920) and found.first.severity == "low"


def test_overlap_is_silent_when_computing_covers_it() -> None:
    assert outcome("CO001", waiting(covered=True).store()).state == "pass"


def test_overlap_states() -> None:
    assert outcome("CO001", Scene().kernel(0, 10).store()).state == "not_applicable"
    assert outcome("CO001", waiting().store("kernels", "device_tasks", "communication_tasks")).state == "cannot_answer"


def test_overlap_of_unknown_kind_asks_for_level_1() -> None:
    scene = Scene().kernel(0, 500).collective(500, 500, None)
    found = outcome("CO001", scene.store())
    assert found.first.observation["unknown_share"] == 1
    assert [advice.kind for advice in found.first.advice] == ["collect", "investigate"]


# --- CO002


def test_late_rank_is_named_with_its_waits() -> None:
    found = outcome("CO002", waiting().store(groups={"7100": [0, 1, 2, 3, 4, 5]}))
    seen = found.first.observation
    assert seen["late"] == "rank 5" and seen["wait_ns"] == 400_000
    assert seen["calls"] == 1 and seen["all_calls"] == 1 and seen["longest_ns"] == 400_000
    assert found.first.severity == "high"
    rows = found.evidence()[0]
    tasks = waiting().table("communication_tasks").iloc[rows.rows]
    assert tasks["peer_rank"].tolist() == [5]
    # The notification of rank 3 had come long before: it held nobody up.
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]


def test_late_rank_of_an_unknown_group_is_not_called_a_rank_of_the_job() -> None:
    scene = Scene(rank=3).kernel(0, 500).collective(500, 500, [(510, 910, 1), (910, 1000, None)])
    for row in scene.rows["communication_tasks"]:
        row["own_rank"] = 0
    found = outcome("CO002", scene.store())
    assert found.first.observation["late"] == "group rank 1"
    assert found.first.observation["is_global"] is False
    assert [advice.kind for advice in found.first.advice] == ["collect", "investigate", "investigate"]


def two_groups() -> Scene:
    """Rank 0 waits for local rank 7 in the group of all eight ranks, then for local rank 1 in another group."""
    scene = Scene().kernel(0, 500)
    for group, peer in ((0, 7), (1, 1)):
        start = 500.0 + 400 * group
        planes = [(start, start + 300, peer), (start + 300, start + 400, None)]
        scene.collective(start, 400, planes, group=group)
    return scene


def test_peers_are_named_group_by_group() -> None:
    def late(**about: object) -> set[str]:
        verdict = outcome("CO002", two_groups().store(**about)).verdict
        return {row.observation["late"] for row in verdict.rows}  # type: ignore[union-attr]

    assert late(groups={"7100": list(range(8)), "7101": [0, 4]}) == {"rank 7", "rank 4"}
    # A group that was not recorded is not taken for that of all ranks because its first member is rank 0.
    assert late(world_size=8) == {"rank 7", "group rank 1"}
    assert late(groups={"7101": [0, 4]}, world_size=8) == {"rank 7", "rank 4"}
    assert late() == {"group rank 7", "group rank 1"}


def test_late_rank_is_silent_and_states() -> None:
    assert outcome("CO002", waiting(covered=True).store()).state in {"pass", "not_applicable"}
    assert outcome("CO002", moving().store()).state == "not_applicable"
    assert outcome("CO002", Scene().kernel(0, 10).store()).state == "not_applicable"
    assert outcome("CO002", waiting().store("communication_tasks")).state == "cannot_answer"
    small = Scene().kernel(0, 5000).collective(5000, 30, [(5000, 5020, 5), (5020, 5030, None)])
    assert outcome("CO002", small.store()).state == "pass"


# --- CO003


def buckets(*sizes: float, compute: float = 1000, begin: float | None = None, gap: float = 0) -> Scene:
    """Computing, then collectives in a row that move data for ``sizes`` us; the first starts at ``begin``."""
    scene = Scene().kernel(0, compute)
    start = compute if begin is None else begin
    for size in sizes:
        scene.collective(start, size, [(start, start + size, None)], size=64 * MB)
        start += size + gap
    return scene


def test_transmit_counts_what_overlap_can_hide() -> None:
    """Of a row that begins when computing has ended the last operation stays; of one on its own a half."""
    found = outcome("CO003", buckets(100, 200, 50).store())
    assert found.first.observation["time_ns"] == 350_000 and found.first.severity == "high"
    # the last takes 50 us, an average one 116.67: a flag at the end does not make everything before it hideable
    assert found.first.impact_ns == pytest.approx(350_000 * 2 / 3, abs=1)
    assert outcome("CO003", buckets(100, 200, 150).store()).first.impact_ns == 300_000
    assert outcome("CO003", moving().store()).first.impact_ns == 200_000


def test_transmit_can_hide_no_more_than_was_computed() -> None:
    assert outcome("CO003", buckets(100, 200, 150, compute=70).store()).first.impact_ns == 70_000


def test_transmit_that_began_under_computing_is_longer_than_what_could_hide_it() -> None:
    assert outcome("CO003", buckets(100, 200, 150, begin=950).store()).state == "pass"
    assert outcome("CO003", moving(overlap=0.75).store()).state == "pass"
    # Neither does a long transfer that began while computing went on for a millisecond.
    assert outcome("CO003", buckets(9000, 9000, begin=4000, compute=5000).store()).state == "pass"
    # A few us at the end of a kernel are no overlap.
    assert outcome("CO003", buckets(100, 200, 150, begin=980).store()).first.impact_ns == pytest.approx(280_000)


def test_small_kernels_between_transfers_do_not_end_their_row() -> None:
    scene = buckets(100, 100, 100, 100, gap=20)
    for number in range(3):
        scene.kernel(1100 + 120 * number, 20)
    assert outcome("CO003", scene.store()).first.impact_ns == 300_000


def test_transmit_does_not_count_waiting_nor_what_waiting_made_late() -> None:
    assert outcome("CO003", waiting().store()).first.impact_ns == 45_000
    # 400 us of waiting under computing, then two transfers that would have been hidden had nobody waited
    scene = Scene().kernel(0, 1000)
    scene.collective(600, 500, [(600, 1000, 5), (1000, 1100, None)])
    scene.collective(1100, 100, [(1100, 1200, None)])
    found = outcome("CO003", scene.store())
    assert found.observed is not None and found.state == "pass"
    assert found.observed.frame["late_ns"].item() == 100_000


def test_transmit_states() -> None:
    assert outcome("CO003", moving(overlap=1.0).store()).state == "pass"
    assert outcome("CO003", moving().store("communication_tasks")).state == "cannot_answer"


@pytest.mark.parametrize(("size", "advised"), [(300 * MB, False), (600 * MB, True)])
def test_buffer_is_advised_by_the_message_and_not_by_the_bytes_on_links(size: int, advised: bool) -> None:
    """Of 8 ranks each moves 2 x 7/8 of the message: 300 MB on the links are a message of 171 MB."""
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 1000, None)], size=size)
    found = outcome("CO003", scene.store(groups={"7100": list(range(8))}))
    buffers = naming(found.first.advice, "hccl_buffer_size")
    assert bool(buffers) is advised
    assert found.first.observation["largest_bytes"] == pytest.approx(size / (2 * 7 / 8))
    for advice in buffers:
        # 343 MB; the value that is given is measured, never a constant
        assert "327 MiB" in advice.text.en and "327 MiB" in advice.text.zh
        assert not advice.set and "twice this size" in advice.risk.en and "--hccl-group-buffer" in advice.text.en


def test_buckets_are_for_training() -> None:
    first = advised("CO003", training(buckets(100, 200, 50)))[0]
    assert "--overlap-grad-reduce" in first.text.en
    assert {"--moe-fb-overlap", "--schedules-method"} <= set(first.excludes)
    assert first.risk is not None and "memory bandwidth" in first.risk.en
    assert not naming(advised("CO003", buckets(100, 200, 50)), "--overlap-grad-reduce")


def test_products_are_fused_with_collectives_by_what_the_phase_has() -> None:
    """`npu_mm_all_reduce_base` is for inference on A2 and has no derivative; training has operators of its own."""
    names = {"--use-ascend-mc2", "--use-ascend-coc", "torch_npu.npu_mm_all_reduce_base", "enable_fused_mc2"}

    def found(scene: Scene, chip: str) -> set[str]:
        given = advised("CO003", scene, chip=CHIPS[chip])
        assert all(
            set(one.hazards) & {"crash", "accuracy"} and one.risk for name in names for one in naming(given, name)
        )
        return {name for name in names if naming(given, name)}

    assert found(training(buckets(100, 200, 50)), "A2 A3") == {"--use-ascend-mc2", "--use-ascend-coc"}
    assert found(training(buckets(100, 200, 50)), "950") == {"--use-ascend-coc"}
    assert found(decoding(buckets(100, 200, 50)), "A2 A3") == {"enable_fused_mc2"}
    assert found(buckets(100, 200, 50), "A2 A3") == {"torch_npu.npu_mm_all_reduce_base", "enable_fused_mc2"}
    assert found(buckets(100, 200, 50), "910A") == set()
    (fused,) = naming(specs("CO003"), "torch_npu.npu_mm_all_reduce_base")
    assert (fused.holds_for.phase, fused.holds_for.chip) == (["prefill"], ["A2"])


def test_the_two_ways_to_fuse_exclude_each_other_and_aiv() -> None:
    (mc2,) = naming(specs("CO003"), "--use-ascend-mc2")
    (coc,) = naming(specs("CO003"), "--use-ascend-coc")
    assert clash(mc2.uses, mc2.excludes, coc.uses, coc.excludes)
    for fused in (mc2, *naming(specs("CO003"), "enable_fused_mc2")):
        for rule in ("CO005", "CO009"):
            (aiv,) = naming(specs(rule), "hccl_op_expansion_mode")
            assert clash(fused.uses, fused.excludes, aiv.uses, aiv.excludes)


# --- CO004


def repeated(*, last: float, count: int = 6, wait: float = 0) -> Scene:
    """Operations of one size that take 100 us, the last one ``last`` us longer moving or waiting."""
    scene = Scene().kernel(0, 10)
    for number in range(count):
        start = 1000.0 * number
        extra = last if number == count - 1 else 0
        length = 100 + extra + wait
        scene.collective(start, length, [(start, start + wait, 5), (start + wait, start + length, None)], size=32 * MB)
    return scene


def test_outlier_fires_for_the_one_operation() -> None:
    found = outcome("CO004", repeated(last=400).store())
    seen = found.first.observation
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]
    assert seen["name"].endswith("_5_1") and seen["samples"] == 6
    assert seen["active_ns"] == 500_000 and seen["median_ns"] == 100_000 and seen["spread_ns"] == 0
    assert found.first.impact_ns == 400_000


def test_zero_copy_is_not_advised() -> None:
    """HCCL calls it a trial feature that products must not use."""
    assert not any("ZERO_COPY" in name for one in specs("CO004") for name in one.set)


def test_the_settings_of_rdma_are_named_and_a_misaligned_tensor_is_not_copied_in_every_step() -> None:
    first, aligned, *_ = specs("CO004")
    assert "`HCCL_RDMA_TC`" in first.text.en and "`HCCL_RDMA_SL`" in first.text.en
    assert "128" in aligned.text.en and "contiguous" not in aligned.text.en


def test_outlier_ignores_waiting() -> None:
    scene = repeated(last=0)
    # As long as the outlier above, but it waits.
    scene.collective(6000, 500, [(6000, 6400, 5), (6400, 6500, None)], size=32 * MB)
    assert outcome("CO004", scene.store()).state == "pass"


def test_outlier_without_planes_may_have_waited() -> None:
    assert outcome("CO004", repeated(last=400).store("communication_tasks")).state == "cannot_answer"


def test_outlier_states() -> None:
    assert outcome("CO004", repeated(last=0).store()).state == "pass"
    assert outcome("CO004", repeated(last=400, count=4).store()).state == "not_applicable"
    assert outcome("CO004", repeated(last=400).store("collectives", "collective_bandwidth")).state == "cannot_answer"


# --- CO005


def packets(*, small: int) -> Scene:
    """One operation of 64 MB in 3.2 ms (20 GB/s) and ``small`` ones of 1 MB in 150 us each."""
    scene = Scene().kernel(0, 100).collective(100, 3200, [(100, 3300, None)], size=64 * MB)
    for number in range(small):
        start = 3300.0 + 150 * number
        scene.collective(start, 150, [(start, start + 150, None)], size=MB)
    return scene


def test_small_packets_cost_what_each_takes_whatever_its_size() -> None:
    found = outcome("CO005", packets(small=10).store())
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
    found = outcome("CO005", scene.store())
    # 1 MB takes 50 us at the 20 GB/s of the large operation, so that 100 of 150 us are lost.
    assert found.first.observation["fixed_ns"] is None
    assert found.first.observation["saveable_ns"] == pytest.approx(9 * 100_000)


def test_small_packets_are_judged_by_time_and_not_by_number() -> None:
    scene = packets(small=2).kernel(4000, 100_000)
    assert outcome("CO005", scene.store()).state == "pass"


def test_small_packets_of_training_go_into_buckets_and_those_of_inference_serve_more_tokens() -> None:
    trained, served = advised("CO005", training(packets(small=10))), advised("CO005", decoding(packets(small=10)))
    assert "bucket_cap_mb" in trained[0].text.en and not naming(served, "bucket_cap_mb")
    assert not naming(served, "flat buffer") and "--max-num-seqs" in served[0].text.en
    assert naming(served, "hccl_op_expansion_mode") == [served[-1]] and not naming(trained, "hccl_op_expansion_mode")


def test_small_over_rdma_has_its_own_limit() -> None:
    scene = Scene().kernel(0, 100).collective(100, 3200, [(100, 3300, None)], size=64 * MB, transport="RDMA")
    for number in range(10):
        start = 3300.0 + 150 * number
        scene.collective(start, 150, [(start, start + 150, None)], size=2 * MB, transport="RDMA")
    assert outcome("CO005", scene.store()).state == "pass"
    assert outcome("CO005", scene.store(), small_rdma=4 * MB).state == "fail"


def test_small_packets_states() -> None:
    assert outcome("CO005", packets(small=10).store("collective_bandwidth")).state == "cannot_answer"
    assert outcome("CO005", packets(small=10).store("communication_tasks")).state == "cannot_answer"


# --- CO006


def test_all_reduce_fires_for_half_of_its_time() -> None:
    found = outcome("CO006", moving().store(parallel={"tp": 2}))
    assert found.first.impact_ns == 200_000 and found.first.confidence == "low"
    assert found.first.observation["tensor_parallel"] == 2


def test_all_reduce_is_split_by_what_the_framework_has() -> None:
    trained, served = advised("CO006", training(moving())), advised("CO006", moving())
    assert naming(trained, "--use-distributed-optimizer") and not naming(trained, "enable_flashcomm1")
    assert naming(served, "enable_flashcomm1") and not naming(served, "--use-distributed-optimizer")


def test_all_reduce_leaves_out_what_waiting_made_late() -> None:
    scene = Scene().kernel(0, 1000)
    scene.collective(600, 500, [(600, 1000, 5), (1000, 1100, None)])
    scene.collective(1100, 100, [(1100, 1200, None)])
    assert outcome("CO006", scene.store()).first.observation["transmit_ns"] == 100_000


def test_all_reduce_states() -> None:
    assert outcome("CO006", moving(overlap=1.0).store()).state == "pass"
    other = Scene().kernel(0, 600).collective(600, 400, [(600, 1000, None)], operation="allGather")
    assert outcome("CO006", other.store()).state == "not_applicable"
    assert outcome("CO006", moving().store("communication_tasks")).state == "cannot_answer"


# --- CO007


def linked(*, slow: float) -> Scene:
    """Four links of 1000 us each for 20 MB; one takes ``slow`` us."""
    scene = moving()
    for target, took in ((1, 1000.0), (2, slow), (3, 1010.0), (4, 990.0)):
        for name in ("allreduce-top1@77", "allreduce-total@77"):
            scene.add(
                "links", step=1, name=name, group="77", op="hcom_allReduce__100_0_1", source_rank=0,
                target_rank=target, transport="HCCS", bytes=20 * MB, transit_us=took,
            )  # fmt: skip
    row = {"name": "allreduce-total@77", "group": "77", "transport": "LOCAL", "source_rank": 0, "target_rank": 0}
    return scene.add("links", bytes=20 * MB, transit_us=50, **row)


def test_slow_link_is_named_against_its_peers() -> None:
    found = outcome("CO007", linked(slow=2000).store())
    seen = found.first.observation
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]
    assert (seen["source_rank"], seen["target_rank"], seen["transport"]) == (0, 2, "HCCS")
    assert seen["bandwidth"] == pytest.approx(10e9) and seen["median_bandwidth"] == pytest.approx(20e9)
    assert seen["ratio"] == pytest.approx(0.5) and seen["links"] == 4
    assert found.first.impact_ns == 1_000_000


def test_slow_link_states() -> None:
    assert outcome("CO007", linked(slow=1000).store()).state == "pass"
    few = moving().add(
        "links", name="allreduce-total@77", group="77", transport="HCCS", source_rank=0, target_rank=1,
        bytes=MB, transit_us=50,
    )  # fmt: skip
    assert outcome("CO007", few.store()).state == "not_applicable"
    assert outcome("CO007", linked(slow=2000).store("links")).state == "cannot_answer"
    assert outcome("CO007", Scene().kernel(0, 10).store("links")).state == "not_applicable"


@given(st.lists(st.floats(1, 100), min_size=2, max_size=9))
def test_median_of_others_agrees_with_leaving_each_out(values: list[float]) -> None:
    frame = pd.DataFrame({"transport": "HCCS", "group": "7", "bandwidth": values})
    expected = [float(np.median(values[:n] + values[n + 1 :])) for n in range(len(values))]
    assert _median_of_others(frame).tolist() == pytest.approx(expected)


# --- CO014


def between_servers(*, bandwidth: float, transport: str = "HCCS", small: bool = False) -> Scene:
    """Two operations in a row that begin under computing and are longer than it; B/s of their link."""
    scene = buckets(1000, 1000, begin=400)
    size = MB if small else 20 * MB
    for number in (0, 1):
        scene.add(
            "links", name=f"allreduce-top{number}@0", group="0", op=f"hcom_allReduce__100_{number}_1", source_rank=0,
            target_rank=1, transport=transport, bytes=size, transit_us=size / bandwidth * 1e6,
        )  # fmt: skip
    return scene


def test_slow_links_save_what_the_usual_bandwidth_would() -> None:
    found = outcome("CO014", between_servers(bandwidth=1.87e9).store())
    seen = found.first.observation
    assert seen["ratio"] == pytest.approx(0.1) and seen["operations"] == 2
    # 1400 us uncovered; at ten times the bandwidth a tenth of the last 1000 us stays, all else is hidden.
    assert seen["saveable_ns"] == pytest.approx(1_300_000)
    assert found.first.severity == "high"
    # With slow links it is not the start of the transfers that is wrong.
    assert outcome("CO003", between_servers(bandwidth=1.87e9).store()).state == "pass"


def test_rdma_between_servers_has_settings_of_its_own() -> None:
    def settings(**about: Any) -> list[dict[str, str]]:
        return [one.set for one in advised("CO014", training(between_servers(bandwidth=1e9, **about))) if one.set]

    assert settings() == []
    assert settings(transport="RDMA") == [{"HCCL_RDMA_QPS_PER_CONNECTION": "4"}, {"HCCL_INTER_HCCS_DISABLE": "FALSE"}]


def test_fewer_digits_of_gradients_are_for_training_only_and_come_last() -> None:
    trained = advised("CO014", training(between_servers(bandwidth=1e9)))
    assert naming(trained, "bfloat16") == [trained[-1]] and trained[-1].hazards == ["accuracy"]
    assert not naming(advised("CO014", between_servers(bandwidth=1e9)), "bfloat16")


def test_slow_links_states() -> None:
    assert outcome("CO014", between_servers(bandwidth=18e9).store()).state == "pass"
    assert outcome("CO014", between_servers(bandwidth=12e9).store()).state == "pass"
    assert outcome("CO014", between_servers(bandwidth=5e9, transport="RDMA").store()).state == "fail"
    assert outcome("CO014", between_servers(bandwidth=1e9, small=True).store()).state == "not_applicable"
    assert outcome("CO014", between_servers(bandwidth=1e9).store("links")).state == "cannot_answer"


# --- CO008


def staged(*, wait: float) -> Scene:
    scene = Scene().kernel(0, 500)
    return scene.collective(
        500, wait + 20, [(500, 500 + wait, 1), (500 + wait, 520 + wait, None)], operation="batchSendRecv"
    )


def test_pipeline_counts_batched_sends_that_the_bubble_misses() -> None:
    scene = staged(wait=400).add("step_trace", step=1, bubble_ns=0.0)
    found = outcome("CO008", scene.store(parallel={"pp": 2}))
    seen = found.first.observation
    assert found.first.impact_ns == 400_000 and found.first.severity == "high"
    assert seen["bubble_ns"] == 0 and seen["stages"] == 2 and seen["data_included"] is False


def test_pipeline_without_planes_includes_the_data() -> None:
    found = outcome("CO008", staged(wait=400).store("communication_tasks"))
    assert found.first.impact_ns == 420_000 and found.first.observation["data_included"] is True
    assert "collect" in [advice.kind for advice in found.first.advice]


def test_pipeline_states() -> None:
    assert outcome("CO008", staged(wait=5).store()).state == "pass"
    assert outcome("CO008", moving().store()).state == "not_applicable"
    gone = staged(wait=400).store("kernels", "device_tasks", "communication_tasks")
    assert outcome("CO008", gone).state == "cannot_answer"


# --- CO009


def test_launch_gaps_fire() -> None:
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 700, None), (900, 1000, None)])
    found = outcome("CO009", scene.store())
    assert found.first.impact_ns == 200_000 and found.first.severity == "high"


def test_launch_gaps_states() -> None:
    assert outcome("CO009", moving().store()).state == "pass"
    assert outcome("CO009", moving().store("communication_tasks")).state == "cannot_answer"
    assert outcome("CO009", Scene().kernel(0, 10).store()).state == "not_applicable"


def halting() -> Scene:
    """A collective of which no plane does anything for 200 us."""
    return Scene().kernel(0, 600).collective(600, 400, [(600, 700, None), (900, 1000, None)])


@pytest.mark.parametrize("rule", ["CO005", "CO009"])
def test_aiv_is_for_one_group_and_never_for_the_process(rule: str) -> None:
    (advice,) = naming(specs(rule), "hccl_op_expansion_mode")
    assert "3}" in advice.text.en and "pg_options" in advice.text.en and not advice.set
    assert advice.hazards == ["hang"] and "Can hang" in advice.risk.en and "挂死" in advice.risk.zh
    assert "`HCCL_OP_EXPANSION_MODE`" in advice.text.en
    assert advice.holds_for.phase == ["prefill", "decode"] and advice.holds_for.chip == ["A3"]
    assert advice.holds_for.versions == {"extension": ">=7.0.0"}
    assert {"mc2", "moe-dispatch"} <= set(advice.excludes)


def test_aiv_is_for_inference_on_chips_that_have_it_and_comes_last() -> None:
    def places(scene: Scene, chip: str) -> list[int]:
        given = advised("CO009", scene, chip=CHIPS[chip])
        return [number - len(given) for number in range(len(given)) if given[number] in naming(given, "(AIV)")]

    assert places(decoding(halting()), "A2 A3") == [-1]
    assert places(decoding(halting()), "950") == [] and places(decoding(halting()), "910A") == []
    assert places(training(halting()), "A2 A3") == []


def test_who_issues_the_tasks_depends_on_the_chip() -> None:
    """A2 and A3 have the same cores per die: without more the report gives both, each with its condition."""
    given = [one for one in advised("CO009", halting(), chip=CHIPS["A2 A3"]) if one.kind == "investigate"]
    assert ["`HOST` is the default" in one.text.en for one in given] == [True, False]
    assert ["`AI_CPU` is the default" in one.text.en for one in given] == [False, True]
    assert all(one.only_if is not None for one in given)
    assert [one.kind for one in advised("CO009", halting(), chip=CHIPS["910A"])] == ["code"]


# --- the real profile


def test_alexnet_rank_0(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    found = outcome("CO001", store).first
    assert found.severity == "high"
    assert found.observation["uncovered_ns"] == pytest.approx(101.963e6, rel=1e-3)
    assert found.observation["overlap_ratio"] == pytest.approx(4.03 / 105.99, rel=1e-2)
    late = outcome("CO002", store)
    assert [row.observation["late"] for row in late.verdict.rows] == ["rank 5"]  # type: ignore[union-attr]
    assert late.first.impact_ns == pytest.approx(97.9e6, rel=1e-3) and late.first.severity == "high"
    assert late.first.observation["calls"] == 2
    # The first wait by hand from the raw trace: Notify_Wait on Plane 5, 78.76 ms from 1736408883732253.684 us on.
    first = store[COMMUNICATION_TASKS].iloc[late.evidence()[0].rows[0]]
    assert (first["lane"], first["peer_rank"], first["duration_ns"]) == ("Plane 5", 5, 78_764_614)
    for rule in ("CO003", "CO005", "CO006", "CO007", "CO009", "CO014"):
        assert outcome(rule, store).state == "pass"
    for rule in ("CO004", "CO008"):
        assert outcome(rule, store).state == "not_applicable"


def test_alexnet_level0_knows_that_but_not_why(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert outcome("CO001", store).state == "fail"
    for rule in ("CO002", "CO003", "CO004", "CO005", "CO006", "CO007", "CO009"):
        assert outcome(rule, store).state == "cannot_answer", rule
