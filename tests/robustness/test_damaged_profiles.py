"""A damaged file costs its own tables and is said; the rest of the profile is read, and the input stays as it was."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor_core.contracts.profile import InputError, Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.loaders.ascend_pytorch.files import DELIVERABLES, TRACE
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from tests.loaders.databases import OF_OPTIONS

OPERATION = {
    "Communication Time Info": {"Start Timestamp(us)": 1.5, "Elapse Time(ms)": 1},
    "Communication Bandwidth Info": {
        "HCCS": {"Transit Size(MB)": 1, "Transit Time(ms)": 1, "Size Distribution": {"1": [1, 1]}}
    },
}
LINK = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1, "Op Name": "a"}}
EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}},
    {"ph": "X", "name": "aten::add", "pid": 1, "tid": 1, "ts": "1.000", "dur": 2, "cat": "cpu_op"},
    {"ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": {"name": "Ascend Hardware"}},
    {"ph": "X", "name": "k", "pid": 2, "tid": 2, "ts": "1.000", "dur": 2, "args": {"Task Type": "AI_CORE"}},
    {"ph": "X", "name": "l", "pid": 2, "tid": 2, "ts": "5.000", "dur": 2, "args": {"Task Type": "AI_VECTOR_CORE"}},
    {"ph": "C", "name": "HBM 0/Read", "pid": 3, "tid": 0, "ts": "6.000", "args": {"Read(MB/s)": 1}},
]
FILES = {
    "kernel_details.csv": "Step Id,Name,Type,Start Time(us),Duration(us),aic_mac_fp16_ratio\n"
    "5,k,MatMul,1.000\t,2,0.5\n5,l,Add,5.000\t,2,0\n",
    "step_trace_time.csv": "Step,Computing,Free\n5,4,1\n",
    "operator_details.csv": 'Name,Call Stack,Host Total Duration(us)\na,"x;\ny",5\n',
    "op_statistic.csv": "OP Type,Core Type,Count,Total Time(us)\nAdd,AI_CORE,1,2\n",
    "api_statistic.csv": "Level,API Name,Time(us),Count\nhccl,x,1,1\n",
    "communication.json": json.dumps({"step5": {"collective": {"a@1": OPERATION}}}),
    "communication_matrix.json": json.dumps({"step5": {"collective": {"a@1": LINK}}}),
    "memory_record.csv": "Component,Timestamp(us),Total Reserved(MB)\nAPP,1.000\t,1\n",
    "operator_memory.csv": "Name,Size(KB),Allocation Time(us)\na,1,1.000\t\n",
    "npu_module_mem.csv": "Component,Timestamp(us),Total Reserved(MB)\nAPP,1.000\t,1\n",
    "static_op_mem.csv": "Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)\nk,0,0,0,1,2\n",
    "data_preprocess.csv": "Node,Total_time(us)\nk,2\n",
    "l2_cache.csv": "Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n2,1,N/A,0.5,k\n",
    "trace_view.json": json.dumps(EVENTS),
}
INFO = json.dumps({"config": {"experimental_config": {"_profiler_level": "Level1"}}})


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    directory = tmp_path / "a_ascend_pt"
    output = directory / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    for name, content in FILES.items():
        (output / name).write_text(content)
    (directory / "profiler_info_0.json").write_text(INFO)
    (directory / "profiler_metadata.json").write_text('{"ENV_VARIABLES": {"A": ""}}')
    return directory


def load(directory: Path) -> Profile:
    (source,) = discover([AscendPytorchLoader()], directory)
    return AscendPytorchLoader().load(source)


def fingerprint(directory: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_whole_profile_is_clean_and_stays_as_it_was(profile: Path) -> None:
    before = fingerprint(profile)
    loaded = load(profile)
    assert loaded.diagnostics == [] and loaded.level == "level1" and loaded.rank == 0
    assert set(loaded.missing) - OF_OPTIONS == {"flows", "overlap", "frequency"}
    assert loaded.setting_files == {"profiler": "profiler_info_0.json", "variables": "profiler_metadata.json"}
    assert fingerprint(profile) == before


@pytest.mark.parametrize(
    "damage", [b"", b"\x00\xff\xfe" * 99, b"x", b"{", b"[" * 200_000, b'[{"a": ' + b"[" * 200_000, b'"']
)
@pytest.mark.parametrize("deliverable", DELIVERABLES, ids=lambda deliverable: deliverable.name)
def test_garbage_in_one_file(profile: Path, deliverable: object, damage: bytes) -> None:
    path = profile / "ASCEND_PROFILER_OUTPUT" / deliverable.name  # type: ignore[attr-defined]
    path.write_bytes(damage)
    loaded = load(profile)
    tables: tuple[str, ...] = deliverable.tables  # type: ignore[attr-defined]
    assert set(tables) <= set(loaded.missing) and not set(tables) & set(loaded.tables)
    for name in tables:
        reason = loaded.missing[name]
        assert path.name in reason.reason.en and path.name in reason.reason.zh and reason.collect is not None
    assert [d.source for d in loaded.diagnostics if d.severity == "error"] == [f"ASCEND_PROFILER_OUTPUT/{path.name}"]
    others = {table for other in DELIVERABLES if other is not deliverable for table in other.tables}
    assert others - {*TRACE.tables, "ports"} <= set(loaded.tables) or deliverable is TRACE
    digest = hashlib.sha256(damage).hexdigest()
    assert digest in {file.sha256 for file in loaded.files}


@pytest.mark.parametrize("deliverable", DELIVERABLES, ids=lambda deliverable: deliverable.name)
def test_an_absent_file_says_how_to_get_it(profile: Path, deliverable: object) -> None:
    (profile / "ASCEND_PROFILER_OUTPUT" / deliverable.name).unlink(missing_ok=True)  # type: ignore[attr-defined]
    loaded = load(profile)
    for name in deliverable.tables:  # type: ignore[attr-defined]
        collect = loaded.missing[name].collect
        assert collect is not None and ("activit" in collect.en or "rofil" in collect.en) and collect.zh != collect.en
    assert loaded.diagnostics == []


def test_damaged_settings(profile: Path) -> None:
    for name in ("profiler_info_0.json", "profiler_metadata.json"):
        (profile / name).write_text('{"a": ' + "[" * 100_000)
    loaded = load(profile)
    assert loaded.level == "level1" and loaded.variables == {} and loaded.setting_files == {}
    assert [d.source for d in loaded.diagnostics] == [
        "profiler_info_0.json",
        "profiler_metadata.json",
        *loaded_kernels(loaded),
    ]


def loaded_kernels(loaded: Profile) -> list[str]:
    """The file that the level was inferred from."""
    return [loaded.tables["kernels"].source.file]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipes_devices_and_directories_are_not_opened(profile: Path) -> None:
    output = profile / "ASCEND_PROFILER_OUTPUT"
    for name in ("kernel_details.csv", "trace_view.json", "communication.json", "op_statistic.csv"):
        (output / name).unlink()
    os.mkfifo(output / "kernel_details.csv")
    (output / "trace_view.json").symlink_to("/dev/zero")
    (output / "communication.json").mkdir()
    (output / "op_statistic.csv").symlink_to(profile / "nowhere")
    (profile / "profiler_metadata.json").unlink()
    os.mkfifo(profile / "profiler_metadata.json")
    loaded = load(profile)
    assert {"kernels", "host_events", "collectives", "op_statistic"} <= set(loaded.missing)
    assert sum("cannot be read" in d.message.en for d in loaded.diagnostics) == 5


def test_a_file_that_may_not_be_read(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def guarded(path: object, *rest: object, **more: object) -> int:
        if str(path).endswith("kernel_details.csv"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", guarded)
    loaded = load(profile)
    assert "Permission denied" in loaded.missing["kernels"].reason.en and "step_trace" in loaded.tables


def test_nothing_usable_is_an_input_error(profile: Path) -> None:
    for path in (profile / "ASCEND_PROFILER_OUTPUT").iterdir():
        path.write_bytes(b"")
    with pytest.raises(
        InputError, match=r"a_ascend_pt: nothing in this profile can be used: .*kernel_details.csv is empty"
    ):
        load(profile)


def test_names_are_kept_as_they_are(profile: Path) -> None:
    path = profile / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    names = ["<script>alert(1)</script>", "=HYPERLINK(1)", "{braces}", "100% {0}"]
    rows = "".join(f"5,{name},x,1,2\n" for name in names) + "5,{bad},x,1,{oops}\n"
    path.write_text("Step Id,Name,Type,Start Time(us),Duration(us)\n" + rows)
    loaded = load(profile)
    assert loaded.tables["kernels"].frame["name"].tolist() == names
    assert "{oops}" in loaded.diagnostics[0].message.en


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(FILES)),
    place=st.integers(0, 10_000),
    junk=st.binary(max_size=6),
    cut=st.integers(0, 20),
)
def test_any_change_to_any_file_leaves_a_profile(profile: Path, name: str, place: int, junk: bytes, cut: int) -> None:
    path = profile / "ASCEND_PROFILER_OUTPUT" / name
    whole = FILES[name].encode()
    place %= len(whole)
    path.write_bytes(whole[:place] + junk + whole[place + cut :])
    loaded = load(profile)
    path.write_bytes(whole)
    assert set(loaded.tables) | set(loaded.missing) == set(SCHEMAS)
    for table in loaded.tables.values():
        assert table.frame["source_row"].min() >= 0 if len(table.frame) else True
