"""The experts of a layer by the fused operators of torch_npu: all rows in the order of their experts, and one grouped
product for each projection of all experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.programs.recording.library import defined

_permute = defined(
    "npu_moe_token_permute(Tensor tokens, Tensor indices) -> (Tensor, Tensor)",
    lambda x, i: (x.new_empty((i.numel(), x.shape[1])), i.new_empty((i.numel(),), dtype=torch.int32)),
)
_permute_back = defined(
    "npu_moe_token_permute_grad(Tensor dy, Tensor order, int tokens) -> Tensor",
    lambda dy, o, n: dy.new_empty((n, dy.shape[1])),
)
_unpermute = defined(
    "npu_moe_token_unpermute(Tensor rows, Tensor order, Tensor probs) -> Tensor",
    lambda x, o, p: x.new_empty((p.shape[0], x.shape[1])),
)
_unpermute_back = defined(
    "npu_moe_token_unpermute_grad(Tensor rows, Tensor dy, Tensor order, Tensor probs) -> (Tensor, Tensor)",
    lambda x, dy, o, p: (x.new_empty(x.shape), p.new_empty(p.shape)),
)
_multiply = defined(
    "npu_grouped_matmul(Tensor x, Tensor weight, Tensor group_list) -> Tensor",
    lambda x, w, g: x.new_empty((x.shape[0], w.shape[1] if w.shape[2] == x.shape[1] else w.shape[2])),
)
_multiply_rows = defined(
    "npu_grouped_matmul.rows(Tensor x, Tensor y, Tensor group_list) -> Tensor",
    lambda x, y, g: x.new_empty((g.shape[0], x.shape[1], y.shape[1])),
)
_gate = defined(
    "npu_swiglu.rows(Tensor x) -> Tensor",
    lambda x: x.new_empty((x.shape[0], x.shape[1] // 2)),
)
_gate_back = defined("npu_swiglu_backward.rows(Tensor dy, Tensor x) -> Tensor", lambda dy, x: x.new_empty(x.shape))


class Experts(torch.autograd.Function):
    """Experts of two projections with a SwiGLU between them."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, indices: Tensor, probs: Tensor, up: Tensor, down: Tensor) -> Tensor:
        """The sums of what the experts of each token say."""
        counts = torch.histc(indices, bins=up.shape[0], min=0, max=up.shape[0] - 1)
        rows, order = _permute(tokens, indices)
        gates = _multiply(rows, up, counts)
        hidden = _gate(gates)
        results = _multiply(hidden, down, counts)
        ctx.save_for_backward(rows, order, counts, gates, hidden, results, probs, up, down)
        return _unpermute(results, order, probs)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, Tensor, Tensor, Tensor]:
        """The gradients of the tokens, of their weights and of the two projections."""
        rows, order, counts, gates, hidden, results, probs, up, down = ctx.saved_tensors
        dresults, dprobs = _unpermute_back(results, dy, order, probs)
        dhidden = _multiply(dresults, down, counts)
        ddown = _multiply_rows(dresults, hidden, counts)
        dgates = _gate_back(dhidden, gates)
        drows = _multiply(dgates, up, counts)
        dup = _multiply_rows(dgates, rows, counts)
        return _permute_back(drows, order, dy.shape[0]), None, dprobs, dup, ddown


def experts(self: Any, tokens: Tensor, indices: Tensor, probs: Tensor) -> Tensor:
    """In place of the forward pass of the experts of a model of transformers."""
    return Experts.apply(tokens, indices, probs, self.gate_up_proj, self.down_proj)
