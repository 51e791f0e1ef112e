"""Kernels that update parameters."""

from __future__ import annotations

import numpy as np

from advisors.fusion.chains import Chains
from advisors.step_kernels import StepKernels


def updating_kernels(own: StepKernels, chains: Chains) -> np.ndarray:
    """Which kernels update parameters: those of optimizers, written out or not."""
    unfused = chains.of(np.flatnonzero(chains.frame["pattern"].str.startswith("optimizer").to_numpy()))
    inside = np.isin(np.arange(len(own.frame)), unfused)
    return np.asarray(inside | (own.frame["operator_class"] == "optimizer").to_numpy())
