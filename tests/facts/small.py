"""Small timelines for tests: a few lines become canonical tables and a store of facts. Times are in microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pandas as pd

from advisor_core import builtin
from advisor_core.facts.store import FactStore
from advisor_core.registry import Registry
from advisor_core.tables import SCHEMAS

US = 1_000
MAIN, BACKWARD, ACL = 100, 101, 200
"""Threads: the two that feed the device and the one that empties the task queue."""


def table(name: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A canonical table from rows whose ``*_us`` keys are microseconds."""
    converted = []
    for number, row in enumerate(rows):
        plain: dict[str, Any] = {"source_row": number}
        for key, value in row.items():
            plain[key.removesuffix("_us") + "_ns" if key.endswith("_us") else key] = (
                round(value * US) if key.endswith("_us") else value
            )
        converted.append(plain)
    frame = pd.DataFrame(converted)
    absent = {"int": -1, "bool": False, "text": ""}
    for field in SCHEMAS[name].fields:
        if field.name in frame and field.dtype in absent:
            frame[field.name] = frame[field.name].where(frame[field.name].notna(), absent[field.dtype])
    return SCHEMAS[name].conform(frame)


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
    """The built-in facts over these tables."""
    registry: Registry[Any] = Registry("fact")
    builtin.advisor_register_facts(registry)
    profile = SimpleNamespace(
        selected_step=None, groups=groups or {}, rank=rank, chip={}, level="level1", framework="PyTorch", profiler={},
        world_size=None,
    )  # fmt: skip
    return FactStore(registry, {**tables, "profile": profile}, {})
