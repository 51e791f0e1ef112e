"""Adapters of low rank (LoRA): two thin products beside a product, and the sum of both.

The first thin product reads what the product reads and writes a few columns, the second reads these and writes as many
columns as the product; a sum reads both. Thin products alone are no adapter: a router has one, latent attention has
two, with a norm between them and no product beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import DTYPE_BYTES, Facts, fact
from advisors.fusion.dataflow import NEARBY, Node
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.fusion.passes import HEAVY, product_size
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Size = tuple[int, int, int]

TIMES_THINNER = 4
"""The rank of an adapter is so many times smaller than both sizes of the weight that it stands beside, at least: with
less the two products would cost half as much as the one beside them, and nobody trains that to save memory."""

BEHIND = 6
"""The scale, the casts and the sum stand so many kernels behind the second product, at most."""

AROUND = 24
"""So many kernels before the first product and behind it are searched: an adapter has ten, and one or two others may
run before the product that it stands beside."""

BETWEEN = 3
"""So many small kernels stand between the two products of an adapter, at most (a copy, the scale)."""

SERVES = ("cast", "dropout", "mul", "copy")
"""Operations on what the first product reads, right in front of it: a cast, and a dropout with its scale."""

BASE, THIN, BESIDE = 0, 1, 2
"""Roles of kernels: the product that the adapter stands beside, one of its own products, and others that serve it."""


@dataclass(frozen=True)
class Adapters:
    """``members``: rows of the frame of `StepKernels`, in order; ``role``: `BASE`, `THIN` or `BESIDE`; ``adapter_of``:
    the number of the adapter in the forward pass, -1 for what autograd runs (products, and the casts and scales in
    front of them). By adapter: its ``rank``; whether its products are ``wide``, on more bytes than the one beside them;
    ``added``: bytes of the two results and of their sum, NaN unknown."""

    members: Ints
    role: Ints
    adapter_of: Ints
    rank: Ints
    wide: Bools
    added: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Adapter:
    """Places of its kernels; ``size``: rows, columns and depth of the product that it stands beside; ``itemsizes``:
    bytes of an element of the result of that product, and of its own."""

    base: int
    thin: tuple[int, int]
    beside: tuple[int, ...]
    size: Size
    rank: int
    itemsizes: tuple[float, float]

    def shifted(self, by: int) -> _Adapter:
        """The same so many places later."""
        first, second = self.thin
        return replace(
            self, base=self.base + by, thin=(first + by, second + by), beside=tuple(place + by for place in self.beside)
        )


_Surroundings = dict[tuple[int, bytes, bytes], _Adapter | None]


@fact("adapters", needs=(step_kernels, kernel_nodes))
def adapters(facts: Facts) -> Adapters:
    """The adapters of low rank of the forward pass, and the products that autograd runs for them."""
    return find_adapters(facts[step_kernels], facts[kernel_nodes])


def find_adapters(kernels: StepKernels, nodes: KernelNodes) -> Adapters:
    """The same of these kernels; none where no shapes are recorded."""
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    sizes = [product_size(node) for node in nodes.nodes]
    may_begin = np.array([size is not None and size[1] * TIMES_THINNER <= size[2] for size in sizes], dtype=np.bool_)
    is_heavy = np.isin(kernels.frame["operator_class"].astype(str).to_numpy()[kernels.firsts], HEAVY)
    rows: list[tuple[int, int, int]] = []
    every: list[_Adapter] = []
    surroundings: _Surroundings = {}
    for part in kernels.parts() if may_begin.any() else ():
        signatures = signature[part]
        search = _Search(nodes.nodes, sizes, signatures, np.flatnonzero(is_heavy[signatures]), surroundings)
        starts = np.flatnonzero(may_begin[signatures]).tolist()
        found = [one for place in starts if (one := search.at(place)) is not None]
        for number, one in enumerate(found, len(every)):
            rows += [(int(part[one.base]), BASE, number)]
            rows += [(int(part[place]), THIN, number) for place in one.thin]
            rows += [(int(part[place]), BESIDE, number) for place in one.beside]
        every += found
        products = search.gradients(found, nodes.backward[part])
        rows += [(int(part[place]), THIN, -1) for place in products]
        rows += [(int(part[place]), BESIDE, -1) for place in search.in_front(products, found)]
    table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
    item = np.array([one.itemsizes for one in every], dtype=np.float64).reshape(-1, 2)
    written = np.array([one.size[0] * one.size[1] for one in every], dtype=np.float64)
    return Adapters(
        table[:, 0],
        table[:, 1],
        table[:, 2],
        np.array([one.rank for one in every], dtype=np.int64),
        item[:, 1] > item[:, 0],
        written * (2 * item[:, 0] + item[:, 1]),
    )


class _Search:
    """The kernels of a stream of a step: their signatures, and the places of the ``heavy`` ones. The same
    ``surroundings`` are searched once, whatever stream they are of."""

    def __init__(
        self,
        nodes: Sequence[Node],
        sizes: Sequence[Size | None],
        signatures: Ints,
        heavy: Ints,
        surroundings: _Surroundings,
    ) -> None:
        self._nodes, self._sizes, self._signatures, self._heavy = nodes, sizes, signatures, heavy
        self._surroundings = surroundings
        self._taken = np.zeros(len(signatures), dtype=np.bool_)

    def at(self, first: int) -> _Adapter | None:
        """The adapter whose first product is at this place; ``None`` if there is none."""
        start, end = max(first - AROUND, 0), first + AROUND + 1
        key = (first - start, self._signatures[start:end].tobytes(), self._taken[start:end].tobytes())
        if key not in self._surroundings:
            searched = self._searched(first, start, min(end, len(self._signatures)))
            self._surroundings[key] = None if searched is None else searched.shifted(-start)
        near = self._surroundings[key]
        if near is None:
            return None
        adapter = near.shifted(start)
        self._taken[[adapter.base, *adapter.thin, *adapter.beside]] = True
        return adapter

    def _searched(self, first: int, start: int, end: int) -> _Adapter | None:
        # Of the last kernels of the surroundings it is not known what stands behind them.
        last = end if end == len(self._signatures) else end - BEHIND - 2
        heavy = self._heavy[slice(*np.searchsorted(self._heavy, [start, last]))].tolist()
        order = heavy.index(first)
        size = self._sizes[self._signatures[first]]
        if size is None or self._taken[first] or order + 1 == len(heavy):
            return None
        rows, rank, depth = size
        second = heavy[order + 1]
        back = self._sizes[self._signatures[second]]
        if back is None or (back[0], back[2]) != (rows, rank) or rank * TIMES_THINNER > back[1]:
            return None
        if second - first > BETWEEN + 1:
            return None
        whole = (rows, back[1], depth)
        # The product before the first one or behind the second, the nearest first.
        near = [heavy[number] for number in (order - 1, order - 2, order + 2, order - 3) if 0 <= number < len(heavy)]
        for base in near:
            if self._taken[base] or self._sizes[self._signatures[base]] != whole:
                continue
            total = self._sum(max(second, base), rows * back[1])
            if total >= 0:
                beside = self._beside((first, second), base, total, whole)
                return _Adapter(
                    base, (first, second), tuple(beside), whole, rank, (self._item(base), self._item(second))
                )
        return None

    def _node(self, place: int) -> Node:
        node: Node = self._nodes[self._signatures[place]]
        return node

    def _item(self, place: int) -> float:
        return DTYPE_BYTES.get(self._node(place).writes[0][1][1], np.nan)

    def _sum(self, last: int, elements: int) -> int:
        """The place of the sum of two tensors with so many elements, right behind; -1 if there is none."""
        for place in range(last + 1, min(last + 1 + BEHIND, len(self._signatures))):
            node = self._node(place)
            if node.operation == "add" and [key[0] for _, key in node.reads] == [elements] * 2:
                return place
        return -1

    def _beside(self, thin: tuple[int, int], base: int, total: int, size: Size) -> list[int]:
        """The kernels that serve the adapter: those that prepare its input, stand between its products and lead to the
        sum, with the cast of that."""
        rows, columns, depth = size
        first, second = thin
        start = base if base < first else first - NEARBY
        before = [place for place in range(max(start + 1, 0), first) if self._writes(place, rows * depth, SERVES)]
        between = range(first + 1, second)
        behind = [
            place for place in range(second + 1, total) if place != base and self._writes(place, rows * columns, SERVES)
        ]
        after = [total + 1] if self._casts_back(total, base) else []
        return [place for place in (*before, *between, *behind, total, *after) if not self._taken[place]]

    def _casts_back(self, total: int, base: int) -> bool:
        """The next kernel casts the sum into the type of the product beside the adapter."""
        if total + 1 >= len(self._signatures):
            return False
        result, summed, cast = self._node(base).written_keys, self._node(total).written_keys, self._node(total + 1)
        converts = result != summed and cast.read_keys == summed and cast.written_keys == result
        return cast.operation == "cast" and converts

    def _writes(self, place: int, elements: int, operations: Sequence[str]) -> bool:
        node = self._node(place)
        return node.operation in operations and any(key[0] == elements for _, key in node.writes)

    def gradients(self, found: Sequence[_Adapter], backward: Bools) -> list[int]:
        """The places of the products that autograd runs for these adapters: of the same sizes in another order, in the
        ``backward`` pass. Forward they may be of an adapter whose sum is not seen."""
        of = {tuple(sorted((one.size[0], width, one.rank))) for one in found for width in one.size[1:]}
        if not of:
            return []
        fits = np.array([size is not None and tuple(sorted(size)) in of for size in self._sizes], dtype=np.bool_)
        chosen = fits[self._signatures[self._heavy]] & ~self._taken[self._heavy] & backward[self._heavy]
        places: list[int] = self._heavy[chosen].tolist()
        return places

    def in_front(self, products: Sequence[int], found: Sequence[_Adapter]) -> list[int]:
        """The places of what prepares the gradients that these products read: casts, and the scale."""
        sizes = {rows * columns for rows, columns, _ in (one.size for one in found)}
        places = set[int]()
        for product in products:
            place = product - 1
            while place >= max(product - BETWEEN - 1, 0) and place not in places and self._prepares(place, sizes):
                places.add(place)
                place -= 1
        return sorted(places)

    def _prepares(self, place: int, sizes: set[int]) -> bool:
        node = self._node(place)
        fits = node.operation in ("cast", "mul") and "single" in node.roles and bool(node.writes)
        return fits and not self._taken[place] and node.writes[0][1][0] in sizes


FACTS = (adapters,)
