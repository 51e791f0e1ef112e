"""An iteration of GRPO as TRL computes it: generate responses, score them under the reference model, update."""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any

import torch
import transformers
import trl
from packaging.version import Version
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3
from trl import GRPOTrainer

from advisor_core.sample.models.recorded import ReinforcementName
from tests.programs.recording.programs import LLAMA, QWEN3, Program

NEWEST = "1.9"
"""From here on TRL computes log-probabilities in pieces, by a head that is no method of its trainer."""
if Version(trl.__version__) >= Version(NEWEST):
    raise ImportError(f"TRL {trl.__version__} is not recorded: install one below {NEWEST}")

BETA = 0.04
"""Weight of the distance from the reference model, which TRL leaves out where it is 0."""


@dataclass(frozen=True)
class Reinforcement(Program):
    """Reinforcement learning. ``inputs``: prompts of one rank, and their length; ``response``: length of a response."""

    name: ReinforcementName
    response: int = 0

    @property
    def work(self) -> str:
        """What an iteration does, in words."""
        prompts, length = self.inputs
        return f"{prompts} x {length} tokens and a response of {self.response}, an iteration of GRPO"


@dataclass(frozen=True)
class Iteration:
    """Actor and reference model, and what TRL asks of its trainer. One rank: what it gathers of others is its own."""

    actor: Any
    reference: Any
    trainer: Any

    @classmethod
    def of(cls, actor: Any) -> Iteration:
        """The iteration of an actor, with a reference model like it."""
        reference = deepcopy(actor).eval().requires_grad_(requires_grad=False)
        trainer = SimpleNamespace(
            accelerator=SimpleNamespace(
                autocast=nullcontext,
                gather=lambda tensor: tensor,
                reduce=lambda tensor, reduction: tensor,
                num_processes=1,
                is_main_process=True,
            ),
            args=SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1, report_to=[]),
            model=actor,
            model_kwarg_keys=signature(actor.forward).parameters.keys(),
            temperature=1.0,
            beta=BETA,
            epsilon_low=0.2,
            epsilon_high=0.2,
            loss_type="dapo",
            importance_sampling_level="token",
            top_entropy_quantile=1.0,
            off_policy_mask_threshold=None,
            aux_loss_enabled=False,
            use_vllm=False,
            current_gradient_accumulation_steps=1,
            _entropy_bonus_enabled=False,
            _metrics=defaultdict(lambda: defaultdict(list)),
        )
        trainer._get_per_token_logps_and_entropies = partial(GRPOTrainer._get_per_token_logps_and_entropies, trainer)
        return cls(actor, reference, trainer)

    def score(self, batch: dict[str, torch.Tensor]) -> None:
        """Put the log-probabilities of the responses under the reference model into the batch."""
        tokens, mask = (
            torch.cat([batch[f"prompt_{kind}"], batch[f"completion_{kind}"]], dim=1) for kind in ("ids", "mask")
        )
        with torch.no_grad():
            batch["ref_per_token_logps"], _, _ = self.trainer._get_per_token_logps_and_entropies(
                self.reference, tokens, mask, batch["completion_ids"].shape[1]
            )

    def loss(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The loss of the actor, and all that TRL logs of it."""
        loss: torch.Tensor = GRPOTrainer._compute_loss(self.trainer, self.actor, batch)
        return loss


def batch_of(program: Reinforcement) -> dict[str, torch.Tensor]:
    """What an iteration trains with, but for the log-probabilities. The advantages come from the host."""
    prompts, length = program.inputs
    shapes = {"prompt": (prompts, length), "completion": (prompts, program.response)}
    batch = {
        f"{part}_{kind}": torch.empty(shape, dtype=torch.int64)
        for part, shape in shapes.items()
        for kind in ("ids", "mask")
    }
    return {"advantages": torch.empty((prompts,)), **batch, "num_items_in_batch": torch.empty((), dtype=torch.int64)}


REINFORCEMENT_PROGRAMS = (
    Reinforcement(
        "llama-grpo",
        "LlamaForCausalLM as large as Llama 3.2 1B",
        modeling_llama,
        "Llama",
        transformers.LlamaConfig(**LLAMA),
        transformers.LlamaForCausalLM,
        (16, 512),
        response=512,
    ),
    Reinforcement(
        "qwen3-grpo",
        "Qwen3ForCausalLM as large as Qwen3 1.7B",
        modeling_qwen3,
        "Qwen3",
        transformers.Qwen3Config(**QWEN3),
        transformers.Qwen3ForCausalLM,
        (16, 512),
        response=512,
    ),
)
