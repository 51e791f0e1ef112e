"""Rows of small timelines for tests. Times are in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from advisor_core import testing
from advisor_core.facts.store import FactStore

US = 1_000
MAIN, BACKWARD, ACL = 100, 101, 200
"""Threads: the two that feed the device and the one that empties the task queue."""


def kernel(start: float, duration: float, type_: str = "MatMulV2", *, step: int = 1, stream: int = 2) -> dict[str, Any]:
    core = "COMMUNICATION" if type_.startswith("hcom") else "AI_CORE"
    stream = -1 if core == "COMMUNICATION" else stream
    return {
        "start_us": start, "duration_us": duration, "type": type_, "name": type_, "core": core, "step": step,
        "stream": stream,
    }  # fmt: skip


def host(category: str, name: str, thread: int, start: float, duration: float, correlation: int = -1) -> dict[str, Any]:
    return {
        "category": category, "name": name, "thread": thread, "start_us": start, "duration_us": duration,
        "correlation": correlation,
    }  # fmt: skip


def launch(flow: int, launched: float, started: float, *, stream: int = 2, thread: int = ACL) -> list[dict[str, Any]]:
    """Both ends of a HostToDevice arrow."""
    common = {"kind": "host_to_device", "flow": flow}
    return [
        common | {"end": "s", "time_us": launched, "thread": thread, "device": False},
        common | {"end": "f", "time_us": started, "thread": stream, "device": True},
    ]


def store(*, rank: int = 0, groups: Mapping[str, list[int]] | None = None, **tables: pd.DataFrame) -> FactStore:
    """The facts over these tables, for a rank of a job."""
    return testing.fact_store(about=testing.profile(rank=rank, groups=groups or {}), **tables)
