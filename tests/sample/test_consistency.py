"""The files of one rank say the same: each is recomputed here from another one, by brute force."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

import pytest

from tests.sample.export import Event, Export, ns

Interval = tuple[int, int]


def span(event: Event) -> Interval:
    start = ns(event["ts"])
    return start, start + round(event["dur"] * 1000)


def measure(intervals: Iterable[Interval], minus: Iterable[Interval] = ()) -> int:
    """Length of a union, less what another union covers: a sweep over all borders."""
    changes: list[tuple[int, int, int]] = []
    for kind, members in enumerate((intervals, minus)):
        for start, end in members:
            changes += [(start, 1, kind), (end, -1, kind)]
    open_now, total, last = [0, 0], 0, 0
    for time, change, kind in sorted(changes):
        if open_now[0] and not open_now[1]:
            total += time - last
        open_now[kind] += change
        last = time
    return total


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The parts of a union: what overlaps becomes one."""
    parts: list[Interval] = []
    for start, end in sorted(intervals):
        if parts and start <= parts[-1][1]:
            start, end = parts[-1][0], max(end, parts.pop()[1])
        parts.append((start, end))
    return parts


def is_received(row: dict[str, str]) -> bool:
    """The exporter tells by the name alone that a stage waited for another one."""
    return row["Name"].startswith("hcom_receive__")


def test_step_times_follow_from_the_kernel_table(exports: list[Export]) -> None:
    for export in exports:
        for step in export.table("step_trace_time.csv"):
            computing: list[Interval] = []
            communication: list[Interval] = []
            for row in export.kernels:
                if row["Step Id"] != step["Step"]:
                    continue
                start = ns(row["Start Time(us)"])
                interval = start, start + ns(row["Duration(us)"])
                (communication if row["Type"].startswith("hcom_") else computing).append(interval)
            busy = [*computing, *communication]
            begin = next(e for e in export.trace if e["name"] == f"ProfilerStep#{step['Step']}")
            first, last = min(start for start, _ in busy), max(end for _, end in busy)
            later = [ns(row["Start Time(us)"]) for row in export.kernels if ns(row["Start Time(us)"]) > last]
            if later and last < span(begin)[1]:
                last = min(later)  # the gap before the next step began within this one
            stage = last - first
            received = sum(
                ns(r["Duration(us)"]) for r in export.kernels if is_received(r) and r["Step Id"] == step["Step"]
            )
            assert ns(step["Bubble"]) == received
            assert ns(step["Stage"]) == stage - received
            assert ns(step["Computing"]) == measure(computing)
            assert ns(step["Communication"]) == measure(communication)
            assert ns(step["Communication(Not Overlapped)"]) == measure(communication, computing)
            assert ns(step["Free"]) == stage - measure(busy)
            exposed = ns(step["Communication(Not Overlapped)"])
            assert ns(step["Communication(Not Overlapped and Exclude Receive)"]) == exposed - received
            assert ns(step["Overlapped"]) == ns(step["Communication"]) - ns(step["Communication(Not Overlapped)"])
            assert ns(step["Preparing"]) == first - ns(begin["ts"])


def test_overlap_lanes_follow_from_the_hardware_lane(exports: list[Export]) -> None:
    cores = {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU"}
    for export in exports:
        hardware = export.lane("Ascend Hardware")
        computing = [span(e) for e in hardware if e["args"]["Task Type"] in cores]
        assert sorted(computing) == sorted(map(span, export.lane("Overlap Analysis", "Computing")))
        collectives = [
            span(e) for e in (*export.lane("HCCL"), *export.lane("Communication")) if e["name"].startswith("hcom_")
        ]
        communicating = [span(e) for e in export.lane("Overlap Analysis", "Communication")]
        assert merged(collectives) == sorted(communicating)
        exposed = [span(e) for e in export.lane("Overlap Analysis", "Communication(Not Overlapped)")]
        assert measure(exposed) == measure(collectives, computing)
        free = [span(e) for e in export.lane("Overlap Analysis", "Free")]
        assert measure(free, [*computing, *collectives]) == measure(free)


def test_operator_statistics_follow_from_the_kernel_table(exports: list[Export]) -> None:
    for export in exports:
        durations: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row in export.kernels:
            if not row["Type"].startswith("hcom_"):
                durations[row["Type"], row["Accelerator Core"]].append(ns(row["Duration(us)"]))
        statistic = export.table("op_statistic.csv")
        assert len(statistic) == len(durations)
        for row in statistic:
            values = durations[row["OP Type"], row["Core Type"]]
            assert int(row["Count"]) == len(values)
            assert ns(row["Total Time(us)"]) == sum(values)
            assert (ns(row["Min Time(us)"]), ns(row["Max Time(us)"])) == (min(values), max(values))
        assert sum(float(row["Ratio(%)"]) for row in statistic) == pytest.approx(100, abs=0.1)


def test_api_statistics_follow_from_the_cann_lane(exports: list[Export]) -> None:
    for export in exports:
        calls = Counter((e["args"]["level"], e["name"].split("@")[1]) for e in export.lane("CANN"))
        statistic = export.table("api_statistic.csv")
        assert {(row["Level"], row["API Name"]): int(row["Count"]) for row in statistic} == calls


def test_tasks_of_a_stream_follow_each_other(exports: list[Export]) -> None:
    for export in exports:
        streams: dict[int, list[Interval]] = defaultdict(list)
        for event in export.lane("Ascend Hardware"):
            if event["args"]["Subtask Id"] == 4294967295:  # tasks of a collective run side by side on its planes
                streams[event["tid"]].append(span(event))
        assert streams
        for tasks in streams.values():
            for before, after in pairwise(sorted(tasks)):
                assert before[1] <= after[0]


def test_spans_of_a_host_thread_nest(exports: list[Export]) -> None:
    for export in exports:
        threads: dict[tuple[int, int], list[Interval]] = defaultdict(list)
        for event in (*export.lane("Python"), *export.lane("CANN")):
            threads[event["pid"], event["tid"]].append(span(event))
        # main and autograd thread, each with spans of its own and calls into CANN; with a task queue a third thread
        assert len(threads) >= 4
        for spans in threads.values():
            enclosing: list[Interval] = []
            for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
                while enclosing and enclosing[-1][1] <= start:
                    enclosing.pop()
                assert not enclosing or end <= enclosing[-1][1]
                enclosing.append((start, end))


def test_flows_pair_up_and_point_at_events(exports: list[Export]) -> None:
    for export in exports:
        starts = {(e["pid"], e["tid"], e["ts"]) for e in export.trace if e["ph"] == "X"}
        calls = defaultdict(list)
        for event in export.lane("CANN"):
            calls[event["tid"]].append(span(event))
        inside = {thread: merged(spans) for thread, spans in calls.items()}
        ends: dict[tuple[str, object], list[str]] = defaultdict(list)
        for event in export.trace:
            if event["ph"] not in "sf":
                continue
            ends[event["cat"], event["id"]].append(event["ph"])
            if event["cat"] == "HostToDevice" and event["ph"] == "s":
                time = ns(event["ts"])
                busy = inside[event["tid"]]
                start, end = busy[bisect_right(busy, time, key=lambda part: part[0]) - 1]
                assert start <= time <= end
            else:
                assert (event["pid"], event["tid"], event["ts"]) in starts
        queued = {e["cat"] for e in export.lane("Python")} & {"enqueue", "dequeue"}
        expected = {"HostToDevice", "async_npu", "fwdbwd"} | ({"async_task_queue"} if queued else set())
        assert {category for category, _ in ends} == expected
        assert all(sorted(phases) == ["f", "s"] for phases in ends.values())


def test_every_kernel_has_its_launch(exports: list[Export]) -> None:
    for export in exports:
        launches = {e["args"]["connection_id"]: e for e in export.lane("CANN") if e["name"] == "Node@launch"}
        flows: dict[str, dict[str, Event]] = defaultdict(dict)
        for event in export.trace:
            if event.get("cat") == "HostToDevice":
                flows[event["id"]][event["ph"]] = event
        by_target = {(f["f"]["tid"], f["f"]["ts"]): f["s"] for f in flows.values()}
        operator_flows = {e["id"] for e in export.trace if e.get("cat") == "async_npu" and e["ph"] == "f"}
        events = {(e["tid"], ns(e["ts"])): e for e in export.lane("Ascend Hardware")}
        for row in export.kernels:
            if row["Type"].startswith("hcom_"):
                continue
            event = events[int(row["Stream ID"]), ns(row["Start Time(us)"])]
            launch = launches[event["args"]["connection_id"]]
            assert launch["args"]["item_id"] == row["Name"] == event["name"]
            begin, end = span(launch)
            source = by_target[event["tid"], event["ts"]]
            assert begin <= ns(source["ts"]) <= end
            assert ns(source["ts"]) < ns(event["ts"])
            assert ns(event["ts"]) in operator_flows


def test_the_queue_is_in_order(exports: list[Export]) -> None:
    for export in exports:
        pairs: dict[int, dict[str, Event]] = defaultdict(dict)
        for event in export.lane("Python"):
            if event["cat"] in {"enqueue", "dequeue"}:
                pairs[event["args"]["correlation_id"]][event["cat"]] = event
        last = 0
        for _, pair in sorted(pairs.items()):
            begin, end = span(pair["dequeue"])
            assert span(pair["enqueue"])[1] <= begin
            assert last <= begin
            last = end


def test_operator_table_follows_from_the_trace(exports: list[Export]) -> None:
    for export in exports:
        annotations = {"cpu_op", "user_annotation"}
        spans = Counter(
            (e["name"], round(e["dur"] * 1000))
            for e in export.lane("Python")
            if e["cat"] in annotations and not e["name"].startswith("ProfilerStep#")
        )
        rows = export.table("operator_details.csv")
        assert Counter((row["Name"], ns(row["Host Total Duration(us)"])) for row in rows) == spans
        kernels = sum(ns(r["Duration(us)"]) for r in export.kernels if not r["Type"].startswith("hcom_"))
        on_cores = sum(ns(row["Device Self Duration With AICore(us)"]) for row in rows)
        assert on_cores == kernels
        assert any("\n" in row["Call Stack"] for row in rows)


def test_counters_of_a_kernel_are_consistent(exports: list[Export]) -> None:
    clocks = [next(e["args"]["MHz"] for e in export.trace if e.get("ph") == "C") for export in exports]
    rows = ((mhz, row) for mhz, export in zip(clocks, exports, strict=True) for row in export.kernels)
    for mhz, row in rows:
        if row["Accelerator Core"] not in {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV"}:
            continue
        duration = float(row["Duration(us)"])
        blocks = int(row["Block Dim"])
        cube = row["Accelerator Core"] in {"AI_CORE", "MIX_AIC"}
        prefix, core_time = ("aic", "aicore_time(us)") if cube else ("aiv", "aiv_time(us)")
        ratio = re.compile(rf"{prefix}_(\w+)_ratio")
        time, cycles = float(row[core_time]), int(row[f"{prefix}_total_cycles"])
        assert 0.5 < duration - time < 4 + 0.05 * duration
        assert cycles == pytest.approx(time * blocks * mhz, rel=1e-3)
        if cube:
            utilization = 100 * cycles / (mhz * 24 * duration)
            assert float(row["cube_utilization(%)"]) == pytest.approx(utilization, abs=0.01)
        for column, value in row.items():
            if (match := ratio.fullmatch(column)) and float(value):
                took = time * float(value)
                assert abs(float(row[f"{prefix}_{match[1]}_time(us)"]) - took) <= max(0.01, 1e-6 * took)
                assert 0 < float(value) < 1


def test_shapes_types_and_formats_describe_the_same_tensors(exports: list[Export]) -> None:
    for row in (row for export in exports for row in export.kernels if not row["Type"].startswith("hcom_")):
        for side in ("Input", "Output"):
            shapes = row[f"{side} Shapes"]
            assert shapes.startswith('"') and shapes.endswith('"')
            parts = len(shapes.split(";"))
            assert parts == len(row[f"{side} Data Types"].split(";")) == len(row[f"{side} Formats"].split(";"))


def test_memory_is_taken_and_given_back(exports: list[Export]) -> None:
    for export in exports:
        rows = export.table("operator_memory.csv")
        released = [row for row in rows if row["Release Time(us)"].strip()]
        assert len(released) > 0.8 * len(rows)
        for row in released:
            assert ns(row["Duration(us)"]) == ns(row["Release Time(us)"]) - ns(row["Allocation Time(us)"]) >= 0
        for row in rows:
            assert 0 < float(row["Allocation Total Allocated(MB)"]) <= float(row["Allocation Total Reserved(MB)"])
        framework = [r for r in export.table("memory_record.csv") if r["Component"] == "PTA"]
        assert len(framework) == len(rows) + len(released)


def test_collectives_end_together_and_the_late_rank_waits_least(sample: object) -> None:
    first, second = (export.json("communication.json") for export in sample("transformer-training"))  # type: ignore[operator]
    assert first.keys() == second.keys() == {"step10", "step11"}
    for step, content in first.items():
        for name, op in content["collective"].items():
            if name == "Total Op Info":
                continue
            mine, other = (side[step]["collective"][name] for side in (first, second))
            times = [side["Communication Time Info"] for side in (mine, other)]
            ends = [t["Start Timestamp(us)"] / 1000 + t["Elapse Time(ms)"] for t in times]
            assert ends[0] == pytest.approx(ends[1], abs=1e-3)
            for part in times:
                parts = sum(part[f"{what} Time(ms)"] for what in ("Transit", "Wait", "Idle"))
                assert part["Elapse Time(ms)"] == pytest.approx(parts)
            assert op["Communication Bandwidth Info"]["HCCS"]["Bandwidth(GB/s)"] < 20.6
        waits = [
            side[step]["collective"]["Total Op Info"]["Communication Time Info"]["Wait Time(ms)"]
            for side in (first, second)
        ]
        assert waits[0] > 5 > waits[1]


def test_the_wait_shows_on_the_plane_to_the_late_rank(sample: object) -> None:
    waiting, late = sample("transformer-training")  # type: ignore[operator]
    longest = {}
    for rank, export in enumerate((waiting, late)):
        events = [e for e in export.lane("HCCL", "Plane 1") if e["name"] == "Notify_Wait"]
        assert {(e["args"]["src rank"], e["args"]["dst rank"]) for e in events} == {(rank, 1 - rank)}
        longest[rank] = max(e["dur"] for e in events)
    assert longest[0] > 5_000 > 100 > longest[1]
