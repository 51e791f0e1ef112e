"""The gradients of a recorded step: computed, added up by data-parallel ranks, and taken by the optimizer."""

from __future__ import annotations

from ..kernels import Tensor
from ..models.recorded import StepOfModel
from ..program import AwaitCommunication, Backward, Communicate, Enter, Instruction, Leave
from .buckets import Filling
from .communicator import Communicator
from .training import python


def buckets_of(group: Communicator | None, nbytes: int, *, overlapped: bool) -> Buckets | None:
    """Buckets of a rank that shares its gradients with others; ``None`` for one alone."""
    return None if group is None else Buckets(group, nbytes, overlapped=overlapped)


def backward(step: StepOfModel, buckets: Buckets | None, into: StepOfModel | None = None) -> list[Instruction]:
    """The backward pass, which gives its gradients to ``buckets``; ``into`` as `StepOfModel.backward` has it."""
    passed = Backward(tuple(step.backward(into=into))) if buckets is None else buckets.backward(step, into)
    return [python("torch/_tensor.py(492): backward"), passed, Leave()]


def update(step: StepOfModel) -> list[Instruction]:
    """The step of the optimizer."""
    return [
        Enter(f"Optimizer.step#{step.optimizer_class}.step"),
        python(f"torch/optim/{step.optimizer_class.lower()}.py(161): step"),
        *step.optimizer(),
        Leave(),
        Leave(),
    ]


class Buckets:
    """Sees the gradients of one backward pass, and reduces them in buckets of ``nbytes``: as they become ready if
    ``overlapped``, else when they are asked for (`close`)."""

    def __init__(self, group: Communicator, nbytes: int, *, overlapped: bool) -> None:
        self._group = group
        self._filling = Filling[Tensor](nbytes)
        self._overlapped = overlapped
        self._full: list[tuple[Tensor, ...]] = []
        self.reductions: list[Communicate] = []

    def ready(self, gradient: Tensor) -> list[Instruction]:
        """Take a gradient; the reduction of its bucket if that is full and to be reduced now."""
        self._full += self._filling.add(gradient.dtype, gradient, gradient.nbytes)
        return self._reduce() if self._overlapped else []

    def backward(self, step: StepOfModel, into: StepOfModel | None = None) -> Backward:
        """The backward pass, with the reductions beside it; ``into`` as `StepOfModel.backward` has it."""
        nodes = step.backward(self.ready, into)
        return Backward((*nodes, *(self.close() if self._overlapped else ())))

    def behind(self) -> list[Instruction]:
        """What is reduced behind the backward pass; then the compute stream waits for all reductions."""
        rest = self.close()
        return [*rest, *map(AwaitCommunication, self.reductions)]

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
