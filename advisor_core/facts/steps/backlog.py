"""Work that was handed over before the recording began, and with which the device was busy when it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import NO_TIME, launches
from advisor_core.facts.intervals import union
from advisor_core.facts.steps.start_up import AT_THE_BEGINNING
from advisor_core.text.messages import message

LEAST_WAIT_NS: Final = 1_000_000
"""A task that was handed over starts on a free device within some 10 us; a shorter wait than this is not worth telling.
Our choice."""

MOSTLY_EMPTY: Final = 0.01
"""Share of the wait in which recorded tasks may run all the same, on other streams. Our choice."""


@dataclass(frozen=True)
class Backlog:
    """``task``: row of the fact ``work``, the first one of its ``stream``. ``handed_over_ns`` and ``start_ns`` of it.
    ``began_ns``: first task of the recording."""

    task: int
    name: str
    stream: int
    began_ns: int
    handed_over_ns: int
    start_ns: int

    @property
    def wait_ns(self) -> int:
        return self.start_ns - max(self.handed_over_ns, self.began_ns)


@fact("backlog", needs=(work, launches))
def backlog(facts: Facts) -> Backlog:
    """The task at the beginning that waited, handed over, for what was not recorded.

    A stream takes its tasks in order. The first recorded task of a stream that starts late, though the host had handed
    it over and no recorded task was running, waited for tasks that the profiler did not record: it records a task of a
    GPU only if it was on when the task was handed over. That is told of the last such task, where hardly anything was
    computed before it. Later in a recording a stream that is new can wait for others, and collectives wait for ranks.
    """
    device, frame = facts[work], facts[launches].frame
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    handed = frame["launch_ns"].to_numpy()
    talks = device["communication"].to_numpy()
    streams = device["stream"].to_numpy()
    first = np.zeros(len(device), dtype=bool)
    first[np.unique(streams, return_index=True)[1]] = True
    began = int(starts.min())
    since = np.maximum(handed, began)
    waited = np.flatnonzero(first & ~talks & (streams >= 0) & (handed != NO_TIME) & (starts - since >= LEAST_WAIT_NS))
    if not len(waited):
        raise NotApplicable(message("backlog.none"))
    busy, computing = union(starts, ends), union(starts[~talks], ends[~talks])
    ran = busy.measure(starts[waited]) - busy.measure(since[waited])
    before = computing.measure(starts[waited])
    early = (ran <= MOSTLY_EMPTY * (starts - since)[waited]) & (before <= AT_THE_BEGINNING * computing.total())
    if not early.any():
        raise NotApplicable(message("backlog.none"))
    task = int(waited[early][-1])
    return Backlog(
        task=task,
        name=str(device["name"].iloc[task]),
        stream=int(streams[task]),
        began_ns=began,
        handed_over_ns=int(handed[task]),
        start_ns=int(starts[task]),
    )
