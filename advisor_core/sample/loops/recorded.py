"""Public model code that was recorded, training or generating tokens, as a program for the main thread of one rank."""

from __future__ import annotations

from dataclasses import dataclass

from ..described import FROM_FILES, Natural, Positive
from ..kernels import Tensor
from ..models.recorded import DecodingName, Part, RecordedModel, StepOfModel, TrainingName, record_of
from ..program import AwaitCommunication, Backward, Communicate, Enter, Instruction, Item, Leave, NextBatch, Python
from .buckets import Filling
from .communicator import Communicator, Place
from .steps import program_of_steps
from .training import python


@dataclass(frozen=True, slots=True)
class RecordedTraining:
    """Training of a recorded program. ``written_out``: the parts of it that are no fused operators of torch_npu.
    ``reads_loss``: the loss is read back in every step, with ``loss_log_ns`` of Python behind it.

    Of several ranks each has the whole model. Gradients are reduced in buckets of ``bucket_bytes``, 0 for one by one:
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


class RecordedLoop:
    """Writes the program of the rank. ``loading_ns``: what the data loader needs for a batch, or the scheduler for a
    step. Raises :class:`ValueError` for parts that the program does not have."""

    def __init__(self, work: RecordedTraining | RecordedServing, place: Place, loading_ns: int) -> None:
        self._work = work
        self._gradients = place.gradients
        self._loading_ns = loading_ns
        self._model = RecordedModel(record_of(work.program, work.written_out))

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights, moments and buffers, or the cache."""
        return sum(tensor.nbytes for tensor in self._model.kept)

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        work = self._work
        if isinstance(work, RecordedServing):
            serve = (python("serve.py(88): main"), python("transformers/generation/utils.py(2803): generate"))
            return program_of_steps(serve, work.steps, lambda _: self._decode(work))
        train = (python("train.py(231): <module>"), python("train.py(204): main"))
        return program_of_steps(train, work.steps, lambda _: self._train(work))

    def _decode(self, serving: RecordedServing) -> list[Instruction]:
        return [Python(self._loading_ns), *self._model.step().decode(), Python(serving.sample_ns)]

    def _train(self, training: RecordedTraining) -> list[Instruction]:
        step = self._model.step()
        return [
            NextBatch(step.batch, self._loading_ns),
            *step.forward(),
            *self._backward(training, step),
            *([Item(step.loss, training.loss_log_ns)] if training.reads_loss else []),
            Enter(f"Optimizer.step#{step.optimizer_class}.step"),
            python(f"torch/optim/{step.optimizer_class.lower()}.py(161): step"),
            *step.optimizer(),
            Leave(),
            Leave(),
        ]

    def _backward(self, training: RecordedTraining, step: StepOfModel) -> list[Instruction]:
        """The backward pass, and the reduction of its gradients, all of them before the optimizer goes on."""
        frame = python("torch/_tensor.py(492): backward")
        if self._gradients is None:
            return [frame, Backward(tuple(step.backward())), Leave()]
        buckets = _Buckets(self._gradients, training.bucket_bytes)
        nodes = step.backward(buckets.ready if training.overlapped_buckets else buckets.keep)
        rest = buckets.close()
        inside, behind = ((*nodes, *rest), ()) if training.overlapped_buckets else (nodes, rest)
        waits = map(AwaitCommunication, buckets.reductions)
        return [frame, Backward(tuple(inside)), Leave(), *behind, *waits]


class _Buckets:
    """Sees the gradients of one backward pass, and reduces them in buckets."""

    def __init__(self, group: Communicator, nbytes: int) -> None:
        self._group = group
        self._filling = Filling[Tensor](nbytes)
        self._full: list[tuple[Tensor, ...]] = []
        self.reductions: list[Communicate] = []

    def keep(self, gradient: Tensor) -> list[Instruction]:
        """Take a gradient, to be reduced at the end."""
        self._full += self._filling.add(gradient.dtype, gradient, gradient.nbytes)
        return []

    def ready(self, gradient: Tensor) -> list[Instruction]:
        """Take a gradient; the reduction of its bucket if that is now full."""
        self.keep(gradient)
        return self._reduce()

    def close(self) -> list[Instruction]:
        """The reductions of what is left."""
        self._full += self._filling.close()
        return self._reduce()

    def _reduce(self) -> list[Instruction]:
        """One for each full bucket."""
        full, self._full = self._full, []
        new = [self._group.collective("allReduce", _joined(bucket)) for bucket in full]
        self.reductions += new
        return [*new]


def _joined(gradients: tuple[Tensor, ...]) -> Tensor:
    """The buffer that they lie in."""
    dtype = gradients[0].dtype
    return Tensor((sum(one.nbytes for one in gradients) // dtype.size,), dtype, persistent=True)
