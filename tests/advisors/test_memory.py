"""Memory: every rule fires with the numbers of a calculation by hand, stays silent and cannot answer; real profiles
against the export itself."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core import testing
from advisor_core.api.testing import JudgedRule, Scene, judge_rule
from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.memory import memory_capacity, memory_curve, memory_peak, memory_steps
from advisor_core.names.settings import clash
from advisor_core.rules.model import AdviceSpec, HoldsFor
from advisors.memory.fragmentation import _unfit
from tests.advisors.build import book
from tests.advisors.real import real_rank

MIB, GIB = 1024**2, 1024**3
STEP_US = 1_000
CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
"""Of these cores there are only parts with 64 GB."""


def scene(app_gib: float = 10, hccl_mib: float = 404, late_us: float = 0) -> Scene:
    """Two steps of 1 ms, in each of which the device waits ``late_us`` for the host."""
    made = Scene()
    for step in (1, 2):
        start = (step - 1) * STEP_US
        made.step(step, start - 20, STEP_US).kernel(start, 500, step=step, op="aten::mm")
        made.kernel(start + 500 + late_us, 500 - late_us, step=step, op="aten::mm")
    for time in (0, 900):
        made.add("memory_record", component="APP", time_us=time, reserved_bytes=app_gib * GIB)
        made.add("module_memory", component="HCCL", time_us=time, reserved_bytes=hccl_mib * MIB)
    return made


def totals(made: Scene, *points: tuple[float, float, float]) -> Scene:
    """Time in us, allocated and reserved in MiB, of the framework."""
    for time, allocated, reserved in points:
        amounts = {"allocated_bytes": allocated * MIB, "reserved_bytes": reserved * MIB}
        made.add("memory_record", component="PTA", time_us=time, **amounts)
    return made


def trend(least: Sequence[float], reserved: Sequence[float], peak: float = 1000) -> Scene:
    """A step per value: least allocated and reserved in MiB; in the middle of the step ``peak`` above the least."""
    made = Scene()
    for number, (low, held) in enumerate(zip(least, reserved, strict=True)):
        start = number * STEP_US
        made.step(10 + number, start, STEP_US - 100).kernel(start + 50, 500, step=10 + number, op="aten::mm")
        totals(made, (start - 50, low, held), (start + 300, low + peak, held), (start + 700, low, held))
    for number in range(len(least)):
        used = reserved[number] * MIB + GIB
        made.add("memory_record", component="APP", time_us=number * STEP_US, reserved_bytes=used)
    return made


def judged(rule: str, made: Scene, *without: str, **about: Any) -> JudgedRule:
    chip = about.pop("chip", CHIP)
    overrides = {"capacity": about.pop("capacity")} if "capacity" in about else {}
    return judge_rule(rule, made.store(*without, chip=chip, **about), **overrides)


def values(found: JudgedRule) -> Any:
    return found.first.observation


# --- ME001


def test_a_process_above_nine_tenths_of_the_device_is_near_the_limit() -> None:
    found = judged("ME001", totals(scene(app_gib=60), (0, 50_000, 58_000), (10, 54_000, 58_000)))
    assert found.state == "fail"
    assert found.first.severity == "medium"
    assert values(found)["used_share"] == pytest.approx(60 / 64)
    assert values(found)["allocated_bytes"] == 54_000 * MIB
    assert values(found)["returns"] == 0


def test_an_allocator_that_gives_back_makes_it_serious() -> None:
    found = judged("ME001", totals(scene(app_gib=60), (0, 50_000, 58_000), (10, 51_000, 57_000), (20, 51_000, 58_000)))
    assert found.first.severity == "high"
    assert values(found)["returns"] == 1


def test_room_is_no_finding_and_an_unknown_device_no_answer() -> None:
    assert judged("ME001", scene(app_gib=57)).state == "pass"
    assert judged("ME001", scene(app_gib=60), chip={}).state == "cannot_answer"
    assert judged("ME001", scene(app_gib=60), "memory_record").state == "cannot_answer"


def test_the_user_may_say_how_large_the_device_is() -> None:
    found = judged("ME001", scene(app_gib=30), chip={}, capacity=32 * GIB)
    assert found.state == "fail"
    assert values(found)["capacity_basis"] == "given"
    assert judged("ME001", scene(app_gib=30), capacity=0).state == "pass"


@pytest.mark.parametrize(
    ("chip", "app_gib", "gib"),
    [
        ({"ai_core_num": 24, "aiv_num": 48}, 1, 64),
        ({"ai_core_num": 20, "aiv_num": 40, "aic_frequency": 1800}, 1, 64),
        ({"ai_core_num": 20, "aiv_num": 40, "aic_frequency": 1500}, 1, None),
        ({"ai_core_num": 20, "aiv_num": 40, "aic_frequency": 1500}, 33, 64),
        ({"ai_core_num": 30, "aiv_num": 30, "aic_frequency": 900}, 33, None),
    ],
)
def test_the_chip_tells_the_capacity_only_where_it_is_certain(
    chip: dict[str, Any], app_gib: float, gib: int | None
) -> None:
    store = scene(app_gib=app_gib).store(chip=chip)
    if gib is None:
        with pytest.raises(Unavailable):
            store[memory_capacity]
    else:
        assert store[memory_capacity].bytes == gib * GIB


def advised(rule: str, made: Scene, *without: str, **about: Any) -> list[Any]:
    return list(judged(rule, made, *without, **about).first.advice)


def specs(rule: str) -> list[AdviceSpec]:
    return list(book("memory")[rule].rule.advice)


def training(made: Scene) -> Scene:
    return made.event("user_annotation", "Optimizer.step#AdamW.step", 950, 2)


def test_what_frees_memory_follows_the_kind_of_run() -> None:
    serving = [advice.text.en for advice in advised("ME001", scene(app_gib=60))]
    assert any("--gpu-memory-utilization" in text for text in serving)
    assert not any("--swap-" in text or "torch.utils.checkpoint" in text for text in serving)
    learning = [advice.text.en for advice in advised("ME001", training(scene(app_gib=60)))]
    for flag in ("torch.utils.checkpoint", "--swap-attention", "--swap-optimizer", "--reuse-fp32-param"):
        assert any(flag in text for text in learning), flag
    assert not any("--gpu-memory-utilization" in text for text in learning)


def test_two_ways_to_keep_the_optimizer_off_the_device_exclude_each_other() -> None:
    swap, reuse = (one for one in specs("ME001") if {"--swap-optimizer", "--reuse-fp32-param"} & set(one.uses))
    assert clash(reuse.uses, reuse.excludes, swap.uses, swap.excludes)


# --- ME002


def test_reserved_memory_that_rises_alone_is_fragmented() -> None:
    found = judged("ME002", trend([1000] * 5, [2000, 2100, 2100, 2300, 2400]))
    assert found.state == "fail"
    assert values(found)["reserved_rise"] == 100 * MIB
    assert values(found)["allocated_rise"] == 0
    assert values(found)["growing_steps"] == 3
    assert values(found)["unused_bytes"] == 400 * MIB
    # 64 GiB less the 2400 MiB and the 1 GiB that the process held in the end
    assert values(found)["steps_to_full"] == pytest.approx((65536 - 2400 - 1024) / 100)
    assert found.first.severity == "medium"


def test_a_reserve_that_no_tensor_needs_is_fragmented_without_any_trend() -> None:
    found = judged("ME002", totals(scene(), (0, 5_000, 10_000), (10, 4_000, 10_000)), "host_events")
    assert found.state == "fail"
    assert values(found)["unused_share"] == 0.5
    assert np.isnan(values(found)["reserved_rise"] or np.nan)
    assert found.first.severity == "low"


def test_fragments_have_one_setting_and_it_is_not_the_first_advice() -> None:
    advice = advised("ME002", totals(scene(), (0, 5_000, 10_000), (10, 4_000, 10_000)), "host_events")
    (setting,) = [one for one in advice if one.set]
    assert setting.set == {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"} and setting is not advice[0]
    assert "sleep-mode" in setting.excludes and "PYTORCH_NPU_ALLOC_CONF=max_split_size_mb" in setting.excludes


def test_reserved_memory_that_follows_the_allocated_is_not_fragmented() -> None:
    assert judged("ME002", trend([1000, 1100, 1200, 1300], [2000, 2100, 2200, 2300])).state == "pass"
    assert judged("ME002", trend([1000] * 4, [2100, 2100, 2100, 2100])).state == "pass"
    assert judged("ME002", trend([1000] * 4, [2000, 2600, 2600, 2600])).state == "pass", "it grew only once"
    assert judged("ME002", scene()).state == "cannot_answer"


def test_a_full_device_with_free_pieces_is_fragmented() -> None:
    made = totals(scene(app_gib=63), (0, 50_000, 60_000), (10, 58_000, 59_000))
    found = judged("ME002", made)
    assert (found.state, found.first.severity) == ("fail", "high")
    assert values(found)["unfit"] == 1
    roomy = totals(scene(app_gib=40), (0, 50_000, 60_000), (10, 58_000, 59_000))
    assert judged("ME002", roomy).state == "cannot_answer", "two steps tell no trend"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30))
def test_unfit_returns_against_a_loop(points: list[tuple[int, int]]) -> None:
    rows = [(allocated, allocated + free) for allocated, free in points]
    expected = 0
    for (allocated, reserved), (then, held) in pairwise(rows):
        expected += held < reserved and 0 < then - allocated <= reserved - allocated
    curve = pd.DataFrame(rows, columns=["allocated_bytes", "reserved_bytes"])
    assert _unfit(curve) == expected


# --- ME003


def leaking(made: Scene) -> Scene:
    """One tensor of 20 MiB per step that stays, one that goes, one of the first step only."""
    for number in range(5):
        time = number * STEP_US + 20
        kept = {"name": "aten::clone", "bytes": 20 * MIB, "allocation_us": time + 2}
        made.event("cpu_op", "aten::clone", time, 10, call_stack="loop.py(12): keep;\ntrain.py(3): main")
        made.add("operator_memory", **kept)
        made.add("operator_memory", name="aten::mm", bytes=50 * MIB, allocation_us=time + 30, release_us=time + 90)
    made.add("operator_memory", name="aten::zeros", bytes=90 * MIB, allocation_us=40)
    made.add("operator_memory", name="cann::Add", bytes=90 * MIB, allocation_us=45)
    return made


def test_memory_that_stays_step_by_step_is_a_leak() -> None:
    found = judged("ME003", leaking(trend([1000, 1020, 1040, 1060, 1080], [3000] * 5)))
    assert found.state == "fail"
    assert found.first.severity == "medium"
    observed = values(found)
    assert observed["rise"] == observed["median_rise"] == 20 * MIB
    assert observed["rising_share"] == 1
    assert observed["steps_to_full"] == pytest.approx((65536 - 3000 - 1024) / 20)
    assert (observed["operator"], observed["unreleased"]) == ("aten::clone", 4)
    assert observed["unreleased_bytes"] == 20 * MIB
    evidence = {type(item).__name__: item for item in found.evidence()}
    assert evidence["Rows"].rows.tolist() == [0, 2, 4, 6], "what the last step allocated may still be released"
    assert evidence["Stack"].frames == ("loop.py(12): keep", "train.py(3): main")


def test_a_leak_that_soon_fills_the_device_is_serious() -> None:
    steep = [1000 + 100 * number for number in range(5)]
    assert judged("ME003", trend(steep, [3000] * 5)).first.severity == "high"
    assert judged("ME003", trend(steep, [3000] * 5), chip={}).first.severity == "medium", "the device is not known"


def test_growth_that_is_small_or_ends_is_no_leak() -> None:
    assert judged("ME003", trend([1000, 1005, 1010, 1015], [3000] * 4)).state == "pass"
    assert judged("ME003", trend([1000, 1500, 1500, 1500, 1500], [3000] * 5)).state == "pass", "once, at the start"
    assert judged("ME003", trend([1000, 1040, 1000, 1040, 1000], [3000] * 5)).state == "pass"


def test_few_steps_or_none_tell_no_trend() -> None:
    assert judged("ME003", trend([1000, 1020, 1040], [3000] * 3)).state == "fail"
    assert judged("ME003", trend([1000, 1020], [3000] * 2)).state == "cannot_answer"
    assert judged("ME002", trend([1000, 1000], [2000, 2100])).state == "cannot_answer"
    assert judged("ME003", trend([1000] * 5, [3000] * 5), "host_events").state == "cannot_answer"
    assert judged("ME003", scene()).state == "cannot_answer"


# --- ME004


def test_a_host_bound_job_with_memory_to_spare() -> None:
    found = judged("ME004", scene(app_gib=10, late_us=200))
    assert (found.state, found.first.severity) == ("fail", "low")
    assert values(found)["used_share"] == pytest.approx(10 / 64)
    assert values(found)["host_share"] == pytest.approx(0.2, abs=0.01)
    assert judged("ME004", scene(app_gib=40, late_us=200)).state == "pass"
    assert judged("ME004", scene(app_gib=10)).state == "pass"
    assert judged("ME004", scene(app_gib=10, late_us=200), chip={}).state == "cannot_answer"


# --- ME005


def test_buffers_of_communication() -> None:
    made = scene(app_gib=20, hccl_mib=4096)
    found = judged("ME005", made, groups={"1": (0, 1), "2": (0, 1), "3": (0, 2)})
    assert (found.state, found.first.severity) == ("fail", "low")
    assert values(found)["hccl_share"] == pytest.approx(4 / 64)
    assert values(found)["communicators"] == 3
    assert values(found)["default_bytes"] == 3 * 400 * MIB
    assert judged("ME005", scene(app_gib=62, hccl_mib=4096)).first.severity == "medium"
    assert judged("ME005", scene(hccl_mib=3000)).state == "pass"
    assert judged("ME005", scene(hccl_mib=0)).state == "not_applicable"
    assert judged("ME005", made, "module_memory").state == "cannot_answer"


def test_smaller_buffers_come_last_and_name_what_needs_a_minimum() -> None:
    made = scene(app_gib=62, hccl_mib=4096)
    advice = advised("ME005", made)
    assert [one.kind for one in advice] == ["investigate", "env", "code"]
    assert advice[1].set == {"P2P_HCCL_BUFFSIZE": "0"} and advice[1].hazards == ["hang", "crash"]
    assert advice[-1].hazards == ["crash"] and "moe-dispatch" in advice[-1].excludes
    assert "npu_moe_distribute_dispatch_v2" in advice[-1].risk.en and not advice[-1].set
    assert "--hccl-group-buffer-adaptive" in advised("ME005", training(made))[2].text.en


@pytest.mark.parametrize("rule", ["ME001", "ME002", "ME003", "ME004", "ME005"])
def test_advice_begins_with_what_is_safe(rule: str) -> None:
    given = specs(rule)
    assert not given[0].hazards and all(advice.risk is not None for advice in given if advice.hazards or advice.set)
    assert any(advice.holds_for == HoldsFor() and not advice.hazards for advice in given)


# --- facts


def test_steps_are_those_of_the_host() -> None:
    """The value at the start of a step counts for it, and what lies between two steps for neither."""
    made = Scene().step(1, 100, 100).step(2, 300, 100)
    totals(made, (50, 5, 20), (120, 9, 20), (180, 6, 20), (250, 99, 120), (280, 4, 30), (350, 7, 30))
    steps = made.store()[memory_steps]
    assert steps["step"].tolist() == [1, 2]
    assert (steps["trough_bytes"] / MIB).tolist() == [5, 4]
    assert (steps["peak_bytes"] / MIB).tolist() == [9, 7]
    assert (steps["reserved_bytes"] / MIB).tolist() == [20, 30]


@given(
    st.lists(st.tuples(st.integers(0, 999), st.integers(0, 99)), min_size=1, max_size=40, unique_by=lambda p: p[0]),
    st.lists(st.integers(0, 999), min_size=1, max_size=6, unique=True),
)
def test_extremes_of_steps_against_a_loop(points: list[tuple[int, int]], starts: list[int]) -> None:
    points, starts = sorted(points), sorted(starts)
    ends = [min(start + 50, following) for start, following in zip(starts, [*starts[1:], 2000], strict=True)]
    made = Scene()
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        made.step(number, start, end - start)
    totals(made, *((time, value, 100) for time, value in points))
    steps = made.store()[memory_steps]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        before = [value for time, value in points if time <= start]
        inside = [value for time, value in points if start < time < end]
        known = before[-1:] + inside or [points[0][1]]
        assert steps["trough_bytes"].iloc[number] == min(known) * MIB
        assert steps["peak_bytes"].iloc[number] == max(known) * MIB


def test_what_is_alive_at_the_peak() -> None:
    made = totals(Scene(), (0, 100, 200), (20, 160, 200), (40, 130, 200))
    made.add("operator_memory", name="aten::mm", bytes=40 * MIB, allocation_us=10, release_us=30)
    made.add("operator_memory", name="aten::add", bytes=15 * MIB, allocation_us=20)
    made.add("operator_memory", name="aten::mm", bytes=7 * MIB, allocation_us=5, release_us=19)
    made.add("operator_memory", name="aten::mm", bytes=9 * MIB, allocation_us=21)
    made.add("operator_memory", name="cann::Add", bytes=9 * MIB, allocation_us=1)
    made.add("operator_memory", name="aten::sum", bytes=-3 * MIB, allocation_us=2)
    peak = made.store()[memory_peak]
    assert (peak.time_ns, peak.allocated_bytes) == (20_000, 160 * MIB)
    assert peak.rows.tolist() == [0, 1]
    assert peak.by_operator["name"].tolist() == ["aten::mm", "aten::add"]
    assert peak.earlier_bytes == 105 * MIB


def test_without_the_record_the_allocations_tell_the_totals() -> None:
    rows = [{"name": "aten::mm", "bytes": 8.0, "allocation_us": 5, "allocated_bytes": 50.0, "reserved_bytes": 90.0}]
    store = testing.fact_store(operator_memory=testing.table("operator_memory", rows))
    curve = store[memory_curve]
    assert curve.to_dict("records") == [{"time_ns": 5_000, "allocated_bytes": 50.0, "reserved_bytes": 90.0}]


# --- real profiles


@pytest.mark.parametrize(
    ("name", "rank"), [("alexnet-ddp-text-level1", 0), ("alexnet-ddp-text-level1", 1), ("alexnet-ddp-text-level0", 0)]
)
def test_a_real_profile_against_its_files(profiles: Path, name: str, rank: int) -> None:
    folder = profiles / "ascend" / name / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    with (folder / "memory_record.csv").open(encoding="utf-8") as lines:
        record = list(csv.DictReader(lines))
    framework = [line for line in record if line["Component"] == "PTA"]
    store = real_rank(profiles, name, rank)
    curve, peak = store[memory_curve], store[memory_peak]
    assert len(curve) == len(framework)
    top = max(float(line["Total Allocated(MB)"]) for line in framework)
    assert peak.allocated_bytes == pytest.approx(top * MIB)
    with (folder / "operator_memory.csv").open(encoding="utf-8") as lines:
        tensors = [line for line in csv.DictReader(lines) if not line["Name"].startswith("cann::")]
    alive = 0.0
    at = next(line["Timestamp(us)"].strip() for line in framework if float(line["Total Allocated(MB)"]) == top)
    for line in tensors:
        came, went = (line[f"{kind} Time(us)"].strip() for kind in ("Allocation", "Release"))
        if came <= at and (not went or went > at):
            alive += float(line["Size(KB)"]) * 1024
    assert peak.by_operator["bytes"].sum() == pytest.approx(alive)
    assert peak.earlier_bytes == pytest.approx(top * MIB - alive)


def test_the_real_job_uses_little_of_its_memory(profiles: Path) -> None:
    """2,114 MB of 64 GB; a host that the device waits for; one step, which tells no trend."""
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    states = {rule: judge_rule(rule, store).state for rule in ("ME001", "ME002", "ME003", "ME005")}
    assert states == {"ME001": "pass", "ME002": "cannot_answer", "ME003": "cannot_answer", "ME005": "pass"}
    used = judge_rule("ME004", store)
    assert used.first.observation["used_bytes"] == pytest.approx(2113.73 * MIB, rel=1e-4)
