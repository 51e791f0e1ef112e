"""Recordings that begin with a wait for other ranks, and recordings that are no loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advisor_core.contracts.missing import NotApplicable
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.replay.explained import explained
from advisor_core.facts.replay.rank_graph import rank_graph
from advisor_core.facts.steps.backlog import backlog
from advisor_core.facts.steps.kernel_list import holes, kernel_list
from advisor_core.facts.steps.start_up import start_up
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.testing import Scene, fact_store, profile, table
from tests.once import ResultOf

BARE = profile(framework=None)
"""As msprof records: kernels, and nothing of a framework."""


def kernel(start: float, duration: float, type_: str = "MatMulV2", **more: Any) -> dict[str, Any]:
    core = "COMMUNICATION" if type_.startswith("hcom") else "AI_CORE"
    row = {"start_us": start, "duration_us": duration, "type": type_, "name": type_, "core": core, "step": 1}
    return row | more


def beginning(first: str = "hcom_broadcast__1_0", wait: float = 5_000, before: float = 0, **more: Any) -> FactStore:
    """A step that begins with a collective, then computes 1 ms and talks twice for 100 us."""
    rows = [
        *([kernel(0, before)] if before else []),
        kernel(before + 10, wait, first),
        kernel(before + wait + 20, 500),
        kernel(before + wait + 600, 100, "hcom_broadcast__1_1"),
        kernel(before + wait + 800, 500),
        kernel(before + wait + 1_400, 100, "hcom_allReduce__1_2"),
    ]
    return fact_store(kernels=table("kernels", [row | more for row in rows]))


def test_a_first_collective_many_times_its_like_is_a_wait_to_start() -> None:
    store = beginning()
    found = store[start_up]
    assert (found.wait_ns, found.usual_ns, found.longest_other_ns) == (5_000_000, 100_000, 100_000)
    assert not found.seen_again  # one step
    assert int(store[steps]["start_ns"].iloc[0]) == found.end_ns
    assert int(store[ledger]["ns"].sum()) == 1_490_000  # the rest of the step


@pytest.mark.parametrize(
    "store",
    [
        beginning(wait=900),  # nine times as long
        beginning(before=2_000),  # most of the computing came before
        beginning(first="hcom_receive__1_0"),  # a stage of a pipeline waits like that in every step
    ],
    ids=["not much longer", "within the step", "pipeline"],
)
def test_other_first_collectives_belong_to_the_step(store: FactStore) -> None:
    with pytest.raises(NotApplicable):
        store[start_up]
    assert int(store[steps]["start_ns"].iloc[0]) == int(store[start_up.needs[0]]["start_ns"].min())


def test_a_later_step_confirms_it() -> None:
    rows = [kernel(10, 5_000, "hcom_allGather__1_0"), kernel(5_100, 500), kernel(5_700, 100, "hcom_allGather__1_1")]
    rows += [kernel(6_000, 90, "hcom_allGather__1_2", step=2), kernel(6_100, 500, step=2)]
    assert fact_store(kernels=table("kernels", rows))[start_up].seen_again


def amid_earlier_work(launched: float = 20, stream: int = 3) -> Scene:
    """A kernel on a stream of its own, then ten on another one, the first of which starts after 5 ms."""
    scene = Scene().kernel(10, 4, stream=2)
    for number in range(10):
        scene.kernel(5_000 + number * 100, 100, launched=launched + number, stream=stream)
    return scene


def test_the_device_was_busy_with_what_was_handed_over_before() -> None:
    store = amid_earlier_work().store()
    found = store[backlog]
    assert (found.wait_ns, found.stream, found.began_ns) == (4_980_000, 3, 10_000)
    assert store[steps][["start_ns", "end_ns"]].to_numpy().tolist() == [[5_000_000, 6_000_000]]
    assert store[ledger]["path"].str.startswith("compute").all()


def test_the_replay_keeps_the_time_until_the_device_is_free() -> None:
    store = amid_earlier_work().store()
    graph = store[rank_graph]
    assert graph.replayed().tolist() == graph.nodes.end_ns.tolist()
    assert store[explained].error_share == 0


@pytest.mark.parametrize(
    "scene",
    [
        amid_earlier_work(launched=4_500),  # handed over late
        amid_earlier_work(stream=2),  # not the first of its stream
        amid_earlier_work().kernel(20, 4_000, stream=4),  # what it may have waited for is recorded
        Scene().kernel(10, 1_000).kernel(6_000, 100, launched=1_100, stream=4),  # most was computed before
    ],
    ids=["late", "same stream", "recorded", "later"],
)
def test_other_waits_belong_to_the_step(scene: Scene) -> None:
    store = scene.store()
    with pytest.raises(NotApplicable):
        store[backlog]
    assert int(store[steps]["start_ns"].iloc[0]) == 10_000


def benchmark(launches: int = 10, *, pause: float = 1_000, first: float = 600) -> list[dict[str, Any]]:
    """One operator, of two kernels, again and again; the first launch is cold."""
    rows = []
    for number in range(launches):
        start = number * (100 + pause)
        rows += [kernel(start, 10, "MemSet"), kernel(start + 10, first if number == 0 else 90)]
    return rows


def test_the_steps_of_a_benchmark_are_its_launches() -> None:
    store = fact_store(about=BARE, kernels=table("kernels", benchmark()))
    assert store[kernel_list].why == "benchmark"
    windows = store[steps]
    assert store[kernel_list].cold == 1  # the first, of 610 us
    assert (windows["end_ns"] - windows["start_ns"]).tolist() == [100_000] * 9
    booked = store[ledger]
    assert not booked["path"].str.startswith("idle").any()
    assert int(booked["ns"].sum()) == 900_000


def test_a_benchmark_without_a_cold_start_has_all_its_launches() -> None:
    assert len(fact_store(about=BARE, kernels=table("kernels", benchmark(first=90)))[steps]) == 10


@pytest.mark.parametrize(
    "rows",
    [
        benchmark(pause=50),  # mostly busy
        benchmark(4),
        [*benchmark(), kernel(20_000, 10, "hcom_allReduce__1_0")],
        [row | {"step": number // 10} for number, row in enumerate(benchmark())],
        [kernel(1_000 * n, 100, f"Type{n % 7}") for n in range(20)],
    ],
    ids=["busy", "few", "collectives", "steps", "many kinds"],
)
def test_a_loop_is_no_benchmark(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(NotApplicable):
        fact_store(about=BARE, kernels=table("kernels", rows))[kernel_list]


def test_holes_are_gaps_beyond_the_wait_of_the_exporter() -> None:
    rows = [
        kernel(0, 10),
        kernel(30, 10, wait_us=20),
        kernel(500, 10, wait_us=5),  # 455 us are missing
        kernel(505, 20, wait_us=0),  # overlaps
        kernel(700, 10),  # no wait recorded
    ]
    assert holes(table("kernels", rows)).tolist() == [0, 0, 455_000, 0, 0]


def test_rows_with_holes_are_no_step() -> None:
    rows = [kernel(0, 10), kernel(30, 10, wait_us=20), kernel(500, 10, wait_us=5), kernel(530, 10, wait_us=20)]
    store = fact_store(kernels=table("kernels", rows))
    assert store[kernel_list].why == "holes"
    windows = store[steps]
    np.testing.assert_array_equal(windows[["start_ns", "end_ns"]], [[0, 40_000], [500_000, 540_000]])


def by_hand(path: Path) -> pd.DataFrame:
    """Start, end and name of the rows of a file, in ns."""
    rows = pd.read_csv(path)
    starts = (rows["Start Time(us)"].astype(float) * 1000).round().astype("int64")
    return pd.DataFrame({"start": starts, "end": starts + (rows["Duration(us)"] * 1000).round(), "name": rows["Name"]})


def test_a_real_first_step_is_told_without_its_wait_to_start(result_of: ResultOf, profiles: Path) -> None:
    folder = profiles / "ascend" / "gpt3-kernel-details-only_ascend_pt"
    rows = by_hand(folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv")
    wait = rows[rows["name"] == "hcom_broadcast__445_0"].iloc[0]
    result = result_of(folder)
    (step,) = result.ledger
    assert step.wall_ns == pytest.approx(rows["end"].max() - wait["end"], abs=2_000)
    told = next(finding for finding in result.findings if finding.rule == "DQ017")
    assert told.observation["wait_ns"] == pytest.approx(308_926_680, abs=1_000)
    idle = sum(entry.ns for entry in step.entries if entry.path.startswith("idle"))
    assert idle / 1e6 == pytest.approx(119.56, abs=0.01)
    assert "DQ015" not in {finding.rule for finding in result.findings}  # told once


def test_a_real_server_was_amid_an_earlier_pass(result_of: ResultOf, profiles: Path) -> None:
    path = profiles / "kineto" / "sglang_Qwen3-8B_prefilldecode.json.gz"
    result = result_of(path)
    told = next(finding for finding in result.findings if finding.rule == "GDQ012")
    # By hand: the second kernel starts 493,287.214 us after the first one, and was handed over 43 us after it.
    assert told.observation["wait_ns"] == pytest.approx(493_244_000, abs=20_000)
    assert "GHD001" not in {finding.rule for finding in result.findings}
    (step,) = result.ledger
    assert step.wall_ns == pytest.approx(494_004_000, abs=100_000)


def test_a_real_list_with_holes_has_no_idle_finding(result_of: ResultOf, profiles: Path) -> None:
    result = result_of(profiles / "ascend" / "msprof-op-summary")
    rules = {finding.rule for finding in result.findings}
    assert "HD001" not in rules and {"DQ016", "DQ018"} <= rules
    computing = sum(entry.ns for step in result.ledger for entry in step.entries if entry.path.startswith("compute"))
    assert computing / 1e6 == pytest.approx(27.1306, abs=1e-3)  # the sum of its computing rows
    assert any("230.636 ms against 6.550 ms" in diagnostic.message.en for diagnostic in result.diagnostics)
