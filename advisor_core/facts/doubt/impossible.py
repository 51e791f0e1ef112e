"""Times that no recording can have: what a wrong unit, or times of another clock, make of sound events.

Kernels that share a stream run one after the other, the calls of a thread lie within or beside each other, a task
begins after its launch, and a kernel takes some time. All real recordings at hand, of either vendor, keep to this:
kernels of a stream overlap for at most 0.02 % of their time (H100 and V100, where one may begin while its predecessor
ends), no calls cross, no task is more than 0.03 ms before its launch (the clocks of host and device of an Ascend card),
and the median kernel takes 2 us to 132 us.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from advisor_core.contracts.doubt import Disagreement
from advisor_core.contracts.frames import narrowed
from advisor_core.contracts.tables import DEVICE_TASKS, FLOWS, HOST_EVENTS, KERNELS, Int64Array, Table
from advisor_core.facts.doubt.totals import ROUNDING
from advisor_core.text.messages import message

CALLS: Final = ("cpu_op", "runtime", "dequeue")
"""Categories of the host whose spans are calls; a mark may begin in one call and end in another."""

CLOCKS_NS: Final = 1_000_000
"""Largest difference between the clocks of host and device: 1 ms, thirty times that of real recordings. Our choice."""

SHORTEST_NS: Final = 100
"""A device needs about 1 us to begin and end a kernel. Where half of the kernels take less than a tenth of that, their
unit is another one. Our choice."""


_RUN = ("stream", "start_ns", "duration_ns")


def impossible(tables: Mapping[str, Table]) -> list[Disagreement | None]:
    """Contradictions of a table with what devices and threads can do."""
    kernels, calls = tables.get(KERNELS.name), tables.get(HOST_EVENTS.name)
    found = [] if kernels is None else [_at_once(kernels), _too_short(kernels)]
    return [*found, None if calls is None else _crossing(calls), _before_launch(tables)]


def _at_once(kernels: Table) -> Disagreement | None:
    """Kernels of one stream that run at the same time."""
    frame = kernels.frame
    own = frame.loc[(frame["core"] != "COMMUNICATION") & (frame["duration_ns"] > 0), list(_RUN)]
    streams, starts, lengths = own.sort_values(list(_RUN)).to_numpy(dtype=np.int64).T
    ends = starts + lengths
    # rows that stand twice are told as such
    beside = (streams[1:] == streams[:-1]) & ((starts[1:] != starts[:-1]) | (lengths[1:] != lengths[:-1]))
    overlap = np.clip(np.minimum(ends[:-1], ends[1:]) - starts[1:], 0, None)[beside]
    whole, twice = int(lengths.sum()), int(overlap.sum())
    if twice <= ROUNDING * whole:
        return None
    return against_itself(kernels, "doubt.total.at_once", "ns", whole, whole - twice)


def _too_short(kernels: Table) -> Disagreement | None:
    """Kernels that end before a device could have begun them."""
    frame = kernels.frame
    lengths = frame.loc[(frame["core"] != "COMMUNICATION") & (frame["duration_ns"] > 0), "duration_ns"]
    if lengths.empty or (median := float(lengths.median())) >= SHORTEST_NS:
        return None
    return against_itself(kernels, "doubt.total.shortest", "ns", median, SHORTEST_NS)


def _crossing(calls: Table) -> Disagreement | None:
    """Calls of one thread, one behind the other by their start, of which the first ends while the second runs.

    Operators and calls of the runtime are looked at by themselves: a call stands between almost any two operators."""
    category = calls.frame["category"]
    span = narrowed(calls.frame, ("thread", "start_ns", "duration_ns")).to_numpy(dtype=np.int64)
    found = {one: _crossings(*span[(category == one).to_numpy()].T) for one in CALLS}
    own, crossing = max(found.values(), key=lambda counted: counted[1] / max(counted[0], 1))
    if crossing <= ROUNDING * own:
        return None
    return against_itself(calls, "doubt.total.crossing", "count", own, own - crossing)


def _crossings(threads: Int64Array, starts: Int64Array, lengths: Int64Array) -> tuple[int, int]:
    """The number of calls, and of those that cross the next."""
    order = np.lexsort((-lengths, starts, threads))
    threads, starts, ends = threads[order], starts[order], (starts + lengths)[order]
    crosses = (ends[:-1] > starts[1:]) & (ends[:-1] < ends[1:]) & (threads[1:] == threads[:-1])
    return len(threads), int(crosses.sum())


def _before_launch(tables: Mapping[str, Table]) -> Disagreement | None:
    """Tasks that began before they were launched."""
    flows, tasks = tables.get(FLOWS.name), tables.get(DEVICE_TASKS.name)
    if flows is None or tasks is None:
        return None
    arrows = narrowed(flows.frame, ("flow", "time_ns", "end"))[flows.frame["kind"] == "host_to_device"]
    begun = arrows[arrows["end"] == "f"].drop_duplicates("flow").set_index("flow")["time_ns"]
    launched = arrows[arrows["end"] == "s"].drop_duplicates("flow").set_index("flow")["time_ns"]
    later = (begun - launched).dropna()
    early = int((later < -CLOCKS_NS).sum())
    if early <= ROUNDING * len(later):
        return None
    return against_itself(tasks, "doubt.total.before_launch", "count", len(later), len(later) - early)


def against_itself(table: Table, total: str, unit: str, value: float, possible: float) -> Disagreement:
    """A total of a table, and what of it is possible."""
    return Disagreement(
        total=message(total),
        unit=unit,
        table=table.schema.name,
        file=table.source.file,
        value=value,
        other_table=table.schema.name,
        other_file=table.source.file,
        other=possible,
        off=abs(value - possible) / max(value, possible),
    )
