"""Tables of operator types, of rates, and of network ports; the rule of ports that lose packets."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.renderers import TableView, View
from advisor_core.api.testing import Scene, judge_rule
from advisors.counters import operators, rates

MS = 1000.0


def shown(drawing: Any, scene: Scene) -> list[dict[str, Any]]:
    """The rows of the only table, by heading."""
    store = scene.store()
    views: list[View] = drawing.draw(store.view(drawing.needs, drawing.wants))
    (view,) = views
    assert isinstance(view, TableView) and any("\u4e00" <= letter <= "\u9fff" for letter in view.title.zh)
    heads = [column.label.en for column in view.data.columns]
    return [dict(zip(heads, row, strict=True)) for row in view.data.rows]


def two_types() -> Scene:
    scene = Scene().kernel(0, 30, "MatMul").kernel(40, 10, "MatMul").kernel(60, 60, "Add", core="AI_VECTOR_CORE")
    for number, kernel in enumerate(scene.rows["kernels"]):
        kernel["task"] = number
    return scene


def test_operator_types_with_most_time_first() -> None:
    add, product = shown(operators.operators, two_types())
    assert add == {"Operator": "Add", "Core": "AI_VECTOR_CORE", "Calls": 1, "Time": 60e3, "Mean": 60e3, "Share": 0.6}
    assert (product["Calls"], product["Time"], product["Mean"], product["Share"]) == (2, 40e3, 20e3, 0.4)


def test_hits_are_joined_by_task_and_count_by_time() -> None:
    scene = two_types()
    scene.add("l2_cache", stream=2, task=0, name="MatMul", hit_rate=0.9, victim_rate=0.5)
    scene.add("l2_cache", stream=2, task=1, name="MatMul", hit_rate=0.5, victim_rate=0.1)
    scene.add("l2_cache", stream=2, task=2, name="Cast", hit_rate=0.1, victim_rate=0.1)
    add, product = shown(operators.operators, scene)
    assert product["L2 hits"] == pytest.approx(0.8) and product["L2 replaced"] == pytest.approx(0.4)
    assert add["L2 hits"] is None, "a row of another name is not about this kernel"


def test_a_number_that_comes_more_often_than_its_rows_is_not_joined() -> None:
    scene = two_types()
    scene.rows["kernels"][1]["task"] = 0
    scene.add("l2_cache", stream=2, task=0, name="MatMul", hit_rate=0.9, victim_rate=0.5)
    assert "L2 hits" not in shown(operators.operators, scene)[1]


def test_counters_of_cores_by_what_they_count() -> None:
    scene = two_types()
    counted = (
        *(("aic_cube_fops", 8e9), ("aic_main_mem_read_bw", 4e11), ("write_cache_hit", 30), ("r0_read_cache_hit", 30)),
        *(("write_cache_miss_allocate", 20), ("read_main_memory_datas", 2048), ("aiv_vec_bank_cflt_ratio", 0.2)),
    )
    for name, value in counted:
        scene.add("core_counters", start_us=0, stream=2, task=0, counter=name, value=value)
    add, product = shown(operators.operators, scene)
    assert product["Counted FLOP/s"] == pytest.approx(8e9 / 40e-6)
    assert product["L2 hits"] == 0.75 and product["read_main_memory_datas"] == 2048
    assert product["aic_main_mem_read_bw"] == pytest.approx(3e11), "over all kernels of the type, by their time"
    assert product["aiv_vec_bank_cflt_ratio"] == pytest.approx(0.15) and add["L2 hits"] is None


def sampled(scene: Scene, part: str, counter: str, values: list[float], unit: str = "B/s", channel: str = "0") -> Scene:
    for number, value in enumerate(values):
        row = {"part": part, "channel": channel, "counter": counter, "unit": unit, "value": value}
        scene.add("counters", time_us=number * 1000 * MS, **row)
    return scene


def test_rates_add_up_over_the_units_of_the_memory() -> None:
    scene = Scene().kernel(0, 30)
    for channel in "01":
        sampled(scene, "HBM", "read", [0, 10, 30], channel=channel)
    sampled(scene, "HBM", "write", [0, 2, 4])
    read, write, both = shown(rates.rates, scene)
    assert (read["Mean"], read["Peak"], read["Samples"]) == (40, 60, 3)
    assert (write["Counter"], write["Mean"]) == ("write", 3) and (both["Mean"], both["Peak"]) == (43, 64)


def test_a_sample_that_not_all_units_have_is_left_out() -> None:
    scene = sampled(Scene().kernel(0, 30), "HBM", "read", [0, 10, 30])
    sampled(scene, "HBM", "read", [0, 10], channel="1")
    assert shown(rates.rates, scene)[0]["Peak"] == 20


def test_hits_count_by_what_was_moved() -> None:
    scene = sampled(Scene().kernel(0, 30), "LLC", "read", [0, 10, 30])
    sampled(scene, "LLC", "read hits", [0.0, 0.5, 0.9], "ratio")
    assert shown(rates.rates, scene)[0]["Hits"] == pytest.approx(0.8)


def test_rates_while_data_move_and_while_none_do() -> None:
    """Ten samples of a second; data move from the second to the sixth."""
    scene = Scene().kernel(0, 10).collective(10, 5000 * MS - 10, [(1000 * MS, 5000 * MS, None)])
    scene.collective(9000 * MS, 100, [(9000 * MS, 9000 * MS + 100, None)])
    sampled(scene, "HCCS", "transmit", [0, 1, 8, 8, 8, 8, 1, 1, 1, 1], channel="")
    (row,) = shown(rates.rates, scene)
    assert row["While collectives move data"] == 8 and row["While none does"] == 1


def port(scene: Scene, name: str, **more: Any) -> Scene:
    known = {"capacity": 100.0, "received": 10.0, "sent": 20.0, "error_packets": 0.0, "dropped_packets": 0.0, **more}
    return scene.add("ports", port=name, time_us=0, **known)


def test_ports_and_what_they_lost() -> None:
    scene = port(port(Scene().kernel(0, 30), "RoCE 0"), "RoCE 0", received=30.0, dropped_packets=2.0, faulty=True)
    (row,) = shown(rates.ports, scene)
    assert (row["Received"], row["Most received"], row["Limit"]) == (20, 30, 100)
    assert (row["Packets dropped"], row["Samples with faults"], row["Samples"]) == (2, 1, 2)
    assert "Packets sent again" not in row, "not counted by this table"


def test_a_port_that_sends_again_is_found() -> None:
    scene = port(port(Scene().kernel(0, 30), "MAC", sent_again=0.0), "MAC", sent_again=2.0)
    found = judge_rule("CO021", port(scene, "NIC 0").store())
    assert found.state == "fail" and found.first.severity == "high"
    seen = found.first.observation
    assert (seen["port"], seen["lossy_samples"], seen["port_samples"], seen["sent_again"]) == ("MAC", 1, 2, 2)
    assert found.first.impact_ns == seen["lost_ns"] == 30e3, "not more than the step"


def test_a_port_that_drops_is_found_and_what_it_costs_is_not_known() -> None:
    found = judge_rule("CO021", port(Scene().kernel(0, 30), "NIC 0", faulty=True).store())
    assert found.state == "fail" and found.first.severity == "medium" and found.first.confidence == "low"


def test_without_counts_of_ports_only_jobs_over_rdma_ask_for_them() -> None:
    job = Scene().kernel(0, 100)
    job.collective(100, 1000, [(100, 1100, None)], size=10**7, transport="HCCS")
    assert judge_rule("CO021", job.store()).state == "not_applicable"
    assert judge_rule("CO021", port(Scene().kernel(0, 30), "NIC 0").store()).state == "pass"
