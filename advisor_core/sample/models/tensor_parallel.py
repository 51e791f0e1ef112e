"""Tensor parallelism with sequence parallelism: every rank has its share of the heads, channels and vocabulary.

Between those parts every rank has its share of the sequence: what it needs of the others it gathers before a part, and
sums and scatters the results after it (docs/sources.md#tensor-parallelism).
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels import Tensor, vector
from ..loops.communicator import Communicator, fetch
from ..program import AwaitCommunication, Instruction, Op
from .eager import FP32, Eager, Pullback
from .model import Decoder, Implementation, ModelShape, Part


class TensorParallelDecoder(Decoder):
    """One rank's share of a decoder; ``shape`` is that of the share."""

    def __init__(
        self, shape: ModelShape, implementation: Implementation, eager: Eager, part: Part, group: Communicator
    ) -> None:
        super().__init__(shape, implementation, eager, part)
        self._group = group
        eager.defers = True

    def _gathered(self, x: Tensor) -> tuple[Tensor, Pullback]:
        return self._gather(self._eager.forward, x), self._gathered_back

    def _scattered(self, x: Tensor) -> tuple[Tensor, Pullback]:
        return self._scatter(self._eager.forward, x), lambda dy: self._gather(self._eager.backward, dy)

    def _gathered_back(self, dy: Tensor) -> Tensor:
        """The gradients of weights can wait: they are computed while those of the input travel, as in Megatron-LM."""
        part = self._part_of(dy)
        request = self._group.collective("reduceScatter", part)
        self._eager.backward += [Op("aten::empty", (), None, allocates=(part,)), request]
        self._eager.catch_up()
        self._eager.backward.append(AwaitCommunication(request))
        return part

    def _part_of(self, whole: Tensor) -> Tensor:
        shape = self._shape
        return Tensor((shape.batch, shape.sequence // self._group.size, shape.hidden), whole.dtype)

    def _gather(self, program: list[Instruction], part: Tensor) -> Tensor:
        """The whole sequence from the parts of all ranks."""
        whole = Tensor((self._shape.batch, self._shape.sequence, self._shape.hidden), part.dtype)
        fetch(program, self._group.collective("allGather", part), whole)
        return whole

    def _scatter(self, program: list[Instruction], whole: Tensor) -> Tensor:
        """This rank's part of the sum of what all ranks have."""
        part = self._part_of(whole)
        fetch(program, self._group.collective("reduceScatter", part), part)
        return part

    def _cross_entropy(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
        """The loss where every rank has its share of the vocabulary: largest logit and sum come from all of them."""
        eager, rows = self._eager, logits.shape[0]
        largest = Tensor((rows,), FP32)
        eager.do("aten::amax", "aclnnAmax", vector("aclnnAmax", "ReduceMax", (logits,), (largest,)), scalars=2)
        fetch(eager.forward, self._group.collective("allReduce", largest), largest.view(rows))
        loss, back = super()._cross_entropy(logits, labels)
        fetch(eager.forward, self._group.collective("allReduce", Tensor((rows,), FP32)), Tensor((rows,), FP32))
        return loss, back
