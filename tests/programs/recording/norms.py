"""GroupNorm and the SiLU behind it as the fused operator of torch_npu."""

from __future__ import annotations

from typing import Any

import torch
from diffusers.models.resnet import ResnetBlock2D
from torch import Tensor

from tests.programs.recording.library import defined

Triple = tuple[Tensor, Tensor, Tensor]


def _statistics(x: Tensor, groups: int) -> Tensor:
    return x.new_empty((x.shape[0], groups))


_norm = defined(
    "npu_group_norm_swish(Tensor x, int groups, Tensor weight, Tensor bias) -> (Tensor, Tensor, Tensor)",
    lambda x, n, w, b: (x.new_empty(x.shape), _statistics(x, n), _statistics(x, n)),
)
_norm_back = defined(
    "npu_group_norm_swish_grad(Tensor dy, Tensor mean, Tensor rstd, Tensor x, Tensor weight, Tensor bias)"
    " -> (Tensor, Tensor, Tensor)",
    lambda dy, m, r, x, w, b: (x.new_empty(x.shape), w.new_empty(w.shape), b.new_empty(b.shape)),
)


class GroupNormSwish(torch.autograd.Function):
    """``npu_group_norm_swish``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, groups: int, weight: Tensor, bias: Tensor) -> Tensor:
        """The SiLU of the normalised tensor."""
        result, mean, rstd = _norm(x, groups, weight, bias)
        ctx.save_for_backward(mean, rstd, x, weight, bias)
        return result

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        """The gradients of the input, of the weight and of the bias."""
        dx, dweight, dbias = _norm_back(dy, *ctx.saved_tensors)
        return dx, None, dweight, dbias


class _Fused(torch.nn.Module):
    """In place of a GroupNorm that a SiLU follows."""

    def __init__(self, norm: torch.nn.GroupNorm) -> None:
        super().__init__()
        self.groups, self.weight, self.bias = norm.num_groups, norm.weight, norm.bias

    def forward(self, x: Tensor) -> Tensor:
        """The SiLU of the normalised tensor."""
        return GroupNormSwish.apply(x, self.groups, self.weight, self.bias)


class _OfTime(torch.nn.Module):
    """What is left of the SiLU of a block: that of the embedded time, which has no pixels."""

    def forward(self, x: Tensor) -> Tensor:
        """The SiLU of a tensor of two axes."""
        return torch.nn.functional.silu(x) if x.dim() == 2 else x


def fuse_norms(model: Any) -> None:
    """Fuse each GroupNorm of a UNet with the SiLU that follows it."""
    for block in model.modules():
        if isinstance(block, ResnetBlock2D):
            block.norm1, block.norm2, block.nonlinearity = _Fused(block.norm1), _Fused(block.norm2), _OfTime()
    model.conv_norm_out, model.conv_act = _Fused(model.conv_norm_out), torch.nn.Identity()
