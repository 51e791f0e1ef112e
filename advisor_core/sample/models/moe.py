"""A mixture of experts in place of the feed-forward part: router, dispatch, experts, combination.

The kernels are those of the fused operators for it (docs/sources.md#fused-operators). Each expert is a gated
feed-forward network; the ranks of an expert-parallel group share them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp
from random import Random

from ..kernels import DType, Tensor, grouped_matmul, vector
from ..loops.communicator import Communicator, fetch
from ..program import AwaitCommunication, Instruction, Item, Op
from .eager import Eager, Pullback, call
from .layers import fused_swiglu, linear
from .model import Decoder, Implementation, ModelShape, Part

SPREAD = 0.04
"""Imbalance of a trained router with a balancing loss: standard deviation of the logarithm of a rank's share
(assumed: published runs keep the largest share within some per cent of the mean)."""
TILE = 16
"""Tokens go to a rank in multiples of this."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Number of tokens that each member of a group sends to each: one row per source. ``member``: whose view it is."""

    tokens: tuple[tuple[int, ...], ...]
    member: int

    @classmethod
    def of(cls, shares: Sequence[float], tokens: int, member: int, occasion: str) -> Routing:
        """Routes ``tokens`` of each source by the ``shares`` of the members, a little differently on each occasion."""
        random = Random(f"routing/{occasion}")
        rows = []
        for _ in shares:
            wanted = [share * exp(random.gauss(0.0, SPREAD)) for share in shares]
            row = [round(tokens * part / sum(wanted) / TILE) * TILE for part in wanted]
            row[row.index(max(row))] += tokens - sum(row)
            rows.append(tuple(row))
        return cls(tuple(rows), member)

    @property
    def sent(self) -> tuple[int, ...]:
        """Tokens that this member sends, by destination."""
        return self.tokens[self.member]

    @property
    def received(self) -> tuple[int, ...]:
        """Tokens that this member receives, by source."""
        return tuple(row[self.member] for row in self.tokens)


class _SharedExpert:
    """The expert that every token goes to, at home: its two halves have something to do while the tokens travel."""

    def __init__(self, eager: Eager, x: Tensor, layer: int) -> None:
        self._eager = eager
        self._x = x
        self._layer = layer

    def open(self) -> None:
        """The first half, during the dispatch."""
        self._gate_up, self._undo_gate_up = linear(self._eager, self._x, f"{self._layer}.shared_up")

    def close(self) -> None:
        """The second half, during the combination."""
        hidden, self._undo_swiglu = fused_swiglu(self._eager, self._gate_up)
        self.out, self._undo_down = linear(self._eager, hidden, f"{self._layer}.shared_down")

    def undo_close(self, dy: Tensor) -> None:
        """The gradient of the second half."""
        self._dgate_up = self._undo_swiglu(self._undo_down(dy))

    def undo_open(self) -> None:
        """The gradient of the first half."""
        self.gradient = self._undo_gate_up(self._dgate_up)


class MoeDecoder(Decoder):
    """A decoder whose feed-forward parts are mixtures of experts, spread over the ``group``.

    ``routing`` says for a layer where this micro-batch's tokens go.
    """

    feed_forward_module = "MoELayer"

    def __init__(
        self,
        shape: ModelShape,
        implementation: Implementation,
        eager: Eager,
        part: Part,
        group: Communicator,
        routing: Callable[[int], Routing],
    ) -> None:
        super().__init__(shape, implementation, eager, part)
        self._group = group
        self._routing = routing

    def _feed_forward(self, x: Tensor, layer: int) -> tuple[Tensor, Pullback]:
        eager, rows, hidden = self._eager, self._shape.tokens, self._shape.hidden
        routing = self._routing(layer)
        flat = x.view(rows, hidden)
        chosen, gate_back = self._gate(flat, layer)
        indices, weights = chosen
        permuted, permute_back = self._permute(flat, indices, rows * self._shape.top_k)
        self._count(indices)
        shared = _SharedExpert(eager, flat, layer)
        dispatched = self._exchange(eager.forward, permuted, routing.sent, sum(routing.received), shared.open)
        out, experts_back = self._experts(dispatched, layer)
        returned = self._exchange(eager.forward, out, routing.received, sum(routing.sent), shared.close)
        mixed, unpermute_back = self._unpermute(returned, indices, weights)
        total = eager.elementwise("aten::add", "aclnnAdd", "Add", mixed, shared.out, sequence=eager.next_sequence())

        def pullback(dy: Tensor) -> Tensor:
            dy = dy.view(rows, hidden)
            dreturned, dweights = unpermute_back(dy)
            undo_close = partial(shared.undo_close, dy)
            dout = self._exchange(eager.backward, dreturned, routing.sent, sum(routing.received), undo_close)
            ddispatched = experts_back(dout)
            back = (routing.received, sum(routing.sent), shared.undo_open)
            dpermuted = self._exchange(eager.backward, ddispatched, *back)
            dx = eager.merge_gradients(permute_back(dpermuted), gate_back(dweights))
            return eager.merge_gradients(dx, shared.gradient)

        return total, pullback

    def _gate(self, x: Tensor, layer: int) -> tuple[tuple[Tensor, Tensor], Pullback]:
        """The experts of every token and their weights."""
        eager, chosen = self._eager, (x.shape[0], self._shape.top_k)
        logits, router_back = linear(eager, x, f"{layer}.router")
        sequence = eager.next_sequence()
        weights, indices, rows = Tensor(chosen, x.dtype), Tensor(chosen, DType.INT32), Tensor(chosen, DType.INT32)
        acl = "aclnnMoeGatingTopKSoftmax"
        kernel = vector(acl, "MoeGatingTopKSoftmax", (logits,), (weights, indices, rows), infix="MoeGatingTopKSoftmax")
        eager.do("npu::npu_moe_gating_top_k_softmax", acl, kernel, sequence=sequence, scalars=2)

        def pullback(dweights: Tensor) -> Tensor:
            dlogits = Tensor(logits.shape, logits.dtype)
            kernel = vector("aclnnSoftmaxBackward", "SoftmaxGrad", (dweights, weights), (dlogits,), infix="SoftmaxGrad")
            back = call("aten::_softmax_backward_data", "aclnnSoftmaxBackward", kernel, scalars=2)
            return router_back(eager.undo("SoftmaxBackward0", sequence, back))

        return (indices, weights), pullback

    def _permute(self, x: Tensor, indices: Tensor, routed: int) -> tuple[Tensor, Pullback]:
        """The tokens in the order of their experts, once for each expert that they go to."""
        eager = self._eager
        out, order = Tensor((routed, x.shape[1]), x.dtype), Tensor((routed,), DType.INT32)
        sequence, acl = eager.next_sequence(), "aclnnMoeTokenPermute"
        kernel = vector(acl, "MoeTokenPermute", (x, indices), (out, order), infix="MoeTokenPermute")
        eager.do("npu::npu_moe_token_permute", acl, kernel, sequence=sequence, scalars=2)

        def pullback(dy: Tensor) -> Tensor:
            acl, dx = "aclnnMoeTokenPermuteGrad", Tensor(x.shape, x.dtype)
            kernel = vector(acl, "MoeTokenPermuteGrad", (dy, order), (dx,), infix="MoeTokenPermuteGrad")
            return eager.undo(
                "NpuMoeTokenPermuteBackward0", sequence, call("npu::npu_moe_token_permute_grad", acl, kernel)
            )

        return out, pullback

    def _count(self, indices: Tensor) -> None:
        """The host must know how many tokens go where before it can ask for the exchange: it waits for the numbers."""
        eager, shape = self._eager, self._shape
        counts = Tensor((shape.experts,), DType.INT64)
        kernel = vector("aclnnHistc", "Histc", (indices,), (counts,), read=indices.nbytes)
        eager.do("aten::histc", "aclnnHistc", kernel, scalars=3)
        everywhere = Tensor((self._group.size * shape.experts,), DType.INT64)
        fetch(eager.forward, self._group.collective("allGather", counts), everywhere)
        eager.forward.append(Item(everywhere))

    def _exchange(
        self,
        program: list[Instruction],
        data: Tensor,
        sent: Sequence[int],
        rows: int,
        meanwhile: Callable[[], None],
    ) -> Tensor:
        """Send rows of ``data`` to the members, ``sent`` of them to each, and compute ``meanwhile``; what comes in."""
        received = Tensor((rows, data.shape[1]), data.dtype)
        sends = tuple((member, count * data.tail_bytes) for member, count in enumerate(sent))
        request = self._group.collective("alltoallv", data, sends)
        program += [Op("aten::empty", (), None, allocates=(received,)), request]
        meanwhile()
        program.append(AwaitCommunication(request))
        return received

    def _experts(self, x: Tensor, layer: int) -> tuple[Tensor, Pullback]:
        """The feed-forward networks of this rank's experts."""
        eager = self._eager
        gate_up, up_back = self._grouped(x, f"{layer}.experts_up")
        hidden, swiglu_back = fused_swiglu(eager, gate_up)
        out, down_back = self._grouped(hidden, f"{layer}.experts_down")
        return out, lambda dy: up_back(swiglu_back(down_back(dy)))

    def _grouped(self, x: Tensor, weight: str) -> tuple[Tensor, Pullback]:
        """Each expert's rows of ``x`` times its own matrix."""
        eager, w = self._eager, self._eager.weights[weight]
        experts, features, width = w.shape
        out = Tensor((x.shape[0], width), x.dtype)
        sequence, acl = eager.next_sequence(), "aclnnGroupedMatmulV4"
        product = grouped_matmul(acl, x, w, out, x.shape[0], width, features)
        eager.do("npu::npu_grouped_matmul", acl, product, sequence=sequence, scalars=4)

        def pullback(dy: Tensor) -> Tensor:
            dx, dw = Tensor(x.shape, x.dtype), w.like()
            of_weight = grouped_matmul(acl, x, dy, dw, experts * features, width, -(-x.shape[0] // experts))
            of_input = grouped_matmul(acl, dy, w, dx, x.shape[0], features, width)
            gradient = eager.undo(
                "NpuGroupedMatmulBackward0",
                sequence,
                call("npu::npu_grouped_matmul", acl, of_weight, scalars=4),
                call("npu::npu_grouped_matmul", acl, of_input, scalars=4),
            )
            eager.accumulate(weight, dw)
            return gradient

        return out, pullback

    def _unpermute(
        self, x: Tensor, indices: Tensor, weights: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]]:
        """The tokens back in their own order, each the weighted sum of what its experts say."""
        eager = self._eager
        out = Tensor((self._shape.tokens, x.shape[1]), x.dtype)
        sequence, acl = eager.next_sequence(), "aclnnMoeTokenUnpermute"
        kernel = vector(acl, "MoeTokenUnpermute", (x, indices, weights), (out,), infix="MoeTokenUnpermute", share=0.4)
        eager.do("npu::npu_moe_token_unpermute", acl, kernel, sequence=sequence, scalars=2)

        def pullback(dy: Tensor) -> tuple[Tensor, Tensor]:
            acl, dx, dweights = "aclnnMoeTokenUnpermuteGrad", Tensor(x.shape, x.dtype), Tensor(weights.shape, x.dtype)
            inputs = (x, dy, indices, weights)
            kernel = vector(acl, "MoeTokenUnpermuteGrad", inputs, (dx, dweights), infix="MoeTokenUnpermuteGrad")
            back = call("npu::npu_moe_token_unpermute_grad", acl, kernel, scalars=1)
            eager.undo("NpuMoeTokenUnpermuteBackward0", sequence, back)
            return dx, dweights

        return out, pullback
