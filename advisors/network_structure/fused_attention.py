"""The time of fused attention on an NPU, where a chain of kernels computes attention: by measured times of others.

The softmax of a score is work of the vector cores, which keep the cube waiting: a score takes as long with a narrow
head as with one of 128 channels (docs/sources.md#fused-attention).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from advisor_core.api.facts import Peaks, elements

if TYPE_CHECKING:
    import numpy.typing as npt

REACHED = 0.43
"""Of the peak of the cube, with heads of 128 channels and many blocks of queries: 151 of 354 TFLOP/s on 910B2
(docs/sources.md#fused-attention)."""
CHANNELS = 128
GRADIENT = 2.56
"""The time of the gradient over that of the forward pass: 2,255 us where the forward pass takes 883, with heads of 128
channels (docs/sources.md#fused-attention). It has five products where the forward pass has two."""
BLOCK = 128
"""Queries of a block. Fewer do not fill one: then keys and values are what attention waits for."""
_TYPE = "FLOAT16"


def measured_ns(found: pd.DataFrame, chip: Peaks | None) -> npt.NDArray[np.float64]:
    """Time of fused attention in place of each chain of `Chains`, at most that of the chain; NaN for other chains,
    few queries, and chips whose peak is not known."""
    peak = chip.of(_TYPE) if chip is not None else float("nan")
    shapes = [tuple(int(size) for size in shape.split(",") if size) for shape in found["shape"].tolist()]
    # The largest tensor of a written out attention are its scores: queries x keys of each head.
    scores = np.array([elements(shape) if len(shape) > 2 and shape[-2] >= BLOCK else np.nan for shape in shapes])
    forward = 4 * CHANNELS * scores / (REACHED * peak) * 1e9
    took = found["chain_ns"].to_numpy(dtype=np.float64)
    computed = np.minimum(np.where(found["backward"], GRADIENT * forward, forward), took)
    return np.asarray(np.where(found["pattern"].str.startswith("attention"), computed, np.nan), dtype=np.float64)
