"""The part of a recording that each kernel is of: training, log-probabilities, prefill, decode."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column
from advisor_core.api.facts import Facts, context, part_of, parts

if TYPE_CHECKING:
    import numpy.typing as npt

Texts: TypeAlias = "npt.NDArray[np.object_]"

PHASE = Column("phase", "text", "", "training, log_probs, prefill, decode, mixed or unknown", zh="阶段")


def phases_of(facts: Facts, frame: pd.DataFrame) -> Texts:
    """The part of each kernel of a part of the frame of `StepKernels`; of all of them that of the recording where it
    has one only, or none is told."""
    spans, job = facts.get(parts), facts.get(context)
    told = None if spans is None else part_of(spans, frame["start_ns"].to_numpy())
    if told is None or len(set(told.tolist())) < 2:
        return np.full(len(frame), "unknown" if job is None else str(job["phase"]), dtype=object)
    return told
