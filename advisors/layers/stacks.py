"""Stacks of layers among the kernels of a step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.layers.repeats import Repeat, best_repeat

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

LEAST_HEAVY = 2
"""Matrix products, convolutions and attentions of a layer, at least: the update of a weight repeats too."""

LEAST_KERNELS = 4
"""Kernels of a layer, at least; a layer of a decode with every fused kernel has eight."""

MOST_OF_IT = 0.5
"""Repetitions inside a unit that have this share of its products are its layers: the unit is a pass, not a layer. Units
that have less than this share in common may be a stretch that only looks alike."""

ALIKE = 0.9
"""Units that have this share in common have the same borders read forwards and backwards. Without attention they need
as much, and shapes, to be layers: stages of a convolutional network look alike by their types."""


@dataclass(frozen=True)
class StepSequence:
    """The kernels of a step, in order. ``signature``: type, shapes and dtypes; ``type``: the type alone; ``heavy``:
    products, convolutions and attentions; ``attention``: attentions and softmaxes; ``convolution``: convolutions;
    ``written``: the shapes that they write; ``shaped``: shapes are recorded."""

    signature: Ints
    type: Ints
    heavy: Bools
    attention: Bools
    convolution: Bools
    written: Ints
    shaped: bool

    @cached_property
    def goes_on(self) -> Bools:
        """Heavy kernels that are like the one before them: a convolution on a GPU can be several kernels."""
        found: Bools = np.append(False, (self.signature[1:] == self.signature[:-1]) & self.heavy[:-1])
        return found

    def mirrored(self) -> StepSequence:
        """The same kernels in reversed order."""
        turned = {one.name: getattr(self, one.name)[::-1] for one in fields(self) if one.name != "shaped"}
        return StepSequence(**turned, shaped=self.shaped)

    def best_repeat(self, start: int, end: int, *, mirrored: bool = False) -> Repeat | None:
        """See `best_repeat`. Without attention only what can be layers: what is more alike may be a stretch of small
        kernels, or several stages of a network."""
        only = None if self.attention[start:end].any() else self._can_be_layers
        return best_repeat(self.signature, self.type, start, end, self.attention, mirrored=mirrored, only=only)

    def _can_be_layers(self, repeat: Repeat) -> bool:
        too_small = (repeat.ends - repeat.starts).min() < LEAST_KERNELS or repeat.counts(self.heavy).min() < LEAST_HEAVY
        return not too_small and repeat.share >= ALIKE


@dataclass(frozen=True)
class Stack:
    """Layers that follow each other without a kernel between them: kernels ``starts[i]`` to ``ends[i]`` are layer i.
    ``share``: of the kernels, those that all have in common. ``apart``: another stack may follow without a kernel
    between them, and is a stack of its own."""

    starts: Ints
    ends: Ints
    share: float
    apart: bool = False

    @property
    def kernels(self) -> int:
        """Their number, with those between its layers."""
        return int(self.ends[-1] - self.starts[0])

    def placed(self, start: int) -> Stack:
        """The same stack so many kernels later."""
        return Stack(self.starts + start, self.ends + start, self.share, self.apart)

    def mirrored(self, length: int) -> Stack:
        """The same stack in the reversed sequence of so many kernels."""
        return Stack(length - self.ends[::-1], length - self.starts[::-1], self.share, self.apart)


def stacks(kernels: StepSequence, backward: int) -> list[Stack]:
    """The stacks of layers of a step, in order. ``backward``: where the backward pass begins; a stretch that only looks
    alike on both sides of it is no layer."""
    return _Search(kernels).between(0, len(kernels.signature), backward)


class _Search:
    """Looks for stacks, in equal stretches once."""

    def __init__(self, kernels: StepSequence) -> None:
        self._kernels = kernels
        self._cache: dict[tuple[bytes, int], list[Stack]] = {}

    def between(self, start: int, end: int, border: int) -> list[Stack]:
        """The stacks of ``[start, end)``. ``border``: where the backward pass begins."""
        key = self._kernels.signature[start:end].tobytes(), min(max(border - start, 0), end - start)
        if key not in self._cache:
            self._cache[key] = [stack.placed(-start) for stack in self._find(start, end, border)]
        return [stack.placed(start) for stack in self._cache[key]]

    def _find(self, start: int, end: int, border: int) -> list[Stack]:
        kernels = self._kernels
        best = kernels.best_repeat(start, end)
        if start < border < end and (best is None or best.share < MOST_OF_IT):
            return [*self.between(start, border, border), *self.between(border, end, border)]
        if best is None:
            return []
        if start >= border and best.share < ALIKE:
            # A backward layer ends with what every layer begins with; what differs between them comes first.
            best = kernels.best_repeat(start, end, mirrored=True) or best
        before, behind = self.between(start, best.start, border), self.between(best.end, end, border)
        return [*before, *self._inside(best, border), *behind]

    def _inside(self, repeat: Repeat, border: int) -> list[Stack]:
        """The stack of the repetitions, or those inside each of them."""
        kernels = self._kernels
        heavy = repeat.counts(kernels.heavy)
        with_attention = repeat.every(kernels.attention)
        too_small = heavy.min() < LEAST_HEAVY or (repeat.ends - repeat.starts).min() < LEAST_KERNELS
        if too_small or not (with_attention or (kernels.shaped and repeat.share >= ALIKE)):
            return []
        if _is_pass(kernels, int(repeat.starts[0]), int(repeat.ends[0])):
            cuts = [repeat.start, *(repeat.starts + self._phase(repeat, border)).tolist(), repeat.end]
            return [stack for begin, end in pairwise(cuts) for stack in self.between(begin, end, border)]
        if with_attention or heavy.sum() < kernels.heavy.sum():
            return self._with_gaps(repeat, border)
        return []  # what is all of the step and has no attention is the whole network, run several times

    def _with_gaps(self, repeat: Repeat, border: int) -> list[Stack]:
        """The layers, and the stacks between them: of a pipeline, the other pass of the micro-batches."""
        breaks = np.flatnonzero(repeat.starts[1:] > repeat.ends[:-1]) + 1
        parts: list[Stack] = []
        for starts, ends in zip(np.split(repeat.starts, breaks), np.split(repeat.ends, breaks), strict=True):
            if parts:
                parts += self.between(int(parts[-1].ends[-1]), int(starts[0]), border)
            parts.append(Stack(starts, ends, repeat.share))
        return parts

    def _phase(self, repeat: Repeat, border: int) -> int:
        """The place to cut a sequence of equal passes: where most layers stay whole. Micro-batches of a pipeline run
        one forward and one backward pass in turns, and have no first kernel."""
        length = int(repeat.starts[1] - repeat.starts[0])
        if len(set(np.diff(repeat.starts).tolist()) | {length}) > 1 or repeat.end < repeat.starts[1] + length:
            return 0

        def inside(phase: int) -> int:
            cut = repeat.start + phase
            return sum(int((stack.ends - stack.starts).sum()) for stack in self.between(cut, cut + length, border))

        edges = [
            (int(stack.starts[0]), int(stack.ends[-1]))
            for stack in self.between(repeat.start, repeat.start + length, border)
        ]
        phases = dict.fromkeys(
            [0, *(edge - repeat.start for pair in edges for edge in pair if edge < repeat.start + length)]
        )
        return max(phases, key=inside)


def _is_pass(kernels: StepSequence, start: int, end: int) -> bool:
    attentions = int(kernels.attention[start:end].sum())
    if attentions == 1:
        return False
    inner = kernels.best_repeat(start, end)
    if inner is None or (attentions and not inner.every(kernels.attention)):
        return False
    heavy = inner.counts(kernels.heavy)
    covers_most = heavy.sum() >= MOST_OF_IT * kernels.heavy[start:end].sum()
    return bool(heavy.min() >= LEAST_HEAVY and covers_most and inner.share >= MOST_OF_IT)
