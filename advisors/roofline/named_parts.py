"""The step, its phases, passes and blocks: what each is called, what bounds it and how near it comes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.facts import Facts, covered, ledger, part_ledger, parts
from advisors.layers.blocks import Block, Pass
from advisors.layers.drawings import BLOCKS, PASSES
from advisors.layers.layers import Layers
from advisors.measuring import leaves, under
from advisors.messages import message
from advisors.roofline.boundness import NOT_WAITING, Bound, Grade, Waiting, bound_of, grade_of
from advisors.roofline.bounds import Part, Roofline, parts_of
from advisors.step_kernels import StepKernels

Ints = npt.NDArray[np.int64]

BOUNDS = {
    Bound.COMPUTING: "roofline.bound.computing",
    Bound.MEMORY: "roofline.bound.memory",
    Bound.COMMUNICATION: "roofline.bound.communication",
    Bound.HOST: "roofline.bound.host",
    Bound.IDLE: "roofline.bound.idle",
    Bound.COPIES: "roofline.bound.copies",
    Bound.BALANCED: "roofline.bound.balanced",
    Bound.UNKNOWN: "roofline.bound.unknown",
}
GRADES = {
    Grade.GOOD: "roofline.grade.good",
    Grade.FAIR: "roofline.grade.fair",
    Grade.POOR: "roofline.grade.poor",
    Grade.UNKNOWN: "roofline.grade.unknown",
}
"""Messages about a part."""

WAITING_PATHS = (
    ("communication",),
    ("idle",),
    ("idle/unknown",),
    ("compute/copy", "idle/copy", "idle/host/copy"),
)
"""The entries of the ledger that each field of `Waiting` sums up."""

UNKNOWN = "unknown"
_PARTS = {
    "training": "roofline.part.training",
    "log_probs": "roofline.part.log_probs",
    "prefill": "roofline.part.prefill",
    "decode": "roofline.part.decode",
    "mixed": "roofline.part.mixed",
    UNKNOWN: "roofline.part.unknown",
}
"""The parts of a recording, as messages."""


class NamedPart:
    """A part of the step, what it is called and what bounds it; ``label`` says all of it. ``timed``: its times are
    shown here; those of blocks are in the drawing of layers."""

    def __init__(self, name: Text, part: Part, waiting: Waiting, *, timed: bool = True) -> None:
        self.name, self.part, self.timed = name, part, timed
        self.bound, self.grade = bound_of(part, waiting), grade_of(part)
        bound, grade = message(BOUNDS[self.bound]), message(GRADES[self.grade])
        self.label = Text(en=f"{name.en}: {bound.en}, {grade.en}", zh=f"{name.zh}：{bound.zh}，{grade.zh}")


def step_and_phases(facts: Facts, own: StepKernels, found: Roofline, towers: Layers | None) -> list[NamedPart]:
    """The step, and where a recording has several parts, each of these."""
    waiting = NOT_WAITING
    if ledger in facts:
        per_leaf = leaves(facts)
        waiting = Waiting(*(under(per_leaf, *paths) for paths in WAITING_PATHS))
    again = _recomputed(own, towers)
    whole = parts_of(found, np.zeros(len(own.frame), dtype=np.int64), 1, own.steps, again, [own.wall_ns])
    return [NamedPart(message("roofline.step"), whole[0], waiting), *_phases(facts, own, found, again)]


def _recomputed(own: StepKernels, towers: Layers | None) -> npt.NDArray[np.bool_]:
    """Mask of the kernels of a recomputation, as far as layers tell."""
    none = np.zeros(len(own.frame), dtype=np.bool_)
    return none if towers is None else np.asarray(towers.passes == Pass.RECOMPUTATION, dtype=np.bool_)


def named_parts(facts: Facts, own: StepKernels, found: Roofline, towers: Layers | None) -> list[NamedPart]:
    """The step, its phases, its passes and its blocks."""
    named = step_and_phases(facts, own, found, towers)
    if towers is None:
        return named
    steps, again = own.steps, _recomputed(own, towers)
    of_passes = (towers.passes, [PASSES[one.key] for one in Pass])
    of_blocks = (towers.blocks, [BLOCKS[one.key] for one in Block])
    for timed, (groups, names) in ((True, of_passes), (False, of_blocks)):
        each = zip(names, parts_of(found, groups, len(names), steps, again, None), strict=True)
        named += [NamedPart(message(name), part, NOT_WAITING, timed=timed) for name, part in each if part.kernel_ns]
    return named


def _phases(facts: Facts, own: StepKernels, found: Roofline, again: npt.NDArray[np.bool_]) -> list[NamedPart]:
    """The parts of a recording of several, by the time between their borders: the marked phases of an iteration, a
    phase of several parts by part, and elsewhere the parts."""
    spans, booked = facts.get(parts), facts.get(part_ledger)
    if spans is None or booked is None:
        return []
    names = _names(spans)
    shown = list(dict.fromkeys(name for name in names.values() if name is not None))
    if len(shown) < 2:
        return []

    places = {key: shown.index(name) for key, name in names.items() if name is not None}

    def numbers(frame: pd.DataFrame) -> Ints:
        keys = zip(frame["phase"].tolist(), frame["part"].tolist(), strict=True)
        return np.array([places.get(key, -1) for key in keys], dtype=np.int64)

    number, of_leaf = numbers(spans), numbers(booked)
    starts = own.frame["start_ns"].to_numpy()
    at = np.searchsorted(spans["start_ns"].to_numpy(), starts, side="right") - 1
    inside = (at >= 0) & (starts < spans["end_ns"].to_numpy()[np.maximum(at, 0)])
    groups: Ints = np.where(inside, number[np.maximum(at, 0)], -1)

    def summed(*paths: str) -> list[float]:
        chosen = np.array([not paths or covered(str(leaf), paths) for leaf in booked["path"]], dtype=np.bool_)
        chosen &= of_leaf >= 0
        sums = np.bincount(of_leaf[chosen], weights=booked["ns"].to_numpy()[chosen], minlength=len(shown))
        return [float(ns) / own.steps for ns in sums]

    each = parts_of(found, groups, len(shown), own.steps, again, summed())
    waits = map(Waiting, *(summed(*paths) for paths in WAITING_PATHS))
    return [
        NamedPart(name, part, waiting) for name, part, waiting in zip(shown, each, waits, strict=True) if part.wall_ns
    ]


def _names(spans: pd.DataFrame) -> dict[tuple[str, str], Text | None]:
    """By phase and part: ``update_actor``, ``rollout: decode``, ``decode``; ``None`` for what is neither."""
    pairs = list(dict.fromkeys(zip(spans["phase"].tolist(), spans["part"].tolist(), strict=True)))
    parts_of_phase: dict[str, set[str]] = {}
    for phase, part in pairs:
        parts_of_phase.setdefault(phase, set()).update({part} - {UNKNOWN})
    names: dict[tuple[str, str], Text | None] = {}
    for phase, part in pairs:
        of_part = message(_PARTS[part])
        if phase and len(parts_of_phase[phase]) > 1:
            names[phase, part] = Text(en=f"{phase}: {of_part.en}", zh=f"{phase}：{of_part.zh}")
        elif phase:
            names[phase, part] = Text(en=phase, zh=phase)
        else:
            names[phase, part] = None if part == UNKNOWN else of_part
    return names
