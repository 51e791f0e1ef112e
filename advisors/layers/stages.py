"""Stages of convolutional networks: the first block of each, whose sizes are others than those of the blocks behind it.

A stage begins with a block that makes the image smaller or the channels more: its convolutions have other sizes, ResNet
adds a convolution beside them, MBConv leaves the sum out. By its operator types it is the block of the stage all the
same, with a few kernels more or less, and it writes a tensor of the same shape. A stage of two blocks has no two equal
ones: its second block is known by the types of the block of another stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.layers.runs import SAME
from advisors.layers.stacks import Stack, StepSequence

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

MORE_PRODUCTS = 2
"""Convolutions that the first block has beyond those of the others, at most: ResNet has one, its backward pass two."""

LEAST_BLOCKS = 2
"""Blocks of a stage: a single one does not repeat."""


def with_first_blocks(kernels: StepSequence, found: Sequence[Stack], backward: int) -> list[Stack]:
    """The stacks, those of convolutions with the first block of their stage, and stages of two blocks. ``backward``:
    where the backward pass begins, in which the first block comes last."""
    count = len(kernels.type)
    stages = _staged(kernels, [stack for stack in found if stack.starts[0] < backward])
    mirrored = [stack.mirrored(count) for stack in reversed(found) if stack.starts[0] >= backward]
    turned = _staged(kernels.mirrored(), mirrored)
    return [*stages, *(stack.mirrored(count) for stack in reversed(turned))]


def _staged(kernels: StepSequence, found: Sequence[Stack]) -> list[Stack]:
    """See `with_first_blocks`, of kernels in an order in which the first block of a stage comes first."""
    stages: list[Stack] = []
    for stack in found:
        if not _convolutional(kernels, stack):
            stages.append(stack)
            continue
        start, end = int(stack.starts[0]), int(stack.ends[0])
        search = _Stage(kernels, start, end)
        whole = search.turned(stack, _end(stages))
        if whole is None and stages and not stages[-1].apart and stages[-1].kernels < end - start:
            # What repeats within the first block is no stack of layers.
            whole = search.with_first(stack, _end(stages[:-1]))
            stages = stages if whole is None else stages[:-1]
        if whole is not None:
            stages += search.before(int(whole.starts[0]), _end(stages))
        stages.append(stack if whole is None else whole)
    return stages


def _convolutional(kernels: StepSequence, stack: Stack) -> bool:
    """Its layers have convolutions, and no attention."""
    start, end = int(stack.starts[0]), int(stack.ends[-1])
    return bool(kernels.convolution[start : int(stack.ends[0])].any() and not kernels.attention[start:end].any())


def _end(stages: Sequence[Stack]) -> int:
    return int(stages[-1].ends[-1]) if stages else 0


@dataclass(frozen=True)
class _Stage:
    """Looks for stages whose blocks are like the kernels from ``start`` to ``end``."""

    kernels: StepSequence
    start: int
    end: int

    @cached_property
    def unit(self) -> Ints:
        """The types of a block."""
        return np.asarray(self.kernels.type[self.start : self.end])

    @cached_property
    def first_product(self) -> int:
        """Its place in the block."""
        return int(self.kernels.heavy[self.start : self.end].argmax())

    def products(self, start: int, end: int) -> Ints:
        """The places of products, each once, between these places."""
        kernels = self.kernels
        return np.flatnonzero(kernels.heavy[start:end] & ~kernels.goes_on[start:end]) + start

    def types(self, start: int, end: int) -> list[int]:
        """The types between these places, those of a product once."""
        found: list[int] = self.kernels.type[start:end][~self.kernels.goes_on[start:end]].tolist()
        return found

    def with_first(self, stack: Stack, least: int) -> Stack | None:
        """The stack with the first block of its stage; ``None`` where none is there, not before ``least``."""
        start, end, written = int(stack.starts[0]), int(stack.ends[0]), self.kernels.written
        if start <= least or written[start - 1] != written[end - 1]:
            return None
        first = self._block_before(start, least)
        return None if first is None else self._behind(first, stack)

    def turned(self, stack: Stack, least: int) -> Stack | None:
        """The same where the equal blocks can have been found some kernels too early: the first block ends with a
        convolution that is like the one beside it. The turn with most blocks, and by which the first one has most of a
        block."""
        signature, end = self.kernels.signature, int(stack.ends[-1])
        length = len(self.unit)
        again = signature[end : end + length - 1] == signature[end - length :][: min(length - 1, len(signature) - end)]
        found: list[Stack] = []
        for by in range((len(again) if again.all() else int(again.argmin())) + 1):
            later = self._whole(Stack(stack.starts + by, stack.ends + by, stack.share, stack.apart), least)
            whole = _Stage(self.kernels, self.start + by, self.end + by).with_first(later, least)
            found += [] if whole is None else [whole]
        return max(found, key=lambda one: (len(one.starts), one.share), default=None)

    def _whole(self, stack: Stack, least: int) -> Stack:
        """The stack with equal blocks before and behind it, which differ from those that were compared where a block
        is cut elsewhere."""
        signature, length = self.kernels.signature, len(self.unit)
        starts, unit = stack.starts.tolist(), signature[int(stack.starts[-1]) :][:length]
        if (np.diff(stack.starts) != length).any() or int(stack.ends[-1]) != starts[-1] + length:
            return stack
        while starts[0] - length >= least and np.array_equal(signature[starts[0] - length : starts[0]], unit):
            starts.insert(0, starts[0] - length)
        while np.array_equal(signature[starts[-1] + length :][:length], unit):
            starts.append(starts[-1] + length)
        places = np.array(starts, dtype=np.int64)
        return Stack(places, places + length, stack.share, stack.apart)

    def _behind(self, first: int, stack: Stack) -> Stack:
        """The stack behind a block that begins at ``first``."""
        start = int(stack.starts[0])
        starts, ends = np.append(first, stack.starts), np.append(start, stack.ends)
        common = longest_common(self.unit.tolist(), self.kernels.type[first:start].tolist())
        share = min(stack.share, common * len(starts) / int((ends - starts).sum()))
        return Stack(starts, ends, share, apart=True)

    def before(self, end: int, least: int) -> list[Stack]:
        """Stages that end where another one begins, and have no two equal blocks, in order."""
        stages: list[Stack] = []
        while (blocks := self._equal_types(end, least)) is not None:
            stage = self.with_first(blocks, least) or blocks
            if len(stage.starts) < LEAST_BLOCKS:
                break
            stages.append(stage)
            end = int(stage.starts[0])
        return stages[::-1]

    def _block_before(self, end: int, least: int) -> int | None:
        """The begin of a block that ends at ``end`` and is like the unit; not before ``least``. ``None`` where there is
        none."""
        types, first = self.kernels.type, self.first_product
        places, own = self.products(least, end), len(self.products(self.start, self.end))
        lead, rest = self.unit[:first], self.types(self.start + first, self.end)
        best, best_common = None, 0
        for count in range(own, min(own + MORE_PRODUCTS, len(places)) + 1):
            product = int(places[-count])
            common = longest_common(rest, self.types(product, end))
            if common > best_common and types[product] == self.unit[first]:
                best, best_common = product, common
        if best is None or best_common < SAME * len(rest):
            return None
        # A unit can begin with the end of the block before, which the first block of a network has not.
        before = types[max(best - len(lead), least) : best][::-1]
        unlike = np.flatnonzero(before != lead[::-1][: len(before)])
        return best - (int(unlike[0]) if len(unlike) else len(before))

    def _equal_types(self, end: int, least: int) -> Stack | None:
        """Blocks with the types of the unit that write tensors of one shape, the last one ending at ``end``."""
        length, starts = len(self.unit), list[int]()
        written = self.kernels.written[end - 1]
        while (begin := (starts[0] if starts else end) - length) >= least:
            place = self.kernels.written[begin + length - 1]
            if place != written or not np.array_equal(self.kernels.type[begin : begin + length], self.unit):
                break
            starts.insert(0, begin)
        if not starts:
            return None
        return Stack(np.array(starts), np.array(starts) + length, 1.0, apart=True)


def longest_common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common subsequence, a bit of a whole number for each element of ``left`` (Hyyrö 2004)."""
    places: dict[int, int] = {}
    for place, value in enumerate(left):
        places[value] = places.get(value, 0) | 1 << place
    every = (1 << len(left)) - 1
    open_bits = every
    for value in right:
        matched = open_bits & places.get(value, 0)
        open_bits = ((open_bits + matched) | (open_bits - matched)) & every
    return len(left) - open_bits.bit_count()
