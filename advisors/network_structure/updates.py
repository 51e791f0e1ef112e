"""Kernels that update parameters."""

from __future__ import annotations

import numpy as np

from advisors.fusion.chains import Chains
from advisors.step_kernels import StepKernels


def updating_kernels(kernels: StepKernels, chains: Chains) -> np.ndarray:
    """Mask of the kernels that update parameters: those of optimizers, written out or not."""
    unfused = chains.of(np.flatnonzero(chains.frame["pattern"].str.startswith("optimizer").to_numpy()))
    in_optimizer_chain = np.isin(np.arange(len(kernels.frame)), unfused)
    return np.asarray(in_optimizer_chain | (kernels.frame["operator_class"] == "optimizer").to_numpy())
