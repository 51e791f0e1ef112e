"""Shapes that are not the same in every step.

Where a recording has several parts, a kernel is held against the steps that run its part: in an engine that serves, a
step computes new sequences or next tokens, and what each of them runs is in no step of the other kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from advisor_core.api.facts import Facts, part_of, parts

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisors.phases import Texts


def computing(kernels: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``kernels`` that compute in the steps."""
    return kernels[(kernels["core"] != "COMMUNICATION") & kernels["step"].isin(windows["step"])]


def parts_of(facts: Facts, kernels: pd.DataFrame) -> Texts | None:
    """The part of the recording of each of these kernels; ``None`` where it has one only, or none is told."""
    spans = facts.get(parts)
    found = None if spans is None else part_of(spans, kernels["start_ns"].to_numpy())
    return None if found is None or len(set(found.tolist())) < 2 else found


def varying(kernels: pd.DataFrame, steps: int, part: Texts | None = None) -> npt.NDArray[np.bool_]:
    """Mask of the kernels whose type and shapes do not occur in all of the ``steps``; with the ``part`` of each kernel,
    in all of the steps that run this part."""
    types, shapes = (kernels[name].array.codes.astype(np.int64) for name in ("type", "input_shapes"))
    keys = (types + 1) * (len(kernels["input_shapes"].array.categories) + 1) + shapes + 1
    number = _number(part, len(kernels))
    kind = np.unique(number * (int(keys.max(initial=0)) + 1) + keys, return_inverse=True)[1]
    step = kernels["step"].to_numpy()
    wanted = steps if part is None else _steps_with(number, step)[number]
    return np.asarray(_steps_with(kind, step)[kind] < wanted, dtype=np.bool_)


def compared(kernels: pd.DataFrame, part: Texts | None) -> npt.NDArray[np.bool_]:
    """Mask of the kernels whose part runs in two steps or more: of others nothing tells whether they vary."""
    if part is None:
        return np.ones(len(kernels), dtype=np.bool_)
    number = _number(part, len(kernels))
    return np.asarray(_steps_with(number, kernels["step"].to_numpy())[number] > 1, dtype=np.bool_)


def varying_share(kernels: pd.DataFrame, steps: int, part: Texts | None = None) -> float:
    """The share of these kernels; NaN of one step, where no shapes are recorded, and where no part runs twice."""
    if steps < 2 or not (kernels["input_shapes"] != "").any():
        return float("nan")
    held = compared(kernels, part)
    return float(varying(kernels, steps, part)[held].mean()) if held.any() else float("nan")


def _number(part: Texts | None, count: int) -> npt.NDArray[np.int64]:
    """A number for the part of each kernel."""
    if part is None:
        return np.zeros(count, dtype=np.int64)
    return np.unique(part.astype(str), return_inverse=True)[1].astype(np.int64)


def _steps_with(kind: npt.NDArray[np.int64], step: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """In how many steps each kind occurs; ``kind``: by kernel, from 0."""
    distinct, number = np.unique(step, return_inverse=True)
    pairs = np.unique(kind * len(distinct) + number)
    return np.bincount(pairs // max(len(distinct), 1), minlength=int(kind.max(initial=-1)) + 1)
