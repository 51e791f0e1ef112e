"""Public model code that was recorded, training or generating tokens, as a program for the main thread of one rank."""

from __future__ import annotations

from dataclasses import dataclass

from ..described import FROM_FILES, Natural, Positive
from ..models.recorded import DecodingName, Part, RecordedModel, TrainingName, record_of
from ..program import Backward, Enter, Instruction, Item, Leave, NextBatch, Python
from .steps import program_of_steps
from .training import python


@dataclass(frozen=True, slots=True)
class RecordedTraining:
    """Training of a recorded program. ``written_out``: the parts of it that are no fused operators of torch_npu.
    ``reads_loss``: the loss is read back in every step, with ``loss_log_ns`` of Python behind it."""

    __pydantic_config__ = FROM_FILES
    program: TrainingName
    written_out: tuple[Part, ...] = ()
    steps: Positive = 3
    reads_loss: bool = True
    loss_log_ns: Natural = 120_000


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

    def __init__(self, work: RecordedTraining | RecordedServing, loading_ns: int) -> None:
        self._work = work
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
            python("torch/_tensor.py(492): backward"),
            Backward(tuple(step.backward())),
            Leave(),
            *([Item(step.loss, training.loss_log_ns)] if training.reads_loss else []),
            Enter(f"Optimizer.step#{step.optimizer_class}.step"),
            python(f"torch/optim/{step.optimizer_class.lower()}.py(161): step"),
            *step.optimizer(),
            Leave(),
            Leave(),
        ]
