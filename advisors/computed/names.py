"""Names of computations, one for all forms in which programs write a formula and for the kernels that fuse it."""

from __future__ import annotations

from functools import cache

from advisors.fusion.computations import computations, matches

OPTIMIZER = "optimizer"
CLIPPING = "gradient_clipping"

_ONE_NAME = {
    "swiglu_of_two_products": "swiglu",
    "geglu_of_two_products": "geglu",
    "tanh_gelu": "gelu",
    "erf_gelu": "gelu",
    "cross_entropy_by_logsumexp": "cross_entropy",
    "cross_entropy_written_out": "cross_entropy",
    "add_layer_norm": "layer_norm",
    "optimizer_adam": OPTIMIZER,
    "optimizer_lion": OPTIMIZER,
    "optimizer_sgd": OPTIMIZER,
    "optimizer_sgd_weight_by_weight": OPTIMIZER,
}
"""Entries of ``computations.yaml`` that are other forms of one formula."""

_KERNELS_OF_THEIR_OWN = {
    "rms_norm": ("*rms_norm*",),
    "layer_norm": ("*layer_norm*",),
    "gelu": ("aten::gelu", "aten::gelu_backward"),
    "batch_norm": ("*batch_norm*", "BNTraining*", "BNInfer*", "BatchNorm*"),
    "group_norm": ("*group_norm*", "GroupNorm", "GroupNormGrad*"),
    "pooling": ("*pool2d*", "*pool3d*", "*Pool*"),
    "softmax": ("aten::_softmax", "aten::_softmax_backward_data", "Softmax", "SoftmaxV2", "SoftmaxGrad*"),
    OPTIMIZER: ("aten::_fused_adam*", "aten::_fused_sgd*", "aten::_fused_adagrad*"),
}
"""Operators that compute a formula with a kernel of their own and that ``computations.yaml`` does not look for, as
globs."""

_OPERATIONS = {
    "log_softmax": "cross_entropy",
    "log_softmax_grad": "cross_entropy",
    "nll_loss": "cross_entropy",
    "nll_loss_grad": "cross_entropy",
}
"""Operations of ``computations.yaml`` that serve one formula only, where they stand by themselves."""


def formula(pattern: str) -> str:
    """The formula of an entry of ``computations.yaml``.

    >>> formula("swiglu_of_two_products"), formula("rotary")
    ('swiglu', 'rotary')
    """
    return _ONE_NAME.get(pattern, pattern)


def fused_formula(operator: str) -> str:
    """The formula that a kernel of this type computes at once, forward or backward; '' for other types.

    >>> fused_formula("RmsNormGrad"), fused_formula("aten::native_layer_norm"), fused_formula("Add")
    ('rms_norm', 'layer_norm', '')
    """
    return next((name for name, globs in _fused() if matches(operator, globs)), "")


@cache
def _fused() -> tuple[tuple[str, tuple[str, ...]], ...]:
    globs: dict[str, list[str]] = {}
    for entry in computations():
        globs.setdefault(formula(entry.name), []).extend(
            f"{glob}{end}" for glob in entry.fused for end in ("", "Grad*")
        )
    for name, more in _KERNELS_OF_THEIR_OWN.items():
        globs.setdefault(name, []).extend(more)
    return tuple((name, tuple(dict.fromkeys(found))) for name, found in globs.items() if found)


_HALVES = ("BNTrainingReduce*",)
"""Kernels that do the first half of a formula, or the second, where another kernel does the rest."""


def is_half(operator: str) -> bool:
    """Whether a kernel of this type does not compute a formula by itself, so that it is not to be counted again.

    >>> is_half("BNTrainingReduce"), is_half("BNTrainingUpdate")
    (True, False)
    """
    return matches(operator, _HALVES)


def operation(name: str, operator_class: str) -> str:
    """What a kernel does that is part of no formula: the formula that only such kernels serve, else the operation of
    ``computations.yaml``, else its class in the ledger."""
    return _OPERATIONS.get(name, name) or operator_class


def serves_formula(name: str) -> bool:
    """Whether an operation serves one formula only."""
    return name in _OPERATIONS
