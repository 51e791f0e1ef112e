"""The trace by the rules of the format, checked without the code that writes it.

`tests.perfetto` opens it with Perfetto's own trace processor, where that can be had. What it asks of a trace is checked
here: its phases and their fields, slices of a thread that nest, ids of threads that are used once in the whole file,
times that a double holds, and arrows whose ends lie within slices, in order of time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.profile import InputError
from advisor_core.loaders.discover import discover
from advisor_core.run.prepared import installed_host
from advisor_core.text.units import microseconds
from reports.timeline.trace import TraceRenderer
from tests.reports.timeline.timelines import of_two, with_timeline

Event = dict[str, Any]
NAMES = ("training", "two_of_four", "of_roles", "hostile", "many_ranks", "nothing_found")


def written(result: Any, lang: str = "en") -> dict[str, Any]:
    trace = json.loads(TraceRenderer().render(result, lang))
    assert isinstance(trace, dict)
    return trace


def ns(time: str | float) -> int:
    exact = Decimal(str(time)) * 1000
    assert exact == exact.to_integral_value(), f"{time} is no whole number of ns"
    return int(exact)


def check(events: list[Event]) -> tuple[int, int]:
    """The number of slices and of arrows."""
    names: dict[tuple[int, int], str] = {}
    slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    ends: dict[int, dict[str, Event]] = defaultdict(dict)
    for event in events:
        assert isinstance(event["name"], str) and event["name"] and event["name"].isprintable()
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        lane = event["pid"], event["tid"]
        match event["ph"]:
            case "M":
                assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
                if event["name"] == "thread_name":
                    assert lane not in names
                    names[lane] = event["args"]["name"]
            case "X":
                assert isinstance(event["ts"], str) and event["dur"] >= 0 and event["cat"]
                assert abs(float(event["ts"]) * 1000 - ns(event["ts"])) < 0.01, "Perfetto reads it as a double"
                slices[lane].append((ns(event["ts"]), ns(event["dur"])))
            case "s" | "f":
                assert event["cat"] and event["ph"] not in ends[event["id"]]
                ends[event["id"]][event["ph"]] = event
            case other:
                pytest.fail(f"no phase of ours: {other}")
    assert set(slices) <= set(names)
    assert len({tid for _, tid in names}) == len(names), "Perfetto looks up a thread by its id alone"
    for own in slices.values():
        open_until: list[int] = []
        for start, length in sorted(own, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start + length <= open_until[-1], "two slices cross"
            open_until.append(start + length)
    for pair in ends.values():
        assert set(pair) == {"s", "f"} and pair["f"]["bp"] == "e" and pair["s"]["cat"] == pair["f"]["cat"]
        assert ns(pair["s"]["ts"]) <= ns(pair["f"]["ts"]), "Perfetto drops an arrow that ends before it begins"
        for event in pair.values():
            at = ns(event["ts"])
            assert any(start <= at < start + length for start, length in slices[event["pid"], event["tid"]])
    return sum(map(len, slices.values())), len(ends)


@pytest.mark.parametrize(("name", "lang"), [(name, lang) for name in NAMES for lang in ("en", "zh")])
def test_the_trace_keeps_the_rules_of_the_format(example: ModuleType, name: str, lang: str) -> None:
    result = with_timeline(getattr(example, name)())
    assert result.timeline is not None
    trace = written(result, lang)
    slices, _ = check(trace["traceEvents"])
    recorded = sum(len(t.spans) for rank in result.timeline.ranks for t in rank.tracks)
    assert slices >= recorded + sum(len(rank.steps) for rank in result.timeline.ranks)
    assert trace["otherData"]["notes"]


def test_a_wait_is_an_arrow_from_the_last_rank(example: ModuleType) -> None:
    events = written(example.empty().model_copy(update={"timeline": of_two()}))["traceEvents"]
    assert check(events) == (2 + 3 + 2 + 2 + 2, 1)
    start, finish = (next(e for e in events if e["ph"] == phase) for phase in "sf")
    assert (start["pid"], start["ts"], finish["pid"], finish["ts"]) == (2, "0.080", 1, "0.080")
    titles = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert titles == {1: "rank 0", 2: "rank 1"}


@pytest.mark.parametrize(
    "broken",
    [
        {"ph": "X", "name": "x", "cat": "c", "pid": 1, "tid": 1, "ts": "0.090", "dur": 0.02},
        {"ph": "X", "name": "x", "cat": "c", "pid": 1, "tid": 1, "ts": "0.0901", "dur": 0.001},
        {"ph": "X", "name": "x", "cat": "c", "pid": 9, "tid": 99, "ts": "0.090", "dur": 0.001},
        {"ph": "s", "name": "w", "cat": "c", "pid": 1, "tid": 1, "ts": "0.090", "id": 5},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "twice"}},
    ],
)
def test_the_check_would_notice(example: ModuleType, broken: Event) -> None:
    events = written(example.empty().model_copy(update={"timeline": of_two()}))["traceEvents"]
    with pytest.raises(AssertionError):
        check([*events, broken])


@given(st.integers(-(2**62), 2**62))
def test_no_time_loses_a_nanosecond(time: int) -> None:
    assert ns(microseconds(time)) == time


def test_without_a_timeline_the_trace_says_so(example: ModuleType) -> None:
    trace = written(example.training())
    assert trace["traceEvents"] == [] and "no timeline" in trace["otherData"]["notes"][0]


def test_the_trace_is_no_profile_of_a_later_run(example: ModuleType, tmp_path: Path) -> None:
    """A report that lies beside profiles is not read as one of them."""
    text = TraceRenderer().render(with_timeline(example.training()), "en")
    (tmp_path / "report.trace.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        discover(list(installed_host().loaders.values()), tmp_path)
