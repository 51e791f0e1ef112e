"""Tokens and images that a rank computes: by what the model reads first, an embedding of tokens or of pixels.

Nothing in a profile counts samples. But a language model looks each token up in a table of its vocabulary, and an image
model begins with a convolution over one or three channels: the shapes of these kernels have the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import (
    PROFILE,
    Facts,
    Launches,
    Shape,
    elements,
    launches,
    part_of,
    parts,
    shapes_of,
    steps,
)
from advisor_core.api.renderers import Cell, View
from advisors.fusion.nodes import kernel_nodes
from advisors.messages import message
from advisors.rank_tables import rank_table
from advisors.roofline.convolutions import FORWARD_TYPE
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

_NUMBERS: Final = frozenset({"INT64", "INT32"})
"""Dtypes of numbers of tokens."""
_REALS: Final = frozenset({"FLOAT", "FLOAT16", "BF16"})
_WORDS: Final = 2000
"""A table of fewer rows holds labels (ImageNet has 1,000 classes), positions or kinds of segments. Our choice; of what
reads bytes nothing is told then."""
IMAGE_CHANNELS: Final = (1, 3)
"""Channels of images: grey, or colours. Latent images have 4 and more."""
_COLUMNS: Final = (
    ("roofline.quantities.what", ""),
    ("roofline.quantities.part", ""),
    ("roofline.quantities.per_step", ""),
    ("roofline.quantities.range", ""),
    ("roofline.quantities.rate", "1/s"),
    ("roofline.quantities.told", ""),
)
_NAMES: Final = {
    "tokens": ("roofline.quantities.tokens", "roofline.quantities.tokens.told"),
    "images": ("roofline.quantities.images", "roofline.quantities.images.told"),
}
"""What a model is given: its name, and what tells it, as messages."""


@dataclass(frozen=True)
class Reads:
    """Kernels that read what a model is given: ``rows`` of the kernels of the steps, ``counts`` of each. ``shape``: of
    the table of tokens, or of the images."""

    rows: Ints
    counts: Ints
    shape: Shape


def looked_up(kernels: StepKernels, in_step: Ints) -> Reads | None:
    """The lookups of tokens in the largest table that is a weight; ``None`` where there are none. ``in_step``: the step
    of each kernel.

    A lookup reads a table [V, H] of real numbers and integers of any shape S, and gives S x H numbers. A table that an
    earlier kernel of the step has written is no weight: tokens that are sorted by expert, or the last of each sequence.
    The gradient of a lookup adds up and looks nothing up.
    """
    found: dict[int, tuple[Shape, int]] = {}
    for signature, texts in enumerate(_texts(kernels, "input_shapes", "input_dtypes", "output_shapes")):
        table = _lookup(*texts)
        if table is not None:
            found[signature] = table
    own = kernels.frame["signature"].to_numpy()
    while found:
        largest = max((table for table, _ in found.values()), key=lambda table: (table[0], table[1]))
        chosen = {signature: count for signature, (table, count) in found.items() if table == largest}
        rows = np.flatnonzero(np.isin(own, list(chosen)))
        if len(rows) and not _written(kernels, in_step, rows, largest):
            return Reads(rows, np.array([chosen[each] for each in own[rows].tolist()], dtype=np.int64), largest)
        found = {signature: each for signature, each in found.items() if each[0] != largest}
    return None


def _texts(kernels: StepKernels, *columns: str) -> list[tuple[str, ...]]:
    """The values of these columns, by signature."""
    frame = kernels.frame.iloc[kernels.firsts]
    return list(zip(*(frame[column].astype(str).tolist() for column in columns), strict=True))


def _lookup(input_shapes: str, input_dtypes: str, output_shapes: str) -> tuple[Shape, int] | None:
    """The table that a kernel looks numbers up in, and how many numbers; ``None`` for other kernels."""
    inputs, dtypes, outputs = shapes_of(input_shapes), input_dtypes.split(";"), shapes_of(output_shapes)
    if len(inputs) < 2 or len(inputs) != len(dtypes) or len(outputs) != 1:
        return None
    table = inputs[0]
    if len(table) != 2 or dtypes[0] not in _REALS or table[0] < _WORDS or table[1] <= 1:
        return None
    for shape, dtype in zip(inputs[1:], dtypes[1:], strict=True):
        count = elements(shape)
        # An index of the full width (gather) takes a number of its own for each column: it is of rank 2, too.
        if dtype in _NUMBERS and shape and outputs[0] in ((*shape, table[1]), (count, table[1])):
            return table, count
    return None


def _written(kernels: StepKernels, in_step: Ints, rows: Ints, table: Shape) -> bool:
    """Whether in a step a kernel before the first of the ``rows`` writes a tensor of this shape. ``in_step``: the step
    of each kernel."""
    outputs = kernels.frame["output_shapes"].iloc[kernels.firsts].tolist()
    writes = np.isin(kernels.frame["signature"], [at for at, text in enumerate(outputs) if table in shapes_of(text)])
    starts = kernels.frame["start_ns"].to_numpy()
    first = pd.Series(starts[rows]).groupby(in_step[rows]).min()
    reached = first.reindex(in_step).to_numpy()  # NaN in steps without a lookup
    return bool((writes & (starts < reached)).any())


def convolved(kernels: StepKernels, backward: Bools) -> Reads | None:
    """The convolutions over images with one or three channels; ``None`` where there are none. ``backward``:
    mask of the kernels of the backward pass."""
    frame = kernels.frame.iloc[kernels.firsts]
    plain: set[Shape] = set()
    for text in {*frame["input_shapes"], *frame["output_shapes"]}:
        plain.update(shape for shape in shapes_of(text) if len(shape) == 4 and shape[1] in IMAGE_CHANNELS)
    found: dict[int, Shape] = {}
    columns = ("operator_class", "type", "input_shapes", "input_formats")
    for signature, (class_, type_, shapes, formats) in enumerate(_texts(kernels, *columns)):
        is_forward = class_ == "convolution" and FORWARD_TYPE.match(type_)
        image = _image(shapes, formats, plain) if is_forward else None
        if image is not None:
            found[signature] = image
    own = kernels.frame["signature"].to_numpy()
    rows = np.flatnonzero(np.isin(own, list(found)) & ~backward)
    if not len(rows):
        return None
    images = [found[each] for each in own[rows].tolist()]
    largest = max(images, key=elements)
    return Reads(rows, np.array([image[0] for image in images], dtype=np.int64), largest)


def _image(input_shapes: str, input_formats: str, plain: set[Shape]) -> Shape | None:
    """Images [N, C, H, W] that a convolution reads; ``None`` where they have other channels. In the format of the cube
    channels are filled up to a block: how many there were, a tensor of the same images tells, from ``plain``."""
    shapes = shapes_of(input_shapes)
    if not shapes:
        return None
    image, layout = shapes[0], input_formats.split(";")[0]
    if layout in ("", "NCHW", "ND") and len(image) == 4 and len(shapes) > 1 and len(shapes[1]) == 4:
        return image if image[1] in IMAGE_CHANNELS and image[1] == shapes[1][1] else None
    if layout == "NC1HWC0" and len(image) == 5 and image[1] == 1:
        same = [(image[0], channels, *image[2:4]) for channels in IMAGE_CHANNELS]
        return next((each for each in same if each in plain), None)
    return None


def _once(found: Reads | None, kernels: StepKernels, launched: Launches | None) -> Reads | None:
    """The first kernels alone of operators that launched several such: on GPUs each of them has the same tensors."""
    if found is None or launched is None:
        return found
    operator = launched.frame["op_row"].to_numpy()[kernels.frame["work"].to_numpy()[found.rows]]
    first = ~pd.Series(operator).duplicated().to_numpy() | (operator < 0)
    return Reads(found.rows[first], found.counts[first], found.shape)


@drawing("roofline.quantities", needs=(step_kernels, kernel_nodes, steps, parts, PROFILE), wants=(launches,))
def quantities(facts: Facts) -> list[View]:
    """Tokens and images that this rank reads in a step, and per second."""
    kernels = facts[step_kernels]
    in_step = _step_of(facts)
    rows: list[list[Cell]] = []
    for what, found in _read(facts, in_step).items():
        named, told = _NAMES[what]
        by = message(told, shape=" x ".join(map(str, found.shape)))
        rows += [[message(named), *row, by] for row in _rows(facts, kernels, in_step, found)]
    if not rows:
        return []
    rank = facts[PROFILE].rank
    return [rank_table("quantities", message("roofline.view.quantities", rank=rank), rank, _COLUMNS, rows)]


def _step_of(facts: Facts) -> Ints:
    """The step of each kernel, from 0."""
    begins = facts[steps]["start_ns"].to_numpy()
    starts = facts[step_kernels].frame["start_ns"].to_numpy()
    return np.searchsorted(begins, starts, side="right").astype(np.int64) - 1


def _read(facts: Facts, in_step: Ints) -> dict[str, Reads]:
    """What the model is given, ``tokens`` and ``images``, where shapes tell."""
    kernels, launched = facts[step_kernels], facts.get(launches)
    found = {
        "tokens": _once(looked_up(kernels, in_step), kernels, launched),
        "images": _once(convolved(kernels, facts[kernel_nodes].backward), kernels, launched),
    }
    return {what: reads for what, reads in found.items() if reads is not None}


def read_in_steps(facts: Facts) -> dict[str, int]:
    """``tokens`` and ``images`` that a rank reads in all steps together, where shapes tell. Asks for `step_kernels`,
    `kernel_nodes`, `steps` and, wanted, `launches`."""
    return {what: int(reads.counts.sum()) for what, reads in _read(facts, _step_of(facts)).items()}


def _rows(facts: Facts, kernels: StepKernels, in_step: Ints, found: Reads) -> list[list[Cell]]:
    """A row for each part of the steps that reads: the part, per step, least and most of a step, per second of it."""
    frame = kernels.frame.iloc[found.rows]
    part = part_of(facts[parts], frame["start_ns"].to_numpy())
    spans = facts[parts]
    took = (spans["end_ns"] - spans["start_ns"]).groupby(spans["part"].astype(str)).sum()
    rows: list[list[Cell]] = []
    for name in pd.unique(part).tolist():
        own = pd.Series(found.counts[part == name]).groupby(in_step[found.rows][part == name]).sum()
        low, high, total = int(own.min()), int(own.max()), int(own.sum())
        varies = f"{low}–{high}" if low != high else None
        seconds = float(took.get(name, 0)) / 1e9
        rate = total / seconds if seconds else None
        rows.append([_part(name), total / kernels.steps, varies, rate])
    return rows


def _part(name: str) -> Text:
    return message(f"roofline.part.{name}")


DRAWINGS: tuple[Drawing, ...] = (quantities,)
