"""Eager execution with autograd: forward operators as they are called, and what undoes them.

Each layer returns its result together with its pullback, a function from the gradient of the result
to the gradient of the input, which records the autograd nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..kernels import DType, Kernel, Tensor, vector
from ..program import Enter, Instruction, Launch, Leave, Node, Op

Pullback = Callable[[Tensor], Tensor]
FP32 = DType.FP32


def call(name: str, acl: str, *kernels: Kernel, sequence: int = -1, compiled: bool = False, scalars: int = 0) -> Op:
    """An operator whose result is that of its last kernel."""
    produced = {id(t) for kernel in kernels for t in kernel.outputs}
    inputs = tuple({id(t): t for k in kernels for t in k.inputs if id(t) not in produced}.values())
    fresh = tuple(t for k in kernels for t in k.outputs if t.base is None and not t.persistent)
    return Op(name, inputs, Launch(acl, kernels, compiled), fresh, sequence, scalars)


class Eager:
    """Records the program of one micro-batch.

    ``gradient_ready`` sees every finished weight gradient, in the order of the backward pass; the
    gradient of ``shared``, a weight that is used twice, is finished with its second part. With ``private_format`` each
    product converts its operands first. With ``defers`` the gradients of weights wait until :meth:`catch_up`.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        shared: str,
        next_sequence: Callable[[], int],
        gradient_ready: Callable[[str, Tensor], list[Instruction]],
        *,
        private_format: bool = False,
    ) -> None:
        self.private_format = private_format
        self.defers = False
        self._deferred: list[Callable[[], None]] = []
        self.weights = weights
        self.forward: list[Instruction] = []
        self.backward: list[Instruction] = []
        self.next_sequence = next_sequence
        self._gradient_ready = gradient_ready
        self._shared = shared
        self._shared_part: Tensor | None = None

    def enter(self, name: str, frame: str) -> None:
        """Enter the forward function of a module, or another Python function."""
        self.forward.append(Enter(name, frame))

    def leave(self) -> None:
        """Leave the function entered last."""
        self.forward.append(Leave())

    def do(
        self, name: str, acl: str, *kernels: Kernel, sequence: int = -1, compiled: bool = False, scalars: int = 0
    ) -> Tensor:
        """Call a forward operator; returns the first output of its last kernel."""
        self.forward.append(call(name, acl, *kernels, sequence=sequence, compiled=compiled, scalars=scalars))
        return kernels[-1].outputs[0]

    def undo(self, node: str, sequence: int, *ops: Op) -> Tensor:
        """Record a node of the backward pass; returns the first output of its last kernel."""
        self.backward.append(Node(node, sequence, ops))
        launch = ops[-1].launch
        assert launch is not None
        return launch.kernels[-1].outputs[0]

    def accumulate(self, name: str, gradient: Tensor) -> None:
        """Hand on a weight gradient; that of the shared weight is complete with its second part."""
        if name == self._shared:
            if self._shared_part is None:
                self._shared_part = gradient
                return
            gradient = self.merge_gradients(self._shared_part, gradient)
        self.backward.extend(self._gradient_ready(name, gradient))

    def later(self, weight_gradient: Callable[[], None]) -> None:
        """Keep what records a weight gradient until :meth:`catch_up`."""
        self._deferred.append(weight_gradient)

    def catch_up(self) -> None:
        """Record what has been deferred."""
        for weight_gradient in self._deferred:
            weight_gradient()
        self._deferred.clear()

    def merge_gradients(self, a: Tensor, b: Tensor) -> Tensor:
        """Sum two gradients that meet in one tensor, as the autograd engine does between nodes."""
        out = Tensor(a.shape, a.dtype)
        op = call("aten::add", "aclnnAdd", vector("aclnnAdd", "Add", (a, b.view(*a.shape)), (out,)))
        self.backward.append(op)
        return out

    def elementwise(
        self,
        name: str,
        acl: str,
        type_: str,
        *inputs: Tensor,
        dtype: DType | None = None,
        sequence: int = -1,
        scalars: int = 0,
        share: float = 0.15,
    ) -> Tensor:
        """One forward operator that maps its first input element by element."""
        out = Tensor(inputs[0].shape, dtype or inputs[0].dtype)
        return self.do(name, acl, vector(acl, type_, inputs, (out,), share=share), sequence=sequence, scalars=scalars)


def binary(type_: str, a: Tensor, b: Tensor, out: Tensor) -> Op:
    """An operator on two tensors."""
    acl = f"aclnn{type_}"
    return call(f"aten::{type_.lower()}", acl, vector(acl, type_, (a, b), (out,)))


def divide(x: Tensor) -> Op:
    """``x`` divided by a number."""
    return call("aten::div", "aclnnDivs", vector("aclnnDivs", "RealDiv", (x,), (Tensor(x.shape, x.dtype),)), scalars=1)


def cast(x: Tensor, dtype: DType) -> Op:
    """``x`` in another element type."""
    return call(
        "aten::_to_copy", "aclnnInplaceCopy", vector("aclnnInplaceCopy", "Cast", (x,), (Tensor(x.shape, dtype),))
    )


def reduce(x: Tensor, out: Tensor) -> Op:
    """A sum over some axes."""
    kernel = vector("aclnnReduceSum", "ReduceSum", (x,), (out,), core="MIX_AIV", infix="ReduceSumOpAiCore")
    return call("aten::sum", "aclnnReduceSum", kernel, scalars=2)


def transpose(x: Tensor, out: Tensor) -> Op:
    """A contiguous copy of a transposed view."""
    return call(
        "aten::contiguous", "aclnnInplaceCopy", vector("aclnnInplaceCopy", "Transpose", (x,), (out,), strided=True)
    )


def slice_backward(part: Tensor, whole: tuple[int, ...]) -> tuple[Op, Op]:
    """The gradient of half a tensor: zeros of the whole shape with the half copied in."""
    zeros = Tensor(whole, part.dtype)
    filled = zeros.view(*whole)
    half = zeros.nbytes // 2
    clear = vector("aclnnInplaceZero", "ZerosLike", (zeros,), (zeros,), read=0)
    copy = vector("aclnnInplaceCopy", "TensorMove", (part, zeros), (filled,), strided=True, read=half, write=half)
    return call("aten::zeros", "aclnnInplaceZero", clear), call("aten::copy_", "aclnnInplaceCopy", copy)
