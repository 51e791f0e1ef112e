"""Serving steps of one rank, prefill or decode, as a program for its main thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated

from pydantic import Field

from ..described import FROM_FILES, Natural, Positive
from ..kernels import DType, Tensor, cached_attention, vector
from ..models.eager import Eager, Pullback, call
from ..models.layers import (
    RotaryTable,
    fused_rms_norm,
    fused_rotary,
    fused_swiglu,
    linear,
    residual,
    unfused_rms_norm,
    unfused_rotary,
    unfused_swiglu,
)
from ..models.model import FUSED, SHARED_WEIGHT, Implementation, ModelShape, Parameters
from ..program import Instruction, Item, Leave, NextBatch, Op, Replay
from .steps import program_of_steps
from .training import python


@dataclass(frozen=True, slots=True)
class Serving:
    """Serving: ``shape.batch`` requests, each with ``shape.sequence`` new tokens in a step (1 in decode)
    and ``cached`` tokens before them. ``waits_for_tokens``: a step ends when its tokens have been read back, and Python
    works on them for ``sample_ns``; otherwise the next step is scheduled meanwhile
    (docs/sources.md#asynchronous-scheduling). ``captured``: the layers are replayed as a graph, whose attention the
    host gives the new lengths at each step; what makes tokens of the last state is not
    (docs/sources.md#replay-of-a-graph).
    """

    __pydantic_config__ = FROM_FILES
    shape: Annotated[ModelShape, Field(alias="model")]
    cached: Natural
    steps: Positive = 2
    implementation: Implementation = FUSED
    waits_for_tokens: bool = False
    sample_ns: Natural = 60_000
    captured: bool = False


class Inference:
    """A model with a cache of keys and values, and its forward passes without gradients.

    ``capacity``: requests and positions that the cache has room for. It is used in blocks of ``block`` positions.
    """

    def __init__(
        self, shape: ModelShape, implementation: Implementation, capacity: tuple[int, int], block: int = 1
    ) -> None:
        self._shape = shape
        self._implementation = implementation
        self._block = block
        self._parameters = Parameters(shape, implementation)
        requests, positions = capacity
        cache = (requests, self._blocks(positions), shape.kv_hidden)
        self._caches = [(Tensor(cache, implementation.dtype, persistent=True),) * 2 for _ in range(shape.layers)]
        self._tables: dict[int, RotaryTable] = {}

    def _blocks(self, positions: int) -> int:
        return -(-positions // self._block) * self._block

    @property
    def resident_bytes(self) -> int:
        """Memory of weights and caches."""
        caches = sum(2 * keys.nbytes for keys, _ in self._caches)
        return caches + sum(weight.nbytes for weight in self._parameters.weights.values())

    def forward(self, tokens: Tensor, cached: int) -> tuple[list[Instruction], Tensor]:
        """One pass over ``[requests, new positions]``, and the tokens chosen by it. ``cached``: positions before."""
        batch, sequence = tokens.shape
        shape = replace(self._shape, batch=batch, sequence=sequence)
        eager = Eager(
            self._parameters.weights,
            SHARED_WEIGHT,
            count(-1, 0).__next__,
            lambda name, gradient: [],
            private_format=self._implementation.private_format,
        )
        eager.enter("nn.Module: CausalLM_0", "model.py(196): forward")
        x = Tensor((batch, sequence, shape.hidden), self._implementation.dtype)
        table = eager.weights[SHARED_WEIGHT]
        lookup = vector("aclnnEmbedding", "GatherV2", (table, tokens), (x,), read=x.nbytes)
        eager.do("aten::embedding", "aclnnEmbedding", lookup, scalars=3)
        for layer in range(shape.layers):
            x = self._layer(eager, shape, x, layer, cached)
        last = x
        if sequence > 1:
            last = Tensor((batch, 1, shape.hidden), x.dtype)
            choose = vector("aclnnInplaceCopy", "Slice", (x,), (last,), strided=True, read=last.nbytes)
            eager.do("aten::contiguous", "aclnnInplaceCopy", choose)
        normed, _ = self._norm(eager, last, "norm")
        logits, _ = linear(eager, normed, SHARED_WEIGHT)
        eager.leave()
        chosen = Tensor((batch,), DType.INT64)
        greedy = vector("aclnnArgMax", "ArgMaxV2", (logits,), (chosen,), infix="ArgMaxV2", share=0.5)
        return [*eager.forward, call("aten::argmax", "aclnnArgMax", greedy, scalars=2)], chosen

    def _layer(self, eager: Eager, shape: ModelShape, x: Tensor, layer: int, cached: int) -> Tensor:
        whole, self._implementation = self._implementation, self._implementation.of(layer)
        eager.enter(f"nn.Module: DecoderLayer_{layer}", "model.py(141): forward")
        normed, _ = self._norm(eager, x, f"{layer}.input_norm")
        mixed = self._attention(eager, shape, normed, layer, cached)
        middle = residual(eager, x, mixed)
        normed, _ = self._norm(eager, middle, f"{layer}.post_norm")
        gate_up, _ = linear(eager, normed, f"{layer}.gate_up")
        swiglu = fused_swiglu if self._implementation.fused_swiglu else unfused_swiglu
        hidden, _ = swiglu(eager, gate_up)
        projected, _ = linear(eager, hidden, f"{layer}.down")
        out = residual(eager, middle, projected)
        eager.leave()
        self._implementation = whole
        return out

    def _norm(self, eager: Eager, x: Tensor, weight: str) -> tuple[Tensor, Pullback]:
        norm = fused_rms_norm if self._implementation.fused_norm else unfused_rms_norm
        return norm(eager, x, weight)

    def _projections(self, eager: Eager, shape: ModelShape, x: Tensor, layer: int) -> list[Tensor]:
        if not self._implementation.merged_qkv:
            return [linear(eager, x, f"{layer}.{name}")[0] for name in ("q", "k", "v")]
        merged, _ = linear(eager, x, f"{layer}.qkv")
        parts = [merged.resized(shape.tokens, n) for n in (shape.hidden, shape.kv_hidden, shape.kv_hidden)]
        split = vector("aclnnSplitWithSize", "SplitVD", (merged,), tuple(parts))
        eager.do("aten::split_with_sizes", "aclnnSplitWithSize", split, scalars=2)
        return parts

    def _rotary(self, eager: Eager, x: Tensor) -> Tensor:
        _, sequence, _, head_dim = x.shape
        if sequence not in self._tables:
            self._tables[sequence] = RotaryTable.of(sequence, head_dim, self._implementation.dtype)
        table = self._tables[sequence]
        if self._implementation.fused_rotary:
            return fused_rotary(eager, x, table)[0]
        return unfused_rotary(eager, x, table, compiled=self._implementation.compiled_concat)[0]

    def _attention(self, eager: Eager, shape: ModelShape, x: Tensor, layer: int, cached: int) -> Tensor:
        parts = self._projections(eager, shape, x, layer)
        heads = (shape.heads, shape.kv_heads, shape.kv_heads)
        q, k, v = (
            part.view(shape.batch, shape.sequence, n, shape.head_dim) for part, n in zip(parts, heads, strict=True)
        )
        q, k = self._rotary(eager, q), self._rotary(eager, k)
        context = cached + shape.sequence
        used = (shape.batch, self._blocks(context), shape.kv_hidden)
        keys, values = (cache.view(*used) for cache in self._caches[layer])
        acl = "aclnnScatterPaKvCache"
        store = vector(acl, "ScatterPaKvCache", (k, v), (keys, values), read=2 * k.nbytes, write=2 * k.nbytes)
        eager.forward.append(call("npu::npu_scatter_pa_kv_cache", acl, store, scalars=2))
        products = 4 * shape.batch * shape.sequence * context * shape.hidden
        out = Tensor((shape.batch, shape.sequence, shape.heads, shape.head_dim), x.dtype)
        acl = "aclnnFusedInferAttentionScoreV2"
        read = 2 * shape.batch * context * shape.kv_hidden * x.dtype.size
        flops = products if cached else products // 2
        kernel = cached_attention(acl, (q, keys, values), (out,), flops, read)
        eager.do("npu::npu_fused_infer_attention_score", acl, kernel, scalars=6)
        mixed, _ = linear(eager, out, f"{layer}.o")
        return mixed


class ServingLoop:
    """Writes the program of one rank: a forward pass per step, without gradients."""

    def __init__(self, serving: Serving, scheduling_ns: int) -> None:
        self._serving = serving
        self._scheduling_ns = scheduling_ns
        shape = serving.shape
        capacity = (shape.batch, serving.cached + shape.sequence)
        self._model = Inference(shape, serving.implementation, capacity)

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights and caches."""
        return self._model.resident_bytes

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        return program_of_steps(
            [python("serve.py(88): main")],
            self._serving.steps,
            lambda _: [python("engine.py(301): step"), *self._step(), Leave()],
        )

    def _step(self) -> list[Instruction]:
        shape = self._serving.shape
        tokens = Tensor((shape.batch, shape.sequence), DType.INT64)
        forward, chosen = self._model.forward(tokens, self._serving.cached)
        read = [Item(chosen, self._serving.sample_ns)] if self._serving.waits_for_tokens else []
        if self._serving.captured:
            forward = _captured(forward)
        return [NextBatch(tokens, self._scheduling_ns), *forward, *read]


def _captured(forward: list[Instruction]) -> list[Instruction]:
    """The operators of the layers as one graph, the frames around them gone; the last two, which choose the tokens, as
    they are."""
    ops = [one for one in forward if isinstance(one, Op)]
    attention = tuple(op for op in ops if "attention" in op.name)
    return [Replay(tuple(ops[:-2]), attention), *ops[-2:]]
