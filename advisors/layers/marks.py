"""Marks of kernels by their types, classes and tensors, from which layers are told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisors.fusion.chains import Chains
from advisors.fusion.dataflow import Node
from advisors.fusion.nodes import KernelNodes
from advisors.fusion.passes import GRADIENT
from advisors.step_kernels import StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

SOFTMAX = re.compile(r"(?!.*(log|moe|gating)).*softmax.*", re.I | re.S)
ROUTING = re.compile(r"(?!ForeachTopK).*(topk|moe|grouped.?(matmul|gemm|mm)).*", re.I | re.S)
"""Kernels that choose experts or compute them, by their types (operator lists of Ascend/op-plugin; kernels of vLLM and
SGLang for GPUs)."""

CACHE_WRITE = re.compile(
    r".*(reshape_?and_?cache|scatter_?pa_?(kv_?)?cache|store_?(kv_?)?cache|kv_?cache_?update|set_?kv_?buffer).*",
    re.I | re.S,
)
"""Kernels, or operators that launch them, that write keys and values into a cache (operators of Ascend/op-plugin and
its transformer boost; vLLM and SGLang, as in recordings of both)."""

BATCHED = re.compile(r"batch|bmm", re.I)

NORMS = ("rms_norm", "layer_norm", "add_layer_norm")
"""Computations that are norms where no single kernel is one."""


@dataclass(frozen=True)
class Marks:
    """By row of `StepKernels`. ``product``: matrix products; ``convolution``; ``attention``: attentions, and softmaxes
    with the batched products beside them; ``rare``: attentions and softmaxes; ``heavy``: products, convolutions and
    fused attentions; ``norm``; ``routing``: it chooses experts or computes them; ``gradient``: its type names one;
    ``optimizer``: it updates weights, and does nothing else; ``cache``: the same of a cache of keys and values."""

    product: Bools
    convolution: Bools
    attention: Bools
    rare: Bools
    heavy: Bools
    norm: Bools
    routing: Bools
    gradient: Bools
    optimizer: Bools
    cache: Bools

    def part(self, rows: Ints) -> Marks:
        """The marks of these kernels."""
        return Marks(*(getattr(self, field.name)[rows] for field in fields(self)))


def marks_of(kernels: StepKernels, nodes: KernelNodes, chains: Chains) -> Marks:
    """The marks of the kernels of a rank."""
    type_code, types = pd.factorize(kernels.frame["type"])
    classes = kernels.frame["operator_class"].astype(str).to_numpy()

    def typed(pattern: re.Pattern[str]) -> Bools:
        fits = np.array([bool(pattern.fullmatch(name)) for name in types], dtype=np.bool_)
        return np.asarray(fits[type_code], dtype=np.bool_)

    product, convolution, fused = classes == "matmul", classes == "convolution", classes == "attention"
    softmax = typed(SOFTMAX)
    heavy = product | convolution | fused
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    batched = product & np.array([_is_batched(node) for node in nodes.nodes], dtype=np.bool_)[signature]
    attention = fused | _written_out(softmax, heavy, batched, nodes.backward)
    norm = (classes == "normalisation") & ~softmax | _in_chains(chains, NORMS, len(kernels.frame))
    return Marks(
        product=product,
        convolution=convolution,
        attention=attention,
        rare=fused | softmax,
        heavy=heavy,
        norm=norm & ~heavy & ~attention,
        routing=typed(ROUTING),
        gradient=typed(GRADIENT),
        optimizer=classes == "optimizer",
        cache=typed(CACHE_WRITE) | _in_chains(chains, ("kv_cache_write",), len(kernels.frame)),
    )


def _in_chains(chains: Chains, patterns: Sequence[str], rows: int) -> Bools:
    inside = np.zeros(rows, dtype=np.bool_)
    inside[chains.of(np.flatnonzero(chains.frame["pattern"].isin(patterns).to_numpy()))] = True
    return inside


def _written_out(softmax: Bools, heavy: Bools, batched: Bools, backward: Bools) -> Bools:
    """Softmaxes with batched products on both sides, and these products: one on each side in the forward pass, two in
    the backward pass."""
    places = np.flatnonzero(softmax | heavy)
    marked = np.zeros(len(softmax), dtype=np.bool_)
    for position in np.flatnonzero(softmax[places]).tolist():
        reach = 2 if backward[places[position]] else 1
        before = [place for place in range(max(position - reach, 0), position) if batched[places[place]]]
        behind = [
            place for place in range(position + 1, min(position + 1 + reach, len(places))) if batched[places[place]]
        ]
        if before and behind:
            marked[places[[*before, position, *behind]]] = True
    return marked


def _is_batched(node: Node) -> bool:
    """Whether it multiplies two tensors that both have more than two axes; where no shapes are recorded, by its
    type."""
    if len(node.reads) >= 2:
        return all(len(shape) > 2 for shape, _ in node.reads[:2])
    return bool(BATCHED.search(node.operator))
