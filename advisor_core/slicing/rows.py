"""Slices of one thread that cross each other, in threads of their own.

A viewer draws slices of a thread below one another where one lies in the other; of two that cross Perfetto drops the
later one. Tasks of a stream do cross in recordings: one of a collective waits while the next is under way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from advisor_core.slicing.recording import Event

Thread = tuple[Any, Any]
"""Process and thread."""


def apart(events: Iterable[Event], starts: Iterable[int], lengths: Iterable[int]) -> list[Event]:
    """The events with those of further rows in threads of their own, which are named behind them. ``starts`` and
    ``lengths``: of each, in ns."""
    listed = list(events)
    of_thread: dict[Thread, list[tuple[int, int, int]]] = defaultdict(list)
    for number, (event, start, length) in enumerate(zip(listed, starts, lengths, strict=True)):
        if event.get("ph") == "X":
            of_thread[event.get("pid"), event.get("tid")].append((start, -length, number))
    names = {_thread(event): event["args"]["name"] for event in listed if event.get("name") == "thread_name"}
    free = max((tid for _, tid in of_thread if isinstance(tid, int)), default=0) + 1
    added: list[Event] = []
    moved: dict[tuple[Thread, int], int] = {}
    for thread, spans in of_thread.items():
        for row, numbers in enumerate(_rows(sorted(spans))):
            if row == 0:
                continue
            for number, start in numbers:
                listed[number] = listed[number] | {"tid": free}
                moved[thread, start] = free
            name = {"name": f"{names.get(thread, thread[1])} ({row + 1})"}
            added.append({"ph": "M", "name": "thread_name", "pid": thread[0], "tid": free, "args": name})
            free += 1
    if moved:  # an arrow that ends where such a slice begins is one to it
        for number, (event, start) in enumerate(zip(listed, starts, strict=True)):
            if event.get("ph") in ("t", "f") and (tid := moved.get((_thread(event), start))) is not None:
                listed[number] = event | {"tid": tid}
    return [*listed, *added]


def _thread(event: Event) -> Thread:
    return event.get("pid"), event.get("tid")


def _rows(spans: list[tuple[int, int, int]]) -> list[list[tuple[int, int]]]:
    """Numbers and starts of the spans of each row; an outer span comes before those in it."""
    rows: list[list[tuple[int, int]]] = []
    open_until: list[list[int]] = []
    for start, negative, number in spans:
        end = start - negative
        for ends in open_until:
            while ends and ends[-1] <= start:
                ends.pop()
        row = next((row for row, ends in enumerate(open_until) if not ends or end <= ends[-1]), len(rows))
        if row == len(rows):
            rows.append([])
            open_until.append([])
        open_until[row].append(end)
        rows[row].append((number, start))
    return rows
