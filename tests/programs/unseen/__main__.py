"""Records programs into streams of operators, all or those named.

    python -m tests.programs.unseen TOOLS FOLDER [NAME ...]

``TOOLS``: the folder of ``record_operators.py``, which records operators below autograd. ``FOLDER`` gets a stream for
each program (``*.jsonl.gz``), which `tests.programs.prepare` and `tests.programs.kineto` read. Needs torch,
transformers, diffusers and peft, which the project does not.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.programs.unseen.later import LATER
from tests.programs.unseen.models import MODELS
from tests.programs.unseen.own import OWN
from tests.programs.unseen.program import Decoding, Training


def train(program: Training, tools: ModuleType) -> Any:
    """A training step: forward, backward, clipping where the program clips, and the optimizer."""
    with torch.device(program.device):
        model = program.model().to(program.dtype).train()
        batch = program.batch()
    if program.device == "cpu":
        fill(batch)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for weight in weights:  # moments are there before the step that is recorded
        weight.grad = torch.zeros_like(weight)
    optimizer = program.optimizer(weights)
    with tools.Quiet():
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with tools.fused_attention(program.fused_attention), tools.recording(model, program.device) as recorder:
        loss = program.loss(model, batch)
        recorder.phase = "bwd"
        loss.backward()
        if program.clips:
            recorder.phase = "clip"
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
        recorder.phase = "opt"
        optimizer.step()
    return recorder


def decode(program: Decoding, tools: ModuleType) -> Any:
    """A prefill and two steps of decoding."""
    with torch.device(program.device):
        model = program.model().to(program.dtype).eval()
        batch = program.batch()
    if program.device == "cpu":
        fill(batch)
    fused = tools.fused_attention(program.fused_attention)
    with torch.no_grad(), fused, torch.device(program.device), tools.recording(model, program.device) as recorder:
        recorder.phase = "prefill"
        state: Any = None
        for step in range(program.steps + 1):
            state = program.step(model, batch, state)
            recorder.phase = f"decode{step + 1}"
    return recorder


def fill(batch: dict[str, torch.Tensor]) -> None:
    """Numbers that a program really computes with."""
    torch.manual_seed(0)
    for name, tensor in batch.items():
        if tensor.is_floating_point():
            tensor.normal_()
        elif "mask" not in name:
            tensor.random_(0, 500)


def main() -> None:
    """All programs, or those named; one that cannot be recorded is told and left out."""
    tools_folder, folder, *names = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("record_operators", Path(tools_folder) / "record_operators.py")
    assert spec is not None
    assert spec.loader is not None
    tools = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tools)
    tools.HERE = folder
    Path(folder).mkdir(parents=True, exist_ok=True)
    for program in (*MODELS, *OWN, *LATER):
        if names and program.name not in names:
            continue
        record: Callable[[Any, ModuleType], Any] = train if isinstance(program, Training) else decode
        try:
            recorder = record(program, tools)
        except Exception:
            traceback.print_exc(limit=-4)
            sys.stderr.write(f"{program.name}: not recorded\n")
            continue
        recorder.save(program.name, {"real_cpu": program.device == "cpu"})


if __name__ == "__main__":
    main()
