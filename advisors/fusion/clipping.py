"""Norms of gradients, and what multiplies the gradients by a number: how training clips them.

The norm of a gradient reads a tensor and writes one number. Nothing else in a training step computes so many norms with
nothing but single numbers in between. Where gradients are clipped, each is multiplied by one number behind that; where
the loss was scaled, in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import Facts, fact
from advisors.fusion.dataflow import Key, Node
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.step_kernels import ON_LISTS, StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

LEAST_GRADIENTS = 8
"""So many norms in a row are of gradients. Other norms of whole tensors (a penalty, what a log shows) come one by one,
or stand beside what the optimizer computes for each weight."""

NORM, NUMBER, SCALE = 0, 1, 2
"""Roles of kernels in clipping: the norm of gradients, arithmetic on single numbers, a product of each gradient."""


@dataclass(frozen=True)
class Clipping:
    """``members``: rows of the frame of `StepKernels`, in order; ``clip_of``: the number of the clipping of each, from
    0; ``role``: `NORM`, `NUMBER` or `SCALE`; ``tensors``: gradients that it reads, of a product on a list all of the
    clipping; where a gradient is cast for its norm, the cast reads it. By clipping: ``gradients`` of which a norm is
    computed."""

    members: Ints
    clip_of: Ints
    role: Ints
    tensors: Ints
    gradients: Ints


@dataclass(frozen=True)
class _Kinds:
    """By signature: ``norm``: it computes norms of tensors; ``sum``: it adds up a tensor; ``cast``: it converts one;
    ``number``: it works on single numbers; ``joins``: it puts single numbers side by side; ``scale``: it multiplies a
    tensor by one number, or those of a list (``on_lists``); ``tensors``: how many it reads, one of a list of products.
    """

    norm: Bools
    sum: Bools
    cast: Bools
    number: Bools
    joins: Bools
    scale: Bools
    on_lists: Bools
    tensors: Ints


@fact("gradient_clipping", needs=(step_kernels, kernel_nodes))
def gradient_clipping(facts: Facts) -> Clipping:
    """The norms of gradients that follow one another, and what scales the gradients in front of them and behind."""
    return find_clipping(facts[step_kernels], facts[kernel_nodes])


def find_clipping(kernels: StepKernels, nodes: KernelNodes) -> Clipping:
    """The same of these kernels; none where no shapes are recorded."""
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    kinds = _kinds(nodes.nodes)
    parts: list[tuple[Ints, Ints, int]] = []
    if kinds.norm.any():
        for part in kernels.parts():
            own = signature[part]
            if kinds.norm[own].any():
                parts += [(part[places], roles, count) for places, roles, count in _clippings(nodes.nodes, kinds, own)]
    members = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _, _ in parts)])
    clip_of = np.repeat(np.arange(len(parts)), [len(rows) for rows, _, _ in parts])
    role = np.concatenate([np.zeros(0, np.int64), *(roles for _, roles, _ in parts)])
    gradients = np.array([count for _, _, count in parts], dtype=np.int64)
    own = signature[members]
    tensors = np.where((role == SCALE) & kinds.on_lists[own], gradients[clip_of], kinds.tensors[own])
    # A norm right behind a cast reads its result, and the cast the gradient.
    tensors[1:] -= ((role == NORM) & kinds.cast[own])[:-1]
    return Clipping(members, clip_of, role, tensors, gradients)


def _kinds(nodes: Sequence[Node]) -> _Kinds:
    operation = np.array([node.operation for node in nodes], dtype=np.object_)
    reads = np.array([len(node.reads) for node in nodes], dtype=np.int64)
    writes = np.array([len(node.writes) for node in nodes], dtype=np.int64)
    keeps = np.array([bool(node.reads) and node.written_keys == {node.reads[0][1]} for node in nodes], dtype=np.bool_)
    return _Kinds(
        norm=(operation == "norm") & (reads > 0) & (writes == 0),
        sum=(operation == "sum") & (writes == 0),
        cast=operation == "cast",
        number=(reads == 0) & (writes == 0),
        joins=(operation == "concat") & (reads == 0),
        # One tensor is read, and no other: the other factor is a number.
        scale=np.isin(operation, ("mul", "div", "foreach_mul")) & (reads == 1) & keeps,
        on_lists=operation == "foreach_mul",
        tensors=reads,
    )


def _clippings(nodes: Sequence[Node], kinds: _Kinds, own: Ints) -> list[tuple[Ints, Ints, int]]:
    """Of the kernels of a stream of a step: the places of each clipping, what its kernels do, and its gradients."""
    is_norm, joins = kinds.norm[own], kinds.joins[own]
    # What is computed of the norms that were put side by side is their norm, and no gradient's.
    behind_join = np.concatenate([[False], joins[:-1]]) & (is_norm | kinds.sum[own])
    of_gradient = is_norm & ~behind_join
    feeds = _feeds(nodes, kinds.cast[own] & ~kinds.number[own], own, of_gradient)
    reads = of_gradient | feeds
    passes = is_norm | behind_join | kinds.number[own] | joins | feeds
    stretch = np.cumsum(~passes)
    norms = np.flatnonzero(of_gradient)
    found = []
    stretches, first_norms = np.unique(stretch[norms], return_index=True)
    ends = np.searchsorted(stretch, stretches, side="right").tolist()
    for number, inside, end in zip(stretches.tolist(), np.split(norms, first_norms[1:]), ends, strict=True):
        gradients = int(kinds.tensors[own[inside]].sum())
        if gradients < LEAST_GRADIENTS:
            continue
        first, last = int(inside[0]), end - 1
        # A cast or a cleared buffer in front of the first norm serves it; numbers before that are of something else.
        first -= int(first > 0 and bool(passes[first - 1]) and stretch[first - 1] == number)
        reading = first + np.flatnonzero(reads[first : last + 1])
        keys = frozenset(key for kind in np.unique(own[reading]).tolist() for key in nodes[kind].read_keys)
        before = _scales(nodes, kinds, own, keys, range(first - 1, -1, -1), gradients)
        behind = _scales(nodes, kinds, own, keys, range(last + 1, len(own)), gradients)
        places = np.concatenate([before[::-1], np.arange(first, last + 1), behind])
        roles = np.where(reads[places], NORM, NUMBER)
        roles[np.isin(places, before) | np.isin(places, behind)] = SCALE
        found.append((places, roles, gradients))
    return found


def _feeds(nodes: Sequence[Node], casts: Bools, own: Ints, of_gradient: Bools) -> Bools:
    """The casts whose result the norm right behind reads."""
    feeds: Bools = casts & np.concatenate([of_gradient[1:], [False]])
    for place in np.flatnonzero(feeds).tolist():
        feeds[place] = nodes[own[place]].written_keys <= nodes[own[place + 1]].read_keys
    return feeds


def _scales(
    nodes: Sequence[Node], kinds: _Kinds, own: Ints, keys: frozenset[Key], places: range, gradients: int
) -> Ints:
    """The places of the kernels that multiply the gradients by a number, from here on; none where most gradients are
    not multiplied."""
    found: list[int] = []
    scaled = 0
    for place in places:
        kind = own[place]
        if kinds.number[kind]:
            continue  # the factor, which may be converted anew for each gradient
        if not kinds.scale[kind] or not nodes[kind].read_keys <= keys or (found and kinds.on_lists[kind]):
            break
        if kinds.on_lists[kind]:
            # One list: of gradients, unless an optimizer goes on with it (the decay of weights, the momentum).
            return np.array([place], np.int64) if _ends(nodes, kinds, own, place) else _none()
        found.append(place)
        scaled += 1
    # What follows without a gap is what the optimizer computes for the first weight.
    if scaled == gradients + 1 and places.step > 0:
        found.pop()
    return np.array(found, np.int64) if 2 * scaled > gradients else _none()


def _ends(nodes: Sequence[Node], kinds: _Kinds, own: Ints, place: int) -> bool:
    """No step of an optimizer on the same list stands right behind."""
    behind = place + 1
    while behind < len(own) and kinds.number[own[behind]]:
        behind += 1
    return behind == len(own) or not (
        nodes[own[behind]].operator.startswith(ON_LISTS) and nodes[own[behind]].operation in ("lerp", "foreach_add")
    )


def _none() -> Ints:
    return np.zeros(0, np.int64)


FACTS = (gradient_clipping,)
