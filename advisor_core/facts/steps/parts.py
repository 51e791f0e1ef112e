"""Parts of a recording that advice depends on: training, log-probabilities, prefill, decode.

One recording can hold several: an engine that serves computes new sequences and next tokens in turns, and an iteration
of reinforcement learning generates, computes log-probabilities and trains. What tells them, the first that does:

- the marks of reinforcement learning, for what trains and what computes log-probabilities (fact ``phases``);
- the marks that engines put around each pass, by the launch of each kernel;
- the kernels: those of a backward pass or an optimizer train, with the forward passes before them; attentions and
  products tell prefill and decode (`advisor_core.facts.steps.passes`).

Log-probabilities that nothing marks cannot be told from the forward pass of training, and count as that. A part that is
not told is ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS, KERNELS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import Launches, ahead_ns, launches
from advisor_core.facts.inference import Evidence, evidence_of
from advisor_core.facts.intervals import NOTHING, Bools, Ints, Layer, cut, empty, union
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.matching import matching
from advisor_core.facts.steps.passes import parts_of_inference, parts_of_training
from advisor_core.facts.steps.phases import booked_in, phases
from advisor_core.facts.steps.steps import steps
from advisor_core.vocabulary.parts import DECODE, LOG_PROBS, MIXED, PREFILL, TRAINING, UNKNOWN
from advisor_core.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

Texts: TypeAlias = "npt.NDArray[np.object_]"

OF_PHASE: Final[Mapping[str, str]] = {
    "update_actor": TRAINING,
    "update_critic": TRAINING,
    "log_prob": LOG_PROBS,
    "ref_log_prob": LOG_PROBS,
    "values": LOG_PROBS,
}
"""The part that a phase of reinforcement learning is by its name. Values are computed as log-probabilities are: by the
software of training, forward only."""

SPANS = (
    Column("step", "int", "", "row of steps"),
    Column("part", "text", "", "training, log_probs, prefill, decode, mixed or unknown"),
    Column("phase", "text", "", "phase of reinforcement learning as it is marked, '' none"),
    Column("kind", "text", "", "the known phase that it stands for, '' none"),
    Column("marked", "bool", "", "a mark tells the part, not the kernels"),
    Column("start_ns", "int", "ns", "start, clock of the device"),
    Column("end_ns", "int", "ns", "end, clock of the device"),
)


@fact("parts", needs=(PROFILE, steps, work), wants=(KERNELS, HOST_EVENTS, launches, phases), columns=SPANS)
def parts(facts: Facts) -> pd.DataFrame:
    """One row per stretch of a part within a step; disjoint, in order of time, and together all of the steps."""
    device, windows = facts[work], facts[steps]
    first, last = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    spans = facts.get(phases)
    of_phases = Layer.of(spans) if spans is not None else empty()
    pieces = cut(first, last, [Layer.of(windows), of_phases.clip(first, last)], within=Layer.of(windows))
    step, span = pieces.ids
    kinds, names = ("", *([] if spans is None else spans["kind"])), ("", *([] if spans is None else spans["phase"]))
    kind, name = (np.array(texts, dtype=object)[span + 1] for texts in (kinds, names))
    by_phase = np.array([OF_PHASE.get(text, "") for text in kind.tolist()], dtype=object)

    piece = Layer(pieces.starts, pieces.ends, np.arange(len(step))).at(device["start_ns"].to_numpy())
    inside = np.flatnonzero(piece != NOTHING)  # in order of start
    piece = piece[inside]
    told = by_phase[piece]
    by_mark = _by_mark(facts, device)[inside]
    told = np.where(told == "", by_mark, told)
    marked = told != ""
    open_rows = np.flatnonzero(~marked)
    evidence = _Evidence.of(facts, device)
    # Each phase for itself: a rollout does not train, whatever the rest of the iteration does.
    for phase in pd.unique(name[piece[open_rows]]).tolist():
        rows = open_rows[name[piece[open_rows]] == phase]
        told[rows] = evidence.parts(inside[rows])
    starts = device["start_ns"].to_numpy()[inside]
    return _stretches(
        pd.DataFrame({"piece": piece, "part": told, "marked": marked, "start_ns": starts}),
        pd.DataFrame(
            {
                "step": step,
                "part": np.where(by_phase == "", UNKNOWN, by_phase),
                "phase": name,
                "kind": kind,
                "marked": by_phase != "",
                "start_ns": pieces.starts,
                "end_ns": pieces.ends,
            }
        ),
    )


LEDGER = (
    Column("step", "int", "", "row of steps"),
    Column("part", "text", "", "part, as of parts"),
    Column("phase", "text", "", "phase of reinforcement learning, as of parts"),
    Column("path", "text", "", "leaf of the ledger"),
    Column("ns", "int", "ns", "time that is booked there"),
)


@fact("part_ledger", needs=(parts, steps, bookings), columns=LEDGER)
def part_ledger(facts: Facts) -> pd.DataFrame:
    """One row per step, part, phase and leaf; the parts of a step add up to its entries of the fact ``ledger``."""
    return booked_in(facts[parts], ["part", "phase"], facts[bookings], facts[steps])


def part_of(spans: pd.DataFrame, times: Ints) -> Texts:
    """The part at each of the ``times``, ``unknown`` outside of the steps. ``spans``: the fact ``parts``."""
    names = np.append(spans["part"].astype(str).to_numpy(dtype=object), UNKNOWN)  # NOTHING, -1, is the last
    return np.asarray(names[Layer.of(spans).at(times)], dtype=object)


def _changes(rows: pd.DataFrame, names: Sequence[str]) -> Bools:
    """Mask of the rows that differ from the one before in any of these columns; the first does."""
    changes = np.ones(len(rows), dtype=np.bool_)
    columns = [rows[name].to_numpy() for name in names]
    changes[1:] = np.logical_or.reduce([values[1:] != values[:-1] for values in columns])
    return changes


def _stretches(kernels: pd.DataFrame, pieces: pd.DataFrame) -> pd.DataFrame:
    """The ``pieces`` of the steps, each divided where the part of its kernels changes; the first stretch of a piece
    begins with it, and what has no kernels stays whole."""
    begins = kernels[_changes(kernels, ("piece", "part", "marked"))]
    piece_starts = pieces["start_ns"].to_numpy()[begins["piece"].to_numpy()]
    is_first = ~begins["piece"].duplicated().to_numpy()
    begins = begins.assign(start_ns=np.where(is_first, piece_starts, begins["start_ns"].to_numpy()))
    without = pieces.loc[~pieces.index.isin(begins["piece"]), ["part", "marked", "start_ns"]]
    every = pd.concat([begins, without.assign(piece=without.index)]).sort_values(["piece", "start_ns"], kind="stable")
    of_piece = pieces.loc[every["piece"]].reset_index(drop=True)
    starts = every["start_ns"].to_numpy()
    is_last = ~every["piece"].duplicated(keep="last").to_numpy()
    ends = np.where(is_last, of_piece["end_ns"].to_numpy(), np.append(starts[1:], 0))
    frame = of_piece.assign(
        part=every["part"].to_numpy(), marked=every["marked"].to_numpy(), start_ns=starts, end_ns=ends
    )
    return frame[frame["end_ns"] > frame["start_ns"]].reset_index(drop=True)


def _by_mark(facts: Facts, device: pd.DataFrame) -> Texts:
    """By row of the fact ``work``: what the mark of an engine around its launch tells, '' nothing."""
    part = np.full(len(device), "", dtype=object)
    events, words = facts.get(HOST_EVENTS), facts[PROFILE].vocabulary
    if events is None:
        return part
    is_mark = events["category"].isin(("user_annotation", "mstx")).to_numpy()
    marks = [is_mark & matching(events["name"], pattern) for pattern in (words.prefill_mark, words.decode_mark)]
    if not (marks[0] | marks[1]).any():
        return part
    launched = facts.get(launches)
    times = _launched(launched, device)
    in_prefill, in_decode = (_covered(events, rows, launched, times) for rows in marks)
    part[in_prefill], part[in_decode] = PREFILL, DECODE
    part[in_prefill & in_decode] = MIXED
    return part


def _launched(launched: Launches | None, device: pd.DataFrame) -> Ints:
    """The time at which the host launched each task, in device time; its start where that is not known."""
    starts = device["start_ns"].to_numpy()
    if launched is None:
        return starts
    return np.where(launched.known(), launched.frame["launch_ns"].to_numpy(), starts)


def _covered(events: pd.DataFrame, rows: Bools, launched: Launches | None, times: Ints) -> Bools:
    """Mask of the ``times`` at which one of the events runs."""
    starts = events["start_ns"].to_numpy()[rows] - ahead_ns(launched)
    inside = union(starts, starts + events["duration_ns"].to_numpy()[rows]).at(times)
    return np.asarray(inside != NOTHING, dtype=np.bool_)


@dataclass(frozen=True)
class _Evidence:
    """By row of the fact ``work``: what its kernel tells of inference, ``None`` where no shapes are known at all;
    ``trains``: it is of a backward pass or an optimizer; ``drops``: it draws a mask for dropout."""

    starts: Ints
    ends: Ints
    inference: Evidence | None
    trains: Bools
    drops: Bools

    @classmethod
    def of(cls, facts: Facts, device: pd.DataFrame) -> _Evidence:
        words = facts[PROFILE].vocabulary
        return cls(
            device["start_ns"].to_numpy(),
            device["end_ns"].to_numpy(),
            _inference(facts.get(KERNELS), device, words),
            _named(device, words.backward) | _in_optimizer(facts, device, words),
            _named(device, words.dropout),
        )

    def parts(self, rows: Ints) -> Texts:
        """The part of each of these rows, which are in order of start."""
        evidence = self.inference.part(rows) if self.inference is not None else None
        if self.trains[rows].any():
            if evidence is None:
                return np.full(len(rows), TRAINING, dtype=object)
            return parts_of_training(evidence, self.trains[rows], self.starts[rows], self.ends[rows])
        if evidence is None or self.drops[rows].any():
            return np.full(len(rows), UNKNOWN, dtype=object)
        return parts_of_inference(evidence, self.starts[rows], self.ends[rows])


def _inference(kernels: pd.DataFrame | None, device: pd.DataFrame, words: Vocabulary) -> Evidence | None:
    if kernels is None:
        return None
    order = device["row"].to_numpy()
    return evidence_of(kernels, device.set_index("row")["operator_class"].sort_index(), words).part(order)


def _named(device: pd.DataFrame, pattern: re.Pattern[str]) -> Bools:
    named = matching(device["type"], pattern) | matching(device["name"], pattern)
    return np.asarray(named, dtype=np.bool_)


def _in_optimizer(facts: Facts, device: pd.DataFrame, words: Vocabulary) -> Bools:
    """Mask of the tasks that were launched within a host event that only training has."""
    events = facts.get(HOST_EVENTS)
    if events is None or not (rows := matching(events["name"], words.optimizer)).any():
        return np.zeros(len(device), dtype=np.bool_)
    launched = facts.get(launches)
    if launched is not None:
        inside = _covered(events, rows, launched, _launched(launched, device))
        if inside.any():
            return inside
    # The recording trains, and which kernels do is not known.
    return np.ones(len(device), dtype=np.bool_)
