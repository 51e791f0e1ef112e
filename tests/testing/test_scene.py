"""A scene is what its author wrote down and no more; what is filled in is what its docstring says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor_core.api.facts import ledger, steps
from advisor_core.api.testing import ASCEND, GPU, Scene, SceneWords, judge_rule
from advisor_core.contracts.profile import PROFILE

RULE = """
id: TT001
name: any-idle
advisor: host_dispatch.idle
params: {share: {value: 0.3, unit: ratio, why: "half of the idle share of the scene"}}
when: idle_share > params.share
severity: {medium: true}
impact: {value: idle_ns, basis: exact}
claims: [idle]
advice: [{kind: code, text: {en: "Launch earlier.", zh: "提前下发。"}}]
text:
  title: {en: "Idle", zh: "空闲"}
  good: {en: "Busy", zh: "繁忙"}
  why: {en: "Idle.", zh: "空闲。"}
  verify: {en: "Look again.", zh: "重新查看。"}
references: [{title: "a test"}]
"""


def late(words: SceneWords, *, launched: float) -> Scene:
    """Two kernels, 100 and 200 us long, with 300 us between them."""
    return Scene(words=words).step(1, -10, 620).kernel(0, 100, op="aten::mul").kernel(400, 200, launched=launched)


def test_a_kernel_brings_its_task_its_launch_and_the_arrow() -> None:
    scene = Scene().kernel(100, 20)
    (kernel,) = scene.table("kernels").to_dict("records")
    (task,) = scene.table("device_tasks").to_dict("records")
    (call,) = scene.table("host_events").to_dict("records")
    flows = scene.table("flows")
    assert [(row["start_ns"], row["duration_ns"]) for row in (kernel, task)] == [(100_000, 20_000)] * 2
    assert kernel["stream"] == task["stream"] == 2 and kernel["step"] == 1
    assert call["category"] == "runtime" and call["start_ns"] <= 95_000 <= call["start_ns"] + call["duration_ns"]
    assert flows["time_ns"].tolist() == [95_000, 100_000] and flows["flow"].nunique() == 1


def test_without_a_step_the_recording_is_one() -> None:
    bare, marked = Scene().kernel(0, 10).kernel(90, 10), Scene().step(1, -20, 50).step(2, 30, 80)
    assert len(bare.store()[steps]) == 1
    assert len(marked.kernel(0, 10).kernel(90, 10, step=2).store()[steps]) == 2


def test_rows_may_be_changed_before_the_facts_are_asked_for() -> None:
    scene = Scene().kernel(0, 100)
    assert "compute/matmul" in scene.store()[ledger]["path"].tolist()
    scene.rows["kernels"][0]["type"] = "Add"
    assert "compute/elementwise" in scene.store()[ledger]["path"].tolist()


def test_fields_of_the_profile_and_missing_tables_are_told() -> None:
    store = Scene(rank=3).kernel(0, 10).store("flows", level="level0")
    assert (store[PROFILE].rank, store[PROFILE].level, store[PROFILE].vendor) == (3, "level0", "ascend")
    assert "flows is missing" in store[PROFILE].missing["flows"].reason.en


def test_a_column_that_a_table_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="no column 'colour'"):
        Scene().add("kernels", colour="red").table("kernels")


@pytest.mark.parametrize(("words", "rule"), [(ASCEND, "HD002"), (GPU, "GHD002")])
def test_the_same_scene_in_the_words_of_each_vendor(words: SceneWords, rule: str) -> None:
    found = judge_rule(rule, late(words, launched=390).store())
    assert found.state == "fail" and found.evidence()
    assert judge_rule(rule, late(words, launched=20).store()).state == "pass"


def test_a_collective_of_a_gpu_has_no_tasks_inside() -> None:
    entries = Scene(words=GPU).kernel(0, 100).collective(100, 50, operation="AllReduce").store()[ledger]
    assert entries.loc[entries["path"].str.startswith("communication/"), "ns"].sum() == 50_000
    with pytest.raises(ValueError, match="do not record the tasks"):
        Scene(words=GPU).collective(0, 50, [(0, 50, None)])


def test_what_goes_over_a_link_is_counted_as_the_exporter_counts_it() -> None:
    def links(transport: str | None) -> list[str]:
        scene = Scene().collective(0, 10, size=4_000, transport=transport)
        return [str(row["transport"]) for row in scene.rows["collective_bandwidth"]]

    assert links(None) == ["HCCS", "SDMA"] and links("RDMA") == ["RDMA"]
    nothing = Scene(words=replace(ASCEND, transport="", totals={})).collective(0, 10, size=4_000)
    assert "collective_bandwidth" not in nothing.rows and len(nothing.rows["collectives"]) == 1


def test_a_judged_rule_without_an_answer_says_why() -> None:
    judged = judge_rule("CO001", Scene().kernel(0, 10).store())
    assert judged.state == "not_applicable" and judged.missing is not None and judged.missing.reason.zh
    with pytest.raises(AssertionError, match="nothing was found: not_applicable"):
        _ = judged.first


def test_a_rule_that_reads_another_has_it_judged_first() -> None:
    """GHD002 leaves a recording with the start of the device to GHD012."""
    begun = Scene(words=GPU).step(1, -10, 2_000_320).kernel(0, 100)
    begun.event("runtime", "cudaFree", 105, 1_999_800).kernel(2_000_100, 200, launched=2_000_000)
    assert judge_rule("GHD012", begun.store()).state == "fail"
    assert judge_rule("GHD002", begun.store()).state == "not_applicable"


def test_a_rule_for_other_devices_does_not_apply() -> None:
    judged = judge_rule("HD002", late(GPU, launched=390).store())
    assert judged.state == "not_applicable" and judged.missing is not None
    with pytest.raises(KeyError):
        judge_rule("XX999", Scene().kernel(0, 10).store())


def test_rules_of_a_file_are_judged_with_the_installed_ones(tmp_path: Path) -> None:
    (tmp_path / "tt.yaml").write_text(RULE, encoding="utf-8")
    scene = late(ASCEND, launched=390)
    judged = judge_rule("TT001", scene.store(), tmp_path)
    assert (judged.state, judged.first.impact_ns) == ("fail", 300_000), "the gap between the two kernels"
    assert judge_rule("TT001", Scene().kernel(0, 500).kernel(500, 100).store(), tmp_path).state == "pass"
