"""Records the programs that the simulator runs, all or those named, and writes them to
``advisor_core/sample/recorded``."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain, combinations
from typing import Any
from unittest.mock import patch

import diffusers
import torch
import transformers
import trl

from advisor_core.sample.models.recorded import PARTS, Part, record_file
from tests.programs.recording.calls import Call
from tests.programs.recording.fused import fused, merge_gates
from tests.programs.recording.kernels import Kernels
from tests.programs.recording.operators import Recorder, recording
from tests.programs.recording.optimizer import optimizer_of
from tests.programs.recording.parallel import divide, local, ranks
from tests.programs.recording.picture_programs import PICTURE_PROGRAMS, Diffusion
from tests.programs.recording.programs import PROGRAMS, Decoding, Program, Training
from tests.programs.recording.reinforcement import REINFORCEMENT_PROGRAMS, Iteration, Reinforcement, batch_of
from tests.programs.recording.tasks import Operand, Task

TRAINED = ("forward", "backward", "optimizer")
"""The phases of an update."""
STEP = 3
"""The step of decoding that is recorded: those before it make what is kept from step to step."""


def variants(parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    """Every choice of parts."""
    return chain.from_iterable(combinations(parts, count) for count in range(len(parts) + 1))


@dataclass(frozen=True)
class Recorded:
    """The operator calls, and the memory of what is there before the step; in training that of the batch and of the
    loss, in reinforcement learning also that of the advantages."""

    calls: list[Call]
    kept: list[int]
    batch: int | None = None
    loss: int | None = None
    advantages: int | None = None


def trained(program: Training, parts: tuple[Part, ...]) -> Recorded:
    """A training step of the program with these parts fused. They are before the model is divided, which keeps the
    code of a module that it puts transfers around."""
    with fused(program.code, program.prefix, frozenset(parts)), ranks(program.tensor) as mesh:
        return _trained(program, parts, mesh)


def _trained(program: Training, parts: tuple[Part, ...], mesh: Any) -> Recorded:
    with torch.device("meta"):
        model = program.built(frozenset(parts)).to(torch.bfloat16).train()
        if "swiglu" in parts:
            merge_gates(model)
        if mesh is not None:
            divide(model, mesh)
        batch = program.batch()
        optimizer = optimizer_of(
            program.optimizer, model.parameters(), fused="optimizer" in parts, foreach=program.foreach
        )
    _with_moments(optimizer, model)
    with recording(program.nonzero_counts) as recorder:
        first, *others = batch.values()
        others = [other for other in others if other is not first]
        there = (*model.parameters(), *model.buffers(), *_moments(optimizer), *others)
        kept = [recorder.seen(local(one)).storage for one in there]
        loaded = recorder.seen(first).storage
        loss = program.loss(model, batch)
        loss_written = recorder.seen(loss).storage
        loss.backward()
        recorder.phase = "optimizer"
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return Recorded(recorder.calls, kept, loaded, loss_written)


def _with_moments(optimizer: Any, model: Any) -> Any:
    """Its moments are there before the step that is recorded."""
    for weight in model.parameters():
        weight.grad = torch.empty_like(weight)
    optimizer.step()
    for weight in model.parameters():
        weight.grad = None
    return optimizer


def _moments(optimizer: Any) -> list[torch.Tensor]:
    return [tensor for state in optimizer.state.values() for tensor in state.values() if tensor.dim()]


class _EnoughStepsError(Exception):
    """The step that is recorded is over."""


def _generate(model: Any, recorder: Recorder, tokens: torch.Tensor, drawn: dict[str, Any]) -> None:
    """Prefill and steps of decoding, up to the one that is recorded; calls of the others have no phase."""
    prepare, step = model.prepare_inputs_for_generation, 0

    @wraps(prepare)
    def begin(*arguments: Any, **settings: Any) -> Any:
        nonlocal step
        step += 1
        if step > STEP:
            raise _EnoughStepsError
        recorder.phase = {1: "prefill", STEP: "decode"}.get(step, "")
        return prepare(*arguments, **settings)

    recorder.phase = ""
    mask = torch.ones_like(tokens)
    with patch.object(model, "prepare_inputs_for_generation", begin), suppress(_EnoughStepsError):
        model.generate(tokens, attention_mask=mask, max_new_tokens=8, eos_token_id=2, pad_token_id=0, **drawn)
    recorder.phase = ""


def decoded(program: Decoding, parts: tuple[Part, ...]) -> Recorded:
    """A step of decoding with these parts fused."""
    program.config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = program.model(program.config).to(torch.bfloat16).eval()
        tokens = torch.empty(program.inputs, dtype=torch.int64)
    with fused(program.code, program.prefix, frozenset(parts)), recording() as recorder:
        _generate(model, recorder, tokens, program.drawn)
    calls = [replace(call, sequence=-1) for call in recorder.calls if call.phase == "decode"]
    return Recorded(calls, _read_first(calls))


def iterated(program: Reinforcement, parts: tuple[Part, ...]) -> Recorded:
    """An iteration of reinforcement learning with these parts fused."""
    program.config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model = program.model(program.config).to(torch.bfloat16).train()
        tokens = torch.empty(program.inputs, dtype=torch.int64)
        batch = batch_of(program)
    iteration = Iteration.of(model)
    optimizer = _with_moments(optimizer_of("AdamW", model.parameters(), fused=False, foreach=False), model)
    with fused(program.code, program.prefix, frozenset(parts)), recording() as recorder:
        both = [one for each in (model, iteration.reference) for one in (*each.parameters(), *each.buffers())]
        advantages, *others = batch.values()
        there = [recorder.seen(one).storage for one in (*both, *_moments(optimizer), *others)]
        loaded, given = recorder.seen(tokens).storage, recorder.seen(advantages).storage
        with torch.no_grad():
            _generate(model, recorder, tokens, {"do_sample": True, "top_k": 0})
        recorder.phase = "score"
        iteration.score(batch)
        recorder.phase = "forward"
        loss = iteration.loss(batch)
        loss_written = recorder.seen(loss).storage
        loss.backward()
        recorder.phase = "optimizer"
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    calls = [call if call.phase in TRAINED else replace(call, sequence=-1) for call in recorder.calls if call.phase]
    cache = _read_first([call for call in calls if call.phase == "decode"])
    return Recorded(calls, list(dict.fromkeys((*there, *cache))), loaded, loss_written, given)


def _read_first(calls: list[Call]) -> list[int]:
    """The memory that is read before anything is written into it."""
    written: set[int] = set()
    first: dict[int, None] = {}
    for call in calls:
        first |= {one.storage: None for one in call.reads if one.storage not in written}
        written |= {one.storage for one in call.writes}
    return list(first)


def _recorded(program: Training | Decoding | Reinforcement, parts: tuple[Part, ...]) -> Recorded:
    if isinstance(program, Reinforcement):
        return iterated(program, parts)
    return trained(program, parts) if isinstance(program, Training) else decoded(program, parts)


def written(program: Training | Decoding | Reinforcement, parts: tuple[Part, ...]) -> dict[str, Any]:
    """The record as it is written into a file."""
    recorded = _recorded(program, parts)
    calls = recorded.calls
    first = 1 + max(seen.storage for call in calls for seen in (*call.reads, *call.writes))
    kernels = Kernels(first, keeps_format="formats" in parts)
    tensors: dict[Operand, int] = {}

    def number(operand: Operand) -> int:
        return tensors.setdefault(operand, len(tensors))

    def task(one: Task) -> list[Any]:
        return [one.type, one.function, [*map(number, one.reads)], [*map(number, one.writes)], one.depth]

    operators = [
        [call.name, call.phase, call.node, call.sequence, [task(one) for one in kernels.of(call)]] for call in calls
    ]
    storages = {operand.storage for operand in tensors}
    libraries = [torch, diffusers if isinstance(program, Diffusion) else transformers]
    libraries += [trl] if isinstance(program, Reinforcement) else []
    return {
        "program": f"{program.says}, {program.layers}, {program.work}",
        "fused": sorted({*parts, *([] if "attention" in PARTS[program.name] else ["attention"])}),
        "versions": {one.__name__: one.__version__.partition("+")[0] for one in libraries},
        "tensor": program.tensor if isinstance(program, Training) else 1,
        "optimizer": _optimizer_class(program),
        "batch": recorded.batch,
        "loss": recorded.loss,
        "advantages": recorded.advantages,
        "kept": [storage for storage in recorded.kept if storage in storages],
        "operators": operators,
        "tensors": [
            [operand.storage, [*operand.shape], operand.dtype, *([operand.format] if operand.format else [])]
            for operand in tensors
        ],
    }


def _optimizer_class(program: Program) -> str | None:
    """The class of the optimizer without a fused one; none where nothing is trained."""
    if isinstance(program, Training):
        return program.optimizer
    return "AdamW" if isinstance(program, Reinforcement) else None


def main() -> None:
    """Write these programs, or all."""
    programs = (*PROGRAMS, *PICTURE_PROGRAMS, *REINFORCEMENT_PROGRAMS)
    names = sys.argv[1:] or [program.name for program in programs]
    for program in (program for program in programs if program.name in names):
        for parts in variants(PARTS[program.name]):
            data = written(program, parts)
            path = record_file(program.name, parts)
            path.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))
            count = sum(len(one[4]) for one in data["operators"])
            sys.stdout.write(f"{path.name}: {count} kernels, {path.stat().st_size} B\n")


if __name__ == "__main__":
    main()
