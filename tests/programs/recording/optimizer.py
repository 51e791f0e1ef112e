"""The optimizers. AdamW as ``torch.optim.AdamW(fused=True)`` runs on an NPU: one kernel for each weight
(docs/sources.md#fused-operators)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.programs.recording.library import defined

_apply = defined(
    "npu_apply_adam_w(Tensor(a!) weight, Tensor(b!) mean, Tensor(c!) square, Tensor gradient) -> ()",
    lambda *_: None,
)


class FusedAdamW(torch.optim.Optimizer):
    """It has two moments of each weight."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """Update the weights."""
        for group in self.param_groups:
            for weight in group["params"]:
                moments: dict[str, Tensor] = self.state[weight]
                if not moments:
                    moments |= {name: torch.empty_like(weight) for name in ("exp_avg", "exp_avg_sq")}
                _apply(weight, moments["exp_avg"], moments["exp_avg_sq"], weight.grad)


def optimizer_of(kind: str, weights: Any, *, fused: bool, foreach: bool) -> torch.optim.Optimizer:
    """The optimizer of a program. SGD is as quick as it gets below CANN 9.2 where it takes lists of weights."""
    if kind == "SGD":
        return torch.optim.SGD(weights, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=fused or foreach)
    return FusedAdamW(weights) if fused else torch.optim.AdamW(weights, lr=1e-4, foreach=foreach)
