"""Profiles to measure on: the embedded sample, one rank of it over as many steps as it takes to be large, and a trace
of a GPU of as many bytes as another profile has."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path

import pandas as pd

from advisor_core.sample import SCENARIOS
from advisor_core.sample.export.generation import NAMES
from advisor_core.sample.export.recording import RECORDINGS
from advisor_core.sample.job import simulate
from advisor_core.sample.text import write_text

SCENARIO = "transformer-training"


def write_steps(directory: Path, steps: int) -> Path:
    """Write rank 0 of the embedded sample with so many steps below ``directory``; about 2.5 MB of trace a step."""
    scenario = SCENARIOS[SCENARIO]
    job = replace(scenario.job, training=replace(scenario.job.training, steps=steps))
    timeline = simulate(replace(scenario, job=job), seed=0)[0]
    return write_text(timeline, directory, NAMES[scenario.headers], RECORDINGS["level1"])


def write_kernels(directory: Path, kernels: int) -> Path:
    """Write the kernels of a step of the embedded sample again and again, at least so many, as one long step: nothing
    but ``kernel_details.csv`` and the times of the step."""
    written = write_steps(directory / "step", 1) / "ASCEND_PROFILER_OUTPUT"
    once = pd.read_csv(written / "kernel_details.csv", dtype=str, keep_default_na=False)
    times = -(-kernels // len(once))
    step = pd.read_csv(written / "step_trace_time.csv")
    start = [Decimal(text.strip()) for text in once["Start Time(us)"]]
    apart = Decimal(str(step["Computing"][0] + step["Free"][0] + step["Communication(Not Overlapped)"][0]))
    folder = directory / "repeated_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    for number in range(times):
        once["Start Time(us)"] = [f"{time + number * apart}" for time in start]
        first = not number
        once.to_csv(folder / "kernel_details.csv", mode="w" if first else "a", header=first, index=False)
    step.loc[:, step.columns != "Step"] *= times
    step.to_csv(folder / "step_trace_time.csv", index=False, float_format="%.3f")
    return folder.parent


STEP_US = 20_000
OPERATORS_OF_A_STEP = 400
_KERNELS = (
    ("aten::mm", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", "[1024, 1024], [1024, 4096]"),
    (
        "aten::mul",
        "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>",
        "[1024, 4096], []",
    ),
    ("aten::native_layer_norm", "void at::native::vectorized_layer_norm_kernel<float, float>", "[1024, 1024], [1024]"),
)


def write_gpu_trace(path: Path, bytes_: int) -> Path:
    """Write a trace of ``torch.profiler`` of at least so many bytes, and not a step more. Where ``path`` says that it
    is compressed, the bytes are those of the content. A step has operators with their shapes, each with its call, its
    kernel and the arrow between them."""
    written = 0
    with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
        text = '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}], "traceEvents": ['
        for step in count():
            body = ",\n".join(_gpu_step(step))
            data = (text + body).encode()
            file.write(data)
            written += len(data)
            text = ",\n"
            if written >= bytes_:
                break
        file.write(b"]}")
    return path


def _gpu_step(step: int) -> Iterator[str]:
    """The events of a step, as JSON."""
    start = 1_700_000_000_000_000 + step * STEP_US
    yield _event("user_annotation", f"ProfilerStep#{step}", start, STEP_US - 100, 100, 100, "")
    for place in range(OPERATORS_OF_A_STEP):
        operator, kernel, shapes = _KERNELS[place % len(_KERNELS)]
        number = step * OPERATORS_OF_A_STEP + place + 1
        at, runs = start + 40 * place, start + 40 * place + 60
        yield _event("cpu_op", operator, at, 30, 100, 100, f'"External id": {number}, "Input Dims": [{shapes}]')
        yield _event("cuda_runtime", "cudaLaunchKernel", at + 10, 8, 100, 100, f'"correlation": {number}')
        where = f'"External id": {number}, "device": 0, "context": 1, "stream": 7, "correlation": {number}'
        yield _event("kernel", kernel, runs, 35, 0, 7, f'{where}, "grid": [512, 1, 1], "block": [256, 1, 1]')
        for end, pid, thread, time in (("s", 100, 100, at + 10), ("f", 0, 7, runs)):
            arrow = f'"ph": "{end}", "id": {number}, "pid": {pid}, "tid": {thread}, "ts": {time}.125'
            yield f'{{{arrow}, "cat": "ac2g", "name": "ac2g", "bp": "e"}}'


def _event(category: str, name: str, start: int, length: int, pid: int, thread: int, args: str) -> str:
    head = f'"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {thread}'
    return f'{{{head}, "ts": {start}.125, "dur": {length}.5, "args": {{{args}}}}}'


def size(profile: Path) -> int:
    """Bytes of all files of a profile, or of its only file."""
    if profile.is_file():
        return profile.stat().st_size
    return sum(path.stat().st_size for path in profile.rglob("*") if path.is_file())
