"""Memory that was alive when most was allocated, by the call stack that allocated it, and its largest blocks.

An allocation is recorded with the operator and the time, not with the thread: it is of the call of that operator that
runs at that time, where only one thread runs one (127 of 127 allocations of the framework in a real AlexNet export).
What the graph engine allocates (``cann::``) is no part of the peak of the framework.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import HOST_EVENTS, OPERATOR_MEMORY, PROFILE, Facts, enclosing_of, memory_peak
from advisor_core.api.renderers import Cell, FlameView, View
from advisors.call_stacks.flames import flame_of
from advisors.call_stacks.paths import Paths, called
from advisors.messages import message
from advisors.rank_tables import rank_table

Ints = npt.NDArray[np.int64]

SHOWN: Final = 20
"""Rows of the table, the largest blocks; the title says of how many."""

FRAMES: Final = 3
"""Frames of the program that the table names, the innermost first."""

_OF_LIBRARIES: Final = re.compile(r"^<|(^|/)(torch|torch_npu|mindspore|multiprocessing)/|^threading\.py")
"""Frames of Python itself and of frameworks: that these allocate is no news."""

_COLUMNS: Final = (
    ("call_stacks.blocks.bytes", "B"),
    ("call_stacks.blocks.operator", ""),
    ("call_stacks.blocks.module", ""),
    ("call_stacks.blocks.frames", ""),
    ("call_stacks.blocks.before", "ns"),
    ("call_stacks.blocks.after", "ns"),
)


@drawing("call_stacks.memory", needs=(HOST_EVENTS, OPERATOR_MEMORY, memory_peak, PROFILE, called))
def memory(facts: Facts) -> list[View]:
    """The memory at its peak by call stack, and its largest blocks with their stacks."""
    peak, rank = facts[memory_peak], facts[PROFILE].rank
    if not len(peak.rows):
        return []
    found = allocated_at(facts)
    flame = flame_of("memory", found.paths, found.places, found.bytes)
    if flame is None:
        return []
    title = message("call_stacks.view.memory", rank=rank)
    view = FlameView(id=f"memory-stacks-rank{rank}", title=title, unit="B", rank=rank, data=flame)
    return [view, *_blocks(facts, found)]


@dataclass(frozen=True)
class Allocated:
    """The blocks at the peak: ``places`` in ``paths`` and ``bytes``, first of the blocks of ``PeakMemory.rows``,
    then of what was there before the recording, or was not recorded."""

    paths: Paths
    places: Ints
    bytes: Ints


def allocated_at(facts: Facts) -> Allocated:
    """The blocks that were alive at the peak, each below the call that allocated it."""
    events, peak = facts[HOST_EVENTS], facts[memory_peak]
    blocks = facts[OPERATOR_MEMORY].loc[peak.rows]
    paths, of_events = facts[called].paths.copy(), facts[called].places
    calls = _calls(blocks, events)
    names = blocks["name"].astype(str).tolist()
    places = [
        int(of_events[call]) if call >= 0 else paths.place(-1, name, "operator")
        for call, name in zip(calls.tolist(), names, strict=True)
    ]
    sizes = blocks["bytes"].to_numpy().astype(np.int64)
    if peak.earlier_bytes:
        places.append(paths.place(-1, "", "earlier"))
        sizes = np.append(sizes, peak.earlier_bytes)
    return Allocated(paths, np.asarray(places, dtype=np.int64), sizes)


def _calls(blocks: pd.DataFrame, events: pd.DataFrame) -> Ints:
    """The row of the host event that allocated each block, -1 where no thread or several threads may have."""
    names, times = blocks["name"].astype(str), blocks["allocation_ns"].to_numpy()
    code = {name: number for number, name in enumerate(dict.fromkeys(names.tolist()))}
    asked = names.map(code).to_numpy().astype(np.int64)
    own = events[(events["category"] == "cpu_op").to_numpy()]
    own = own[own["name"].isin(list(code)).to_numpy()]
    threads = own["thread"].to_numpy()
    # The names stand in place of threads: an event encloses the moments of its own name.
    by_name = own.assign(thread=own["name"].astype(str).map(code).astype("int64"))
    found, hits = np.full(len(blocks), -1, dtype=np.int64), np.zeros(len(blocks), dtype=np.int64)
    for thread in np.unique(threads).tolist():
        rows = enclosing_of(by_name[threads == thread], asked, times)
        hits += rows >= 0
        found = np.where(rows >= 0, rows, found)
    return np.where(hits == 1, found, -1)


def _blocks(facts: Facts, found: Allocated) -> list[View]:
    peak, rank = facts[memory_peak], facts[PROFILE].rank
    blocks = facts[OPERATOR_MEMORY].loc[peak.rows[:SHOWN]]
    rows: list[list[Cell]] = []
    columns = (blocks[name].tolist() for name in ("name", "bytes", "allocation_ns", "release_ns"))
    for place, (name, size, since, until) in zip(found.places.tolist(), zip(*columns, strict=True), strict=False):
        module, frames = _told(found.paths, place)
        left = int(until) - peak.time_ns if until >= 0 else None
        rows.append([int(size), str(name), module or None, frames or None, peak.time_ns - int(since), left])
    title = message("call_stacks.view.blocks", rank=rank, shown=len(rows), count=len(peak.rows))
    return [rank_table("memory-blocks", title, rank, _COLUMNS, rows)]


def _told(paths: Paths, place: int) -> tuple[str, str]:
    """The innermost module above a place, and the innermost frames of the program, '' for none."""
    module = ""
    frames: list[str] = []
    while place >= 0:
        name, kind = paths.frames[place]
        if kind == "module" and not module:
            module = name.removeprefix("nn.Module: ")
        if kind == "python" and len(frames) < FRAMES and not _OF_LIBRARIES.search(name):
            frames.append(name)
        place = paths.parents[place]
    return module, " < ".join(frames)


DRAWINGS: tuple[Drawing, ...] = (memory,)
