"""Slices that cross lie in threads of their own, and nothing is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor_core.slicing.rows import apart

Span = tuple[int, int]


def placed(spans: list[Span]) -> list[dict[str, Any]]:
    events = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "Stream 7"}},
        *({"ph": "X", "name": str(number), "pid": 1, "tid": 7} for number in range(len(spans))),
        *({"ph": "f", "name": "launch", "pid": 1, "tid": 7, "id": number} for number in range(len(spans))),
    ]
    starts = [0, *(start for start, _ in spans), *(start for start, _ in spans)]
    return apart(events, starts, [0, *(ns for _, ns in spans), *([0] * len(spans))])


def test_of_two_that_cross_the_later_lies_in_a_thread_of_its_own() -> None:
    events = placed([(0, 10), (2, 3), (8, 10), (30, 5)])
    assert [event["tid"] for event in events if event["ph"] == "X"] == [7, 7, 8, 7]
    assert [event["tid"] for event in events if event["ph"] == "f"] == [7, 7, 8, 7]
    assert events[-1] == {"ph": "M", "name": "thread_name", "pid": 1, "tid": 8, "args": {"name": "Stream 7 (2)"}}


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=20))
def test_no_two_of_a_thread_cross(spans: list[Span]) -> None:
    events = placed(spans)
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in slices] == [str(number) for number in range(len(spans))]
    threads: dict[int, list[Span]] = {}
    for event, (start, ns) in zip(slices, spans, strict=True):
        threads.setdefault(event["tid"], []).append((start, start + ns))
    for own in threads.values():
        for a, b in own:
            assert all(d <= a or b <= c or (c <= a and b <= d) or (a <= c and d <= b) for c, d in own)
    named = [event["tid"] for event in events if event["name"] == "thread_name"]
    assert sorted(named) == sorted({7, *threads}) and len(named) == len(set(named))
