"""Convolutions as numbers, with their gradients; and those whose window moves by its own length, as in patch
embeddings, which are matrix products in disguise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    Shape,
    elements,
    shapes_of,
)
from advisors.step_kernels import StepKernels

FORWARD_TYPE = re.compile(r"^(?!.*(backprop|depthwise|transpose|deconv)).*conv", re.I)
"""Types of convolutions of the forward pass with one group."""

_SPATIAL = {
    "NCHW": slice(2, None), "NCDHW": slice(2, None), "NHWC": slice(1, -1), "NDHWC": slice(1, -1),
    "NC1HWC0": slice(2, -1), "NDC1HWC0": slice(1, -1),
}  # fmt: skip
"""Where the lengths that the window slides along stand in the shape of an image."""


@dataclass(frozen=True)
class Convolution:
    """``positions``: of the window, over the batch; ``window``: its lengths where it does not overlap itself, () where
    it does or where that is not known; ``inputs``: values that one output sums over; ``outputs``: channels."""

    positions: int
    window: Shape
    inputs: int
    outputs: int

    @property
    def flops(self) -> int:
        return 2 * self.positions * self.inputs * self.outputs


@lru_cache(maxsize=1 << 16)
def convolution_of(
    input_shapes: str, input_formats: str, output_shapes: str, output_formats: str
) -> Convolution | None:
    """The convolution that a kernel computes; ``None`` where the shapes do not tell, and for grouped ones.

    >>> found = convolution_of("8,3,224,224;1024,3,14,14", "NCHW;NCHW", "8,1024,16,16", "NCHW")
    >>> found.window, found.positions, found.inputs, found.outputs
    ((14, 14), 2048, 588, 1024)
    """
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    formats, out_format = input_formats.split(";"), output_formats.split(";")[0]
    if len(inputs) < 2 or len(formats) < 2 or not outputs or formats[0] not in _SPATIAL or out_format not in _SPATIAL:
        return None
    image, weight, out = inputs[0], inputs[1], outputs[0]
    lengths, places = image[_SPATIAL[formats[0]]], out[_SPATIAL[out_format]]
    channels, results = _channels(image, lengths), _channels(out, places)
    if not (lengths and len(lengths) == len(places) and min(channels, results, *places) > 0):
        return None
    window, rest = divmod(elements(weight), channels * results)
    if not window or (rest and formats[1] == formats[0]):
        return None
    apart = tuple(length // place for length, place in zip(lengths, places, strict=True))
    fits = all(length == step * place for length, step, place in zip(lengths, apart, places, strict=True))
    alone = fits and prod(apart) > 1 and _has_window(weight, formats[1], apart, channels, results)
    return Convolution(image[0] * prod(places), apart if alone else (), channels * window, results)


_TO_INPUT = re.compile(r"backprop_?input|transpose|deconv", re.I)
_TO_WEIGHT = re.compile(r"backprop_?filter|backprop_?weight", re.I)
_OF_AUTOGRAD = re.compile(r"convolution_backward$", re.I)


def is_of_autograd(operator: str) -> bool:
    """Whether it is the operator of PyTorch that computes the gradients of a convolution, all of them."""
    return bool(_OF_AUTOGRAD.search(operator))


@lru_cache(maxsize=1 << 16)
def convolution_flops(
    operator: str, input_shapes: str, input_formats: str, output_shapes: str, output_formats: str
) -> int | None:
    """Operations of a convolution or of one of its gradients; ``None`` where the shapes do not tell.

    All three multiply each weight with every place of the window over the batch: 2 x images x places x elements of the
    weight, also with groups, where a weight has the inputs of its group only. Channels that a format fills up count,
    as the cube computes them. A format that is not named stands for channels first.

    >>> convolution_flops("Conv2D", "32,64,27,27;192,64,5,5", "NCHW;NCHW", "32,192,27,27", "NCHW")
    14332723200
    """
    size = convolution_size(operator, input_shapes, input_formats, output_shapes, output_formats)
    return None if size is None else 2 * prod(size)


@lru_cache(maxsize=1 << 16)
def convolution_size(
    operator: str, input_shapes: str, input_formats: str, output_shapes: str, output_formats: str
) -> tuple[int, int, int] | None:
    """A convolution, or one of its gradients, as the product that it is: places of the window over the batch, channels
    of the result, and values that one result sums over; the same for the gradients as for the forward pass. ``None``
    where the shapes do not tell.

    >>> convolution_size("aten::convolution", "32,64,27,27;192,64,5,5", "", "32,192,27,27", "")
    (23328, 192, 1600)
    """
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    forms = [*input_formats.split(";"), *("" for _ in inputs)]
    out_form = output_formats.split(";")[0]
    wide = [place for place, shape in enumerate(inputs) if len(shape) > 2]
    if len(wide) < 2 or (not outputs and not _OF_AUTOGRAD.search(operator)):
        return None
    if _OF_AUTOGRAD.search(operator) or (len(wide) > 2 and (_TO_INPUT.search(operator) or _TO_WEIGHT.search(operator))):
        # as autograd lists them: gradient of the result, input, weight
        result, weight = (inputs[wide[0]], forms[wide[0]]), inputs[wide[2]] if len(wide) > 2 else ()
    elif _TO_WEIGHT.search(operator):
        result, weight = (inputs[wide[-1]], forms[wide[-1]]), outputs[0]
    elif _TO_INPUT.search(operator):
        # the gradient to the input reads weight and gradient; a transposed convolution image and weight
        at = wide[-1] if re.search("backprop", operator, re.I) else wide[0]
        result, weight = (inputs[at], forms[at]), inputs[wide[0] if at != wide[0] else wide[1]]
    else:
        result, weight = (outputs[0], out_form), inputs[wide[1]]
    shape, form = result
    places = shape[_SPATIAL.get(form, slice(2, None))]
    positions = shape[0] * prod(places)
    if not places or not weight or not positions * elements(weight):
        return None
    channels, rest = divmod(elements(shape), positions)
    # A format that fills up the channels of the result and not those of the weight leaves no whole number.
    summed, uneven = divmod(elements(weight), channels) if channels and not rest else (0, 1)
    return (positions, 1, elements(weight)) if uneven else (positions, channels, summed)


def _channels(image: Shape, lengths: Shape) -> int:
    """Channels of an image, with those that its format fills up."""
    return elements(image) // max(1, image[0] * prod(lengths)) if image else 0


def _has_window(weight: Shape, form: str, window: Shape, channels: int, results: int) -> bool:
    """Whether the weights are those of such a window, as far as their format tells."""
    if form in _SPATIAL and not form.endswith("C0"):
        return weight[_SPATIAL[form]] == window
    # tiled (FRACTAL_Z): the outputs are filled up to whole blocks
    return channels * results * prod(window) <= elements(weight) < 2 * channels * max(results, 16) * prod(window)


def convolutions(own: StepKernels) -> pd.DataFrame:
    """One row per distinct convolution of the forward pass whose shapes tell what it computes: ``signature``,
    ``operator``, ``input_shapes``, ``dtype``, ``window``, ``positions``, ``inputs``, ``outputs``, ``flops``, ``bytes``,
    ``kernels`` and ``total_ns`` per step, ``mean_ns``."""
    frame = own.frame
    mine = frame[(frame["operator_class"] == "convolution") & frame["type"].astype(str).str.match(FORWARD_TYPE)]
    rows = []
    for signature, rest in mine.groupby("signature", sort=True):  # distinct convolutions
        first = rest.iloc[0]
        names = ("input_shapes", "input_formats", "output_shapes", "output_formats")
        found = convolution_of(*(str(first[name]) for name in names))
        if found is None:
            continue
        rows.append(
            {
                "signature": signature,
                "operator": str(first["type"]),
                "input_shapes": str(first["input_shapes"]),
                "dtype": str(first["input_dtypes"]).split(";")[0],
                "window": "x".join(map(str, found.window)),
                "positions": found.positions,
                "inputs": found.inputs,
                "outputs": found.outputs,
                "flops": float(found.flops),
                "bytes": float(first["bytes"]) if first["bytes"] > 0 else np.nan,
                "kernels": len(rest) / own.steps,
                "total_ns": float(rest["duration_ns"].sum()) / own.steps,
                "mean_ns": float(rest["duration_ns"].mean()),
            }
        )
    return pd.DataFrame(rows)
