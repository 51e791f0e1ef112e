"""A reader of exported files that shares no code with their writer."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Row = dict[str, str]
Event = dict[str, Any]


def ns(text: str) -> int:
    """Nanoseconds of a time stamp or duration in us."""
    whole, _, fraction = text.strip().partition(".")
    assert len(fraction) <= 3, text
    return int(whole) * 1000 + int(fraction.ljust(3, "0"))


@dataclass(frozen=True)
class Export:
    """The files of one rank."""

    root: Path

    @property
    def output(self) -> Path:
        return self.root / "ASCEND_PROFILER_OUTPUT"

    def table(self, name: str) -> list[Row]:
        with (self.output / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))

    def json(self, name: str) -> Any:
        return json.loads((self.output / name).read_text(encoding="utf-8"))

    @cached_property
    def trace(self) -> list[Event]:
        return list(self.json("trace_view.json"))

    @cached_property
    def kernels(self) -> list[Row]:
        return self.table("kernel_details.csv")

    @cached_property
    def _names(self) -> list[Event]:
        """What names processes and threads; to look through the whole trace for each lane took a fifth of the tests."""
        return [e for e in self.trace if e["name"] in ("process_name", "thread_name")]

    @cached_property
    def _slices(self) -> dict[int, list[Event]]:
        """The X events of each process."""
        found: dict[int, list[Event]] = defaultdict(list)
        for event in self.trace:
            if event["ph"] == "X":
                found[event["pid"]].append(event)
        return found

    def _pids(self, *processes: str) -> set[int]:
        return {e["pid"] for e in self._names if e["name"] == "process_name" and e["args"]["name"] in processes}

    def threads(self, *processes: str) -> dict[int, str]:
        """Names of the threads of a process, which goes by one of several names."""
        pids = self._pids(*processes)
        return {e["tid"]: e["args"]["name"] for e in self._names if e["name"] == "thread_name" and e["pid"] in pids}

    def lane(self, process: str, thread: str | None = None) -> list[Event]:
        """The X events of one process, or of one of its threads."""
        pids = self._pids(process)
        tids = {
            e["tid"]
            for e in self._names
            if e["name"] == "thread_name" and e["pid"] in pids and thread in {None, e["args"]["name"]}
        }
        return [e for pid in pids for e in self._slices.get(pid, []) if e["tid"] in tids]
