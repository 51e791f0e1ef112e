"""Fused operators of torch_npu in place of what a program writes out.

They have the names and the results of the operators of torch_npu and no implementation: programs are recorded on
``meta`` tensors, which have shapes and no numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from diffusers.models.activations import GEGLU
from torch import Tensor
from transformers.cache_utils import DynamicLayer
from transformers.generation.logits_process import TopPLogitsWarper

from tests.programs.recording.experts import experts
from tests.programs.recording.inference import keep_place, top_p
from tests.programs.recording.library import defined

Pair = tuple[Tensor, Tensor]
Triple = tuple[Tensor, Tensor, Tensor]


def _row(x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], 1), dtype=torch.float32)


_norm = defined(
    "npu_rms_norm(Tensor x, Tensor gamma, float epsilon) -> (Tensor, Tensor)",
    lambda x, g, e: (x.new_empty(x.shape), _row(x)),
)
_norm_back = defined(
    "npu_rms_norm_backward(Tensor dy, Tensor x, Tensor gamma, Tensor rstd) -> (Tensor, Tensor)",
    lambda dy, x, g, r: (x.new_empty(x.shape), g.new_empty(g.shape, dtype=torch.float32)),
)
_rotate = defined("npu_rotary_mul(Tensor x, Tensor r1, Tensor r2) -> Tensor", lambda x, a, b: x.new_empty(x.shape))
_rotate_back = defined(
    "npu_rotary_mul_backward(Tensor dy, Tensor x, Tensor r1, Tensor r2) -> Tensor",
    lambda dy, x, a, b: x.new_empty(x.shape),
)
_gate = defined("npu_swiglu(Tensor x, int dim) -> Tensor", lambda x, d: x.new_empty((*x.shape[:-1], x.shape[-1] // 2)))
_gate_back = defined(
    "npu_swiglu_backward(Tensor dy, Tensor x, int dim) -> Tensor", lambda dy, x, d: x.new_empty(x.shape)
)

_erf_gate = defined(
    "npu_geglu(Tensor x) -> (Tensor, Tensor)", lambda x: [x.new_empty((*x.shape[:-1], x.shape[-1] // 2)) for _ in "yg"]
)
_erf_gate_back = defined(
    "npu_geglu_grad(Tensor dy, Tensor x, Tensor gelu) -> Tensor", lambda dy, x, g: x.new_empty(x.shape)
)


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Triple:
    return q.new_empty(q.shape), *(q.new_empty((*q.shape[:3], 8), dtype=torch.float32) for _ in range(2))


_SCORE = "(Tensor q, Tensor k, Tensor v) -> (Tensor, Tensor, Tensor)"
_GRAD = "(Tensor q, Tensor k, Tensor v, Tensor dy, Tensor max, Tensor sum, Tensor y) -> (Tensor, Tensor, Tensor)"
_attend, _attend_back = (
    {causal: defined(f"{name}{'.causal' if causal else ''}{schema}", result) for causal in (False, True)}
    for name, schema, result in (
        ("npu_fusion_attention", _SCORE, _attended),
        (
            "npu_fusion_attention_grad",
            _GRAD,
            lambda q, k, v, *_: (q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)),
        ),
    )
)
"""By whether a query sees the keys up to its own only."""


class RmsNorm(torch.autograd.Function):
    """``npu_rms_norm``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """The normalised tensor."""
        result, rstd = _norm(x, weight, epsilon)
        ctx.save_for_backward(x, weight, rstd)
        return result

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradients of the input and the weight."""
        x, weight, rstd = ctx.saved_tensors
        dx, dweight = _norm_back(dy, x, weight, rstd)
        return dx, dweight.to(weight.dtype), None


class Rotary(torch.autograd.Function):
    """``npu_rotary_mul``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The rotated tensor."""
        ctx.save_for_backward(x, cos, sin)
        return _rotate(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of the input."""
        return _rotate_back(dy, *ctx.saved_tensors), None, None


class SwiGlu(torch.autograd.Function):
    """``npu_swiglu`` of two halves."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """The gated half."""
        ctx.save_for_backward(x)
        return _gate(x, -1)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        """The gradient of both halves."""
        return _gate_back(dy, *ctx.saved_tensors, -1)


class GeGlu(torch.autograd.Function):
    """``npu_geglu`` of two halves."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """The gated half."""
        result, gelu = _erf_gate(x)
        ctx.save_for_backward(x, gelu)
        return result

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        """The gradient of both halves."""
        return _erf_gate_back(dy, *ctx.saved_tensors)


class Attention(torch.autograd.Function):
    """``npu_fusion_attention``."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        """The result for each query."""
        result, most, total = _attend[causal](q, k, v)
        ctx.causal = causal
        ctx.save_for_backward(q, k, v, most, total, result)
        return result

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """The gradients of queries, keys and values."""
        q, k, v, *rest = ctx.saved_tensors
        return *_attend_back[ctx.causal](q, k, v, dy, *rest), None


def _attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **_: Any
) -> Tensor:
    return Attention.apply(q, k, v, is_causal)


def merge_gates(model: torch.nn.Module) -> None:
    """Make one product of the two whose results the SwiGLU of each layer reads."""
    for layer in model.model.layers:
        gate = layer.mlp.gate_proj
        layer.mlp.gate_up_proj = torch.nn.Linear(
            gate.in_features, 2 * gate.out_features, bias=False, dtype=gate.weight.dtype
        )
        del layer.mlp.gate_proj, layer.mlp.up_proj


@contextmanager
def fused(model_code: ModuleType | None, prefix: str, parts: frozenset[str]) -> Iterator[None]:
    """Replace these parts of the model code of transformers: ``norm``, ``rotary``, ``swiglu`` of a model with merged
    gates (`merge_gates`), ``experts``; of what generates tokens ``cache`` and ``sampling``; ``geglu`` of diffusers;
    and attention where the model calls that of PyTorch."""

    def rotate(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Pair:
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return Rotary.apply(q, cos, sin), Rotary.apply(k, cos, sin)

    def gate(self: Any, x: Tensor) -> Tensor:
        return self.down_proj(SwiGlu.apply(self.gate_up_proj(x)))

    replacements = {
        "norm": (f"{prefix}RMSNorm", "forward", lambda self, x: RmsNorm.apply(x, self.weight, self.variance_epsilon)),
        "rotary": (None, "apply_rotary_pos_emb", rotate),
        "swiglu": (f"{prefix}MLP", "forward", gate),
        "experts": (f"{prefix}Experts", "forward", experts),
    }
    of_libraries = {
        "cache": (DynamicLayer, "update", keep_place),
        "sampling": (TopPLogitsWarper, "__call__", top_p),
        "geglu": (GEGLU, "forward", lambda self, x, *_, **__: GeGlu.apply(self.proj(x))),
    }
    with ExitStack() as stack:
        for part in parts & replacements.keys():
            owner, name, replacement = replacements[part]
            stack.enter_context(patch.object(getattr(model_code, owner) if owner else model_code, name, replacement))
        for part in parts & of_libraries.keys():
            stack.enter_context(patch.object(*of_libraries[part]))
        stack.enter_context(patch.object(torch.nn.functional, "scaled_dot_product_attention", _attention))
        yield
