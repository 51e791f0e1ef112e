"""Experts that run one after the other: products of equal weights, again and again, on other numbers of rows.

A router sends each expert other rows, so the products of two experts differ in one size only: the number of rows of
the expert. Nothing else in a network repeats a few products with one size changing and all others equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import DTYPE_BYTES, Facts, fact
from advisors.fusion.dataflow import Key, Node
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.fusion.passes import HEAVY, PRODUCTS, product_size
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

LEAST_EXPERTS = 3
"""Two blocks of a network can have products of the same weights by chance, one of them on fewer rows."""

MOST_PRODUCTS = 6
"""An expert has two products or three, and backward two for each of them."""


DEPTH = 2
"""The place of the size that a product sums over."""

_ADDS = -2
"""In place of the type of a kernel that adds up gradients."""


@dataclass(frozen=True)
class ExpertLoops:
    """``members``: rows of the frame of `StepKernels`, in order; ``loop_of``: the number of the loop of each, from 0;
    ``is_product``: of each member. By loop: ``experts``; ``products``: of one expert; ``backward``; ``least_rows`` and
    ``most_rows`` of an expert; ``exchanged``: bytes of the tensors with rows of experts that products read and write,
    NaN unknown."""

    members: Ints
    loop_of: Ints
    is_product: Bools
    experts: Ints
    products: Ints
    backward: Bools
    least_rows: Ints
    most_rows: Ints
    exchanged: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Loop:
    first: int
    last: int
    rows: Ints
    products: int
    places: Ints
    varying: Ints

    def placed(self, start: int) -> _Loop:
        """The same loop in a sequence that has so many more kernels in front."""
        return replace(self, first=self.first + start, last=self.last + start, places=self.places + start)


@fact("expert_loops", needs=(step_kernels, kernel_nodes))
def expert_loops(facts: Facts) -> ExpertLoops:
    """The experts of a layer that run one after the other, each with products of its own."""
    return find_loops(facts[step_kernels], facts[kernel_nodes])


def find_loops(kernels: StepKernels, nodes: KernelNodes) -> ExpertLoops:
    """The same of these kernels; none where no shapes are recorded."""
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    sizes = np.array([product_size(node) or (0, 0, 0) for node in nodes.nodes], dtype=np.int64).reshape(-1, 3)
    is_product = np.array([node.operation in PRODUCTS for node in nodes.nodes], dtype=np.bool_)
    classes = kernels.frame["operator_class"].astype(str).to_numpy()[kernels.firsts]
    adds = np.array([node.operation == "add" for node in nodes.nodes], dtype=np.bool_)
    is_heavy = is_product | np.isin(classes, HEAVY)
    types = kernels.frame["type"].array.codes
    found: list[_Loop] = []
    known: dict[bytes, list[_Loop]] = {}  # most layers and steps are alike
    begins = np.flatnonzero(kernels.breaks)[1:].tolist()
    for begin, end in pairwise([0, *begins, len(signature)]):
        own = signature[begin:end]
        key = own.tobytes()
        if key not in known:
            places = np.flatnonzero(is_heavy[own])
            known[key] = []
            for loop in _repeats(sizes[own[places]], places):
                if _passes_on(loop, nodes.nodes, own):
                    # What stands between two loops belongs to the first.
                    start = known[key][-1].last if known[key] else 0
                    known[key].append(_with_edges(types[begin:end], adds[own], loop, start, places))
        found += [loop.placed(begin) for loop in known[key]]
    counts = np.array([loop.last - loop.first for loop in found], dtype=np.int64)
    members = np.concatenate([np.zeros(0, np.int64), *(np.arange(loop.first, loop.last) for loop in found)])
    return ExpertLoops(
        members,
        np.repeat(np.arange(len(found)), counts),
        is_product[signature[members]],
        np.array([len(loop.rows) for loop in found], dtype=np.int64),
        np.array([loop.products for loop in found], dtype=np.int64),
        np.array([nodes.backward[loop.places].mean() > 1 / 2 for loop in found], dtype=np.bool_),
        np.array([loop.rows.min() for loop in found], dtype=np.int64),
        np.array([loop.rows.max() for loop in found], dtype=np.int64),
        np.array([_exchanged(loop, nodes.nodes, signature, sizes) for loop in found], dtype=np.float64),
    )


def _repeats(sizes: Ints, places: Ints) -> Iterator[_Loop]:
    """The loops among heavy kernels with these sizes (rows, columns, depth; 0: no plain product), at these rows."""
    starts = [(start, end, period) for period in range(2, MOST_PRODUCTS + 1) for start, end in _runs(sizes, period)]
    behind = 0
    # Of loops that begin alike the one with the fewest products is the expert.
    for start, end, period in sorted(starts, key=lambda run: (run[0], run[2])):
        for at in range(max(start, behind), max(start, behind) + period):
            loop = _loop(sizes[:end], places, at, period)
            if loop is not None:
                yield loop
                behind = int(np.searchsorted(places, loop.last))
                break


def _runs(sizes: Ints, period: int) -> Iterator[tuple[int, int]]:
    """Stretches of products that are like those so many places before in all sizes but one, for long enough, and not
    always in all sizes: from the first product to behind the last."""
    if len(sizes) < LEAST_EXPERTS * period:
        return
    differ = (sizes[period:] != sizes[:-period]).sum(axis=1)
    alike = (differ <= 1) & (sizes[period:] > 0).all(axis=1) & (sizes[:-period] > 0).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], alike.astype(np.int8), [0]])))
    changes = np.concatenate([[0], np.cumsum(differ > 0)])
    for start, end in edges.reshape(-1, 2).tolist():
        if end - start >= (LEAST_EXPERTS - 1) * period and changes[end] > changes[start]:
            yield start, end + period


def _loop(sizes: Ints, places: Ints, at: int, period: int) -> _Loop | None:
    """The longest loop of this many products an expert that begins with this product."""
    count = (len(sizes) - at) // period
    if count < LEAST_EXPERTS:
        return None
    experts = sizes[at : at + count * period].reshape(count, period, 3)
    differs = experts != experts[0]
    fits = (differs.sum(axis=2) <= 1).all(axis=1)
    length = int(np.argmin(fits)) if not fits.all() else count
    while length >= LEAST_EXPERTS:
        varying = differs[:length].any(axis=0)
        # Every product has one size that changes, and that is the number of rows of the expert.
        if (varying.sum(axis=1) == 1).all():
            axis = varying.argmax(axis=1)
            rows = experts[:length, np.arange(period), axis]
            if (rows == rows[:, :1]).all():
                end = at + length * period
                return _Loop(int(places[at]), int(places[end - 1]) + 1, rows[:, 0], period, places[at:end], axis)
        length -= 1
    return None


def _passes_on(loop: _Loop, nodes: list[Node], signature: Ints) -> bool:
    """Whether a product of an expert reads, with its rows, what small kernels made of the result of an earlier one: the
    gradients of query, key and value are products that differ in one size as well, and none reads another."""
    expert = int(loop.rows.argmax())
    places = loop.places[expert * loop.products : (expert + 1) * loop.products]
    rows = int(loop.rows[expert])
    written: set[Key] = set()
    passed: set[Key] = set()
    for place in range(int(places[0]), int(places[-1]) + 1):
        node = nodes[signature[place]]
        reads = {key for key in node.read_keys if key[0] % rows == 0}
        if place in places:
            order = int(np.searchsorted(places, place))
            if reads & passed:
                return True
            # The result of a product that sums over the rows is the gradient of a weight.
            written |= set() if loop.varying[order] == DEPTH else _readable(node)
        elif reads & (passed | written):
            passed |= {key for key in node.written_keys if key[0] % rows == 0}
    return False


def _readable(node: Node) -> set[Key]:
    """The keys of what a kernel writes, and of its halves where kernels read them as they lie."""
    halves = {(count // 2, dtype) for count, dtype in node.written_keys if node.views and "halves" in node.roles}
    return {*node.written_keys, *halves}


def _with_edges(types: npt.NDArray[np.generic], adds: Bools, loop: _Loop, start: int, products: Ints) -> _Loop:
    """With the kernels before the first expert, from ``start`` on, and behind the last one that stand between the
    others as well. Backward the gradients of an expert are added to those of the experts before it, the first ones to
    nothing: whether there is a kernel that ``adds`` makes no difference then."""
    codes = np.where(adds & (loop.varying == DEPTH).any(), _ADDS, types.astype(np.int64))
    between = codes[loop.places[loop.products - 1] + 1 : loop.places[loop.products]]
    number = int(np.searchsorted(products, loop.first))
    start = max(start, int(products[number - 1]) + 1 if number else start)
    last = int(np.searchsorted(products, loop.last))
    end = int(products[last]) if last < len(products) else len(types)
    before, behind = codes[start : loop.first][::-1], codes[loop.last : end]
    return _Loop(
        loop.first - _equal(before, between[::-1]),
        loop.last + _equal(behind, between),
        loop.rows,
        loop.products,
        loop.places,
        loop.varying,
    )


def _equal(left: Ints, right: Ints) -> int:
    """How many entries are equal from the beginning on, counted on the left; `_ADDS` there or not, on either side."""
    own = np.flatnonzero(left != _ADDS)
    others = right[right != _ADDS]
    count = min(len(own), len(others))
    differ = np.flatnonzero(left[own[:count]] != others[:count])
    alike = int(differ[0]) if len(differ) else count
    return int(own[alike - 1]) + 1 if alike else 0


_WITH_SIZE = (1, 0, 1), (0, 1, 1), (1, 1, 0)
"""Whether the left input, the right input and the result have this size (rows, columns, depth)."""


def _exchanged(loop: _Loop, nodes: list[Node], signature: Ints, sizes: Ints) -> float:
    size = sizes[signature[loop.places]].reshape(-1, loop.products, 3)
    itemsize = [_itemsizes(nodes[number]) for number in signature[loop.places[: loop.products]]]
    tensors = np.stack([size[..., 0] * size[..., 2], size[..., 2] * size[..., 1], size[..., 0] * size[..., 1]], axis=2)
    return float((tensors * np.array(_WITH_SIZE)[loop.varying] * np.array(itemsize)).sum())


def _itemsizes(node: Node) -> list[float]:
    keys = [node.reads[0][1], node.reads[1][1], node.writes[0][1]]
    return [DTYPE_BYTES.get(dtype, np.nan) for _, dtype in keys]


FACTS = (expert_loops,)
