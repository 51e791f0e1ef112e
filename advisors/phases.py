"""The part of a recording that each kernel is of: training, log-probabilities, prefill, decode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column
from advisor_core.api.facts import Facts, Layer, context, cut, part_of, parts

if TYPE_CHECKING:
    import numpy.typing as npt

Texts: TypeAlias = "npt.NDArray[np.object_]"

T = TypeVar("T")

PHASE = Column("phase", "text", "", "training, log_probs, prefill, decode, mixed or unknown", zh="阶段")


def phases_of(facts: Facts, frame: pd.DataFrame) -> Texts:
    """The part of each kernel of a part of the frame of `StepKernels`; of all of them that of the recording where it
    has one only, or none is told."""
    spans, job = facts.get(parts), facts.get(context)
    told = None if spans is None else part_of(spans, frame["start_ns"].to_numpy())
    if told is None or len(set(told.tolist())) < 2:
        return np.full(len(frame), "unknown" if job is None else str(job["phase"]), dtype=object)
    return told


LEAST_SHARE: Final = 0.1
"""Share of a loss from which a part of the recording counts for it; our choice, as for advice by part: what is left out
is a tenth of it at most."""

LEAST_OF_STEP: Final = 0.01
"""Share of the step from which what a part of it loses is judged by itself; our choice, as for findings: what lies
below it is not worth a change (``min_share`` of the rules)."""


def worth_judging(parts: Iterable[T], lost_ns: Callable[[T], float], step_ns: float) -> list[T]:
    """Of the parts of a recording those that lose enough for the step, the one that loses most first; where none does,
    the whole is to be judged. ``lost_ns``: what a part loses per step."""
    found = sorted(parts, key=lost_ns, reverse=True)
    return [part for part in found if lost_ns(part) >= LEAST_OF_STEP * step_ns]


def cut_at(spans: pd.DataFrame, inside: Layer) -> pd.DataFrame:
    """The pieces of the ``spans`` (``start_ns``, ``end_ns``: disjoint, in order) that lie in the layer; a span that
    goes over several stretches of it has a row for each, under its own index."""
    starts, ends = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
    if not len(spans):
        return spans
    pieces = cut(int(starts.min()), int(ends.max()), [Layer.of(spans), inside])
    both = (pieces.ids[0] >= 0) & (pieces.ids[1] >= 0)
    rows = pieces.ids[0][both]
    return spans.iloc[rows].assign(start_ns=pieces.starts[both], end_ns=pieces.ends[both])
