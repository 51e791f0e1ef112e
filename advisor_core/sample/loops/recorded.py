"""Public model code that was recorded, training or generating tokens, as a program for the main thread of one rank."""

from __future__ import annotations

from dataclasses import dataclass

from ..described import FROM_FILES, Natural, Positive
from ..kernels import Tensor
from ..models.recorded import DecodingName, Part, RecordedModel, StepOfModel, TrainingName, record_of
from ..models.recorded_stages import Stage, stages_of
from ..program import Instruction, Item, NextBatch, Op, Python
from .communicator import Place
from .pipeline import Transfer, schedule
from .recorded_gradients import Buckets, backward, buckets_of, update
from .steps import program_of_steps
from .training import python


@dataclass(frozen=True, slots=True)
class RecordedTraining:
    """Training of a recorded program. ``written_out``: the parts of it that are no fused operators of torch_npu.
    ``micro_batches``: each of them is the batch that was recorded; their gradients are added up. ``reads_loss``: the
    loss is read back in every step, with ``loss_log_ns`` of Python behind it. ``stage_layers``: layers of each stage of
    a pipeline, empty for equally many.

    Of several data-parallel ranks each has the whole model, or stage. The gradients of the last micro-batch are reduced
    in buckets of ``bucket_bytes``, 0 for one by one:
    as they fill up if ``overlapped_buckets``, else after the backward pass. They lie in the buckets from the
    beginning (``gradient_as_bucket_view``); the size is the one that DistributedDataParallel has by itself, 25 MiB.
    """

    __pydantic_config__ = FROM_FILES
    program: TrainingName
    written_out: tuple[Part, ...] = ()
    steps: Positive = 3
    reads_loss: bool = True
    loss_log_ns: Natural = 120_000
    bucket_bytes: Natural = 25 * 2**20
    overlapped_buckets: bool = True
    micro_batches: Positive = 1
    stage_layers: tuple[int, ...] = ()

    def stages(self, count: int) -> list[Stage]:
        """The stages of a pipeline of so many. Raises :class:`ValueError` for a program that cannot be divided so."""
        return stages_of(self.program, self.written_out, count, self.stage_layers)


@dataclass(frozen=True, slots=True)
class RecordedServing:
    """Generation of tokens by a recorded program, step by step. ``written_out``: the parts of it that are no fused
    operators of torch_npu. Each step reads back whether all sequences have ended, and Python hands its tokens on for
    ``sample_ns``."""

    __pydantic_config__ = FROM_FILES
    program: DecodingName
    written_out: tuple[Part, ...] = ()
    steps: Positive = 3
    sample_ns: Natural = 60_000


class RecordedServingLoop:
    """Writes the program of the rank. ``loading_ns``: what the scheduler needs for a step. Raises :class:`ValueError`
    for parts that the program does not have."""

    def __init__(self, work: RecordedServing, loading_ns: int) -> None:
        self._work = work
        self._loading_ns = loading_ns
        self._model = RecordedModel(record_of(work.program, work.written_out))

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights and the cache."""
        return sum(tensor.nbytes for tensor in self._model.kept)

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        frames = (python("serve.py(88): main"), python("transformers/generation/utils.py(2803): generate"))
        return program_of_steps(frames, self._work.steps, lambda _: self._decode())

    def _decode(self) -> list[Instruction]:
        return [Python(self._loading_ns), *self._model.step().decode(), Python(self._work.sample_ns)]


@dataclass(slots=True)
class _MicroBatch:
    """A micro-batch at one stage: what came in from the stage before, and its passes once they have begun."""

    entered: Tensor | None = None
    step: StepOfModel | None = None


class RecordedLoop:
    """Writes the program of a rank that trains a recorded program, or a stage of it. ``loading_ns``: what the data
    loader needs for a batch. Raises :class:`ValueError` for parts or stages that the program does not have."""

    def __init__(self, work: RecordedTraining, place: Place, loading_ns: int) -> None:
        self._work = work
        self._place = place
        self._loading_ns = loading_ns
        stages = place.layout.pipeline
        record = record_of(work.program, work.written_out)
        self._stage = work.stages(stages)[place.stage] if stages > 1 else Stage(record)
        self._model = RecordedModel(self._stage.record)

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights, moments and buffers."""
        return sum(tensor.nbytes for tensor in self._model.kept)

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        frames = (python("train.py(231): <module>"), python("train.py(204): main"))
        return program_of_steps(frames, self._work.steps, lambda _: self._step())

    def _step(self) -> list[Instruction]:
        work, count = self._work, self._work.micro_batches
        batches = [_MicroBatch() for _ in range(count)]
        buckets = buckets_of(self._place.gradients, work.bucket_bytes, overlapped=work.overlapped_buckets)
        program: list[Instruction] = []
        for part in schedule(self._place.stage, self._place.layout.pipeline, count):
            if isinstance(part, Transfer):
                program += self._transfer(part, batches)
            elif part.backward:
                program += self._backward(batches, part.micro, buckets if part.micro == count - 1 else None)
            else:
                program += self._forward(batches[part.micro], part.micro)
        if buckets is not None:
            program += buckets.behind()
        first, last = batches[0].step, batches[-1].step
        assert first is not None and last is not None
        has_loss = self._stage.record.loss is not None
        return [
            *program,
            *([Item(last.loss, work.loss_log_ns)] if work.reads_loss and has_loss else []),
            *update(first),
        ]

    def _forward(self, batch: _MicroBatch, micro: int) -> list[Instruction]:
        stage, given = self._stage, {}
        if stage.entered is not None:
            assert batch.entered is not None
            given[stage.entered] = batch.entered
        if stage.returned is not None:
            given[stage.returned] = self._model.new(stage.returned)
        step = batch.step = self._model.step(given, micro, self._place.communicator("tensor"))
        loads = [NextBatch(step.batch, self._loading_ns)] if self._stage.record.batch is not None else []
        return [*loads, *step.forward()]

    def _backward(self, batches: list[_MicroBatch], micro: int, buckets: Buckets | None) -> list[Instruction]:
        """The backward pass, whose gradients are added to those of the first micro-batch; that of the last one with
        the reduction of them, as they are finished or behind it."""
        step, first = batches[micro].step, batches[0].step
        assert step is not None
        return backward(step, buckets, first if micro else None)

    def _transfer(self, part: Transfer, batches: list[_MicroBatch]) -> list[Instruction]:
        """Activations go to the next stage and their gradients come back from it."""
        stage, onwards = self._stage, part.peer > 0
        leaves, arrives = (stage.result, stage.returned) if onwards else (stage.handed_back, stage.entered)
        sent = received = None
        if part.sends is not None:
            step = batches[part.sends].step
            assert step is not None and leaves is not None
            sent = step.tensor(leaves)
        if part.receives is not None:
            assert arrives is not None
            batch = batches[part.receives]
            if batch.step is None:
                received = batch.entered = self._model.new(arrives)
            else:
                received = batch.step.tensor(arrives)
        room = [] if received is None else [Op("aten::empty", (), None, allocates=(received,))]
        group = self._place.communicator("pipeline")
        assert group is not None
        batched = self._place.layout.batched
        return [*room, *group.transfer(group.member + part.peer, sent, received, batched=batched)]
