"""A dense decoder-only transformer: its dimensions, its weights, and one micro-batch of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor

from ..described import FROM_FILES, Natural, Positive
from ..kernels import DType, Tensor, vector
from .eager import Eager, Pullback, call, transpose
from .layers import (
    RotaryTable,
    flash_attention,
    fused_cross_entropy,
    fused_rms_norm,
    fused_rotary,
    fused_swiglu,
    linear,
    residual,
    unfused_cross_entropy,
    unfused_rms_norm,
    unfused_rotary,
    unfused_swiglu,
)

SHARED_WEIGHT = "embedding"
"""The table of the embedding is also the weight of the output projection."""


def chosen(place: int, share: float) -> bool:
    """Whether a share of things that are counted from 0, spread evenly, has this one."""
    return floor((place + 1) * share) > floor(place * share)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The dimensions of the model and of one micro-batch.

    ``head_size`` are the channels of a head, 0 if all heads together have ``hidden``.
    With ``experts`` each of them has a feed-forward part of width ``ffn``, and every token goes to ``top_k`` of them,
    besides one of width ``shared_ffn`` that all tokens go to.
    """

    __pydantic_config__ = FROM_FILES
    layers: Positive = 3
    hidden: Positive = 2048
    heads: Positive = 16
    kv_heads: Positive = 4
    ffn: Positive = 5632
    vocab: Positive = 50257
    sequence: Positive = 2048
    batch: Positive = 4
    head_size: Natural = 0
    experts: Natural = 0
    top_k: Positive = 2
    shared_ffn: Natural = 0

    @property
    def head_dim(self) -> int:
        """Channels per attention head."""
        return self.head_size or self.hidden // self.heads

    @property
    def query_hidden(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_dim

    @property
    def kv_hidden(self) -> int:
        """Channels of all key (or value) heads."""
        return self.kv_heads * self.head_dim

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch."""
        return self.sequence * self.batch

    def divided(self, ranks: int) -> ModelShape:
        """The dimensions on one of several tensor-parallel ranks: its share of heads, feed-forward channels and
        vocabulary."""
        for whole in (self.heads, self.kv_heads, self.ffn, self.vocab, self.sequence):
            if whole % ranks:
                raise ValueError(f"{ranks} tensor-parallel ranks do not divide {whole}")
        return replace(
            self,
            heads=self.heads // ranks,
            kv_heads=self.kv_heads // ranks,
            ffn=self.ffn // ranks,
            vocab=self.vocab // ranks,
            head_size=self.head_dim,
        )


@dataclass(frozen=True, slots=True)
class Implementation:
    """Variants of the model code: each switch is one known cause of lost time and its cure. ``partly``: switches that
    are set otherwise in a part of the layers, each with its setting there and the share of the layers."""

    __pydantic_config__ = FROM_FILES
    fused_norm: bool = True
    fused_rotary: bool = True
    fused_swiglu: bool = True
    fused_loss: bool = True
    merged_qkv: bool = True
    compiled_concat: bool = False
    private_format: bool = False
    single_precision: bool = False
    partly: tuple[tuple[str, bool, float], ...] = ()

    def of(self, layer: int) -> Implementation:
        """The code of one layer."""
        if not self.partly:
            return self
        here = {name: setting for name, setting, share in self.partly if chosen(layer, share)}
        return replace(self, **here)  # type: ignore[arg-type]

    @property
    def dtype(self) -> DType:
        """The element type of weights and activations."""
        return DType.FP32 if self.single_precision else DType.BF16


FUSED = Implementation()
"""Code that has been tuned."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the model that a rank has: some of its layers, the embedding if ``first``, output and loss if
    ``last``."""

    layers: range
    first: bool = True
    last: bool = True

    @property
    def whole(self) -> bool:
        """Whether that is all of it, so that embedding and output can share their table."""
        return self.first and self.last

    @property
    def output_weight(self) -> str:
        """The weight of the output projection."""
        return SHARED_WEIGHT if self.first else "head"


class Parameters:
    """The weights by name, in the order in which the optimizer visits them. ``expert_ranks`` share the experts."""

    def __init__(
        self, shape: ModelShape, implementation: Implementation, part: Part | None = None, expert_ranks: int = 1
    ) -> None:
        self._dtype = implementation.dtype
        part = Part(range(shape.layers)) if part is None else part
        hidden, queries, kv = shape.hidden, shape.query_hidden, shape.kv_hidden
        self.weights: dict[str, Tensor] = {"norm": self._weight(hidden)} if part.last else {}
        for layer in part.layers:
            self.weights[f"{layer}.input_norm"] = self._weight(hidden)
            self.weights[f"{layer}.post_norm"] = self._weight(hidden)
        for layer in part.layers:
            merged = implementation.of(layer).merged_qkv
            projections = {"qkv": queries + 2 * kv} if merged else {"q": queries, "k": kv, "v": kv}
            for name, width in projections.items():
                self.weights[f"{layer}.{name}"] = self._weight(width, hidden)
            self.weights[f"{layer}.o"] = self._weight(hidden, queries)
            if shape.experts:
                experts = shape.experts // expert_ranks
                self.weights[f"{layer}.router"] = self._weight(shape.experts, hidden)
                self.weights[f"{layer}.shared_up"] = self._weight(2 * shape.shared_ffn, hidden)
                self.weights[f"{layer}.shared_down"] = self._weight(hidden, shape.shared_ffn)
                self.weights[f"{layer}.experts_up"] = self._weight(experts, hidden, 2 * shape.ffn)
                self.weights[f"{layer}.experts_down"] = self._weight(experts, shape.ffn, hidden)
                continue
            self.weights[f"{layer}.gate_up"] = self._weight(2 * shape.ffn, hidden)
            self.weights[f"{layer}.down"] = self._weight(hidden, shape.ffn)
        for table, has in ((part.output_weight, part.last), (SHARED_WEIGHT, part.first)):
            if has and table not in self.weights:
                self.weights[table] = self._weight(shape.vocab, hidden)

    def _weight(self, *shape: int) -> Tensor:
        return Tensor(shape, self._dtype, persistent=True)


class Decoder:
    """Runs one micro-batch of the model, or of a part of it, on a recorder."""

    feed_forward_module = "MLP"

    def __init__(
        self, shape: ModelShape, implementation: Implementation, eager: Eager, part: Part | None = None
    ) -> None:
        self._shape = shape
        self._part = Part(range(shape.layers)) if part is None else part
        self._implementation = implementation
        self._eager = eager
        self._table = RotaryTable.of(shape.sequence, shape.head_dim, implementation.dtype)

    def micro_batch(self, tokens: Tensor, labels: Tensor) -> tuple[Tensor, Callable[[], None]]:
        """The whole model: the loss, and what records the backward pass."""
        loss, backward = self.stage(tokens, labels)

        def whole() -> None:
            backward(None)

        return loss, whole

    def stage(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Callable[[Tensor | None], Tensor | None]]:
        """The part of the model: what it hands on, or the loss, and what records its backward pass.

        ``x`` are the tokens or what the stage before has handed on. The backward pass takes the gradient of the result,
        nothing for the loss, and gives that of ``x``, nothing for the tokens.
        """
        pullbacks: list[Pullback] = []
        self._eager.enter("nn.Module: CausalLM_0", "model.py(196): forward")
        tokens, embed_sequence = x, -1
        if self._part.first:
            embed_sequence = self._eager.next_sequence()
            x, entry_back = self._scattered(self._embed(tokens, embed_sequence))
        for layer in self._part.layers:
            x, back = self._block(x, layer)
            pullbacks.append(back)
        if self._part.last:
            normed, norm_back = self._rms_norm(x, "norm")
            gathered, exit_back = self._gathered(normed)
            logits, head_back = linear(self._eager, gathered, self._part.output_weight)
        self._eager.leave()
        result, shape = x, x.shape
        if self._part.last:
            self._eager.enter("loss.py(27): next_token_loss", "loss.py(27): next_token_loss")
            result, loss_back = self._cross_entropy(logits, labels)
            self._eager.leave()

        def backward(dy: Tensor | None) -> Tensor | None:
            dx = norm_back(exit_back(head_back(loss_back())).view(*shape)) if dy is None else dy
            for back in reversed(pullbacks):
                dx = back(dx)
            if not self._part.first:
                return dx
            self._embed_backward(entry_back(dx), tokens, embed_sequence)
            return None

        return result, backward

    def _gathered(self, x: Tensor) -> tuple[Tensor, Pullback]:
        """The input of a part of the model that is divided between ranks: all of ``x``."""
        return x, lambda dy: dy

    def _scattered(self, x: Tensor) -> tuple[Tensor, Pullback]:
        """The part of the result of a divided part of the model that this rank keeps."""
        return x, lambda dy: dy

    def _embed(self, tokens: Tensor, sequence: int) -> Tensor:
        shape, weight = self._shape, self._eager.weights[SHARED_WEIGHT]
        x = Tensor((shape.batch, shape.sequence, shape.hidden), self._implementation.dtype)
        lookup = vector("aclnnEmbedding", "GatherV2", (weight, tokens), (x,), read=x.nbytes)
        return self._eager.do("aten::embedding", "aclnnEmbedding", lookup, sequence=sequence, scalars=3)

    def _embed_backward(self, dx: Tensor, tokens: Tensor, sequence: int) -> None:
        table = self._eager.weights[SHARED_WEIGHT].like()
        acl = "aclnnEmbeddingDenseBackward"
        kernel = vector(acl, "EmbeddingDenseGrad", (dx, tokens), (table,))
        self._eager.undo("EmbeddingBackward0", sequence, call("aten::embedding_dense_backward", acl, kernel))
        self._eager.accumulate(SHARED_WEIGHT, table)

    def _block(self, x: Tensor, layer: int) -> tuple[Tensor, Pullback]:
        whole, self._implementation = self._implementation, self._implementation.of(layer)
        self._eager.enter(f"nn.Module: DecoderLayer_{layer}", "model.py(141): forward")
        self._eager.enter(f"nn.Module: RMSNorm_{2 * layer}", "model.py(38): forward")
        normed, norm_back = self._rms_norm(x, f"{layer}.input_norm")
        self._eager.leave()
        self._eager.enter(f"nn.Module: Attention_{layer}", "model.py(92): forward")
        normed, attended_back = self._gathered(normed)
        mixed, attention_back = self._attention_block(normed, layer)
        mixed, mixed_back = self._scattered(mixed)
        self._eager.leave()
        middle = residual(self._eager, x, mixed)
        self._eager.enter(f"nn.Module: RMSNorm_{2 * layer + 1}", "model.py(38): forward")
        normed, post_norm_back = self._rms_norm(middle, f"{layer}.post_norm")
        self._eager.leave()
        self._eager.enter(f"nn.Module: {self.feed_forward_module}_{layer}", "model.py(121): forward")
        normed, fed_back = self._gathered(normed)
        projected, feed_back = self._feed_forward(normed, layer)
        projected, projected_back = self._scattered(projected)
        self._eager.leave()
        out = residual(self._eager, middle, projected)
        self._eager.leave()
        self._implementation = whole

        def pullback(dy: Tensor) -> Tensor:
            inner = post_norm_back(fed_back(feed_back(projected_back(dy))))
            dmiddle = self._eager.merge_gradients(dy, inner)
            inner = norm_back(attended_back(attention_back(mixed_back(dmiddle))))
            return self._eager.merge_gradients(dmiddle, inner)

        return out, pullback

    def _feed_forward(self, x: Tensor, layer: int) -> tuple[Tensor, Pullback]:
        gate_up, gate_up_back = linear(self._eager, x, f"{layer}.gate_up")
        hidden, swiglu_back = self._swiglu(gate_up)
        projected, down_back = linear(self._eager, hidden, f"{layer}.down")
        return projected, lambda dy: gate_up_back(swiglu_back(down_back(dy)))

    def _attention_block(self, x: Tensor, layer: int) -> tuple[Tensor, Pullback]:
        shape = self._shape
        batch, length, head = shape.batch, shape.sequence, shape.head_dim
        if self._implementation.merged_qkv:
            parts, project_back = self._merged_projection(x, layer)
        else:
            parts, project_back = self._separate_projections(x, layer)
        heads = (shape.heads, shape.kv_heads, shape.kv_heads)
        q, k, v = (part.view(batch, length, n, head) for part, n in zip(parts, heads, strict=True))
        q, q_back = self._rotary(q)
        k, k_back = self._rotary(k)
        turned = not self._implementation.fused_rotary
        flat_v = v
        if turned:
            v = Tensor((batch, shape.kv_heads, length, head), flat_v.dtype)
            self._eager.do(
                "aten::contiguous",
                "aclnnInplaceCopy",
                vector("aclnnInplaceCopy", "Transpose", (flat_v,), (v,), strided=True),
            )
        mixed, mix_back = flash_attention(self._eager, q, k, v, heads=shape.heads, positions=length)
        if turned:
            straight = Tensor((batch, length, shape.heads, head), mixed.dtype)
            self._eager.do(
                "aten::contiguous",
                "aclnnInplaceCopy",
                vector("aclnnInplaceCopy", "Transpose", (mixed,), (straight,), strided=True),
            )
            mixed = straight
        out, out_back = linear(self._eager, mixed, f"{layer}.o")

        def pullback(dy: Tensor) -> Tensor:
            dmixed = out_back(dy).view(batch, length, shape.heads, head)
            sequence = self._eager.next_sequence()
            if turned:
                dmixed = self._eager.undo("TransposeBackward0", sequence, transpose(dmixed, Tensor(q.shape, q.dtype)))
            dq, dk, dv = mix_back(dmixed)
            if turned:
                dv = self._eager.undo("TransposeBackward0", sequence, transpose(dv, Tensor(flat_v.shape, flat_v.dtype)))
            return project_back((q_back(dq), k_back(dk), dv))

        return out, pullback

    def _separate_projections(
        self, x: Tensor, layer: int
    ) -> tuple[tuple[Tensor, ...], Callable[[tuple[Tensor, Tensor, Tensor]], Tensor]]:
        results = [linear(self._eager, x, f"{layer}.{name}") for name in ("q", "k", "v")]

        def pullback(gradients: tuple[Tensor, Tensor, Tensor]) -> Tensor:
            dq, dk, dv = (back(dy) for (_, back), dy in zip(results, gradients, strict=True))
            return self._eager.merge_gradients(self._eager.merge_gradients(dq, dk), dv)

        return tuple(result for result, _ in results), pullback

    def _merged_projection(
        self, x: Tensor, layer: int
    ) -> tuple[tuple[Tensor, ...], Callable[[tuple[Tensor, Tensor, Tensor]], Tensor]]:
        shape = self._shape
        merged, back = linear(self._eager, x, f"{layer}.qkv")
        parts = tuple(merged.resized(shape.tokens, n) for n in (shape.query_hidden, shape.kv_hidden, shape.kv_hidden))
        sequence = self._eager.next_sequence()
        compiled = self._implementation.compiled_concat
        self._eager.do(
            "aten::split_with_sizes",
            "SplitVD" if compiled else "aclnnSplitWithSize",
            vector("aclnnSplitWithSize", "SplitVD", (merged,), parts),
            sequence=sequence,
            compiled=compiled,
            scalars=2,
        )

        def pullback(gradients: tuple[Tensor, Tensor, Tensor]) -> Tensor:
            flat = tuple(dy.view(*part.shape) for dy, part in zip(gradients, parts, strict=True))
            joined = self._eager.undo(
                "SplitWithSizesBackward0",
                sequence,
                call(
                    "aten::cat",
                    "ConcatD" if compiled else "aclnnCat",
                    vector("aclnnCat", "ConcatD", flat, (merged.like(),), infix="ConcatD"),
                    compiled=compiled,
                ),
            )
            return back(joined)

        return parts, pullback

    def _rms_norm(self, x: Tensor, weight: str) -> tuple[Tensor, Pullback]:
        norm = fused_rms_norm if self._implementation.fused_norm else unfused_rms_norm
        return norm(self._eager, x, weight)

    def _rotary(self, x: Tensor) -> tuple[Tensor, Pullback]:
        if self._implementation.fused_rotary:
            return fused_rotary(self._eager, x, self._table)
        return unfused_rotary(self._eager, x, self._table, compiled=self._implementation.compiled_concat)

    def _swiglu(self, gate_up: Tensor) -> tuple[Tensor, Pullback]:
        swiglu = fused_swiglu if self._implementation.fused_swiglu else unfused_swiglu
        return swiglu(self._eager, gate_up)

    def _cross_entropy(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
        loss = fused_cross_entropy if self._implementation.fused_loss else unfused_cross_entropy
        return loss(self._eager, logits, labels)
