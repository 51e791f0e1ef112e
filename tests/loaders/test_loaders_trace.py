"""trace_view.json into tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor_core.contracts.missing import Unavailable
from advisor_core.loaders.readers.trace_json import Trace
from advisor_core.result.run import Diagnostic

Read = Callable[..., tuple[Trace, list[Diagnostic], Path]]
NONE = 4294967295
PYTHON, CANN, NPU, HCCL, OVERLAP, CLOCK, GC = 7, 70, 71, 72, 73, 74, 75


def meta(kind: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"name": kind, "pid": pid, "tid": tid, "args": args, "ph": "M"}


def slice_(pid: int, tid: Any, name: Any, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more, "ph": "X"}


def flow(phase: str, cat: str, number: Any, pid: int, tid: int, ts: str, name: str = "") -> dict[str, Any]:
    return {"ph": phase, "bp": "e", "name": name or cat, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": cat}


NAMES = [
    meta("process_name", PYTHON, 0, name="Python"),
    meta("process_name", CANN, 0, name="CANN"),
    meta("process_name", NPU, 0, name="Ascend Hardware"),
    meta("process_name", HCCL, 0, name="Communication"),
    meta("process_name", OVERLAP, 0, name="Overlap Analysis"),
    meta("process_name", CLOCK, 0, name="AI Core Freq"),
    meta("process_name", GC, 0, name="Python GC"),
    # the order of the planes is their sort index, not their tid
    meta("thread_name", HCCL, 5, name="Group 0 Communication"),
    meta("thread_sort_index", HCCL, 5, sort_index=0),
    meta("thread_name", HCCL, 1, name="Plane 0"),
    meta("thread_sort_index", HCCL, 1, sort_index=1),
    meta("thread_name", HCCL, 3, name="Group 3 Communication"),
    meta("thread_sort_index", HCCL, 3, sort_index=2),
    meta("thread_name", HCCL, 2, name="Plane 0"),
    meta("thread_sort_index", HCCL, 2, sort_index=3),
]
MOVE = {
    "src rank": 0,
    "dst rank": 3,
    "size(Byte)": 64,
    "link type": "HCCS",
    "transport type": "SDMA",
}
EVENTS = [
    slice_(
        PYTHON,
        7,
        "aten::add",
        "100.001",
        5.5,
        cat="cpu_op",
        args={"Call stack": "a;\r\nb", "Input Dims": "4;\r\n;\r\n"},
    ),
    slice_(PYTHON, 7, "Enqueue", "101", 1, cat="enqueue", args={"correlation_id": 9}),
    slice_(GC, 7, "collect", "101.5", 1),
    slice_(CANN, 8, "Node@launch", "102.000", 2, args={"item_id": "Add", "connection_id": 33}),
    slice_(NPU, 2, "Add", "110.000", 0.60003125, args={"Task Type": "AI_CORE", "Task Id": 4, "connection_id": 33}),
    slice_(NPU, 2, "Wait", "111", 1, args={"Task Type": "EVENT_WAIT_SQE", "Physic Stream Id": 5, "Task Id": 5}),
    slice_(HCCL, 5, "hcom_allReduce_", "120", 9, args={"connection_id": 34}),
    slice_(HCCL, 1, "Memcpy", "121", 2, args=MOVE),
    slice_(HCCL, 2, "Reduce_Inline", "122", 2, args={**MOVE, "dst rank": NONE, "link type": "INVALID_TYPE"}),
    slice_(OVERLAP, 3, "Free", "110", 3),
    {"name": "AI Core Freq", "ts": "50.5", "pid": CLOCK, "tid": 0, "args": {"MHz": 1800}, "ph": "C"},
    {"name": "HBM 0/Read", "ts": "51", "pid": 99, "tid": 0, "args": {"Read(MB/s)": 0.5}, "ph": "C"},
    flow("s", "async_npu", 1736408883700059821, PYTHON, 7, "100.001", "torch_to_npu"),
    flow("f", "async_npu", 1736408883700059821, NPU, 2, "110", "torch_to_npu"),
    flow("s", "HostToDevice", "55425237668390240255", CANN, 8, "102", "HostToDevice55"),
    flow("f", "HostToDevice", "55425237668390240255", HCCL, 5, "120", "HostToDevice55"),
    flow("s", "async_task_queue", 9, PYTHON, 7, "101"),
]


def text(events: list[dict[str, Any]], **style: Any) -> bytes:
    return json.dumps(events, **style).encode()


def test_every_lane(trace: Read) -> None:
    read, said, _ = trace(text(NAMES + EVENTS))
    assert said == [] and read.missing == {}
    host = read.frames["host_events"]
    assert host["category"].tolist() == ["cpu_op", "enqueue", "gc", "runtime"]
    assert host["start_ns"].tolist() == [100001, 101000, 101500, 102000]
    assert host["duration_ns"].tolist() == [5500, 1000, 1000, 2000]
    assert host["correlation"].tolist() == [-1, 9, -1, -1] and host["connection"].tolist() == [-1, -1, -1, 33]
    assert host["call_stack"].tolist() == ["a\nb", "", "", ""] and host["input_shapes"][0] == "4;;"
    assert host["item"].tolist() == ["", "", "", "Add"] and host["thread"].tolist() == [7, 7, 7, 8]
    device = read.frames["device_tasks"]
    assert device["stream"].tolist() == [2, 5] and device["duration_ns"].tolist() == [600, 1000]
    assert device["task_type"].tolist() == ["AI_CORE", "EVENT_WAIT_SQE"] and device["connection"].tolist() == [33, -1]
    tasks = read.frames["communication_tasks"]
    assert tasks["lane"].tolist() == ["Group 0 Communication", "Plane 0", "Plane 0"]
    assert tasks["group"].tolist() == [0, 0, 3] and tasks["plane"].tolist() == [-1, 0, 0]
    assert tasks["peer_rank"].tolist() == [-1, 3, -1] and tasks["own_rank"].tolist() == [-1, 0, 0]
    assert tasks["bytes"].tolist() == [-1, 64, 64] and tasks["link"].tolist() == ["", "HCCS", ""]
    flows = read.frames["flows"]
    assert flows["kind"].tolist() == ["torch_to_npu"] * 2 + ["host_to_device"] * 2 + ["task_queue"]
    assert flows["flow"].tolist() == [1736408883700059821] * 2 + [-2, -2, 9]
    assert flows["device"].tolist() == [False, True, False, True, False] and flows["end"].tolist() == list("sfsfs")
    assert read.frames["overlap"]["kind"].tolist() == ["Free"]
    assert read.frames["frequency"][["time_ns", "mhz"]].values.tolist() == [[50500, 1800.0]]


@pytest.mark.parametrize("style", [{}, {"separators": (",", ":")}, {"indent": 1}])
@pytest.mark.parametrize("size", [1, 100, 333, 5000])
def test_chunks_and_the_place_of_the_names_make_no_difference(trace: Read, style: dict[str, Any], size: int) -> None:
    expected, _, _ = trace(text(EVENTS + NAMES))
    read, said, path = trace(text(EVENTS + NAMES, **style), size)
    assert said == []
    for name, frame in expected.frames.items():
        for column in frame:
            assert read.frames[name][column].tolist() == frame[column].tolist(), (name, column)
        content = path.read_bytes()
        for ordinal, offset in zip(
            frame["source_row"], read.index.positions(path, frame["source_row"].to_numpy()), strict=True
        ):
            assert json.JSONDecoder().raw_decode(content[offset:].decode())[0] == (EVENTS + NAMES)[ordinal]


def test_cut_at_every_byte_gives_the_events_before(trace: Read) -> None:
    events = NAMES[:3] + EVENTS[:5]
    content = text(events)
    whole = trace(content)[0].frames["host_events"]["source_row"].tolist()
    for cut in range(1, len(content)):
        count = sum(content[:cut].startswith(text(events[:n])[:-1]) for n in range(1, len(events) + 1))
        try:
            read, said, _ = trace(content[:cut], 64)
        except Unavailable as reason:
            assert count == 0 and "no event" in reason.reason.en
            continue
        assert f"the {count} whole event" in said[0].message.en and "byte" in said[0].message.en
        host = read.frames["host_events"]["source_row"].tolist() if "host_events" in read.frames else []
        assert host == [ordinal for ordinal in whole if ordinal < count]


def test_times_as_json_numbers_are_exact(trace: Read) -> None:
    number = text([NAMES[0], slice_(PYTHON, 7, "a", "TS", 1, cat="cpu_op")]).replace(b'"TS"', b"1736408883688177.931")
    read, _, _ = trace(number)
    assert read.frames["host_events"]["start_ns"].tolist() == [1736408883688177931]


def test_impossible_events_are_left_out_and_said(trace: Read) -> None:
    bad = [
        slice_(NPU, 2, "negative", "1", -1),
        slice_(NPU, 2, "no duration", "1", None),
        slice_(NPU, 2, "no start", None, 1),
        slice_(NPU, 2, "not a start", "soon", 1),
        slice_(NPU, 2, "a month", "1", 2.6e12),
        slice_(NPU, 2, "a list", "1", [1]),
    ]
    content = text(NAMES + bad + EVENTS)
    read, said, _ = trace(content)
    assert read.frames["device_tasks"]["name"].tolist() == ["Add", "Wait"]
    (diagnostic,) = said
    assert (
        "6 events" in diagnostic.message.en
        and f":{content.index(text(bad[:1])[1:-1])} 'negative'" in diagnostic.message.en
    )


def test_values_of_unexpected_types_cost_no_event(trace: Read) -> None:
    odd = [
        slice_(NPU, "2", "a", "1", "1.5", args={"Task Id": "7", "connection_id": 2**70, "Physic Stream Id": {}}),
        slice_(NPU, "main", "b", "2", 1, args=[1, 2]),
        slice_(NPU, None, "c", "3", 1, args=None),
        slice_(NPU, 2, ["d"], "4", 1, args={"Task Type": {"x": 1}}),
    ]
    read, said, _ = trace(text(NAMES + odd))
    device = read.frames["device_tasks"]
    assert said == [] and device["start_ns"].tolist() == [1000, 2000, 3000, 4000]
    assert device["task"].tolist() == [7, -1, -1, -1] and device["connection"].tolist() == [-1] * 4
    assert device["duration_ns"].tolist()[0] == 1500


def test_flow_ids_keep_their_identity(trace: Read) -> None:
    ids = [2**63 - 1, 2**63, str(2**63), "x", -5, "x", 2**64 + 1, "12", 12]
    read, _, _ = trace(text([flow("s", "HostToDevice", number, CANN, 1, "1") for number in ids]))
    flows = read.frames["flows"]["flow"].tolist()
    assert flows[0] == 2**63 - 1 and flows[1] == flows[2] < -1 and flows[3] == flows[5] < -1
    assert len(set(flows[1:7])) == 4 and flows[7] == flows[8] == 12


def test_an_event_of_a_process_without_a_name(trace: Read) -> None:
    read, said, _ = trace(text([slice_(5, 1, "a", "1", 1), *NAMES]))
    assert "1 event of processes without a name (5)" in said[0].message.en
    assert "host_events" in read.missing and read.frames["communication_tasks"].empty


@pytest.mark.parametrize("name", ["python3", "Python", "ray::WorkerDict", "MSTX", None])
@pytest.mark.parametrize("size", [200, 1 << 20])
def test_marks_are_known_by_their_arguments(trace: Read, name: str | None, size: int) -> None:
    """Their lane is named after the executable, which may be any; other events of such a lane are not read."""
    stage = slice_(99, 1, "generate_sequences", "5.5", 2.0, args={"event_type": "start/end", "domain": "default"})
    named = [] if name is None else [meta("process_name", 99, 0, name=name)]
    for events in ([*NAMES, *EVENTS, *named, stage], [stage, *EVENTS, *NAMES, *named]):
        result, diagnostics, _ = trace(text(events), chunk_bytes=size)
        host = result.frames["host_events"]
        marks = host[host["category"] == "mstx"]
        assert marks[["name", "thread", "start_ns", "duration_ns"]].values.tolist() == [
            ["generate_sequences", 1, 5500, 2000]
        ]
        assert not diagnostics
    result, _, _ = trace(text([*NAMES, slice_(99, 1, "counter", "5.5", 2.0), meta("process_name", 99, 0, name="x")]))
    assert "host_events" not in result.frames


def test_lanes_that_are_not_there(trace: Read) -> None:
    read, _, _ = trace(text([NAMES[0], EVENTS[0]]))
    assert sorted(read.missing) == ["counters", "device_tasks", "flows", "frequency", "overlap"]
    assert read.frames["communication_tasks"].empty
    assert read.frames["host_events"]["name"].tolist() == ["aten::add"]


@pytest.mark.parametrize("content", [b"", b"[]", b"\x00garbage", b"{}", b'{"a": [{}]}', b'[{"ph": "X"'])
def test_no_trace(trace: Read, content: bytes) -> None:
    with pytest.raises(Unavailable, match=r"trace_view.json"):
        trace(content)


def test_texts_that_cannot_be_encoded(trace: Read) -> None:
    bad = text([NAMES[0], slice_(PYTHON, 7, "XX", "1", 1)])
    assert trace(bad.replace(b"XX", b"\xff"))[0].frames["host_events"]["name"].tolist() == ["�"]
    assert trace(bad.replace(b"XX", b"\\ud83d"))[0].frames["host_events"]["name"].tolist() == ["?"]


def test_codes_of_tables_hold_only_what_occurs(trace: Read) -> None:
    read, _, _ = trace(text(NAMES + EVENTS))
    assert sorted(read.frames["overlap"]["kind"].cat.categories) == ["Free"]
    assert read.frames["host_events"]["source_row"].dtype == np.int64


@pytest.mark.parametrize("value", ["9" * 6000, "1e999999999", '"1e999999999"', "true", "null", "[1]", '{"a": 1}'])
@pytest.mark.parametrize("member", ["pid", "tid", "ts", "dur", "name", "cat", "args"])
def test_absurd_values_cost_one_event(trace: Read, member: str, value: str) -> None:
    event = json.dumps({**EVENTS[0], member: "HERE"}).replace('"HERE"', value)
    content = text([*NAMES, EVENTS[1]])[:-1] + f", {event}]".encode()
    read, _, _ = trace(content)
    assert read.frames["host_events"]["name"].tolist()[0] == "Enqueue"
