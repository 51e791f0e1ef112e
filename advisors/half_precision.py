"""Estimated time of FP32 kernels with 16-bit operands, from their work and their bytes.

A matrix product takes the time of its arithmetic at the 16-bit peak of the chip, with the cube as busy as it is now, or
the time to move half the bytes, whichever is longer. Of other work on the cube the arithmetic is not known. A kernel on
the vector cores moves half the bytes at the bandwidth of the profile. The state of an optimizer stays in FP32.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import Peaks, Vocabulary, elements, matching, per_text, picked, shapes_of
from advisors.step_kernels import StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

_NARROW = ("FLOAT16", "BF16")
_QUANTISED = ("INT8", "UINT8", "INT4")
_HALF = 2
"""Bytes by which an FP32 number becomes shorter, and bytes of a 16-bit one."""


def reads_fp32(text: str) -> bool:
    """True where FLOAT is the widest floating-point type that is read, with none of 16 bits beside it, and no integers
    of 8 bits or fewer: beside quantised operands it is the type of their scales."""
    dtypes = text.split(";")
    return "FLOAT" in dtypes and not any(name in dtypes for name in _NARROW + _QUANTISED)


def reads_half(text: str) -> bool:
    """True where a floating-point type of 16 bits is read, and none of integers of 8 bits or fewer, as quantised
    operands are."""
    dtypes = text.split(";")
    return any(name in dtypes for name in _NARROW) and not any(name in dtypes for name in _QUANTISED)


def wide_kernels(own: StepKernels, words: Vocabulary) -> Bools:
    """Mask of the kernels that read FP32 and nothing narrower: by their dtypes, without any by their names."""
    by_name = untyped(own) & (named(own, words.fp32_kernels) | named(own, words.tf32_kernels))
    return by_name | typed_fp32(own)


def typed_fp32(own: StepKernels) -> Bools:
    """Mask of the kernels that read FP32 and nothing narrower, by their dtypes."""
    return per_text(own.frame["input_dtypes"], reads_fp32).to_numpy(dtype=np.bool_)


def untyped(own: StepKernels) -> Bools:
    """Mask of the kernels that were recorded without dtypes."""
    return np.asarray((own.frame["input_dtypes"] == "").to_numpy(), dtype=np.bool_)


def named(own: StepKernels, pattern: re.Pattern[str]) -> Bools:
    """Mask of the kernels that have a name of that pattern."""
    return np.asarray(matching(own.frame["name"], pattern), dtype=np.bool_)


def narrowed_ns(own: StepKernels, wide: Bools, cube: Bools, stays: Bools, assumed_saving: float) -> Floats:
    """ns that each kernel would take on 16 bits, where its arithmetic is not known. ``wide``: kernels that read FP32;
    ``cube``: kernels whose work the cube does; ``stays``: kernels that go on in FP32. Work of the cube takes less by
    ``assumed_saving`` (ratio); other work by what moving half the bytes saves, at most half of what the kernel takes
    beyond one that moves nothing."""
    frame = own.frame
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    wide = wide & ~stays & (frame["core"] != "AI_CPU").to_numpy()
    bandwidth = own.bandwidth if np.isfinite(own.bandwidth) else np.inf
    moving = np.minimum(_shed_bytes(own) / bandwidth * 1e9, np.maximum(took - own.least_ns, 0.0) / 2)
    saved = np.where(cube, took * assumed_saving, moving)
    return np.where(wide, took - saved, took)


def products_ns(own: StepKernels, products: pd.DataFrame, chip: Peaks, mac: Floats, reach: float) -> Floats:
    """ns that each kernel would take on 16 bits if it is a matrix product on FP32 whose shapes are known; NaN for
    others. ``products``: the fact ``matrix_products``; ``mac``: part of each kernel's duration in which the cube
    computes; ``reach``: how much of the 16-bit peak products get at most (ratio), as their loads halve only."""
    frame = own.frame
    flops = frame["signature"].map(products.set_index("signature")["flops"]).to_numpy(dtype=np.float64)
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        computing = flops / (chip.of(_NARROW[0]) * np.minimum(mac, reach)) * 1e9
    known = typed_fp32(own) & (mac > 0) & np.isfinite(computing)
    left = frame["bytes"].to_numpy(dtype=np.float64) - _shed_bytes(own)
    loading = left / own.bandwidth * 1e9 if np.isfinite(own.bandwidth) else np.zeros(len(frame))
    return np.where(known, np.minimum(np.maximum(computing, loading), took), np.nan)


def _shed_bytes(own: StepKernels) -> Floats:
    """Bytes less that each kernel would move with 16 bits in place of FP32."""
    sides = (picked(own.frame, own.firsts, (f"{side}_shapes", f"{side}_dtypes")) for side in ("input", "output"))
    sizes = [[_shed(*texts) for texts in side.itertuples(index=False, name=None)] for side in sides]
    by_signature = np.array(sizes, dtype=np.float64).sum(axis=0)
    return np.asarray(by_signature[own.frame["signature"].to_numpy()], dtype=np.float64)


def _shed(shapes: str, dtypes: str) -> int:
    parts, names = shapes_of(shapes), dtypes.split(";")
    if len(parts) != len(names):
        return 0
    return sum(elements(shape) * _HALF for shape, name in zip(parts, names, strict=True) if name == "FLOAT")
