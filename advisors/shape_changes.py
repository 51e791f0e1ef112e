"""Shapes that are not the same in every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import numpy.typing as npt


def computing(kernels: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``kernels`` that compute in the steps."""
    return kernels[(kernels["core"] != "COMMUNICATION") & kernels["step"].isin(windows["step"])]


def varying(kernels: pd.DataFrame, steps: int) -> npt.NDArray[np.bool_]:
    """Mask of the kernels whose type and shapes do not occur in all of the ``steps``."""
    types, shapes = (kernels[name].array.codes.astype(np.int64) for name in ("type", "input_shapes"))
    kinds, kind = np.unique(types * (len(kernels["input_shapes"].array.categories) + 1) + shapes, return_inverse=True)
    numbers, step = np.unique(kernels["step"].to_numpy(), return_inverse=True)
    seen = np.unique(kind * max(len(numbers), 1) + step) // max(len(numbers), 1)
    return np.asarray(np.bincount(seen, minlength=len(kinds))[kind] < steps, dtype=np.bool_)


def varying_share(kernels: pd.DataFrame, steps: int) -> float:
    """The share of these kernels; NaN of one step, and where no shapes are recorded."""
    if steps < 2 or not (kernels["input_shapes"] != "").any():
        return float("nan")
    return float(varying(kernels, steps).mean())
