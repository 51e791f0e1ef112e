"""Recorded programs as stages of a pipeline, and with several micro-batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest

from advisor_core.sample.job import simulate
from advisor_core.sample.kernels import Kernel
from advisor_core.sample.layout import Layout
from advisor_core.sample.loops.communicator import Place
from advisor_core.sample.loops.recorded import RecordedLoop, RecordedTraining
from advisor_core.sample.models.recorded import PARTS, Record, RecordedModel, TrainingName, record_of
from advisor_core.sample.models.recorded_stages import stages_of
from advisor_core.sample.program import Backward, Communicate, Instruction, NextBatch, Node, Op, memory_use
from advisor_core.sample.scenarios import SCENARIOS
from advisor_core.sample.setup import RankSetup, Setup

DIVIDED: dict[TrainingName, tuple[int, ...]] = {
    "llama": (3, 1),
    "qwen3": (1, 1, 2),
    "qwen3-moe": (1, 2),
    "mixtral": (1, 1),
    "vit": (2, 2),
}


def whole_and_stages(program: TrainingName, parts: bool) -> tuple[Record, list[Record]]:
    written_out = PARTS[program] if parts else ()
    layers = DIVIDED[program]
    stages = stages_of(program, written_out, len(layers), layers)
    return record_of(program, written_out), [stage.record for stage in stages]


@pytest.mark.parametrize("written_out", [False, True])
@pytest.mark.parametrize("program", DIVIDED)
def test_stages_are_the_program(program: TrainingName, written_out: bool) -> None:
    """Every operator that weights, activations or gradients go through is in one stage; what is computed of positions
    or labels alone is in those that need it."""
    whole, stages = whole_and_stages(program, written_out)
    memory = [storage for storage, *_ in whole.tensors]
    times = Counter(one.number for stage in stages for one in stage.operators)
    updated = {
        memory[tensor]
        for one in whole.operators
        if one.phase == "optimizer"
        for _, _, _, results, _ in one.tasks
        for tensor in results
    }
    known = set(whole.kept & updated)
    for one in whole.operators:
        reads = {memory[tensor] for _, _, read, _, _ in one.tasks for tensor in read}
        if not one.tasks or (one.phase == "forward" and not reads & known):
            assert times[one.number] >= (1 if one.tasks else 0)
            continue
        known |= {memory[tensor] for _, _, _, results, _ in one.tasks for tensor in results}
        assert times[one.number] == 1, one
    assert Counter(chain.from_iterable(stage.kept & updated for stage in stages)) == Counter(whole.kept & updated)
    finished = [storage for record in stages for found in record.gradients.values() for storage in found]
    assert sorted(finished) == sorted(chain.from_iterable(whole.gradients.values()))
    assert [record.loss is not None for record in stages] == [False] * (len(stages) - 1) + [True]


def test_layers_are_told_by_what_repeats_itself() -> None:
    """A layer of Llama has seven products forward, twice as many backward; the last stage has the output as well."""
    _, (first, last) = whole_and_stages("llama", parts=True)

    def products(record: Record, phase: str) -> int:
        return sum(task[0] == "MatMulV3" for one in record.operators if one.phase == phase for task in one.tasks)

    assert [products(first, phase) for phase in ("forward", "backward")] == [3 * 7, 3 * 14]
    assert [products(last, phase) for phase in ("forward", "backward")] == [7 + 1, 14 + 2]


@pytest.mark.parametrize(
    ("program", "layers", "says"),
    [
        ("gpt2", (2, 2), "share a weight"),
        ("unet", (1, 1), "no layers that hand on one tensor"),
        ("resnet", (1, 1), "updates all weights at once"),
        ("llama", (4, 1), "recorded with 4"),
    ],
)
def test_what_cannot_be_cut_is_refused(program: TrainingName, layers: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        stages_of(program, (), 2, layers)


def programs(work: RecordedTraining, layout: Layout) -> list[list[Instruction]]:
    return [RecordedLoop(work, Place(layout, rank), 900_000).program() for rank in range(layout.ranks)]


def flat(program: list[Instruction]) -> list[Instruction]:
    found: list[Instruction] = []
    for one in program:
        found += flat(list(one.program)) if isinstance(one, Backward) else [one]
    return found


def test_stages_hand_on_one_tensor_and_its_gradient() -> None:
    """Four micro-batches of two stages: 2 x 2,048 tokens of 2,048 channels, 2 B each."""
    first, last = programs(RecordedTraining("llama", steps=1, micro_batches=4), Layout(pipeline=2))
    for program in (first, last):
        sent = [one.sends for one in flat(program) if isinstance(one, Communicate)]
        assert Counter(chain.from_iterable(sent)) == {(1 if program is first else 0, 2 * 2048 * 2048 * 2): 4}
        assert sum(isinstance(one, NextBatch) for one in flat(program)) == 4


def accumulations(program: list[Instruction]) -> int:
    return sum(
        isinstance(one, Node) and one.name == "torch::autograd::AccumulateGrad" and one.ops[0].launch is not None
        for one in flat(program)
    )


def test_gradients_of_micro_batches_are_added_up_and_reduced_once() -> None:
    work = RecordedTraining("vit", steps=1, micro_batches=3)
    gradients = sum(map(len, record_of("vit", ()).gradients.values()))
    (alone,) = programs(work, Layout())
    assert accumulations(alone) == 2 * gradients
    divided = programs(work, Layout(data=2, pipeline=2))
    assert sum(accumulations(divided[rank]) for rank in (0, 2)) == 2 * gradients
    reduced = [
        one.data.nbytes
        for rank in (0, 2)
        for one in flat(divided[rank])
        if isinstance(one, Communicate) and one.operation == "allReduce"
    ]
    model = RecordedModel(record_of("vit", ()))
    finished = chain.from_iterable(record_of("vit", ()).gradients.values())
    assert sum(reduced) == sum(model.new(storage).nbytes for storage in finished)


@pytest.mark.parametrize("name", ["vit", "gpt2", "llama", "resnet"])
def test_a_gradient_is_added_right_behind_the_node_that_computes_it(name: TrainingName) -> None:
    """PyTorch's engine runs nodes that keep gradients first. What comes between is the node that turns the gradient of
    a weight back, and one that adds up the gradients of an input."""
    (program,) = programs(RecordedTraining(name, steps=1, micro_batches=2), Layout())
    since: list[set[int]] = []
    added = 0
    for one in flat(program):
        if not isinstance(one, Node) or not any(isinstance(op, Op) and op.launch is not None for op in one.ops):
            continue
        launched = [op for op in one.ops if isinstance(op, Op) and op.launch is not None]
        if one.name == "torch::autograd::AccumulateGrad":
            gradient = launched[0].inputs[1]
            assert id(gradient.storage) in set().union(*since[-2:])
            added += 1
        else:
            since.append({id(out.storage) for op in launched for kernel in op.launch.kernels for out in kernel.outputs})
    assert added == sum(map(len, record_of(name, ()).gradients.values()))


def test_the_optimizer_reads_the_sum_of_all_micro_batches() -> None:
    (program,) = programs(RecordedTraining("vit", steps=1, micro_batches=2), Layout())
    added = {
        id(one.ops[0].inputs[0].storage)
        for one in flat(program)
        if isinstance(one, Node) and one.name == "torch::autograd::AccumulateGrad" and one.ops[0].launch is not None
    }
    updates: list[Kernel] = [
        kernel
        for one in program
        if isinstance(one, Op) and one.launch is not None
        for kernel in one.launch.kernels
        if kernel.type == "ApplyAdamWV2"
    ]
    assert {id(kernel.inputs[-1].storage) for kernel in updates} == added


def test_memory_of_stages_is_given_back() -> None:
    for program in programs(RecordedTraining("qwen3", steps=2, micro_batches=3), Layout(pipeline=2)):
        taken: set[int] = set()
        for allocated, freed in memory_use(program):
            for tensor in allocated:
                assert id(tensor.storage) not in taken
                taken.add(id(tensor.storage))
            taken -= {id(tensor.storage) for tensor in freed}
        assert not taken


def test_a_pipeline_is_simulated_on_all_ranks() -> None:
    """Of four micro-batches the first goes to the last stage alone, as the gradient of the last one comes back."""
    work = RecordedTraining("vit", steps=2, micro_batches=4)
    job = Setup(work, ranks=(RankSetup(),) * 4, layout=Layout(data=2, pipeline=2))
    ranks = simulate(replace(SCENARIOS["healthy-training-single"], name="recorded", job=job, causes=()), 0)
    assert [[step.number for step in rank.steps] for rank in ranks] == [[10, 11]] * 4
    for rank in ranks:
        operations = Counter(one.operation for one in rank.collectives)
        assert operations["batchSendRecv"] == 2 * (4 + 1) and operations["allReduce"] > 2
