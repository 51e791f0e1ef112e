"""The part of the model that each kernel works for: attention, feed-forward network, experts, norms; embedding, head.

Products and attentions decide. In the forward pass of a layer the product behind an attention is its output
projection, those before it make queries, keys and values; what comes behind the last output projection is the
feed-forward network. In the backward pass the order is reversed, and a product of the forward pass has two. A kernel
that is neither goes with the product before it; behind a norm, with the one that comes next. What writes keys and
values into a cache is a part of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.layers.marks import Marks
from advisors.layers.runs import Run

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"


class Block(IntEnum):
    """The parts that the time of a step is divided by, in the order in which they are shown."""

    EMBEDDING = 0
    NORM = 1
    ATTENTION = 2
    CACHE = 3
    FFN = 4
    EXPERTS = 5
    CONVOLUTION = 6
    HEAD = 7
    LOSS = 8
    OPTIMIZER = 9
    OTHER = 10

    @property
    def key(self) -> str:
        """Its name in columns and messages."""
        return self.name.lower()


class Pass(IntEnum):
    """The pass of a step that a kernel runs for."""

    FORWARD = 0
    RECOMPUTATION = 1
    BACKWARD = 2
    OPTIMIZER = 3

    @property
    def key(self) -> str:
        """Its name in columns and messages."""
        return self.name.lower()


def blocks_of_layer(marks: Marks, *, backward: bool, per_product: int = 2) -> Ints:
    """The block of each kernel of a layer, in order. ``per_product``: products of the backward pass for one of the
    forward pass."""
    if not (marks.heavy | marks.attention).any():
        return np.where(marks.norm, Block.NORM, Block.OTHER).astype(np.int64)
    blocks = np.full(len(marks.product), Block.OTHER, dtype=np.int64)
    blocks[marks.convolution] = Block.CONVOLUTION
    blocks[marks.product] = Block.EXPERTS if marks.routing.any() else Block.FFN
    blocks[marks.attention] = Block.ATTENTION
    attentions = np.flatnonzero(marks.attention)
    if len(attentions):
        products = np.flatnonzero(marks.product & ~marks.attention)
        if backward:
            before, behind = products[products < attentions[0]], products[products > attentions[0]]
            projections = np.concatenate([before[max(len(before) - per_product, 0) :], behind])
        else:
            before, behind = products[products < attentions[-1]], products[products > attentions[-1]]
            projections = np.concatenate([before, behind[:1]])
        blocks[projections] = Block.ATTENTION
    return _with_cache(_spread(blocks, marks.heavy | marks.attention, marks.norm), marks)


def _with_cache(blocks: Ints, marks: Marks) -> Ints:
    """The same blocks, with what writes a cache as a part of its own."""
    return np.where(marks.cache & ~marks.heavy, Block.CACHE, blocks).astype(np.int64)


def _spread(blocks: Ints, heavy: Bools, norm: Bools) -> Ints:
    """Give the kernels between two heavy ones the block of the one before, behind a norm that of the next."""
    places = np.flatnonzero(heavy)
    positions = np.arange(len(blocks))
    before = places[np.maximum(np.searchsorted(places, positions, side="right") - 1, 0)]
    behind = places[np.minimum(np.searchsorted(places, positions, side="left"), len(places) - 1)]
    norms = np.concatenate([[0], np.cumsum(norm)])
    behind_norm = (norms[positions] > norms[before]) | (positions < places[0])
    spread = np.where(heavy, blocks, np.where(behind_norm, blocks[behind], blocks[before]))
    return np.where(norm, Block.NORM, spread).astype(np.int64)


MOST = 0.5
"""Layers that hold less than this share of the products, convolutions and attentions of a pass are not most of the
model: what lies beside them is then no embedding and no head. Our choice."""


def blocks_around(outside: Ints, runs: Sequence[Run], marks: Marks, backward: Bools) -> tuple[Ints, Ints]:
    """Block and pass of the kernels of a step that are of no layer. ``outside``: their rows, in order; ``runs``: the
    passes over layers in the step.

    Before the first layer lies the embedding. Behind a pass over the layers its head ends with the last product; what
    comes behind (sampling) is other. Between the last product of the forward pass and the first of the backward pass
    lies the loss. Behind the layers of the backward pass the embedding ends with the last product or gradient; what
    comes behind updates the weights. Where the layers of a pass are not most of it, or are convolutions themselves, the
    kernels tell what they are: the stages of a convolutional network that do not repeat are neither embedding nor head.
    """
    block = np.full(len(outside), Block.OTHER, dtype=np.int64)
    passes = np.where(backward[outside], Pass.BACKWARD, Pass.FORWARD).astype(np.int64)
    if not runs or not len(outside):
        return block, passes
    block[outside < min(run.first for run in runs)] = Block.EMBEDDING
    products = outside[marks.product[outside]]
    forward_ends = [run.last for run in runs if not run.backward]
    forward = products[~backward[products]]
    for start, end in pairwise([*forward_ends, int(outside[-1]) + 1]):
        first_head, head_end = np.searchsorted(forward, start, side="right"), np.searchsorted(forward, end)
        if head_end > first_head:
            head = np.searchsorted(outside, [start, forward[head_end - 1]], side="right")
            block[slice(*head)] = Block.HEAD
    backward_end = max((run.last for run in runs if run.backward), default=-1)
    if backward_end < 0:
        updates = outside[marks.optimizer[outside]]
        updating = (outside >= updates[0]) & (outside <= updates[-1]) if len(updates) else np.zeros(0, dtype=np.bool_)
        if not (marks.heavy[outside[updating]]).any():
            block[updating], passes[updating] = Block.OPTIMIZER, Pass.OPTIMIZER
        return _told_by_kernels(block, passes, outside, runs, marks, backward), passes
    gradients = products[backward[products]]
    heads = forward[forward > forward_ends[-1]] if forward_ends else forward[:0]
    if len(gradients) and gradients[0] < backward_end:
        block[(outside >= gradients[0]) & (outside < backward_end)] = Block.HEAD
        if len(heads):
            block[(outside > heads[-1]) & (outside < gradients[0])] = Block.LOSS
    behind = outside > backward_end
    last_gradients = outside[behind & (marks.heavy | marks.gradient)[outside]]
    embedding_end = int(last_gradients[-1]) if len(last_gradients) else backward_end
    block[behind & (outside <= embedding_end)] = Block.EMBEDDING
    block[behind & (outside > embedding_end)] = Block.OPTIMIZER
    passes[behind & (outside > embedding_end)] = Pass.OPTIMIZER
    return _told_by_kernels(block, passes, outside, runs, marks, backward), passes


def _told_by_kernels(
    block: Ints, passes: Ints, outside: Ints, runs: Sequence[Run], marks: Marks, backward: Bools
) -> Ints:
    """``block`` of the kernels ``outside`` of layers, but where their place does not tell it what they compute."""
    inside = np.concatenate([run.layer(number) for run in runs for number in range(len(run))])
    most = [_most(outside, inside, marks, backward == is_backward) for is_backward in (False, True)]
    placed = np.where(backward[outside], most[True], most[False]) & ~marks.convolution[inside].any()
    placed |= passes == Pass.OPTIMIZER
    stretch = np.searchsorted(np.sort([run.first for run in runs]), outside)
    computed = np.full(len(outside), Block.OTHER, dtype=np.int64)
    for rows in np.split(np.arange(len(outside)), np.flatnonzero(np.diff(stretch)) + 1):
        computed[rows] = _computed(marks.part(outside[rows]))
    return np.where(placed, block, computed).astype(np.int64)


def _most(outside: Ints, inside: Ints, marks: Marks, of_pass: Bools) -> bool:
    """Whether layers hold most of the products, convolutions and attentions of a pass."""
    within, beside = (int((marks.heavy & of_pass)[rows].sum()) for rows in (inside, outside))
    return within > 0 and within >= MOST * (within + beside)


def _computed(marks: Marks) -> Ints:
    """What kernels compute that follow each other: convolutions and attention, with what comes behind each of them,
    norms, and other."""
    blocks = np.where(marks.norm, Block.NORM, Block.OTHER).astype(np.int64)
    if not (marks.heavy | marks.attention).any():
        return blocks
    blocks[marks.convolution], blocks[marks.attention] = Block.CONVOLUTION, Block.ATTENTION
    return _with_cache(_spread(blocks, marks.heavy | marks.attention, marks.norm), marks)
