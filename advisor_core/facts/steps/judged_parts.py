"""The parts of a recording that are judged by themselves: where prefill and decode, or the phases of an iteration of
reinforcement learning, stand in one recording, a share of the whole step is true of none of them. A prefill that keeps
the device busy hides that decode leaves it idle for half of its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.intervals import NOTHING, Layer, cut
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.steps.parts import parts
from advisor_core.facts.steps.steps import steps
from advisor_core.vocabulary.parts import TOLD, UNKNOWN, place_name, place_of

PART: Final = Column(
    "recorded_part",
    "text",
    "",
    "the part of the recording that it is about: training, log_probs, prefill, decode, mixed or unknown; a phase of an "
    "iteration stands in brackets behind it",
    zh="阶段",
    optional=True,
)
"""About which part an observation is. An advisor that has it in ``about`` gives one row per `JudgedPart`, or one row
without it of the whole recording; findings lie where it says."""


@dataclass(frozen=True)
class JudgedPart:
    """A part of the steps. ``name``: the value of `PART`; ``part``: that without a phase. ``wall_ns``: its time per
    step; ``inside``: its stretches, clock of the device. ``per_leaf``: ledger path to ns per step, in order of the
    path; ``overlapped_ns``: per step, communication under computing."""

    name: str
    part: str
    wall_ns: float
    inside: Layer
    per_leaf: pd.Series
    overlapped_ns: float


@fact("judged_parts", needs=(parts, bookings, steps))
def judged_parts(facts: Facts) -> tuple[JudgedPart, ...]:
    """The parts that take at least `TOLD` of the steps each, in order of their first stretch, by what they compute and
    by the phase that is marked; none where fewer than two of them are told from each other. Their ledgers are those of
    ``part_ledger``: a gap belongs to the part that runs before it, up to the first kernel of the next one."""
    spans, windows = facts[parts], facts[steps]
    texts = [place_name(*key) for key in zip(spans["part"].tolist(), spans["phase"].tolist(), strict=True)]
    names = list(dict.fromkeys(texts))
    number = np.array([names.index(text) for text in texts], dtype=np.int64)
    starts, ends = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    lengths = np.zeros(len(names), dtype=np.int64)
    np.add.at(lengths, number, ends - starts)
    chosen = [row for row in range(len(names)) if lengths[row] >= TOLD * lengths.sum()]
    if sum(names[row] != UNKNOWN for row in chosen) < 2:
        return ()
    pieces = facts[bookings].pieces
    found = cut(int(windows["start_ns"].min()), int(windows["end_ns"].max()), [Layer.of(pieces), Layer.of(spans)])
    inside = (found.ids[0] != NOTHING) & (found.ids[1] != NOTHING)
    piece, of_part = found.ids[0][inside], number[found.ids[1][inside]]
    ns = found.lengths[inside]
    codes = pieces["path"].array.codes[piece]
    paths = pieces["path"].array.categories.to_numpy(dtype=object)
    overlapped = pieces["overlapped"].to_numpy(dtype=np.bool_)[piece]
    result = []
    for row in chosen:
        own = of_part == row
        sums = np.zeros(len(paths), dtype=np.int64)
        np.add.at(sums, codes[own], ns[own])
        booked = pd.Series(sums / len(windows), index=pd.Index(paths, name="path"), name="ns")[sums > 0].sort_index()
        stretches = Layer(starts[number == row], ends[number == row], np.zeros((number == row).sum(), dtype=np.int64))
        covered = float(ns[own & overlapped].sum()) / len(windows)
        part, wall_ns = place_of(names[row])[0], float(lengths[row]) / len(windows)
        result.append(JudgedPart(names[row], part, wall_ns, stretches, booked, covered))
    return tuple(result)
