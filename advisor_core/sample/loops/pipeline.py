"""Pipeline parallelism: the schedule of one forward and one backward pass in turn, and the training loop of a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..kernels import DType, Tensor
from ..models.eager import Eager
from ..program import Backward, Communicate, Instruction, Leave, NextBatch, Op
from .training import TrainingLoop, python


@dataclass(frozen=True, slots=True)
class Pass:
    """The forward or the backward pass of a micro-batch."""

    micro: int
    backward: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """Something goes to the next stage (``peer`` 1) or to the one before (-1), or comes from there, or both at once.

    ``sends`` and ``receives`` are micro-batches: activations go to the next stage, gradients come back from it.
    """

    peer: int
    sends: int | None = None
    receives: int | None = None


def schedule(stage: int, stages: int, micro_batches: int) -> Iterator[Pass | Transfer]:
    """The order of passes of a stage in one step (1F1B without interleaving, as published for PipeDream-Flush and
    Megatron-LM).

    Every stage first runs as many forward passes as there are stages behind it, then a forward and a backward pass in
    turn, then the backward passes that are left. Of ``micro_batches + stages - 1`` slots of a balanced pipeline
    ``stages - 1`` are empty.
    """
    first, last = stage == 0, stage == stages - 1
    ahead = min(stages - 1 - stage, micro_batches)
    for micro in range(ahead):
        if not first:
            yield Transfer(-1, receives=micro)
        yield Pass(micro, backward=False)
        yield Transfer(1, sends=micro)
    if ahead < micro_batches and not first:
        yield Transfer(-1, receives=ahead)
    for done in range(micro_batches - ahead):
        micro = ahead + done
        yield Pass(micro, backward=False)
        if not last:
            yield Transfer(1, sends=micro, receives=done)
        yield Pass(done, backward=True)
        if not first:
            yield Transfer(-1, sends=done, receives=micro + 1 if micro + 1 < micro_batches else None)
    for done in range(micro_batches - ahead, micro_batches):
        yield Transfer(1, receives=done)
        yield Pass(done, backward=True)
        if not first:
            yield Transfer(-1, sends=done)


@dataclass(slots=True)
class _MicroBatch:
    """A micro-batch at one stage: what came in, went out, and came back; nothing where there is no stage beyond."""

    entered: Tensor | None = None
    result: Tensor | None = None
    eager: Eager | None = None
    undo: Callable[[Tensor | None], Tensor | None] | None = None
    returned: Tensor | None = None
    handed_back: Tensor | None = None


class PipelineLoop(TrainingLoop):
    """The training loop of a rank that has one stage of the model."""

    def _micro_batches(self, program: list[Instruction], reductions: list[Communicate]) -> Tensor | None:
        count = self._training.micro_batches
        batches = [_MicroBatch() for _ in range(count)]
        for part in schedule(self._place.stage, self._place.layout.pipeline, count):
            if isinstance(part, Transfer):
                self._transfer(program, part, batches)
            elif part.backward:
                self._backward(program, batches[part.micro])
            else:
                last = part.micro == count - 1
                self._forward(program, batches[part.micro], part.micro, reductions if last and self._overlaps else None)
        return batches[-1].result if self._part.last else None

    def _forward(
        self, program: list[Instruction], batch: _MicroBatch, micro: int, reductions: list[Communicate] | None
    ) -> None:
        shape = self._whole
        tokens = Tensor((shape.batch, shape.sequence), DType.INT64)
        if self._part.first or self._part.last:
            program.append(NextBatch(tokens, self._loading_ns, self._training.has_loader))
        entered = tokens if batch.entered is None else batch.entered
        labels = Tensor((shape.tokens,), DType.INT64, base=tokens)
        batch.eager = self._recorder(reductions)
        batch.result, batch.undo = self._decoder(batch.eager, micro).stage(entered, labels)
        program += batch.eager.forward

    def _backward(self, program: list[Instruction], batch: _MicroBatch) -> None:
        assert batch.eager is not None and batch.undo is not None
        batch.handed_back = batch.undo(batch.returned)
        frame = python("torch/autograd/__init__.py(251): backward")
        program += [frame, Backward(tuple(batch.eager.backward)), Leave()]

    def _transfer(self, program: list[Instruction], part: Transfer, batches: list[_MicroBatch]) -> None:
        sent = received = None
        if part.sends is not None:
            batch = batches[part.sends]
            sent = batch.result if part.peer > 0 else batch.handed_back
        if part.receives is not None:
            received = Tensor(self._activation, self._training.implementation.dtype)
            program.append(Op("aten::empty", (), None, allocates=(received,)))
            if part.peer > 0:
                batches[part.receives].returned = received
            else:
                batches[part.receives].entered = received
        group = self._place.communicator("pipeline")
        assert group is not None
        program += group.transfer(group.member + part.peer, sent, received, batched=self._place.layout.batched)

    @property
    def _activation(self) -> tuple[int, ...]:
        """The shape of what one stage hands on to the next."""
        shape = self._whole
        return shape.batch, shape.sequence // self._place.layout.tensor, shape.hidden
