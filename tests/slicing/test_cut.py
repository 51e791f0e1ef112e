"""Slices of recordings: what stands in the file around the place of a problem, and nothing that a later run reads."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor_core.cli.main import cli
from advisor_core.contracts.profile import InputError
from advisor_core.loaders.discover import discover
from advisor_core.run.prepared import installed_host
from advisor_core.sample import job_from, write_sample
from advisor_core.slicing.cut import MOST_BYTES
from advisor_core.slicing.trace_file import NoEventsError, TraceFile
from tests.slicing import JOB

Event = dict[str, Any]


def advisor(profile: Path, folder: Path, *options: str) -> Result:
    arguments = ["run", str(profile), "-o", str(folder), "--format", "trace,json", "--no-config", *options]
    found = CliRunner().invoke(cli, arguments)
    assert found.exit_code == 0, found.output
    return found


def read(file: Path) -> tuple[list[Event], dict[str, Any]]:
    """Events, and the notes about the slice."""
    content = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(content, list):
        return content[1:], content[0]["args"]
    return content["traceEvents"], content["npu-advisor"]


def recorded_ns(event: Event) -> int:
    return int(Decimal(str(event["ts"])) * 1000)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile, and ``report`` with its slices."""
    folder = tmp_path_factory.mktemp("sliced")
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    write_sample(folder / "profile", scenario=job_from(folder / "job.yaml"))
    advisor(folder / "profile", folder / "report", "-q")
    return folder


def test_each_problem_with_a_place_has_a_slice_of_what_was_recorded(report: Path) -> None:
    result = json.loads((report / "report" / "report.json").read_text(encoding="utf-8"))
    (trace,) = (report / "profile").rglob("trace_view.json")
    recorded = json.loads(trace.read_text(encoding="utf-8"))
    known = {(e["name"], recorded_ns(e), e["dur"]): e for e in recorded if e["ph"] == "X"}
    files = {file.stem: file for file in (report / "report" / "slices").iterdir()}
    assert set(files) <= {problem["number"] for problem in result["problems"]} and len(files) > 3
    for number, file in files.items():
        assert file.stat().st_size <= MOST_BYTES
        events, notes = read(file)
        assert notes["problem"] == number and notes["title"]
        place, window = notes["place"], notes["window"]
        assert window["start_ns"] <= place["start_ns"] <= place["end_ns"] <= window["end_ns"]
        spans = [event for event in events if event["ph"] == "X"]
        at = [(notes["origin_ns"] + recorded_ns(event), event) for event in spans]
        assert all(known[e["name"], start, e["dur"]].get("args") == e.get("args") for start, e in at)
        inside = {
            key
            for key, e in known.items()
            if key[1] <= window["end_ns"] and key[1] + round(e["dur"] * 1000) >= window["start_ns"]
        }
        assert inside <= {(e["name"], start, e["dur"]) for start, e in at}
        ids = [(e["cat"], e["id"]) for e in events if e["ph"] == "s"]
        assert set(ids) == {(e["cat"], e["id"]) for e in events if e["ph"] == "f"} and len(set(ids)) == notes["arrows"]


def test_a_database_gives_the_same_kernels(report: Path, tmp_path: Path) -> None:
    write_sample(tmp_path / "profile", scenario=job_from(report / "job.yaml"), format="db")
    advisor(tmp_path / "profile", tmp_path / "report", "-q")

    def kernels(folder: Path) -> list[tuple[str, int, int]]:
        events, notes = read(folder / "slices" / "F1.json")
        processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        return sorted(
            (e["name"], notes["origin_ns"] + recorded_ns(e), round(e["dur"] * 1000))
            for e in events
            if e["ph"] == "X" and processes[e["pid"]] in ("Ascend Hardware", "Device")
        )

    assert kernels(tmp_path / "report") == kernels(report / "report") != []


def test_slices_are_no_profiles(report: Path, tmp_path: Path) -> None:
    loaders = list(installed_host().loaders.values())
    with pytest.raises(InputError):
        discover(loaders, report / "report")
    trace = {"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}]}
    (tmp_path / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    assert discover(loaders, tmp_path)
    (tmp_path / "trace.json").write_text(json.dumps({"npu-advisor": {}, **trace}), encoding="utf-8")
    with pytest.raises(InputError):
        discover(loaders, tmp_path)


def test_redacted_reports_have_no_slices_and_old_ones_are_told(report: Path, tmp_path: Path) -> None:
    said = advisor(report / "profile", tmp_path / "out", "--redact").stderr
    assert "no slices" in said and not (tmp_path / "out" / "slices").exists()
    (tmp_path / "out" / "slices").mkdir()
    for name in ("F99.json", "mine.json"):
        (tmp_path / "out" / "slices" / name).write_text("{}", encoding="utf-8")
    said = advisor(report / "profile", tmp_path / "out").stderr
    assert "slices of an earlier run: F99.json\n" in said
    assert (tmp_path / "out" / "slices" / "F1.json").exists()


BASE = 1_736_408_883_000_000_000
KINETO: list[Event] = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": "5", "ts": 10, "dur": 4.5, "args": {"Ev Idx": 1}},
    {"ph": "X", "cat": "kernel", "name": 'gemm "a\\b"', "pid": 0, "tid": 7, "ts": 20.125, "dur": 3},
]


@pytest.mark.parametrize("form", ["plain", "compressed", "damaged"])
def test_a_trace_file_gives_its_events_back(tmp_path: Path, form: str) -> None:
    text = json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": KINETO})
    path = tmp_path / "trace.json"
    if form == "damaged":
        text = text.replace('"dur": 4.5', '"dur": NaN').replace(', "dur": 3}', ', "dur": 3}, {"ph": "X", "na')
    path.write_bytes(gzip.compress(text.encode()) if form == "compressed" else text.encode())
    trace = TraceFile(path)
    assert not trace.as_array
    chosen = trace.events.choose(BASE + 20_000, BASE + 24_000, 15_000, 10_000).ordinals
    kept = list(trace.chosen(chosen))
    if form == "damaged":
        assert kept == [KINETO[2]]  # what cannot be decoded would make a file that cannot be read
    else:
        assert kept == KINETO
        assert trace.events.start_ns.tolist()[1:] == [BASE + 10_000, BASE + 20_125]
        assert trace.events.end_ns.tolist()[1:] == [BASE + 14_500, BASE + 23_125]


@pytest.mark.parametrize("content", ["", "{}", "[]", "1", '{"traceEvents": []}', "[[1], 2]"])
def test_a_file_without_events_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "trace.json").write_text(content, encoding="utf-8")
    with pytest.raises(NoEventsError):
        TraceFile(tmp_path / "trace.json")
