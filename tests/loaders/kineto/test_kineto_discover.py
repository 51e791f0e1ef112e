"""Which files are Kineto traces, of which rank, and what is said of damaged ones."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from advisor_core.contracts.profile import InputError
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.loaders.kineto.loader import KinetoLoader
from tests.loaders.kineto.build import Recording, load, two_steps

ASCEND_TRACE = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Ascend Hardware"}},
    {"ph": "X", "name": "aten::add", "cat": "cpu_op", "pid": 2, "tid": 3, "ts": "1.0", "dur": 2, "args": {}},
]


def found(path: Path) -> list[tuple[str, int]]:
    return [(source.directory.name, source.rank) for source in KinetoLoader().discover(path)]


@pytest.mark.parametrize("content", [ASCEND_TRACE, {"traceEvents": ASCEND_TRACE}, {"a": 1}, []])
@pytest.mark.parametrize("name", ["trace_view.json", "other.json", "other.json.gz"])
def test_other_json_is_not_taken(tmp_path: Path, content: object, name: str) -> None:
    data = json.dumps(content).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert found(tmp_path) == [] and found(tmp_path / name) == []


def test_members_may_stand_behind_the_events(tmp_path: Path) -> None:
    made = two_steps()
    text = json.dumps({"traceEvents": made.events, **made.members, "baseTimeNanoseconds": 10**18}).encode()
    (tmp_path / "model.json").write_bytes(text)
    assert load(tmp_path / "model.json").tables["kernels"].frame["start_ns"].iloc[0] == 10**18 + 1_150_000


def test_ranks(tmp_path: Path) -> None:
    """As recorded, else as the name says, else the free numbers in the order of names."""
    recorded = two_steps()
    recorded.members["distributedInfo"] = {"rank": 2, "world_size": 4}
    recorded.write(tmp_path / "a.pt.trace.json.gz")
    two_steps().write(tmp_path / "job_rank0.json")
    two_steps().write(tmp_path / "other.json.gz")
    assert found(tmp_path) == [("a.pt.trace.json.gz", 2), ("job_rank0.json", 0), ("other.json.gz", 1)]


def test_of_the_spans_of_a_worker_the_newest_is_read(tmp_path: Path) -> None:
    for worker in ("host_11", "host_12"):
        for when in ("1623143089861", "1623143566756"):
            two_steps().write(tmp_path / f"{worker}.{when}.pt.trace.json.gz")
    sources = discover([KinetoLoader()], tmp_path)
    assert [source.directory.name for source in sources] == [
        "host_11.1623143566756.pt.trace.json.gz",
        "host_12.1623143566756.pt.trace.json.gz",
    ]
    assert [[older.name for older in source.older] for source in sources] == [
        ["host_11.1623143089861.pt.trace.json.gz"],
        ["host_12.1623143089861.pt.trace.json.gz"],
    ]


def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    made = two_steps()
    plain = made.text()
    cut = tmp_path / "cut.json"
    cut.write_bytes(plain[: plain.rindex(b"aten::mm")])
    zipped = tmp_path / "cut.json.gz"
    zipped.write_bytes(gzip.compress(plain)[:-200])
    for path in (cut, zipped):
        profile = load(path)
        assert [said.severity for said in profile.diagnostics] == ["warning"]
        assert "cut off" in profile.diagnostics[0].message.en
    assert len(load(cut).tables["kernels"].frame) == 3


def test_compressed_data_that_are_damaged_are_said(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(two_steps().text(), compresslevel=0))
    data[-8] ^= 255  # the checksum
    path = tmp_path / "damaged.json.gz"
    path.write_bytes(bytes(data))
    assert any("damaged" in said.message.en for said in load(path).diagnostics)


@pytest.mark.parametrize("data", [b"\x1f\x8b", b"\x1f\x8bnonsense of some length"])
def test_nothing_readable_names_the_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.json.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.json\.gz"):
        discover([KinetoLoader()], path)
    two_steps().write(tmp_path / "good.json.gz")
    sources = discover([KinetoLoader()], tmp_path)
    assert [(source.directory.name, bool(source.problem)) for source in sources] == [
        ("good.json.gz", False),
        ("bad.json.gz", True),
    ]


def test_events_that_hold_nothing_name_the_file(tmp_path: Path) -> None:
    path = Recording().write(tmp_path / "empty.json")
    with pytest.raises(InputError, match=r"empty\.json"):
        load(path)


def test_a_trace_in_a_folder_of_an_ascend_profile(tmp_path: Path) -> None:
    """Neither tool's files disturb the other's: the job is of the vendor with most bytes."""
    loaders = [AscendPytorchLoader(), KinetoLoader()]
    ascend = tmp_path / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    ascend.mkdir(parents=True)
    (ascend / "trace_view.json").write_text(json.dumps(ASCEND_TRACE) + " " * 100_000)
    (stray,) = [two_steps().write(ascend.parent / "stray.json.gz")]
    for root in (tmp_path, ascend.parent):
        sources = {source.loader: source for source in discover(loaders, root)}
        assert not sources["ascend_pytorch"].problem and sources["ascend_pytorch"].rank == 0
        assert "among those of this job" in sources["kineto"].problem
    (big := tmp_path / "big").mkdir()
    shutil.copy(stray, big / "rank0.json.gz")
    (big / "trace_view.json").write_text("[]")
    sources = {source.loader: source for source in discover(loaders, big)}
    assert not sources["kineto"].problem and sources["kineto"].rank == 0
    assert sources["ascend_pytorch"].problem
