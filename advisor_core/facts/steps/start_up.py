"""The wait for the start of other ranks, with which a recording can begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable
from advisor_core.facts.communication.state import POINT_TO_POINT
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import union
from advisor_core.facts.matching import matching
from advisor_core.text.messages import message

TIMES_LONGER: Final = 10
"""Least ratio of the first collective to every other one of the recording. Our choice: in a real first step
(gpt3) it is 49 times, in one with a late rank (AlexNet, 8 ranks) 4 times."""

AT_THE_BEGINNING: Final = 0.05
"""Share of the computing that may lie before the end of that wait: later it is a wait of the step, not for its start.
Our choice."""

_OTHERS: Final = 2
"""Other collectives that are needed to know what is usual."""


@dataclass(frozen=True)
class StartUp:
    """``collective``: row of the fact ``work``. ``began_ns``: first task of the recording; ``start_ns`` and ``end_ns``
    of the collective. ``longest_other_ns``: of all other collectives. ``usual_ns``: median of its like, -1 without.
    ``seen_again``: a later step was recorded in which no collective takes as long, so that it is no part of a step."""

    collective: int
    name: str
    began_ns: int
    start_ns: int
    end_ns: int
    longest_other_ns: int
    usual_ns: int
    seen_again: bool

    @property
    def wait_ns(self) -> int:
        return self.end_ns - self.start_ns


@fact("start_up", needs=(work,))
def start_up(facts: Facts) -> StartUp:
    """The first collective of the recording, where it waited for other ranks to start.

    That is so where it takes `TIMES_LONGER` times as long as any other, hardly anything was computed before it ended,
    and it is no send or receive: stages of a pipeline wait like that in every step.
    """
    device = facts[work]
    talks = device["communication"].to_numpy()
    collectives = np.flatnonzero(talks)
    if len(collectives) <= _OTHERS:
        raise NotApplicable(message("start_up.none"))
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    first, others = int(collectives[0]), collectives[1:]
    lengths = ends - starts
    longest = int(lengths[others].max())
    computing = union(starts[~talks], ends[~talks])
    before = int(computing.measure(ends[[first]])[0])
    if (
        lengths[first] < TIMES_LONGER * longest
        or before > AT_THE_BEGINNING * computing.total()
        or matching(device["name"], POINT_TO_POINT)[first]
    ):
        raise NotApplicable(message("start_up.none"))
    kinds = device["name"].astype(str).str.replace(r"[_\d]+$", "", regex=True).to_numpy()
    alike = others[kinds[others] == kinds[first]]
    recorded = device["step"].to_numpy()
    return StartUp(
        collective=first,
        name=str(device["name"].iloc[first]),
        began_ns=int(starts.min()),
        start_ns=int(starts[first]),
        end_ns=int(ends[first]),
        longest_other_ns=longest,
        usual_ns=int(np.median(lengths[alike])) if len(alike) else -1,
        seen_again=bool((recorded[others] > recorded[first]).any()),
    )
