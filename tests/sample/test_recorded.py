"""Programs that were recorded from public model code, as the simulator runs them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import get_args

import pytest

from advisor_core.sample.causes.code import Unfused
from advisor_core.sample.job import simulate
from advisor_core.sample.kernels import AttentionWork, Kernel, MatMulWork
from advisor_core.sample.loops.recorded import RecordedLoop, RecordedTraining
from advisor_core.sample.models.recorded import PARTS, Part, ProgramName, RecordedModel, record_of
from advisor_core.sample.program import Instruction, Node, Op, memory_use
from advisor_core.sample.scenario import Scenario
from advisor_core.sample.scenarios import SCENARIOS
from advisor_core.sample.setup import Setup

CHOICES = [
    (program, parts)
    for program in get_args(ProgramName)
    for count in range(len(PARTS[program]) + 1)
    for parts in combinations(PARTS[program], count)
]
NORM = ["Cast", "Pows", "ReduceMean", "Add", "Rsqrt", "Mul", "Cast", "Mul"]
"""The kernels of a norm of Llama, as a published table of an NPU has them."""


def kernels_of(instructions: list[Instruction]) -> list[Kernel]:
    ops = [
        op
        for one in instructions
        for op in (one.ops if isinstance(one, Node) else [one] if isinstance(one, Op) else [])
    ]
    return [kernel for op in ops if op.launch is not None for kernel in op.launch.kernels]


def setup(program: ProgramName) -> Setup:
    return Setup(RecordedTraining(program))


@pytest.mark.parametrize(("program", "written_out"), CHOICES)
def test_every_choice_of_parts_is_there(program: ProgramName, written_out: tuple[Part, ...]) -> None:
    step = RecordedModel(record_of(program, written_out)).step()
    types = [kernel.type for kernel in kernels_of([*step.forward(), *step.backward(), *step.optimizer()])]
    fused = {"norm": "RmsNorm", "rotary": "RotaryPositionEmbedding", "swiglu": "SwiGlu"}
    assert {part for part, type_ in fused.items() if type_ in types} == {*PARTS[program]} - {*written_out}
    assert types.count("FlashAttentionScore") == types.count("FlashAttentionScoreGrad") == 4


def test_a_norm_is_written_out_as_the_model_code_writes_it() -> None:
    step = RecordedModel(record_of("llama", ("norm",))).step()
    types = [kernel.type for kernel in kernels_of(step.forward())]
    norms = [place for place in range(len(types)) if types[place : place + len(NORM)] == NORM]
    assert len(norms) == 2 * 4 + 1


def test_products_have_the_work_of_their_shapes() -> None:
    """4,096 tokens through the weights of four layers and the output, forward and twice backward."""
    step = RecordedModel(record_of("llama", ())).step()
    kernels = kernels_of([*step.forward(), *step.backward()])
    layer = 2048 * 2048 * 2 + 2048 * 512 * 2 + 2048 * 8192 * 3
    products = [kernel.work for kernel in kernels if isinstance(kernel.work, MatMulWork)]
    assert sum(work.m * work.n * work.k for work in products) == 3 * 4096 * (4 * layer + 2048 * 128_256)
    attention = [kernel.work.flops for kernel in kernels if isinstance(kernel.work, AttentionWork)]
    assert sum(attention) == 4 * 3.5 * 2 * 2 * 2048**2 * 2048


def test_memory_that_is_taken_is_given_back() -> None:
    loop = RecordedLoop(RecordedTraining("qwen3"), 900_000)
    taken: set[int] = set()
    for allocated, freed in memory_use(loop.program()):
        for tensor in allocated:
            assert id(tensor.storage) not in taken
            taken.add(id(tensor.storage))
        taken -= {id(tensor.storage) for tensor in freed}
    assert not taken
    # Weights of 2 B and two moments of 2 B each.
    parameters = 4 * (2048 * 2048 * 2 + 2048 * 1024 * 2 + 2048 * 6144 * 3 + 2 * 2048 + 2 * 128) + 2048
    assert loop.resident_bytes == pytest.approx(6 * (parameters + 2 * 151_936 * 2048), rel=1e-6)


def test_what_is_written_out_takes_longer() -> None:
    job = replace(SCENARIOS["healthy-training-single"], name="recorded", job=setup("llama"), causes=())
    ill = replace(job, causes=(Unfused("rms-norm"),))

    def took(scenario: Scenario) -> int:
        return sum(task.end - task.start for task in simulate(scenario, 0)[0].tasks)

    assert took(ill) > 1.03 * took(job)


@pytest.mark.parametrize(
    ("cause", "program", "says"),
    [
        (Unfused("optimizer"), "llama", "a whole RMSNorm"),
        (Unfused("rms-norm", dose=0.5), "llama", "a whole RMSNorm"),
        (Unfused("rms-norm"), "gpt2", "was not recorded with"),
    ],
)
def test_a_part_that_was_not_recorded_is_refused(cause: Unfused, program: ProgramName, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RecordedLoop(cause.afflict(setup(program)).training, 900_000)  # type: ignore[arg-type]
