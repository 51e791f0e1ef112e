"""What a program is that is recorded: a model, what it reads, and what is done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

Batch = dict[str, torch.Tensor]


def adamw(*, foreach: bool = True) -> Callable[[list[Any]], torch.optim.Optimizer]:
    """AdamW over lists of weights, or over one weight after another."""
    return lambda weights: torch.optim.AdamW(weights, lr=1e-4, foreach=foreach)


over_lists = adamw()


def model_loss(model: Any, batch: Batch) -> torch.Tensor:
    """The loss that a model of transformers computes."""
    loss: torch.Tensor = model(**batch, use_cache=False).loss
    return loss


def tokens(batch: int, length: int) -> Callable[[], Batch]:
    """The batch of a language model."""

    def made() -> Batch:
        ids = torch.zeros((batch, length), dtype=torch.int64)
        return {"input_ids": ids, "labels": ids.clone()}

    return made


@dataclass(frozen=True)
class Program:
    """``device``: programs whose shapes depend on numbers run on the CPU, with small tensors; others on ``meta``."""

    name: str
    says: str
    model: Callable[[], torch.nn.Module]
    batch: Callable[[], Batch]
    device: Literal["meta", "cpu"] = "meta"
    dtype: torch.dtype = torch.bfloat16
    fused_attention: bool = True


@dataclass(frozen=True)
class Training(Program):
    """A training step."""

    loss: Callable[[Any, Batch], torch.Tensor] = model_loss
    optimizer: Callable[[list[Any]], Any] = over_lists
    clips: bool = False


def greedy(model: Any, batch: Batch, state: Any) -> Any:
    """One step of a model of transformers with its cache, and the likeliest token."""
    if state is None:
        out = model(**batch, use_cache=True)
    else:
        out = model(input_ids=state[0], past_key_values=state[1], use_cache=True)
    return out.logits[:, -1:].argmax(-1), out.past_key_values


@dataclass(frozen=True)
class Decoding(Program):
    """A prefill and steps of decoding; ``step`` gets what the step before returned, None at first."""

    step: Callable[[Any, Batch, Any], Any] = greedy
    steps: int = 2
