"""The programs that are recorded: public model code in a size that it is published in, with few layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from random import Random
from typing import Any, Literal

import torch
import transformers
from transformers.models.gpt2 import modeling_gpt2
from transformers.models.llama import modeling_llama
from transformers.models.mixtral import modeling_mixtral
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.qwen3_moe import modeling_qwen3_moe
from transformers.models.vit import modeling_vit

from advisor_core.sample.models.recorded import PARTS, DecodingName, TrainingName

LAYERS = 4
UNEVEN = 0.3
"""Standard deviation of the logarithm of the share of tokens that an expert gets (assumed)."""


def text(batch: int, length: int) -> dict[str, torch.Tensor]:
    """The batch of a language model."""
    tokens = torch.empty((batch, length), dtype=torch.int64)
    return {"input_ids": tokens, "labels": tokens}


def pictures(batch: int, size: int) -> dict[str, torch.Tensor]:
    """The batch of a classifier of pictures."""
    pixels = torch.empty((batch, 3, size, size), dtype=torch.bfloat16)
    return {"pixel_values": pixels, "labels": torch.empty((batch,), dtype=torch.int64)}


@dataclass(frozen=True)
class Program:
    """Model code. ``inputs``: their batch and length or size; ``routing``: experts, and how many get each token."""

    name: Any
    says: str
    code: Any
    prefix: str
    config: Any
    model: Any
    inputs: tuple[int, int]
    routing: tuple[int, int] | None = None

    @property
    def layers(self) -> str:
        """How deep it is, in words."""
        return f"{self.config.num_hidden_layers} layers"

    @property
    def nonzero_counts(self) -> list[int]:
        """The numbers that the loops over the experts ask for, layer by layer: how many experts have tokens, and how
        many rows each of them has. Always the same."""
        if self.routing is None:
            return []
        experts, chosen = self.routing
        random = Random(f"routing of {self.name}")
        rows = self.inputs[0] * self.inputs[1] * chosen
        return [
            count
            for _ in range(self.config.num_hidden_layers)
            for count in (experts, *dealt(rows, [exp(random.gauss(0, UNEVEN)) for _ in range(experts)]))
        ]


@dataclass(frozen=True)
class Training(Program):
    """A training step. ``optimizer``: what it is without a fused one, which goes through the weights one by one unless
    ``foreach`` is true. ``tensor``: of how many tensor-parallel ranks it is the first."""

    name: TrainingName
    pictures: bool = False
    tensor: int = 1
    optimizer: Literal["AdamW", "SGD"] = "AdamW"
    foreach: bool = False

    def batch(self) -> dict[str, torch.Tensor]:
        """The tensors that the step reads; the first is that of the data loader."""
        return (pictures if self.pictures else text)(*self.inputs)

    def built(self, parts: frozenset[str]) -> torch.nn.Module:
        """The model, whose parts are fused later (`fused`). ``parts``: those that will be."""
        self.config._attn_implementation = (
            "eager" if "attention" in PARTS[self.name] and "attention" not in parts else "sdpa"
        )
        self.config._experts_implementation = "eager"
        model: torch.nn.Module = self.model(self.config)
        return model

    def loss(self, model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The forward pass."""
        loss: torch.Tensor = model(**batch).loss
        return loss

    @property
    def work(self) -> str:
        """What a step does, in words."""
        batch, size = self.inputs
        share = f", one of {self.tensor} tensor-parallel ranks" if self.tensor > 1 else ""
        return f"{batch} x {f'{size} x {size} pixels' if self.pictures else f'{size} tokens'}, a training step{share}"


@dataclass(frozen=True)
class Decoding(Program):
    """A step of ``generate``: one more token for each sequence. ``drawn``: how the token is chosen."""

    name: DecodingName
    drawn: dict[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> str:
        """What a step does, in words."""
        return f"{self.inputs[0]} x 1 tokens behind {self.inputs[1]}, a step of generate"


def dealt(rows: int, shares: Sequence[float]) -> list[int]:
    """Rows by share."""
    counts = [int(rows * share / sum(shares)) for share in shares]
    counts[0] += rows - sum(counts)
    return counts


LLAMA = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": LAYERS,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
}
QWEN3 = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": LAYERS,
    "vocab_size": 151_936,
    "tie_word_embeddings": False,
}

PROGRAMS: tuple[Training | Decoding, ...] = (
    Training(
        "llama",
        "LlamaForCausalLM as large as Llama 3.2 1B",
        modeling_llama,
        "Llama",
        transformers.LlamaConfig(**LLAMA, use_cache=False),
        transformers.LlamaForCausalLM,
        (2, 2048),
    ),
    Training(
        "qwen3",
        "Qwen3ForCausalLM as large as Qwen3 1.7B",
        modeling_qwen3,
        "Qwen3",
        transformers.Qwen3Config(**QWEN3, use_cache=False),
        transformers.Qwen3ForCausalLM,
        (2, 2048),
    ),
    Training(
        "llama-tp2",
        "LlamaForCausalLM as large as Llama 3.2 1B",
        modeling_llama,
        "Llama",
        transformers.LlamaConfig(**LLAMA, use_cache=False),
        transformers.LlamaForCausalLM,
        (2, 2048),
        tensor=2,
    ),
    Training(
        "qwen3-tp2",
        "Qwen3ForCausalLM as large as Qwen3 1.7B",
        modeling_qwen3,
        "Qwen3",
        transformers.Qwen3Config(**QWEN3, use_cache=False),
        transformers.Qwen3ForCausalLM,
        (2, 2048),
        tensor=2,
    ),
    Training(
        "gpt2",
        "GPT2LMHeadModel as large as GPT-2 Large",
        modeling_gpt2,
        "GPT2",
        transformers.GPT2Config(
            n_embd=1280,
            n_head=20,
            n_layer=LAYERS,
            n_positions=2048,
            use_cache=False,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        ),
        transformers.GPT2LMHeadModel,
        (2, 2048),
    ),
    Training(
        "qwen3-moe",
        "Qwen3MoeForCausalLM as wide as Qwen3 30B A3B, with 16 experts of which a token has 2",
        modeling_qwen3_moe,
        "Qwen3Moe",
        transformers.Qwen3MoeConfig(
            hidden_size=2048,
            moe_intermediate_size=768,
            num_attention_heads=32,
            num_key_value_heads=4,
            head_dim=128,
            num_hidden_layers=3,
            num_experts=16,
            num_experts_per_tok=2,
            norm_topk_prob=True,
            vocab_size=32_768,
            tie_word_embeddings=False,
            use_cache=False,
        ),
        transformers.Qwen3MoeForCausalLM,
        (1, 4096),
        (16, 2),
    ),
    Training(
        "mixtral",
        "MixtralForCausalLM, half as wide as Mixtral 8x7B",
        modeling_mixtral,
        "Mixtral",
        transformers.MixtralConfig(
            hidden_size=2048,
            intermediate_size=7168,
            num_attention_heads=16,
            num_key_value_heads=4,
            num_hidden_layers=2,
            num_local_experts=8,
            num_experts_per_tok=2,
            vocab_size=32_000,
            use_cache=False,
        ),
        transformers.MixtralForCausalLM,
        (2, 2048),
        (8, 2),
    ),
    Training(
        "vit",
        "ViTForImageClassification as large as ViT Base with patches of 16 x 16",
        modeling_vit,
        "ViT",
        transformers.ViTConfig(num_hidden_layers=LAYERS, num_labels=1000),
        transformers.ViTForImageClassification,
        (64, 224),
        pictures=True,
    ),
    Decoding(
        "llama-decode",
        "LlamaForCausalLM as large as Llama 3.2 1B",
        modeling_llama,
        "Llama",
        transformers.LlamaConfig(**LLAMA),
        transformers.LlamaForCausalLM,
        (64, 4096),
        drawn={"do_sample": True, "top_k": 0, "top_p": 0.9},
    ),
    Decoding(
        "qwen3-decode",
        "Qwen3ForCausalLM as large as Qwen3 1.7B",
        modeling_qwen3,
        "Qwen3",
        transformers.Qwen3Config(**QWEN3),
        transformers.Qwen3ForCausalLM,
        (32, 4096),
        drawn={"do_sample": False},
    ),
)
