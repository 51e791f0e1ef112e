"""Ranks of which only the sums of a cluster analysis are there."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.cluster_analysis.loader import ClusterAnalysisLoader
from advisor_core.loaders.discover import discover
from advisor_core.result.run import RunResult

Run = Callable[..., RunResult]
HEAD = "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
LOADER = ClusterAnalysisLoader()


def analysis(folder: Path, rows: list[str], head: str = HEAD) -> Path:
    """A folder with a cluster analysis."""
    output = folder / "cluster_analysis_output"
    output.mkdir(parents=True)
    (output / "cluster_step_trace_time.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return folder


def test_every_rank_of_the_file_is_a_coarse_rank(tmp_path: Path) -> None:
    rows = ["3,rank,0,10.5,20,1,21,30,60.5,0", "3,rank,12,11,21,1,22,29,61,0", '3,stage,"(0, 12)",11,21,1,22,30,61,0']
    found = LOADER.discover(analysis(tmp_path, rows))
    assert [(source.rank, source.coarse, source.problem) for source in found] == [(0, True, ""), (12, True, "")]
    profile = LOADER.load(found[1])
    (step,) = profile.tables["step_trace"].frame.to_dict("records")
    assert (step["step"], step["computing_ns"], step["uncovered_communication_ns"], step["free_ns"]) == (
        3,
        11_000,
        21_000,
        29_000,
    )
    assert profile.coarse and profile.world_size == 13 and profile.parallel == {}
    assert profile.missing["kernels"].reason.en == "of this rank only the sums of a cluster analysis are there"


def test_stages_of_a_pipeline_are_told(tmp_path: Path) -> None:
    rows = [f"2,rank,{rank},10,20,1,21,30,60,0" for rank in range(4)]
    rows += ['2,stage,"(0, 1)",10,20,1,21,30,60,0', '2,stage,"(2, 3)",10,20,1,21,30,60,0']
    source, *_ = LOADER.discover(analysis(tmp_path, rows))
    assert LOADER.load(source).parallel == {"pp": 2}


def test_a_step_that_is_not_recorded_and_values_that_are_none_are_told(tmp_path: Path) -> None:
    rows = [",rank,0,10,20,1,21,30,60,0", "1,rank,0,oops,20,1,21,30,60,0"]
    source, *_ = LOADER.discover(analysis(tmp_path, rows))
    profile = LOADER.load(source)
    assert profile.tables["step_trace"].frame["step"].tolist() == [-1]
    assert [said.severity for said in profile.diagnostics] == ["warning"]


@pytest.mark.parametrize(
    ("head", "rows", "said"),
    [
        ("Step,Type,Index", ["1,rank,0"], "lacks Computing"),
        (HEAD, ["1,rank,0,oops,20,1,21,30,60,0"], "nothing of rank 0 can be used"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, head: str, rows: list[str], said: str) -> None:
    source = RankInput(tmp_path, analysis(tmp_path, rows, head) / "cluster_analysis_output", "", 0, LOADER.name, 0)
    with pytest.raises(InputError, match=said):
        LOADER.load(source)


def test_a_rank_that_is_profiled_in_depth_takes_the_place_of_its_sums(tmp_path: Path) -> None:
    analysis(tmp_path, [f"2,rank,{rank},10,20,1,21,30,60,0" for rank in range(3)])
    deep = tmp_path / "rank1_ascend_pt"
    (deep / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (deep / "profiler_info_1.json").write_text('{"rank_id": 1}', encoding="utf-8")
    (deep / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").write_text("Step,Computing\n2,10\n", encoding="utf-8")
    found = discover([AscendPytorchLoader(), LOADER], tmp_path)
    assert [(source.rank, source.coarse) for source in found] == [(0, True), (1, False), (2, True)]


def test_the_bubble_of_sums_is_waiting_for_the_pipeline(tmp_path: Path, advisor_run: Run) -> None:
    rows = ["2,rank,0,40,10,0,10,50,100,0", "2,rank,1,40,30,0,30,30,80,20"]
    rows += ['2,stage,"(0,)",40,10,0,10,50,100,0', '2,stage,"(1,)",40,30,0,30,30,80,20']
    result = advisor_run(analysis(tmp_path, rows))
    booked = {(step.rank, entry.path): entry.ns for step in result.ledger for entry in step.entries}
    assert booked[1, "communication/wait/pipeline"] == 20_000 and booked[1, "communication/unknown"] == 10_000
    assert (0, "communication/wait/pipeline") not in booked and booked[0, "communication/unknown"] == 10_000
    (found,) = [finding for finding in result.findings if finding.rule == "CO008"]
    assert found.observation["wait_share"] == 0.2 and found.ranks == [1]


def read(file: Path) -> dict[int, dict[str, float]]:
    with file.open(newline="", encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if row["Type"] == "rank"]
    return {int(row["Index"]): {name: float(row[name]) for name in HEAD.split(",")[3:]} for row in rows}


def test_eight_real_ranks_name_the_one_that_is_late(profiles: Path, advisor_run: Run) -> None:
    """Computing is 80 ms of 1.7 s on every rank; rank 1 communicates least and idles longest."""
    folder = profiles / "cluster-8-ranks"
    raw = read(folder / "cluster_analysis_output" / "cluster_step_trace_time.csv")
    result = advisor_run(folder)
    for step in result.ledger:
        booked = {entry.path: entry.ns for entry in step.entries}
        assert booked["compute/unknown"] == pytest.approx(raw[step.rank]["Computing"] * 1000, abs=1)
        assert booked["idle/unknown"] == pytest.approx(raw[step.rank]["Free"] * 1000, abs=1)
    (found,) = [finding for finding in result.findings if finding.rule == "CO015"]
    least = sorted(raw, key=lambda rank: raw[rank]["Communication(Not Overlapped)"])
    assert found.subject == {"late": least[0]} == {"late": 1}
    gain = (raw[least[1]]["Communication(Not Overlapped)"] - raw[1]["Communication(Not Overlapped)"]) * 1000
    assert found.observation["saveable_ns"] == pytest.approx(gain)
    assert found.observation["by_idle"] is True


def test_sixteen_real_ranks_of_which_two_are_profiled_in_depth(profiles: Path, advisor_run: Run) -> None:
    """The ranks of a stage are even: nobody is late."""
    result = advisor_run(profiles / "gpt3-pp2-2-of-16-ranks")
    assert [source.rank for source in result.inputs] == list(range(16))
    assert {source.kind for source in result.inputs[2:]} == {"cluster_analysis"}
    (judged,) = [rule for rule in result.rules if rule.rule == "CO015"]
    assert judged.state == "pass"


def test_real_sums_of_a_second_stage_say_how_long_it_waits_for_the_first(profiles: Path, advisor_run: Run) -> None:
    """The exporter's Bubble, 178 to 195 ms on ranks 8 to 15, is told as waiting for the pipeline and not as unknown."""
    folder = profiles / "gpt3-pp2-2-of-16-ranks"
    raw = read(folder / "cluster_analysis_output" / "cluster_step_trace_time.csv")
    result = advisor_run(folder)
    waiting = {
        step.rank: entry.ns for step in result.ledger for entry in step.entries if entry.path.endswith("/pipeline")
    }
    assert sorted(rank for rank, ns in waiting.items() if ns) == list(range(8, 16))
    for step in result.ledger:
        booked = {entry.path: entry.ns for entry in step.entries}
        open_ns = sum(ns for path, ns in booked.items() if path.startswith("communication/"))
        assert booked.get("communication/wait/pipeline", 0) == pytest.approx(raw[step.rank]["Bubble"] * 1000, abs=1)
        assert open_ns == pytest.approx(raw[step.rank]["Communication(Not Overlapped)"] * 1000, abs=1)
    (found,) = [finding for finding in result.findings if finding.rule == "CO008"]
    assert found.ranks == list(range(8, 16)) and found.severity == "high"
    assert found.observation["data_included"] is True and found.observation["stages"] == 2
