"""Files that few recordings have, written by their documentation: memory of compiled graphs, nodes on the AI CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.msprof.loader import MsprofLoader
from tests.loaders.test_loaders_counters import ascend

GRAPHS = "Device_id,Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)\n"
NODES = (
    "Device_id,Timestamp(us),Node,Compute_time(us),Memcpy_time(us),Task_time(us),Dispatch_time(us),Total_time(us),"
    "Stream ID,Task ID\n"
)


def test_memory_of_graphs(tmp_path: Path) -> None:
    rows = "host,conv,0,1,0,3,2\nhost,add,sub,1,2,4294967295,0.5\nhost,TOTAL,0,1,0,4294967295,8\nhost,bad,0,1,0,3,-2\n"
    profile = ascend(tmp_path, static_op_mem=GRAPHS + rows)
    frame = profile.tables["graph_memory"].frame
    assert frame[["graph", "subgraph", "name", "allocated_node", "released_node", "bytes"]].astype(
        object
    ).to_numpy().tolist() == [
        [1, "0", "conv", 0, 3, 2048.0],
        [1, "sub", "add", 2, -1, 512.0],
        [1, "0", "TOTAL", 0, -1, 8192.0],
    ]
    assert any("static_op_mem.csv" in said.message.en for said in profile.diagnostics), "the size below 0"
    assert not any("not read" in said.message.en for said in profile.diagnostics)


@pytest.mark.parametrize(("unit", "factor"), [("us", 1e3), ("ms", 1e6)])
def test_nodes_of_the_ai_cpu(tmp_path: Path, unit: str, factor: float) -> None:
    head = NODES.replace("time(us)", f"time({unit})")
    profile = ascend(
        tmp_path, data_preprocess=f"{head}0,1000.5\t,Decode,5,2,8,1,12,3,4\n0,,Resize,N/A,N/A,N/A,N/A,7,3,5\n"
    )
    frame = profile.tables["ai_cpu_nodes"].frame
    names = ["compute_ns", "copy_ns", "run_ns", "dispatch_ns", "total_ns"]
    assert (frame.loc[0, names] / factor).tolist() == [5, 2, 8, 1, 12]
    assert frame["name"].tolist() == ["Decode", "Resize"] and frame["time_ns"].tolist() == [1_000_500, -1]
    assert frame.loc[1, names].isna().tolist() == [True, True, True, True, False]


def test_what_the_documentation_does_not_name_is_told(tmp_path: Path) -> None:
    profile = ascend(tmp_path, data_preprocess=NODES.replace("Node,", "Node,Queue depth,") + "0,1,a,7,5,2,8,1,12,3,4\n")
    assert profile.tables["ai_cpu_nodes"].frame["total_ns"].tolist() == [12_000]
    told = [said for said in profile.diagnostics if "'Queue depth'" in said.message.en]
    assert [said.severity for said in told] == ["info"] and "未说明" in told[0].message.zh


def test_a_unit_that_is_not_documented_is_not_guessed(tmp_path: Path) -> None:
    profile = ascend(tmp_path, data_preprocess=NODES.replace("(us)", "") + "0,1,a,5,2,8,1,12,3,4\n")
    assert "Total_time(us)" in profile.missing["ai_cpu_nodes"].reason.en


def test_both_of_msprof(tmp_path: Path) -> None:
    folder = tmp_path / "PROF_000001_20240101000000000_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    summary = "Device_id,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)"
    (folder / "op_summary_20240101000000.csv").write_text(f"{summary}\n0,1,1,k,MatMul,AI_CORE,1,2\n")
    (folder / "static_op_mem_20240101000000.csv").write_text(f"{GRAPHS}host,conv,0,1,0,3,2\n")
    (folder / "aicpu_20240101000000.csv").write_text(f"{NODES}0,1,a,5,2,8,1,12,3,4\n1,1,b,5,2,8,1,12,3,4\n")
    (found,) = MsprofLoader().discover(tmp_path)
    tables = MsprofLoader().load(found).tables
    assert tables["graph_memory"].frame["bytes"].tolist() == [2048]
    assert tables["ai_cpu_nodes"].frame["name"].tolist() == ["a"], "of the device of the kernels"


def test_files_of_options_are_no_profile_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "static_op_mem.csv").write_text(f"{GRAPHS}host,conv,0,1,0,3,2\n")
    assert not AscendPytorchLoader().discover(tmp_path)


def test_a_recorded_file(profiles: Path) -> None:
    source = profiles / "gpt3-pp2-2-of-16-ranks" / "rank1_ascend_pt"
    (found,) = AscendPytorchLoader().discover(source)
    frame = AscendPytorchLoader().load(found).tables["graph_memory"].frame
    assert len(frame) == 56 and (frame["name"] == "TOTAL").sum() == 2
    operators = frame[frame["name"] != "TOTAL"]
    assert operators.groupby("graph")["bytes"].sum().tolist() == [pytest.approx(19784.711914063 * 1024)] * 2
