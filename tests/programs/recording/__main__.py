"""Records the programs that the simulator runs, and writes them to ``advisor_core/sample/recorded``."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import torch
import transformers
from transformers.models.gpt2 import modeling_gpt2
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3

from advisor_core.sample.models.recorded import PARTS, Part, ProgramName, record_file
from tests.programs.recording.calls import Call
from tests.programs.recording.fused import fused, merge_gates
from tests.programs.recording.kernels import Kernels, Operand, Task
from tests.programs.recording.operators import recording

LAYERS, BATCH, SEQUENCE = 4, 2, 2048


@dataclass(frozen=True)
class Program:
    """Public model code in a size that it is published in, with few layers."""

    name: ProgramName
    says: str
    code: Any
    prefix: str
    config: Any
    model: Any


PROGRAMS = (
    Program(
        "llama",
        "LlamaForCausalLM as large as Llama 3.2 1B",
        modeling_llama,
        "Llama",
        transformers.LlamaConfig(
            hidden_size=2048,
            intermediate_size=8192,
            num_attention_heads=32,
            num_key_value_heads=8,
            num_hidden_layers=LAYERS,
            vocab_size=128_256,
            tie_word_embeddings=False,
            use_cache=False,
        ),
        transformers.LlamaForCausalLM,
    ),
    Program(
        "qwen3",
        "Qwen3ForCausalLM as large as Qwen3 1.7B",
        modeling_qwen3,
        "Qwen3",
        transformers.Qwen3Config(
            hidden_size=2048,
            intermediate_size=6144,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=128,
            num_hidden_layers=LAYERS,
            vocab_size=151_936,
            tie_word_embeddings=False,
            use_cache=False,
        ),
        transformers.Qwen3ForCausalLM,
    ),
    Program(
        "gpt2",
        "GPT2LMHeadModel as large as GPT-2 Large",
        modeling_gpt2,
        "GPT2",
        transformers.GPT2Config(
            n_embd=1280,
            n_head=20,
            n_layer=LAYERS,
            n_positions=SEQUENCE,
            use_cache=False,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        ),
        transformers.GPT2LMHeadModel,
    ),
)


def variants(parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    """Every choice of parts."""
    return chain.from_iterable(combinations(parts, count) for count in range(len(parts) + 1))


@dataclass(frozen=True)
class Recorded:
    """The operator calls, and the memory of the tokens, of the loss, and of what is there before the step."""

    calls: list[Call]
    tokens: int
    loss: int
    kept: list[int]


def record(program: Program, parts: tuple[Part, ...]) -> Recorded:
    """A training step of the program with these parts fused."""
    program.config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = program.model(program.config).to(torch.bfloat16).train()
        if "swiglu" in parts:
            merge_gates(model)
        tokens = torch.empty((BATCH, SEQUENCE), dtype=torch.int64)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    for weight in model.parameters():  # moments are there before the step that is recorded
        weight.grad = torch.empty_like(weight)
    optimizer.step()
    for weight in model.parameters():
        weight.grad = None
    with fused(program.code, program.prefix, frozenset(parts)), recording() as recorder:
        moments = [tensor for state in optimizer.state.values() for tensor in state.values() if tensor.dim()]
        kept = [recorder.seen(one).storage for one in (*model.parameters(), *model.buffers(), *moments)]
        tokens_read = recorder.seen(tokens).storage
        loss = model(input_ids=tokens, labels=tokens).loss
        loss_written = recorder.seen(loss).storage
        loss.backward()
        recorder.phase = "optimizer"
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return Recorded(recorder.calls, tokens_read, loss_written, kept)


def written(program: Program, parts: tuple[Part, ...]) -> dict[str, Any]:
    """The record as it is written into a file."""
    recorded = record(program, parts)
    calls = recorded.calls
    kernels = Kernels(1 + max(seen.storage for call in calls for seen in (*call.reads, *call.writes)))
    tensors: dict[Operand, int] = {}

    def number(operand: Operand) -> int:
        return tensors.setdefault(operand, len(tensors))

    def task(one: Task) -> list[Any]:
        return [one.type, one.function, [*map(number, one.reads)], [*map(number, one.writes)], one.depth]

    operators = [
        [call.name, call.phase, call.node, call.sequence, [task(one) for one in kernels.of(call)]] for call in calls
    ]
    storages = {operand.storage for operand in tensors}
    return {
        "program": f"{program.says}, {LAYERS} layers, {BATCH} x {SEQUENCE} tokens, a training step with AdamW",
        "fused": [*parts, "attention"],
        "versions": {"torch": torch.__version__.partition("+")[0], "transformers": transformers.__version__},
        "tokens": recorded.tokens,
        "loss": recorded.loss,
        "kept": [storage for storage in recorded.kept if storage in storages],
        "operators": operators,
        "tensors": [[operand.storage, [*operand.shape], operand.dtype] for operand in tensors],
    }


def main() -> None:
    """Write all programs."""
    for program in PROGRAMS:
        for parts in variants(PARTS[program.name]):
            data = written(program, parts)
            path = record_file(program.name, parts)
            path.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))
            count = sum(len(one[4]) for one in data["operators"])
            sys.stdout.write(f"{path.name}: {count} kernels, {path.stat().st_size} B\n")


if __name__ == "__main__":
    main()
