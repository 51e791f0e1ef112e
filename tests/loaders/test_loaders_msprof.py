"""msprof exports: what is found, what is read, and what is said to be missing."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor_core.contracts.profile import InputError, Profile, RankInput
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.facts.device.chip import chip
from advisor_core.facts.device.pipes import pipes
from advisor_core.facts.device.work import work
from advisor_core.facts.steps.recorded_steps import recorded_steps
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.timeline import timeline
from advisor_core.facts.store import FactStore
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.loaders.msprof.files import export_name
from advisor_core.loaders.msprof.loader import MsprofLoader
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.loaders import databases

STAMP = "20240101000000"
NEW = "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us)"
NEW += ",Task Wait Time(us),Block Num,Input Shapes,Input Data Types,aicore_time(us),aic_total_cycles,aic_mac_time(us)"
OLD = "Op Name,OP Type,Task Type,Start Time(us),Duration(us),Block Dim"


def row(name: str, start: str, duration: str, device: int = 0, core: str = "AI_CORE", kind: str = "MatMulV2") -> str:
    return (
        f"{device},4294967295,7,2,{name},{kind},static,{core},{start}\t,{duration},0,24,"
        f'"""4,8;8,16""",DT_BF16;DT_BF16,N/A,86400,1.5'
    )


def table(*rows: str, header: str = NEW) -> str:
    return "\n".join((header, *rows, ""))


def export(root: Path, files: Mapping[str, str], name: str = "PROF_000001_20240101000000000_ABCD") -> Path:
    """A PROF directory with these files in its output, and the directory."""
    output = root / name / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    for file, content in files.items():
        (output / file).write_text(content)
    return root / name


def found(*paths: Path) -> list[RankInput]:
    return discover([AscendPytorchLoader(), MsprofLoader()], *paths)


def load(path: Path) -> Profile:
    (source,) = found(path)
    assert source.loader == "msprof"
    return MsprofLoader().load(source)


def said(profile: Profile) -> str:
    return "\n".join(f"{diagnostic.severity}: {diagnostic.message.en}" for diagnostic in profile.diagnostics)


def facts(profile: Profile) -> FactStore:
    return FactStore(
        {fact.name: fact for fact in (work, recorded_steps, steps, timeline, pipes, chip)}, profile.given()
    )


# --- a real export


def real_rows(path: Path) -> Iterable[dict[str, str]]:
    """The records that have as many values as the header; the file has one that has not."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:] if len(line) == len(lines[0])]


def test_real_export(profiles: Path) -> None:
    folder = profiles / "msprof-op-summary"
    file = folder / "op_summary_20240101000000.csv"
    rows = list(real_rows(file))
    profile = load(folder)
    kernels = profile.tables["kernels"].frame
    assert (profile.kind, profile.framework, profile.level) == ("msprof", None, "level1")
    assert len(kernels) == len(rows) == 20
    assert "1 row does not have 32 values" in said(profile) and "csv:17 " in said(profile)

    # computed from the file alone
    attention = sum(float(r["Task Duration(us)"]) for r in rows if r["OP Type"] == "FlashAttentionScore")
    ours = kernels.loc[kernels["type"] == "FlashAttentionScore", "duration_ns"].sum()
    assert ours == pytest.approx(attention * 1000, abs=2)
    vector = sum(float(r["aiv_time(us)"]) for r in rows if r["aiv_time(us)"] != "N/A")
    assert kernels["aiv_ns"].sum() == pytest.approx(vector * 1000, rel=1e-12)
    shapes = next(r["Input Shapes"] for r in rows if r["OP Type"] == "ZerosLike").strip('"')
    assert kernels["input_shapes"][kernels["type"] == "ZerosLike"].tolist() == [shapes]

    # busy time: sweep over the rows by start
    spans = []
    for r in rows:
        whole, _, part = r["Start Time(us)"].partition(".")
        start = int(whole) * 1000 + int(f"{part:0<3}")
        spans.append((start, start + round(float(r["Task Duration(us)"]) * 1000)))
    busy, end = 0, 0
    for first, last in sorted(spans):
        busy += max(0, last - max(first, end))
        end = max(end, last)
    totals = facts(profile)[timeline].totals().iloc[0]
    assert totals["wall_ns"] == end - min(spans)[0]
    assert totals["computing_ns"] + totals["uncovered_ns"] == busy
    assert load(file).tables["kernels"].frame.equals(kernels)


# --- headers, values, levels


def test_new_and_old_headers(tmp_path: Path) -> None:
    new = load(export(tmp_path / "new", {f"op_summary_{STAMP}.csv": table(row("a", "1000.001", "2.5"))}))
    first = new.tables["kernels"].frame.iloc[0]
    assert (first["start_ns"], first["duration_ns"], first["block_dim"], first["model"]) == (1000001, 2500, 24, -1)
    assert (first["input_shapes"], first["input_dtypes"], first["step"]) == ("4,8;8,16", "BF16;BF16", -1)
    assert np.isnan(first["aic_ns"]) and first["aic_mac_ns"] == 1500
    assert "device_id" not in new.tables["kernels"].frame
    assert new.tables["kernels"].positions(np.array([0])).tolist() == [2]

    folder = tmp_path / "old"
    folder.mkdir()
    (folder / f"op_summary_0_1_{STAMP}.csv").write_text(table("a,N/A,N/A,1000.001,2.5,0", header=OLD))
    old = load(folder)
    first = old.tables["kernels"].frame.iloc[0]
    assert (first["start_ns"], first["duration_ns"], first["type"], first["core"]) == (1000001, 2500, "", "")
    assert (old.level, new.level) == ("level0", "level1")
    assert "level0 is inferred" in said(old)
    assert "--task-time=l1" in said(old) and "warning" not in said(new)


def test_the_step_is_anonymous(tmp_path: Path) -> None:
    rows = [row("a", "1000", "2"), row("b", "1001", "5"), row("c", "1010", "1", core="HCCL", kind="hcom_allReduce_")]
    computed = facts(load(export(tmp_path, {f"op_summary_{STAMP}.csv": table(*rows)})))
    assert computed[steps].to_dict("records") == [{"step": -1, "start_ns": 1000000, "end_ns": 1011000}]
    totals = computed[timeline].totals().iloc[0].to_dict()
    assert (totals["computing_ns"], totals["uncovered_ns"], totals["idle_ns"]) == (6000, 1000, 4000)


def test_missing_columns_and_files(tmp_path: Path) -> None:
    directory = export(tmp_path, {f"op_summary_{STAMP}.csv": table("a,1000", header="Op Name,Task Start Time(us)")})
    with pytest.raises(InputError, match="Duration"):
        load(directory)

    profile = load(export(tmp_path / "b", {f"op_summary_{STAMP}.csv": table(row("a", "1000", "2"))}))
    assert set(profile.missing) | set(profile.tables) == set(SCHEMAS)
    for reason in profile.missing.values():
        assert reason.collect is not None and reason.collect.en and reason.collect.zh
    assert "msprof_*.json" in profile.missing["device_tasks"].reason.en
    assert "framework" in profile.missing["operators"].reason.en
    assert "--analyze=on" in str(profile.missing["links"].collect)

    alone = load(directory.parent / "b" / directory.name / "mindstudio_profiler_output" / f"op_summary_{STAMP}.csv")
    assert list(alone.tables) == ["kernels"]
    assert "only" in alone.missing["api_statistic"].reason.en
    assert "PROF_*" in str(alone.missing["api_statistic"].collect)


def test_the_other_files(tmp_path: Path) -> None:
    files = {
        f"op_summary_{STAMP}.csv": table(row("a", "1000.001", "2.5")),
        f"task_time_{STAMP}.csv": "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),"
        "task_stop(us)\n0,a,KERNEL_AICORE,3,4,2.5,1000.001\t,1002.501\t\n0,N/A,EVENT_WAIT,3,5,1,1003\t,1004\t\n",
        f"api_statistic_{STAMP}.csv": "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
        "host,runtime,KernelLaunch,12.5,3,4,1,9,0.5\n",
        f"op_statistic_{STAMP}.csv": "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),"
        "Max Time(us),Ratio(%)\n0,MatMulV2,AI_CORE,2,10,4,5,6,100\n",
        f"npu_module_mem_{STAMP}.csv": "Device_id,Component,Timestamp(us),Total Reserved(KB),Device\n"
        "0,HCCL,1,2,NPU:0\n",
        f"memory_record_{STAMP}.csv": "Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),"
        "Device\n0,GE,1,3,4,NPU:0\n",
        f"operator_memory_{STAMP}.csv": "Device_id,Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total "
        "Allocated(KB),Allocation Total Reserved(KB),Release Total Allocated(KB),Release Total Reserved(KB),Device\n"
        "0,Graph_21,192,16995.950\t,92.6,192,502336,0,502336,NPU:0\n0,Graph_22,8,16995.950\t,N/A,192,5,N/A,N/A,NPU:0\n",
    }
    profile = load(export(tmp_path, files))
    tasks = profile.tables["device_tasks"].frame
    assert tasks["task_type"].tolist() == ["AI_CORE", "EVENT_WAIT_SQE"]
    assert tasks["name"].tolist() == ["a", ""]
    assert tasks[["start_ns", "duration_ns", "stream", "task"]].iloc[0].tolist() == [1000001, 2500, 3, 4]
    assert profile.tables["api_statistic"].frame["total_ns"].tolist() == [12500]
    assert profile.tables["op_statistic"].frame["share"].tolist() == [1.0]
    assert profile.tables["module_memory"].frame["reserved_bytes"].tolist() == [2048.0]
    assert profile.tables["memory_record"].frame[["allocated_bytes", "reserved_bytes"]].iloc[0].tolist() == [3072, 4096]
    memory = profile.tables["operator_memory"].frame
    assert memory["name"].tolist() == ["cann::Graph_21", "cann::Graph_22"]
    assert memory[["bytes", "allocation_ns", "release_ns", "reserved_bytes"]].to_numpy().tolist() == [
        [192 * 1024, 16_995_950, 17_088_550, 502_336 * 1024],
        [8 * 1024, 16_995_950, -1, 5 * 1024],
    ]
    assert "step_trace" in profile.missing and "warning" not in said(profile) and "error" not in said(profile)

    del files[f"op_summary_{STAMP}.csv"]
    lone = load(export(tmp_path / "lone", files))
    assert lone.level is None and "kernels" in lone.missing and "api_statistic" in lone.tables
    assert "which tasks are collectives" in lone.missing["device_tasks"].reason.en


GRAPH = "Device_id,Model ID,Infer ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
RUNS = (
    "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    "Iteration Refresh(us),Data Aug Bound(us),Model ID,Reduce Start(us),Reduce Duration(us)\n"
)


def test_runs_of_a_graph_are_steps(tmp_path: Path) -> None:
    """Graph 1 initialises, graph 11 is the step: its runs, whatever else runs between them."""
    kernels = [("a", 1, 1000), ("b", 11, 2000), ("c", 11, 2090), ("d", 1, 2150), ("e", 11, 2200), ("f", 11, 2400)]
    rows = "".join(f"0,{model},N/A,{name},Add,AI_CORE,{start}.000\t,5\n" for name, model, start in kernels)
    runs = "0,1,N/A,N/A,1100.000\t,100,N/A,N/A,N/A,1,N/A,N/A\n"
    runs += "0,1,N/A,N/A,2100.000\t,150,N/A,N/A,N/A,11,N/A,N/A\n0,2,N/A,N/A,2300.000\t,200,N/A,N/A,0,11,N/A,N/A\n"
    files = {f"op_summary_{STAMP}.csv": GRAPH + rows, f"step_trace_{STAMP}.csv": RUNS + runs}
    profile = load(export(tmp_path, files))
    # d lies within the second run of graph 11, which began when the first ended; f in none
    assert profile.tables["kernels"].frame["step"].tolist() == [-1, 1, 1, 2, 2, -1]
    assert facts(profile)[steps]["step"].tolist() == [1, 2]
    assert f"mindstudio_profiler_output/step_trace_{STAMP}.csv" in said(profile)


def test_runs_that_kernels_name(tmp_path: Path) -> None:
    rows = [("a", 1, 1), ("b", 11, 1), ("c", 11, 2), ("d", 11, 2), ("e", 1, 2)]
    text = "".join(f"0,{m},{run},{name},Add,AI_CORE,{n + 1}000.000\t,{m}\n" for n, (name, m, run) in enumerate(rows))
    profile = load(export(tmp_path, {f"op_summary_{STAMP}.csv": GRAPH + text}))
    assert profile.tables["kernels"].frame["step"].tolist() == [-1, 1, 2, 2, -1]
    once = "0,11,1,a,Add,AI_CORE,1000.000\t,5\n0,11,1,b,Add,AI_CORE,2000.000\t,5\n"
    profile = load(export(tmp_path / "once", {f"op_summary_{STAMP}.csv": GRAPH + once}))
    assert profile.tables["kernels"].frame["step"].tolist() == [-1, -1]


@pytest.mark.parametrize("suffix", ["", "_exe"])
def test_pipes_of_cores_that_are_whole(tmp_path: Path, suffix: str) -> None:
    """910A, 310P: cube and vector units in one core, so that no pipe is named after one."""
    names_of_pipes = ("vec", "mac", "scalar", "mte1", "mte2", "mte3")
    names = ",".join(f"{pipe}{suffix}_time(us),{pipe}{suffix}_ratio" for pipe in names_of_pipes)
    header = f"Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),aicore_time(us),total_cycles,{names}\n"
    values = ",".join(f"{number + 1}.5,0.1" for number in range(len(names_of_pipes)))
    profile = load(
        export(tmp_path, {f"op_summary_{STAMP}.csv": f"{header}k,MatMul,AI_CORE,1000.000\t,20,9.87,78923,{values}\n"})
    )
    (kernel,) = profile.tables["kernels"].frame.to_dict("records")
    assert (kernel["aic_ns"], kernel["aic_cycles"]) == (9870, 78923) and np.isnan(kernel["aiv_ns"])
    fields = ("aiv_vec", "aic_mac", "aic_scalar", "aic_mte1", "aic_mte2", "aiv_mte3")
    assert [kernel[f"{name}_ns"] for name in fields] == [1500, 2500, 3500, 4500, 5500, 6500]
    assert facts(profile)[pipes]["bound"].tolist() == ["aiv_mte3"]


def timeline_of(pid: int, tasks: Iterable[tuple[str, str, int]]) -> str:
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": "Ascend Hardware"}},
        {"name": "process_name", "ph": "M", "pid": 7, "tid": 0, "args": {"name": "CANN"}},
        {"name": "AscendCL@aclnnAdd", "ph": "X", "pid": 7, "tid": 9, "ts": "900.000", "dur": 5.0, "args": {}},
    ]
    for name, start, connection in tasks:
        args = {"Task Type": "AI_CORE", "Physic Stream Id": 2, "Task Id": 1, "connection_id": connection}
        events.append({"name": name, "ph": "X", "pid": pid, "tid": 2, "ts": start, "dur": 2.0, "args": args})
    return json.dumps(events)


def test_the_timeline_is_preferred_to_task_time(tmp_path: Path) -> None:
    header = "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)"
    files = {
        f"msprof_{STAMP}.json": timeline_of(8, [("a", "1000.001", 5)]),
        f"task_time_{STAMP}.csv": f"{header}\n0,b,KERNEL_AICORE,3,4,2.5,1000.001\t,1002.501\t\n",
    }
    profile = load(export(tmp_path, files))
    assert profile.tables["device_tasks"].frame["connection"].tolist() == [5]
    assert profile.tables["device_tasks"].source.file.endswith(".json")
    assert profile.tables["host_events"].frame["name"].tolist() == ["AscendCL@aclnnAdd"]


# --- slices and several exports


def test_slices_are_one_table(tmp_path: Path) -> None:
    files = {
        f"op_summary_slice_{i}_{STAMP}.csv": table(*(row(f"k{i}_{j}", f"{1000 + 10 * i + j}", "1") for j in range(2)))
        for i in range(11)
    }
    files |= {
        f"msprof_slice_0_{STAMP}.json": timeline_of(8, [("a", "1000.001", 5)]),
        f"msprof_slice_1_{STAMP}.json": timeline_of(8, [("b", "1010.001", 6), ("c", "1012.001", 7)]),
    }
    directory = export(tmp_path, files)
    profile = load(directory)
    kernels = profile.tables["kernels"]
    assert kernels.frame["name"].tolist() == [f"k{i}_{j}" for i in range(11) for j in range(2)]
    assert kernels.positions(np.array([0, 3, 20])).tolist() == [2, 3, 2]
    places = [Path(name).name for name in kernels.tables(np.array([0, 3, 20]))]
    assert places == [f"op_summary_slice_{i}_{STAMP}.csv" for i in (0, 1, 10)]
    assert Path(kernels.source.file).name == f"op_summary_slice_*_{STAMP}.csv"
    tasks = profile.tables["device_tasks"]
    assert tasks.frame["name"].tolist() == ["a", "b", "c"]
    (place,) = tasks.tables(np.array([2]))
    assert place.endswith(f"msprof_slice_1_{STAMP}.json")
    text = (directory / place).read_text()
    (offset,) = tasks.positions(np.array([2])).tolist()
    assert json.JSONDecoder().raw_decode(text[offset:])[0]["name"] == "c"
    assert len(profile.files) == 13


def test_a_missing_or_damaged_slice_costs_the_table(tmp_path: Path) -> None:
    content = table(row("a", "1000", "2"))
    tasks = {f"msprof_{STAMP}.json": timeline_of(8, [("a", "1000.001", 5)])}
    hole = {f"op_summary_slice_{i}_{STAMP}.csv": content for i in (0, 2)}
    profile = load(export(tmp_path / "hole", hole | tasks))
    assert "slices 1 are not there" in profile.missing["kernels"].reason.en
    assert "error" in said(profile)
    damaged = {f"op_summary_slice_0_{STAMP}.csv": content, f"op_summary_slice_1_{STAMP}.csv": "\0\n"}
    profile = load(export(tmp_path / "damaged", damaged | tasks))
    assert "kernels" in profile.missing and "device_tasks" in profile.tables


def test_the_newest_of_several_exports(tmp_path: Path) -> None:
    files = {
        f"op_summary_slice_0_{STAMP}.csv": table(row("old0", "1000", "2")),
        f"op_summary_slice_1_{STAMP}.csv": table(row("old1", "1001", "2")),
        f"op_summary_slice_2_{STAMP}.csv": table(row("old2", "1002", "2")),
        "op_summary_slice_0_20240202000000.csv": table(row("new0", "1000", "2")),
        "op_summary_slice_1_20240202000001.csv": table(row("new1", "1001", "2")),
    }
    profile = load(export(tmp_path, files))
    assert profile.tables["kernels"].frame["name"].tolist() == ["new0", "new1"]
    assert f"op_summary_slice_2_{STAMP}.csv" in said(profile)
    whole = {
        f"op_summary_{STAMP}.csv": table(row("old", "1000", "2")),
        "op_summary_20250101000000.csv": table(row("new", "1", "2")),
    }
    assert load(export(tmp_path / "w", whole)).tables["kernels"].frame["name"].tolist() == ["new"]


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        (f"op_summary_{STAMP}.csv", "op_summary", -1),
        (f"op_summary_slice_12_{STAMP}.csv", "op_summary", 12),
        (f"op_summary_0_1_{STAMP}.csv", "op_summary", -1),
        (f"msprof_tx_{STAMP}.csv", "msprof_tx", -1),
    ],
)
def test_names(name: str, kind: str, number: int) -> None:
    named = export_name(name)
    assert named is not None and (named.kind, named.slice, named.stamp) == (kind, number, int(STAMP))


def test_no_name_of_an_export() -> None:
    assert [export_name(name) for name in ("op_summary.csv", "trace_view.json", "op_summary_x.csv", "")] == [None] * 4


# --- devices and ranks


def test_several_devices_are_not_added_up(tmp_path: Path) -> None:
    rows = [row("a", "1000", "2", 3), row("b", "1001", "2", 1), row("c", "1002", "2", 1)]
    files = {
        f"op_summary_{STAMP}.csv": table(*rows),
        f"msprof_{STAMP}.json": timeline_of(8, [("a", "1000.001", 5)]),
    }
    profile = load(export(tmp_path, files))
    assert profile.tables["kernels"].frame["name"].tolist() == ["b", "c"]
    assert "device 1" in said(profile) and "left out: 3" in said(profile)
    assert "several devices" in profile.missing["device_tasks"].reason.en
    assert "host_events" in profile.tables and profile.missing["device_tasks"].collect is not None


def test_arrows_of_the_timeline_name_no_device_id(tmp_path: Path) -> None:
    """The table of arrows says whether an end lies on the device, which is no device id."""
    flow = {"name": "HostToDevice5", "cat": "HostToDevice", "id": "5", "tid": 2}
    events = json.loads(timeline_of(8, [("a", "1000.001", 5)]))
    events += [flow | {"ph": "s", "pid": 7, "ts": "901.000"}, flow | {"ph": "f", "pid": 8, "ts": "1000.001"}]
    profile = load(export(tmp_path, {f"msprof_{STAMP}.json": json.dumps(events)}))
    assert profile.tables["flows"].frame["device"].tolist() == [False, True] and said(profile) == ""


def info(directory: Path, device: int, **more: Any) -> None:
    body = {"DeviceInfo": [{"ai_core_num": 24, "aiv_num": 48, "aic_frequency": "1850", "hwts_frequency": "50"}], **more}
    (directory / f"device_{device}").mkdir()
    (directory / f"device_{device}" / f"info.json.{device}").write_text(json.dumps(body))


def test_ranks_and_the_chip(tmp_path: Path) -> None:
    for name, rank in (("PROF_000001_1_A", 5), ("PROF_000001_2_B", -1)):
        directory = export(tmp_path, {f"op_summary_{STAMP}.csv": table(row("a", "1000", "2"))}, name)
        info(directory, 0, rank_id=rank)
    assert [(source.rank, source.directory.name) for source in found(tmp_path)] == [
        (0, "PROF_000001_2_B"),
        (5, "PROF_000001_1_A"),
    ]
    profile = MsprofLoader().load(found(tmp_path)[1])
    assert profile.chip == {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1850.0}
    assert "device_0/info.json.0" in [file.name for file in profile.files]
    known = facts(profile)[chip]
    assert (known.cube_cores, known.vector_cores, known.mhz, known.basis) == (24, 48, 1850.0, "info.json")


def test_the_chip_beside_a_profile_of_a_framework(tmp_path: Path) -> None:
    output = tmp_path / "a_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("Name,Start Time(us),Duration(us)\nk,1,2\n")
    collected = tmp_path / "a_ascend_pt" / "PROF_000001_1_A"
    collected.mkdir()
    info(collected, 3)
    (source,) = found(tmp_path)
    profile = AscendPytorchLoader().load(source)
    assert (profile.chip["ai_core_num"], profile.chip["aic_frequency"]) == (24, 1850.0)
    assert "PROF_000001_1_A/device_3/info.json.3" in [file.name for file in profile.files]
    info(collected, 4)
    assert AscendPytorchLoader().load(source).chip == {}


def test_damaged_device_info(tmp_path: Path) -> None:
    directory = export(tmp_path, {f"op_summary_{STAMP}.csv": table(row("a", "1000", "2"))})
    (directory / "device_0").mkdir()
    (directory / "device_0" / "info.json.0").write_text("{")
    profile = load(directory)
    assert profile.chip == {} and "device_0/info.json.0" in said(profile)


# --- what belongs to whom


def test_communication_analysis_of_msprof(tmp_path: Path) -> None:
    directory = export(tmp_path, {f"op_summary_{STAMP}.csv": table(row("a", "1000", "2"))})
    (directory / "analyze").mkdir()
    times = {"Start Timestamp(us)": 1000.0, "Elapse Time(ms)": 2.0, "Transit Time(ms)": 1.0, "Wait Time(ms)": 0.5}
    operation = {"Communication Time Info": times, "Communication Bandwidth Info": {}}
    body = {"step": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@123": operation}}}
    (directory / "analyze" / "communication.json").write_text(json.dumps(body))
    for path in (tmp_path, directory):
        collectives = load(path).tables["collectives"].frame
        assert (collectives["elapse_ns"].tolist(), collectives["group"].tolist()) == ([2000000], ["123"])


def test_communication_analysis_as_a_database(tmp_path: Path) -> None:
    directory = export(tmp_path, {f"op_summary_{STAMP}.csv": table(row("a", "1000.001", "2.5"))})
    analysed = databases.analysis()
    del analysed["StepTraceTime"]
    databases.write(directory / "analyze" / "communication_analyzer.db", analysed)
    profile = load(tmp_path)
    assert {"collectives", "collective_bandwidth", "links"} <= profile.tables.keys()
    assert not {"collectives", "collective_bandwidth", "links"} & profile.missing.keys()
    assert profile.tables["links"].source.file.endswith("analyze/communication_analyzer.db")
    (directory / "analyze" / "communication.json").write_text("{")
    assert load(tmp_path).tables["collectives"].source.position == "rowid"
    (directory / "analyze" / "communication_analyzer.db").write_bytes(b"no database")
    broken = load(tmp_path)
    assert "communication_analyzer.db" in said(broken) and "links" in broken.missing


def test_a_run_of_a_serving_engine(tmp_path: Path) -> None:
    """MindIE and ATB let msprof profile each process of a server; a directory of each below one that they name."""
    files = {
        f"op_summary_{STAMP}.csv": table(row("PagedAttention", "1000.001", "2.5", kind="PagedAttentionMaskNdKernel"))
    }
    for rank in (0, 1):
        export(tmp_path / "mindie" / "prof" / f"worker_{rank}", files, f"PROF_00000{rank + 1}_20240101000000000_ABCD")
    sources = found(tmp_path / "mindie")
    assert [(source.rank, source.kind) for source in sources] == [(0, "msprof"), (1, "msprof")]
    assert MsprofLoader().load(sources[1]).tables["kernels"].frame["type"].tolist() == ["PagedAttentionMaskNdKernel"]


def test_a_framework_keeps_its_own(tmp_path: Path) -> None:
    framework = tmp_path / "a_ascend_pt"
    (framework / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (framework / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").write_text(
        "Name,Start Time(us),Duration(us)\nk,1,2\n"
    )
    inner = export(framework, {f"op_summary_{STAMP}.csv": table(row("a", "1000", "2"))})
    assert [source.loader for source in found(tmp_path)] == ["ascend_pytorch"]
    assert [source.loader for source in found(inner)] == ["msprof"]


def test_collected_but_not_exported(tmp_path: Path) -> None:
    directory = tmp_path / "PROF_000001_20240101000000000_ABCD"
    (directory / "device_0").mkdir(parents=True)
    with pytest.raises(InputError, match="msprof --export=on"):
        found(tmp_path)


def test_a_single_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / f"fusion_op_{STAMP}.csv").write_text("a\n")
    for path in (tmp_path, tmp_path / f"fusion_op_{STAMP}.csv"):
        with pytest.raises(InputError, match=r"no profile in it|not a file of a known kind"):
            found(path)


# --- the same content, exported by msprof and by the PyTorch profiler

HEADERS = {
    "Name": "Op Name",
    "Type": "OP Type",
    "Accelerator Core": "Task Type",
    "Start Time(us)": "Task Start Time(us)",
    "Duration(us)": "Task Duration(us)",
    "Wait Time(us)": "Task Wait Time(us)",
}
OF_THE_DEVICE = ("CO", "NS", "PB", "SA")
"""Prefixes of rules that judge what the device did; others ask also how the profile was taken, which msprof does not
record."""


@pytest.fixture(scope="module")
def both(advisor_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Rank 0 of a simulated job as the PyTorch profiler exports it, and the same files as msprof names them."""
    profile = min(advisor_sample.iterdir())
    output = profile / "ASCEND_PROFILER_OUTPUT"
    with (output / "kernel_details.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    directory = export(tmp_path_factory.mktemp("msprof"), {})
    target = directory / "mindstudio_profiler_output"
    with (target / f"op_summary_{STAMP}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[HEADERS.get(name, name) for name in header], *rows])
    (target / f"msprof_{STAMP}.json").write_bytes((output / "trace_view.json").read_bytes())
    (directory / "analyze").mkdir()
    for name in ("communication.json", "communication_matrix.json"):
        (directory / "analyze" / name).write_bytes((output / name).read_bytes())
    return profile, directory


def states(result: RunResult) -> dict[str, str]:
    return {outcome.rule: outcome.state for outcome in result.rules if outcome.rule.startswith(OF_THE_DEVICE)}


def ledger(result: RunResult) -> list[tuple[int | None, str, int]]:
    return [(step.step, entry.path, entry.ns) for step in result.ledger for entry in step.entries]


def test_op_summary_alone_is_judged_as_kernel_details_alone(both: tuple[Path, Path]) -> None:
    pytorch = run([both[0] / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"], RunOptions(), jobs=1)
    msprof = run([both[1] / "mindstudio_profiler_output" / f"op_summary_{STAMP}.csv"], RunOptions(), jobs=1)
    assert states(msprof) == states(pytorch) and ledger(msprof) == ledger(pytorch)
    answered = {rule[:2] for rule, state in states(msprof).items() if state in ("pass", "fail")}
    assert {"NS", "PB", "SA"} <= answered


def test_a_whole_export_has_the_ledger_of_the_pytorch_export(both: tuple[Path, Path]) -> None:
    pytorch = run([both[0]], RunOptions(), jobs=1)
    msprof = run([both[1]], RunOptions(), jobs=1)
    assert ledger(msprof) == ledger(pytorch)
    assert any(path.startswith("idle/host") for _, path, _ in ledger(msprof))
    for outcome in msprof.rules:
        if outcome.state == "cannot_answer":
            assert outcome.reason is not None and outcome.reason.en and outcome.reason.zh


# --- MindSpore, whose profiler writes the text files of PyTorch's


def test_a_profile_of_mindspore(tmp_path: Path) -> None:
    output = tmp_path / "a_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (tmp_path / "a_ascend_ms" / "profiler_info_2.json").write_text("{}")
    kernels = "Name,Type,Accelerator Core,Start Time(us),Duration(us)\nDefault/Add-op1/k,Add,AI_VECTOR_CORE,1.001\t,2\n"
    (output / "kernel_details.csv").write_text(kernels)
    (output / "operator_details.csv").write_text("Name,Input Shapes\nAdd,\n")
    host = {"ph": "X", "pid": 1, "tid": 5, "dur": 3.0}
    events = [
        {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "MindSpore"}},
        host | {"name": "KernelLaunch::Add", "ts": "1.000"},
        host | {"name": "mindspore/nn/cell.py(1)", "ts": "0.500", "cat": "python_function"},
    ]
    (output / "trace_view.json").write_text(json.dumps(events))
    (source,) = found(tmp_path)
    profile = AscendPytorchLoader().load(source)
    assert (source.rank, source.kind, profile.kind) == (2, "ascend_mindspore_text", "ascend_mindspore_text")
    assert (profile.framework, profile.level) == ("mindspore", "level1")
    assert profile.tables["kernels"].frame[["step", "start_ns", "type"]].iloc[0].tolist() == [-1, 1001, "Add"]
    assert profile.tables["host_events"].frame["category"].tolist() == ["cpu_op", "python_function"]
    assert "operators" in profile.missing and "MindSpore" in said(profile)
    # a note, not damage
    assert [d.severity for d in profile.diagnostics if "MindSpore" in d.message.en] == ["info"]


def test_databases_of_mindspore(tmp_path: Path) -> None:
    """Those of msprof under other names: the calls of the framework and the steps are not in them."""
    output = tmp_path / "host_1_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    profiler = output / "ascend_mindspore_profiler_3.db"
    framework = ("PYTORCH_API", "CONNECTION_IDS", "PYTORCH_CALLCHAINS", "STEP_TIME", "OP_MEMORY", "GC_RECORD")
    databases.write(profiler, databases.export(without=framework))
    analysed = databases.analysis()
    del analysed["StepTraceTime"]
    databases.write(output / "communication_analyzer.db", analysed)
    for path in (tmp_path, output.parent, output, profiler):
        (source,) = found(path)
        assert (source.rank, source.kind, source.problem) == (3, "ascend_mindspore_db", "")
    profile = AscendPytorchLoader().load(found(tmp_path)[0])
    assert (profile.kind, profile.framework, profile.level) == ("ascend_mindspore_db", "mindspore", "level1")
    assert set(profile.missing) == {"operators", "operator_memory", "step_trace", *databases.OF_OPTIONS}
    assert profile.tables["links"].source.file.endswith("communication_analyzer.db")
    assert profile.tables["kernels"].frame["step"].tolist() == [-1] * 4
    assert set(profile.tables["host_events"].frame["category"]) == {"runtime"}
    assert "could not be checked on a real one" in said(profile)
    # a text export beside it: the richer one is read, and named for what it is
    (output / "kernel_details.csv").write_text("Name,Type,Start Time(us),Duration(us)\nk,Add,1.001\t,2\n")
    assert AscendPytorchLoader().load(found(tmp_path)[0]).kind == "ascend_mindspore_db"
