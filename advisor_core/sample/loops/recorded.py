"""Training of public model code that was recorded, as a program for the main thread of one rank."""

from __future__ import annotations

from dataclasses import dataclass

from ..described import FROM_FILES, Natural, Positive
from ..models.recorded import Part, ProgramName, RecordedModel, record_of
from ..program import Backward, Enter, Instruction, Item, Leave, NextBatch
from .steps import program_of_steps
from .training import python


@dataclass(frozen=True, slots=True)
class RecordedTraining:
    """Training of a recorded program. ``written_out``: the parts of it that are no fused operators of torch_npu.
    ``reads_loss``: the loss is read back in every step, with ``loss_log_ns`` of Python behind it."""

    __pydantic_config__ = FROM_FILES
    program: ProgramName
    written_out: tuple[Part, ...] = ()
    steps: Positive = 3
    reads_loss: bool = True
    loss_log_ns: Natural = 120_000


class RecordedLoop:
    """Writes the program of the rank. Raises :class:`ValueError` for parts that the program does not have."""

    def __init__(self, training: RecordedTraining, loading_ns: int) -> None:
        self._training = training
        self._loading_ns = loading_ns
        self._model = RecordedModel(record_of(training.program, training.written_out))

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights, moments and buffers."""
        return sum(tensor.nbytes for tensor in self._model.kept)

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        frames = (python("train.py(231): <module>"), python("train.py(204): main"))
        return program_of_steps(frames, self._training.steps, lambda _: self._step())

    def _step(self) -> list[Instruction]:
        step = self._model.step()
        return [
            NextBatch(step.tokens, self._loading_ns),
            *step.forward(),
            python("torch/_tensor.py(492): backward"),
            Backward(tuple(step.backward())),
            Leave(),
            *([Item(step.loss, self._training.loss_log_ns)] if self._training.reads_loss else []),
            Enter("Optimizer.step#AdamW.step"),
            python("torch/optim/adamw.py(161): step"),
            *step.optimizer(),
            Leave(),
            Leave(),
        ]
