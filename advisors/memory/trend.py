"""The change of memory from step to step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric
from advisor_core.api.facts import (
    Facts,
    Unavailable,
    fact,
    memory_steps,
)
from advisors.measuring import records
from advisors.memory.columns import RESERVED
from advisors.messages import message

_COMPARED = 3
"""Steps: two rises in a row, in the shortest profile that is advised anywhere. Ten tell more, and say so."""


PER_STEP = (
    Column("step", "int", "", "id of the step", zh="step"),
    Column("least", "float", "B", "least memory of tensors in the step", zh="最小"),
    Column("most", "float", "B", "most memory of tensors in the step", zh="最大"),
    RESERVED,
)


@fact("memory_trend", needs=(memory_steps,), frames=memory_steps.frames)
def memory_trend(facts: Facts) -> pd.DataFrame:
    """The rows of memory_steps, where there are enough of them to compare."""
    steps = facts[memory_steps]
    if len(steps) < _COMPARED:
        reason = message("memory.few_steps", count=len(steps), needed=_COMPARED)
        raise Unavailable(reason, message("memory.few_steps.collect"), ("steps", "memory"))
    return steps


def pace(values: np.ndarray) -> tuple[float, float]:
    """Rise per step from the first to the last, and at the median step."""
    return float(values[-1] - values[0]) / (len(values) - 1), float(np.median(np.diff(values)))


def per_step_table(steps: pd.DataFrame) -> Metric:
    rows = records(steps, 20, step="step", least="trough_bytes", most="peak_bytes", reserved="reserved_bytes")
    return Metric(message("memory.per_step"), rows)


def until_full(free_bytes: float, rise: float) -> float:
    return free_bytes / rise if rise > 0 else float("nan")
