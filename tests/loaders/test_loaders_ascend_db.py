"""DB exports of old and new versions, whole and in part, into the canonical tables."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from advisor_core.api.facts import collective_calls, launches, ledger, steps, work
from advisor_core.cli.main import cli
from advisor_core.contracts.profile import InputError, Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.loaders.ascend_pytorch.db.host import handed_over_after
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.plugins.host import Host, load_host
from advisor_core.run.rank import fact_store
from tests.loaders.databases import OF_OPTIONS, T0, Texts, analysis, export, rank, write

KERNELS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n5,k,MatMul,AI_CORE,1.000\t,2\n"


def load(path: Path) -> Profile:
    (source,) = discover([AscendPytorchLoader()], path)
    return AscendPytorchLoader().load(source)


def where(profile: Profile, table: str, row: int) -> tuple[str, int]:
    rows = np.array([row])
    found = profile.tables[table]
    return found.tables(rows)[0], int(found.positions(rows)[0])


@pytest.fixture(params=[False, True], ids=["old", "new"])
def versions(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bool, Profile]:
    return request.param, load(rank(tmp_path / "a_ascend_pt", new=request.param))


def test_everything_is_there(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    assert set(profile.missing) == OF_OPTIONS and set(profile.tables) == set(SCHEMAS) - OF_OPTIONS
    assert profile.kind == "ascend_pytorch_db" and profile.level == "level1"
    assert profile.variables == {"HCCL_ALGO": "", "ASCEND_LAUNCH_BLOCKING": "1"}
    assert profile.setting_files["variables"] == "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db"
    assert profile.world_size == 8 and profile.parallel == {"tp": 2} and profile.versions == {"db_schema": "1.0.0"}
    assert [file.name for file in profile.files] == [
        "ASCEND_PROFILER_OUTPUT/analysis.db",
        "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
        "profiler_info_0.json",
    ]
    for table in profile.tables.values():
        assert table.source.position == "rowid" and table.source.sha256 and len(table.frame)
    (said,) = profile.diagnostics  # the allocation that ends before it starts
    assert "OP_MEMORY" in said.message.en and said.severity == "warning"


def test_kernels(versions: tuple[bool, Profile]) -> None:
    new, profile = versions
    frame = profile.tables["kernels"].frame
    assert frame["name"].tolist() == ["aclnnAdd_0", "hcom_allReduce__123_0_1", "aclnnAdd_1", "hcom_allReduce__123_1_1"]
    assert frame["core"].tolist() == ["AI_CORE", "COMMUNICATION", "MIX_AIV", "COMMUNICATION"]
    assert frame["type"].tolist() == ["Add", "hcom_allReduce_"] * 2
    assert frame["step"].tolist() == [5, 5, 6, 6]
    assert (frame["start_ns"] - T0).tolist() == [50_000, 100_000, 1_050_000, 1_100_000]
    assert frame["duration_ns"].tolist() == [20_000, 300_000] * 2
    assert frame["wait_ns"].tolist() == [0, 30_000, 650_000, 30_000]
    assert frame["block_dim"].tolist() == [24, 0, 24, 0] and frame["model"].tolist() == [-1] * 4
    first = frame.iloc[0]
    assert (first["input_shapes"], first["input_dtypes"], first["input_formats"]) == ("4,8;8", "FLOAT;BF16", "ND;ND")
    assert (first["op_state"], first["hf32"]) == (("dynamic", "YES") if new else ("", ""))
    assert first["aic_ns"] == 18_000.5 and first["aic_cycles"] == 777_600 and np.isnan(first["aiv_ns"])
    assert where(profile, "kernels", 0) == ("COMPUTE_TASK_INFO", 20)
    assert where(profile, "kernels", 3) == ("COMMUNICATION_OP", 2)


def test_tasks_of_streams_and_planes(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    tasks = profile.tables["device_tasks"].frame
    assert tasks["name"].tolist() == [
        *("aclnnAdd_0", "Notify Wait", "EVENT_WAIT", "MEMCPY_ASYNC"),
        *("aclnnAdd_1", "Notify Wait", "EVENT_WAIT", "MEMCPY_ASYNC"),
    ]
    assert tasks["task_type"].tolist()[:5] == ["AI_CORE", "Notify Wait", "EVENT_WAIT_SQE", "MEMCPY_ASYNC", "MIX_AIV"]
    planes = profile.tables["communication_tasks"].frame
    assert planes["lane"].tolist() == ["Group 0 Communication", "Plane 3"] * 2
    assert planes["plane"].tolist() == [-1, 3] * 2 and planes["group"].tolist() == [0] * 4
    assert planes["peer_rank"].tolist() == [-1, -1, -1, 6] and planes["own_rank"].tolist() == [-1, 0] * 2
    assert planes["name"].tolist()[1::2] == ["Notify_Wait"] * 2
    assert planes["link"].tolist() == [""] * 4 and planes["transport"].tolist() == ["", "LOCAL"] * 2
    assert [where(profile, "communication_tasks", row)[0] for row in (0, 1)] == ["COMMUNICATION_OP", "TASK"]


def test_host(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    events = profile.tables["host_events"].frame
    first = events[events["start_ns"] < T0 + 1_000_000].sort_values("start_ns", kind="stable")
    assert list(zip(first["category"], first["name"], first["thread"], strict=True)) == [
        ("cpu_op", "ProfilerStep#5", 1),
        ("gc", "GC", 1),
        ("cpu_op", "aten::add", 1),
        ("cpu_op", "aclnnAdd", 1),
        ("enqueue", "Enqueue", 1),
        ("dequeue", "Dequeue@aclnnAdd", 2),
        ("runtime", "Node@launch", 2),
        ("cpu_op", "c10d::allreduce_", 1),
        ("runtime", "AscendCL@hcom_allReduce_", 1),
        ("python_function", "loop.py(3): run", 1),
        ("cpu_op", "aten::mul", 1),
        ("cpu_op", "MulBackward0", 3),
        ("runtime", "AscendCL@aclrtSynchronizeDevice", 1),
    ]
    by_name = first.set_index(first["name"].astype(str))
    assert by_name["correlation"][["Enqueue", "Dequeue@aclnnAdd", "aclnnAdd"]].tolist() == [50, 50, -1]
    assert by_name["item"][["Node@launch", "AscendCL@hcom_allReduce_"]].tolist() == ["aclnnAdd_0", "hcom_allReduce_"]
    assert by_name["call_stack"]["aten::add"] == "nn.py(1): f\nmain.py(2): run"
    assert by_name["input_shapes"]["aten::add"] == "4,8;8"
    tables = {where(profile, "host_events", int(row))[0] for row in events.index}
    assert tables == {"PYTORCH_API", "CANN_API", "GC_RECORD"}


def test_a_call_that_is_held_up_has_handed_over_before() -> None:
    assert handed_over_after(np.array([0, 5_000, 10_000, 12_000, 40_000])).tolist() == [0, 3_200, 6_400, 7_680, 7_680]


def test_flows(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    flows = profile.tables["flows"].frame
    counts = flows.groupby(["kind", "end", "device"], observed=True).size()
    assert counts.to_dict() == {
        ("host_to_device", "s", False): 4,
        ("host_to_device", "f", True): 4,
        ("torch_to_npu", "s", False): 4,
        ("torch_to_npu", "f", True): 4,
        ("task_queue", "s", False): 2,
        ("task_queue", "f", False): 2,
        ("forward_backward", "s", False): 2,
        ("forward_backward", "f", False): 2,
    }
    launches = flows[flows["kind"] == "host_to_device"].merge(flows, on=["kind", "flow"])
    launches = launches[(launches["end_x"] == "s") & (launches["end_y"] == "f")].sort_values("time_ns_x")
    assert (launches["time_ns_y"] - launches["time_ns_x"]).tolist() == [8_600, 15_000] * 2, (
        "64 % of the 10 us of a call of the node layer, and the start of that of a collective"
    )
    assert launches["thread_x"].tolist() == [2, 1] * 2 and launches["thread_y"].tolist() == [2, -1] * 2
    row = int(flows.index[(flows["kind"] == "host_to_device") & (flows["end"] == "f")][0])
    assert where(profile, "flows", row) == ("TASK", 1)
    forward = flows[flows["kind"] == "forward_backward"]
    assert forward["thread"].tolist() == [1, 1, 3, 3] and forward["flow"].tolist() == [3, 103, 3, 103]


def test_operators_and_totals(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    operators = profile.tables["operators"].frame.iloc[:5].set_index("name")
    assert operators.index.tolist() == ["aten::add", "aclnnAdd", "c10d::allreduce_", "aten::mul", "MulBackward0"]
    assert operators["host_total_ns"].tolist() == [50_000, 10_000, 20_000, 5_000, 5_000]
    assert operators["host_self_ns"].tolist() == [40_000, 10_000, 20_000, 5_000, 5_000]
    assert operators["device_self_ns"].tolist() == [0, 20_000, 300_000, 0, 0]
    assert operators["device_total_ns"].tolist() == [20_000, 20_000, 300_000, 0, 0]
    totals = profile.tables["op_statistic"].frame
    assert totals[["type", "core", "count", "total_ns", "mean_ns"]].values.tolist() == [
        ["Add", "AI_CORE", 1, 20_000, 20_000],
        ["Add", "MIX_AIV", 1, 20_000, 20_000],
    ]
    calls = profile.tables["api_statistic"].frame.set_index("name")
    assert calls["level"].to_dict() == {"launch": "node", "hcom_allReduce_": "acl", "aclrtSynchronizeDevice": "acl"}
    assert calls.loc["launch", ["count", "total_ns", "max_ns"]].tolist() == [2, 20_000, 10_000]


def test_what_the_exporter_computed(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    step = profile.tables["step_trace"].frame.iloc[0]
    assert step["step"] == 5 and step["computing_ns"] == 20_000 and step["preparing_ns"] == -4_000
    assert step["uncovered_communication_ns"] == 300_500
    operation = profile.tables["collectives"].frame
    assert operation[["step", "name", "group", "kind", "elapse_ns", "idle_ns"]].values.tolist() == [
        [5, "hcom_allReduce__123_0_1", "555", "collective", 300_000, 150_000]
    ]
    assert abs(operation["start_ns"][0] - T0 - 100_000) < 250  # a float of us is no finer
    moved = profile.tables["collective_bandwidth"].frame
    columns = ["transport", "bytes", "transit_ns", "bandwidth", "packets", "max_packet_bytes"]
    assert moved[columns].values.tolist() == [
        ["HCCS", 30_000_000, 100_000, 15.5e9, 14, 3_000_000],
        ["SDMA", 30_000_000, 100_000, 15.5e9, 0, -1],
    ]
    (link,) = profile.tables["links"].frame.to_dict("records")
    assert (link["source_rank"], link["target_rank"], link["op"]) == (0, 1, "hcom_allReduce__123_0_1")
    assert where(profile, "links", 0) == ("CommAnalyzerMatrix", 1)


def test_memory_and_clock(versions: tuple[bool, Profile]) -> None:
    _, profile = versions
    record = profile.tables["memory_record"].frame
    assert record["component"].tolist() == ["PTA", "APP", "PTA"] and record["reserved_bytes"].tolist() == [20, 4096, 40]
    assert np.isnan(record["active_bytes"][2])
    owned = profile.tables["operator_memory"].frame
    assert owned["name"].tolist() == ["aten::add", "cann::Add1"] and owned["release_ns"].tolist() == [-1, T0 + 5]
    assert profile.tables["module_memory"].frame["component"].tolist() == ["HCCL", ""]
    assert profile.tables["frequency"].frame["mhz"].tolist() == [1800, 1650]
    overlap = profile.tables["overlap"].frame
    assert overlap["kind"].tolist() == ["Communication(Not Overlapped)", "Free"]
    assert where(profile, "overlap", 0) == ("OVERLAP_ANALYSIS", 5)


def test_shapes_in_the_column_of_types(tmp_path: Path) -> None:
    events = load(rank(tmp_path / "a_ascend_pt", swapped=True)).tables["host_events"].frame
    assert set(events.loc[events["name"] == "aten::add", "input_shapes"]) == {"4,8;8"}


@pytest.mark.parametrize(
    ("absent", "missing", "collect"),
    [
        ("PYTORCH_API", {"operators"}, "ProfilerActivity.CPU"),
        ("CANN_API", {"api_statistic", "flows"}, "profile with "),
        ("COMPUTE_TASK_INFO", {"op_statistic"}, "Level1"),
        ("MEMORY_RECORD", {"memory_record"}, "profile_memory=True"),
        ("OVERLAP_ANALYSIS", {"overlap"}, "ProfilerActivity.NPU"),
        ("TASK_PMU_INFO", set(), ""),
        ("NPU_MEM", set(), ""),
        ("CONNECTION_IDS", set(), ""),
        ("PYTORCH_CALLCHAINS", set(), ""),
        ("STEP_TIME", set(), ""),
        ("COMMUNICATION_TASK_INFO", set(), ""),
        ("ENUM_MODULE", set(), ""),
        ("META_DATA", set(), ""),
    ],
)
def test_a_table_that_is_absent(tmp_path: Path, absent: str, missing: set[str], collect: str) -> None:
    profile = load(rank(tmp_path / "a_ascend_pt", without=[absent]))
    assert set(profile.missing) == missing | OF_OPTIONS and set(profile.tables) == set(SCHEMAS) - missing - OF_OPTIONS
    for name in missing:
        reason = profile.missing[name]
        assert absent in reason.reason.en and reason.collect is not None and collect in reason.collect.en
    kernels = profile.tables.get("kernels")
    if absent == "STEP_TIME" and kernels is not None:
        assert set(kernels.frame["step"]) == {-1}
    if absent == "CONNECTION_IDS" and kernels is not None:  # then the CANN calls tell the step
        assert kernels.frame["step"].tolist() == [5, 5, 6, 6]


def test_steps_without_any_link(tmp_path: Path) -> None:
    profile = load(rank(tmp_path / "a_ascend_pt", without=["CONNECTION_IDS", "CANN_API", "PYTORCH_API"]))
    assert profile.tables["kernels"].frame["step"].tolist() == [5, 5, 6, 6]
    assert {"host_events", "flows"} <= set(profile.missing)


def test_nothing_was_communicated(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt", without=["COMMUNICATION_OP", "COMMUNICATION_TASK_INFO"])
    profile = load(directory)
    assert len(profile.tables["communication_tasks"].frame) == 0
    assert profile.tables["kernels"].frame["name"].tolist() == ["aclnnAdd_0", "aclnnAdd_1"]


def test_impossible_rows_are_said(tmp_path: Path) -> None:
    tables = export()
    columns, rows = tables["CANN_API"]
    bad = [(T0 + 9, T0 + 8, 10000, 1, 800, 1), ("soon", "later", 10000, 1, 801, 1), (None, None, 10000, 1, 802, 1)]
    tables["CANN_API"] = (columns, [*rows, *bad])
    path = write(tmp_path / "ascend_pytorch_profiler_0.db", tables)
    profile = load(path)
    assert len(profile.tables["api_statistic"].frame) == 3
    (said,) = [d for d in profile.diagnostics if "no possible start" in d.message.en and "CANN_API" in d.message.en]
    assert "3 rows" in said.message.en and ":800 " in said.message.en


def test_enumerations_of_the_export_win(tmp_path: Path) -> None:
    tables = export()
    tables["ENUM_HCCL_TRANSPORT_TYPE"] = ("id INTEGER PRIMARY KEY, name TEXT", [(2, "UB")])
    profile = load(write(tmp_path / "ascend_pytorch_profiler_0.db", tables))
    assert set(profile.tables["communication_tasks"].frame["transport"]) == {"", "UB"}


def test_a_database_is_a_path(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt", 3)
    output = directory / "ASCEND_PROFILER_OUTPUT"
    profile = load(output / "ascend_pytorch_profiler_3.db")
    assert profile.rank == 3 and "kernels" in profile.tables
    assert set(profile.missing) == {"step_trace", "collectives", "collective_bandwidth", "links", *OF_OPTIONS}
    reason = profile.missing["links"]
    assert "only ascend_pytorch_profiler_3.db was given" in reason.reason.en and reason.collect is not None
    computed = load(output / "analysis.db")
    assert set(computed.tables) == {"step_trace", "collectives", "collective_bandwidth", "links"}
    for path in (directory, output, tmp_path):
        assert set(load(path).tables) == set(SCHEMAS) - OF_OPTIONS


def test_a_rank_from_the_database(tmp_path: Path) -> None:
    tables = export() | {"RANK_DEVICE_MAP": ("rankId INTEGER, deviceId INTEGER", [(6, 2)])}
    path = write(tmp_path / "a_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler.db", tables)
    (source,) = discover([AscendPytorchLoader()], tmp_path)
    assert source.rank == 6 and source.bytes == path.stat().st_size
    tables["RANK_DEVICE_MAP"] = ("rankId INTEGER, deviceId INTEGER", [(-1, 2)])
    path.unlink()
    write(path, tables)
    assert discover([AscendPytorchLoader()], tmp_path)[0].rank == 0


def test_level0_is_named_as_the_reason(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt", without=["COMPUTE_TASK_INFO", "COMMUNICATION_TASK_INFO"])
    (directory / "ASCEND_PROFILER_OUTPUT" / "analysis.db").unlink()
    info = directory / "profiler_info_0.json"
    info.write_text(info.read_text().replace("Level1", "Level0"))
    profile = load(directory)
    assert profile.level == "level0"
    for name in ("links", "op_statistic"):
        assert "level0" in profile.missing[name].reason.en
    assert profile.tables["device_tasks"].frame["task_type"].tolist()[0] == "AI_CORE"


def test_a_damaged_database_beside_a_good_one(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt")
    spoiled = directory / "ASCEND_PROFILER_OUTPUT" / "analysis.db"
    spoiled.write_bytes(spoiled.read_bytes()[:-4096])
    profile = load(directory)
    assert "kernels" in profile.tables and "cut off" in profile.missing["links"].reason.en
    assert [d.severity for d in profile.diagnostics if d.source.endswith("analysis.db")] == ["error"]
    main = directory / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db"
    for content in (b"", b"text, no database", main.read_bytes()[:5000]):
        main.write_bytes(content)
        spoiled.write_bytes(b"")
        with pytest.raises(InputError, match=r"nothing in this profile can be used.*ascend_pytorch_profiler_0.db"):
            load(directory)


def test_several_databases_in_one_directory(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt")
    write(directory / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_1.db", export())
    said = [d.message.en for d in load(directory).diagnostics]
    assert any("ascend_pytorch_profiler_0.db was read, not ascend_pytorch_profiler_1.db" in text for text in said)


def test_both_exports_the_richer_one_first(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt")
    output = directory / "ASCEND_PROFILER_OUTPUT"
    (output / "kernel_details.csv").write_text(KERNELS)
    (source,) = discover([AscendPytorchLoader()], tmp_path)
    profile = AscendPytorchLoader().load(source)
    assert profile.kind == "ascend_pytorch_db" and len(profile.tables["kernels"].frame) == 4
    assert [d.message.en.split(":")[0] for d in profile.diagnostics if d.severity == "info"] == [
        "both a text and a DB export are there"
    ]
    assert source.bytes == sum(path.stat().st_size for path in output.iterdir())

    for name in ("analysis.db", "ascend_pytorch_profiler_0.db"):
        (output / name).unlink()
    keep = ["OP_MEMORY", "STRING_IDS"]
    few = {name: table for name, table in export().items() if name in keep}
    write(output / "ascend_pytorch_profiler_0.db", few)
    (output / "memory_record.csv").write_text("Component,Timestamp(us),Total Reserved(MB)\nAPP,1.000\t,1\n")
    profile = load(tmp_path)
    assert profile.kind == "ascend_pytorch_text"
    assert set(profile.tables) == {"kernels", "memory_record", "operator_memory"}
    assert profile.tables["operator_memory"].source.position == "rowid"
    assert profile.tables["kernels"].source.position == "line"
    (said,) = [d for d in profile.diagnostics if d.severity == "info"]
    assert "the text export was read" in said.message.en and "operator_memory" in said.message.en
    assert "trace_view.json" in profile.missing["flows"].reason.en


def test_a_text_that_is_damaged_falls_back_on_the_database(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt", without=["MEMORY_RECORD"])
    output = directory / "ASCEND_PROFILER_OUTPUT"
    (output / "analysis.db").unlink()
    for name in ("trace_view.json", "operator_details.csv", "op_statistic.csv", "api_statistic.csv"):
        (output / name).write_text("damaged")
    for name in ("memory_record.csv", "operator_memory.csv", "npu_module_mem.csv", "step_trace_time.csv"):
        (output / name).write_text("damaged")
    (output / "kernel_details.csv").write_text(KERNELS)
    profile = load(directory)
    assert profile.kind == "ascend_pytorch_text"
    assert profile.tables["kernels"].source.position == "line"
    assert profile.tables["flows"].source.position == "rowid"
    assert "memory_record" in profile.missing


def test_one_unusable_rank_does_not_cost_the_others(tmp_path: Path) -> None:
    rank(tmp_path / "a_ascend_pt", 1)
    (tmp_path / "b_ascend_pt" / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    raw = tmp_path / "c_ascend_pt" / "PROF_000001_20250101000000000_ABC"
    raw.mkdir(parents=True)
    (raw.parent / "profiler_info_1.json").write_text("{}")
    (tmp_path / "d_ascend_ms").mkdir()
    found = discover([AscendPytorchLoader()], tmp_path)
    assert [(s.rank, s.directory.name[0], bool(s.problem)) for s in found] == [
        (0, "b", True),
        (1, "a", False),
        (2, "c", True),
        (3, "d", True),
    ]
    with pytest.raises(InputError, match="the profile is empty"):
        AscendPytorchLoader().load(found[0])
    assert "analyse" in found[2].problem and "MindSpore" in found[3].problem
    # named one by one, as a shell does with a star
    named = discover([AscendPytorchLoader()], *(tmp_path / f"{name}" for name in ("b_ascend_pt", "a_ascend_pt")))
    assert [(s.rank, bool(s.problem)) for s in named] == [(0, True), (1, False)]
    with pytest.raises(InputError, match="the profile is empty"):
        discover([AscendPytorchLoader()], tmp_path / "b_ascend_pt", tmp_path / "d_ascend_ms")


@pytest.fixture(scope="module")
def host() -> Host:
    return load_host()


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 8 else pytest.mark.search) for seed in range(24)]
)
def test_odd_values_are_no_crash(tmp_path: Path, host: Host, seed: int) -> None:
    """Cells of every kind where a number should be: what cannot be used is left out or said."""
    chance = random.Random(seed)
    odd = [None, -1, 0, 2**63 - 1, -(2**63), 0.5, 1e300, "", "later", b"\xff", "\ud7ff", 4294967295]
    for name, make in (("ascend_pytorch_profiler_0.db", export), ("analysis.db", analysis)):
        tables = make(new=bool(seed % 2))
        for table, (columns, rows) in tables.items():
            if chance.random() < 0.5:
                spoiled = [[chance.choice(odd) if chance.random() < 0.1 else cell for cell in row] for row in rows]
                keyed = columns.replace(" PRIMARY KEY", "")  # so that every value can be stored
                tables[table] = (keyed, spoiled)
        write(tmp_path / name, tables)
    try:
        profile = load(tmp_path)
    except InputError:
        return
    store = fact_store(host, profile)
    for key in (work, steps, launches, ledger, collective_calls):
        store.find(key)


def test_an_empty_database(tmp_path: Path) -> None:
    path = write(tmp_path / "ascend_pytorch_profiler_0.db", {"STRING_IDS": Texts().table()})
    with pytest.raises(InputError, match="has no table"):
        load(path)
    path.unlink()
    write(path, {name: (columns, []) for name, (columns, _) in export().items()})
    write(tmp_path / "analysis.db", {name: (columns, []) for name, (columns, _) in analysis().items()})
    profile = load(tmp_path)
    assert {"kernels", "operators", "links", "collectives"} <= set(profile.missing)
    assert all(isinstance(table.frame, pd.DataFrame) for table in profile.tables.values())


def test_nothing_is_written(tmp_path: Path) -> None:
    directory = rank(tmp_path / "a_ascend_pt")
    before = {path: path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))}
    load(directory)
    assert {path: path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))} == before


def test_kernels_without_a_description(tmp_path: Path) -> None:
    """The tasks that compute, by the names of their types, where an export does not say what they are."""
    profile = load(rank(tmp_path / "a_ascend_pt", without=["COMPUTE_TASK_INFO"]))
    described = load(rank(tmp_path / "b_ascend_pt", 1))
    kernels, others = profile.tables["kernels"].frame, described.tables["kernels"].frame
    for column in ("step", "start_ns", "duration_ns", "stream", "task"):
        assert kernels[column].tolist() == others[column].tolist(), column
    assert kernels["core"].tolist() == ["AI_CORE", "COMMUNICATION", "AI_CORE", "COMMUNICATION"]
    assert kernels["name"].tolist()[0] == "KERNEL_AICORE" and kernels["type"].tolist()[0] == ""
    assert where(profile, "kernels", 0) == ("TASK", 1) and where(profile, "kernels", 1)[0] == "COMMUNICATION_OP"
    assert "op_statistic" in profile.missing


def test_points_far_from_the_others_are_said(tmp_path: Path) -> None:
    """One absurd time would stretch what is drawn or compared over years."""
    far = T0 + 400 * 86_400 * 10**9
    tables = export(new=True)
    for table, column in (("AICORE_FREQ", "timestampNs"), ("MEMORY_RECORD", "timestamp"), ("CANN_API", "endNs")):
        columns, rows = tables[table]
        place = [name.split()[0] for name in columns.split(", ")].index(column)
        moved = [*rows[0]]
        moved[place] = far
        keyed = columns.replace(" PRIMARY KEY", "")
        tables[table] = (keyed, [*rows, *rows, moved])
    profile = load(write(tmp_path / "ascend_pytorch_profiler_0.db", tables))
    for table in ("AICORE_FREQ", "MEMORY_RECORD", "CANN_API"):
        (said,) = [d.message.en for d in profile.diagnostics if table in d.message.en]
        assert "1 row " in said, said
    assert profile.tables["frequency"].frame["time_ns"].max() < far
    assert profile.tables["host_events"].frame["duration_ns"].max() < 10**9


def test_a_broken_database_beside_a_whole_text_export(tmp_path: Path) -> None:
    directory = tmp_path / "job"
    assert not CliRunner().invoke(cli, ["sample", str(directory)]).exit_code
    found = discover([AscendPytorchLoader()], directory)[0]
    clean = AscendPytorchLoader().load(found)
    path = found.directory / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db"
    path.write_bytes(b"no database")
    profile = AscendPytorchLoader().load(found)
    assert profile.kind == "ascend_pytorch_text" and set(profile.tables) == set(clean.tables)
    assert not clean.diagnostics and set(clean.missing) == OF_OPTIONS
    (said,) = profile.diagnostics
    assert (said.severity, said.source.rpartition("/")[2]) == ("info", path.name)
    assert path.name in said.message.en and "not an SQLite database" in said.message.en
    assert "数据库" in said.message.zh and "database" not in said.message.zh
    # what the text lacks may have been in it
    (found.directory / "ASCEND_PROFILER_OUTPUT" / "memory_record.csv").unlink()
    assert [d.severity for d in AscendPytorchLoader().load(found).diagnostics] == ["error"]


def test_a_database_that_is_being_written(tmp_path: Path) -> None:
    """A viewer has it open and has not written its changes into it: refused, and nothing is made of the lock."""
    directory = rank(tmp_path / "a_ascend_pt")
    path = directory / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as viewer:
        viewer.execute("PRAGMA journal_mode=WAL")
        viewer.execute("ALTER TABLE TASK ADD COLUMN depth INTEGER")
        before = {entry: entry.stat().st_size for entry in path.parent.iterdir()}
        profile = load(directory)
        assert {entry: entry.stat().st_size for entry in path.parent.iterdir()} == before
        assert "ascend_pytorch_profiler_0.db-wal" in profile.missing["kernels"].reason.en
        assert [d.severity for d in profile.diagnostics if d.source.endswith(path.name)] == ["error"]
        viewer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # locked, but whole: there is one more column than the exporter wrote
        viewer.execute("BEGIN EXCLUSIVE")
        assert set(load(directory).tables) == set(SCHEMAS) - OF_OPTIONS
