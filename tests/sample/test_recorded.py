"""Programs that were recorded from public model code, as the simulator runs them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from advisor_core.sample.causes.cause import Cause
from advisor_core.sample.causes.code import Unfused
from advisor_core.sample.causes.communication import NoOverlap, SmallBuckets
from advisor_core.sample.job import simulate
from advisor_core.sample.kernels import AttentionWork, ConvolutionWork, Kernel, MatMulWork, Tensor, VectorWork
from advisor_core.sample.layout import Layout
from advisor_core.sample.loops.communicator import Place
from advisor_core.sample.loops.recorded import RecordedLoop, RecordedServing, RecordedTraining
from advisor_core.sample.models.recorded import (
    PARTS,
    Part,
    ProgramName,
    RecordedModel,
    TrainingName,
    record_file,
    record_of,
)
from advisor_core.sample.program import (
    AwaitCommunication,
    Backward,
    Communicate,
    Enter,
    Instruction,
    Item,
    Node,
    Op,
    memory_use,
)
from advisor_core.sample.scenario import Scenario
from advisor_core.sample.scenarios import SCENARIOS
from advisor_core.sample.setup import RankSetup, Setup

FUSED: dict[Part, set[str]] = {
    "norm": {"RmsNorm"},
    "rotary": {"RotaryPositionEmbedding"},
    "swiglu": {"SwiGlu"},
    "experts": {"GroupedMatmul"},
    "attention": {"FlashAttentionScore"},
    "optimizer": {"ApplyAdamWV2", "ForeachMulScalar"},
    "cache": {"ScatterNdUpdate"},
    "sampling": {"ApplyTopKTopPWithSorted"},
    "group-norm": {"GroupNormSwish"},
    "geglu": {"GeGluV2"},
}
"""The kernels of a part that is not written out; formats have none of their own."""
ALONE = Place(Layout(), 0)
ATTENTIONS = {"qwen3-moe": 3, "mixtral": 2, "unet": 14, "resnet": 0, "llama-grpo": 4 * 4, "qwen3-grpo": 4 * 4}
NORM = ["Cast", "Pows", "ReduceMean", "Add", "Rsqrt", "Mul", "Cast", "Mul"]
"""The kernels of a norm of Llama, as a published table of an NPU has them."""


def kernels_of(instructions: list[Instruction]) -> list[Kernel]:
    ops = [
        op
        for one in instructions
        for op in (one.ops if isinstance(one, Node) else [one] if isinstance(one, Op) else [])
    ]
    return [kernel for op in ops if op.launch is not None for kernel in op.launch.kernels]


def setup(program: TrainingName) -> Setup:
    return Setup(RecordedTraining(program))


def test_every_choice_of_parts_is_there() -> None:
    for program, parts in PARTS.items():
        for count in range(len(parts) + 1):
            for fused in combinations(parts, count):
                assert record_file(program, fused).is_file(), (program, fused)


@pytest.mark.parametrize("program", PARTS)
def test_parts_are_written_out_or_fused(program: ProgramName) -> None:
    for written_out in dict.fromkeys([(), PARTS[program]]):
        record = record_of(program, written_out)
        group = Place(Layout(tensor=record.tensor), 0).communicator("tensor")
        step = RecordedModel(record).step(group=group)
        kernels = kernels_of([*step.forward(), *step.backward(), *step.optimizer(), *step.decode()])
        if record.advantages is not None:
            kernels += kernels_of([*step.part("prefill"), *step.part("score")])
        types = [kernel.type for kernel in kernels]
        parts = {*PARTS[program]} - {"formats"}
        assert {part for part in parts if FUSED[part] & {*types}} == parts - {*written_out}
        if "attention" not in written_out:
            assert types.count("FlashAttentionScore") == ATTENTIONS.get(program, 4)


def test_pictures_are_converted_at_each_convolution_or_stay_as_the_cube_reads_them() -> None:
    """53 convolutions and a pooling of ResNet-50: four conversions of a pooling, three of a convolution, three of the
    gradient of its weight and three of that of its input, which the first has not. Kept, what the loader gives and the
    result of the last block are converted, and of what they read the gradients."""
    written_out, kept = (
        [
            kernel
            for kernel in kernels_of([*step.forward(), *step.backward(), *step.optimizer()])
            if kernel.type == "TransData"
        ]
        for step in (RecordedModel(record_of("resnet", parts)).step() for parts in (("formats",), ()))
    )
    assert len(written_out) == 2 + 3 + 3 * (53 + 53 + 52) and len(kept) == 4
    into = {(one.inputs[0].fmt, one.outputs[0].fmt) for one in written_out}
    assert into == {("NCHW", "NC1HWC0"), ("NCHW", "FRACTAL_Z"), ("NC1HWC0", "NCHW"), ("FRACTAL_Z", "NCHW")}


def test_convolutions_have_the_work_of_their_shapes() -> None:
    """ResNet-50 has 4.09 billion multiplications for a picture of 224 x 224, as the page of its weights at torchvision
    says; the three colours are filled up to a block of 16."""
    step = RecordedModel(record_of("resnet", ())).step()
    works = [kernel.work for kernel in kernels_of([*step.forward(), *step.backward()])]
    flops = {
        pass_: sum(work.flops for work in works if isinstance(work, ConvolutionWork) and work.pass_ == pass_)
        for pass_ in ("forward", "input", "filter")
    }
    stem = 2 * 64 * 112 * 112 * 64 * 49
    assert flops["forward"] - (16 - 3) * stem == pytest.approx(64 * 2 * 4.09e9, rel=0.01)
    assert flops["filter"] == flops["forward"] == flops["input"] + 16 * stem


def test_experts_one_by_one_ask_the_device_for_their_rows() -> None:
    """Each of 16 experts in 3 layers: whether it is the last, which one it is for its rows and both weights, and how
    many rows it has. Once a layer, which experts have rows; once a step, whether the sequences are packed."""
    reads = [
        sum(isinstance(one, Item) for one in RecordedModel(record_of("qwen3-moe", parts)).step().forward())
        for parts in ((), ("experts",))
    ]
    assert reads == [1, 3 * (16 * 5 + 1) + 1]


def test_grouped_products_have_the_work_of_all_experts() -> None:
    """8,192 rows through both projections of three layers, forward and twice backward."""
    step = RecordedModel(record_of("qwen3-moe", ())).step()
    grouped = [one for one in kernels_of([*step.forward(), *step.backward()]) if one.type == "GroupedMatmul"]
    works = [one.work for one in grouped if isinstance(one.work, MatMulWork)]
    assert len(works) == 3 * 6
    assert sum(work.m * work.n * work.k for work in works) == 3 * 3 * 8192 * 2048 * 3 * 768


def test_a_cache_that_grows_is_copied_and_one_with_room_is_not() -> None:
    """Keys and values of 64 sequences of 4,098 tokens: 8 heads of 64 channels in four layers, 2 B each."""

    def put(parts: tuple[Part, ...], type_: str) -> int:
        kernels = kernels_of(RecordedModel(record_of("llama-decode", parts)).step().decode())
        found = [one.work for one in kernels if one.type == type_]
        return sum(work.write for work in found if isinstance(work, VectorWork))

    row = 4 * 2 * 64 * 8 * 64 * 2
    joined = put(("cache",), "ConcatD") - put((), "ConcatD")
    assert joined == 4098 * row and put((), "ScatterNdUpdate") == row


def test_tokens_are_decoded_and_read_back_once_a_step() -> None:
    job = replace(SCENARIOS["healthy-decode"], name="recorded", job=Setup(RecordedServing("llama-decode", steps=2)))
    (timeline,) = simulate(replace(job, causes=(Unfused("sampling"),)), 0)
    assert [step.number for step in timeline.steps] == [10, 11]
    assert len(timeline.kernels) == 2 * len(
        kernels_of(RecordedModel(record_of("llama-decode", ("sampling",))).step().decode())
    )
    assert sum(span.name == "aten::item" for span in timeline.spans) == 2


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
    loop = RecordedLoop(RecordedTraining("qwen3"), ALONE, 900_000)
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
        (Unfused("cross-entropy"), "llama", "only whole parts"),
        (Unfused("rms-norm", dose=0.5), "llama", "only whole parts"),
        (Unfused("rms-norm"), "gpt2", "was not recorded with"),
    ],
)
def test_a_part_that_was_not_recorded_is_refused(cause: Unfused, program: TrainingName, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RecordedLoop(cause.afflict(setup(program)).training, ALONE, 900_000)  # type: ignore[arg-type]


@pytest.mark.parametrize("program", ["gpt2", "llama", "mixtral", "resnet"])
def test_every_gradient_of_a_weight_is_reduced_once(program: TrainingName) -> None:
    """A weight, and what the optimizer keeps of it: two moments of AdamW, one of SGD."""
    record = record_of(program, ())
    gradients = [storage for finished in record.gradients.values() for storage in finished]
    of_a_weight = 2 if record.optimizer == "SGD" else 3
    assert len(gradients) == len({*gradients}) and not {*gradients} & record.kept
    assert len(record.kept) >= of_a_weight * len(gradients)
    step = RecordedModel(record).step()
    seen: list[Tensor] = []

    def ready(gradient: Tensor) -> list[Instruction]:
        seen.append(gradient)
        return []

    step.backward(ready)
    read = {id(tensor.storage) for kernel in kernels_of(step.optimizer()) for tensor in kernel.inputs}
    assert len(seen) == len(gradients) and all(id(gradient) in read for gradient in seen)


def training_of(causes: tuple[Cause, ...]) -> list[Instruction]:
    two = Setup(RecordedTraining("gpt2", steps=1), ranks=(RankSetup(),) * 2)
    for cause in causes:
        two = cause.afflict(two)
    return RecordedLoop(two.training, Place(two.arrangement, 0), 900_000).program()  # type: ignore[arg-type]


def test_ranks_reduce_their_gradients_in_buckets() -> None:
    """GPT-2 Large with four layers: 291 MB of gradients, that of the shared table with 129 MB of them last."""
    beside, behind, alone = (training_of(causes) for causes in ((), (NoOverlap(),), (SmallBuckets(),)))

    def reductions(program: list[Instruction]) -> list[int]:
        return [one.data.nbytes for one in program if isinstance(one, Communicate)]

    def within(program: list[Instruction]) -> list[int]:
        (backward,) = (one for one in program if isinstance(one, Backward))
        return reductions(list(backward.program))

    assert reductions(beside) == [] and within(behind) == []
    assert within(beside) == reductions(behind) and sum(within(beside)) == sum(within(alone))
    assert all(nbytes >= 25 * 2**20 for nbytes in within(beside)[:-1])
    assert len(within(alone)) == 52 and max(within(alone)) == 50_257 * 1280 * 2
    optimizer = next(place for place, one in enumerate(beside) if isinstance(one, Enter) and "Optimizer" in one.name)
    waits = [place for place, one in enumerate(beside) if isinstance(one, AwaitCommunication)]
    assert len(waits) == len(within(beside)) and max(waits) < optimizer
