"""Runs: passes over a stack of layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.fusion.nodes import KernelNodes
from advisors.layers.marks import Marks
from advisors.layers.stacks import Stack

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"


SAME = 0.8
"""Share of the kernels, by type, that a layer has in common with the same layer of another micro-batch: with experts
not all are the same."""


@dataclass(eq=False)
class Run:
    """One pass over a stack: kernels ``starts[i]`` to ``ends[i]`` of ``rows`` are a layer. ``share``: of the kernels,
    those that the layers have in common. ``tower``: number of the stack."""

    rows: Ints
    starts: Ints
    ends: Ints
    share: float
    backward: bool
    tower: int = -1

    def __len__(self) -> int:
        return len(self.starts)

    def layer(self, number: int) -> Ints:
        """The rows of a layer, counted in the order in which they run."""
        return np.asarray(self.rows[self.starts[number] : self.ends[number]])

    @property
    def first(self) -> int:
        """The first row."""
        return int(self.rows[self.starts[0]])

    @property
    def last(self) -> int:
        """The last row."""
        return int(self.rows[self.ends[-1] - 1])


def runs_of(rows: Ints, types: Ints, stacks: Sequence[Stack], marks: Marks, nodes: KernelNodes) -> list[Run]:
    """The passes over stacks. Stacks without a kernel between them are two kinds of layers of one. ``types``: of the
    rows. A pass without a gradient that runs what a forward pass ran is forward again, for the next micro-batch."""
    runs: list[Run] = []
    backward, gradient = nodes.backward[rows] & marks.heavy[rows], marks.gradient[rows]
    forward_layers: list[Counter[int]] = []
    for number, stack in enumerate(stacks):
        start, end = int(stack.starts[0]), int(stack.ends[-1])
        layer = Counter(types[start : stack.ends[0]].tolist())
        is_backward = bool(backward[start:end].any())
        if is_backward and not gradient[start:end].any():
            is_backward = not any(_same_layer(layer, previous) for previous in forward_layers)
        if not is_backward and not any(layer == previous for previous in forward_layers):
            forward_layers.append(layer)
        touches = bool(runs) and runs[-1].ends[-1] == start and not (stack.apart or stacks[number - 1].apart)
        if touches and runs[-1].backward == is_backward:
            previous_run = runs[-1]
            previous_run.starts, previous_run.ends = (
                np.append(previous_run.starts, stack.starts),
                np.append(previous_run.ends, stack.ends),
            )
            previous_run.share = min(previous_run.share, stack.share)
        else:
            runs.append(Run(rows, stack.starts, stack.ends, stack.share, is_backward))
    forward = ~nodes.backward[rows] & marks.heavy[rows]
    return [run for run in runs if not _is_one_layer(run, runs, forward)]


def _is_one_layer(run: Run, runs: Sequence[Run], forward: Bools) -> bool:
    """Whether what repeats is not a layer but a micro-batch: forward and backward through the only layer of a stage,
    and what is around it. Layers that are computed again for the backward pass ran forward before. ``forward``: heavy
    kernels of the forward pass."""
    both = run.backward and all(forward[start:end].any() for start, end in zip(run.starts, run.ends, strict=True))
    return both and not any(not other.backward and len(other) == len(run) and other.first < run.first for other in runs)


def _same_layer(left: Counter[int], right: Counter[int]) -> bool:
    return (left & right).total() >= SAME * max(left.total(), right.total())


class Towers:
    """Numbers the stacks of a rank. A forward pass is of the stack that has as many layers and the same weights, and a
    backward pass of that of the last forward pass over as many layers that has none yet."""

    def __init__(self, marks: Marks, nodes: KernelNodes, signature: Ints) -> None:
        self._marks, self._nodes, self._signature = marks, nodes, signature
        self._numbers: dict[object, int] = {}
        self._products: dict[int, int] = {}

    def number(self, runs: Sequence[Run]) -> None:
        """Number the runs of a step."""
        open_forward: list[Run] = []
        for run in runs:
            if not run.backward:
                run.tower = self._number(self._key(run))
                self._products.setdefault(run.tower, self._plain_products(run.layer(0)))
                open_forward.append(run)
                continue
            forward = next((candidate for candidate in reversed(open_forward) if len(candidate) == len(run)), None)
            if forward is None:
                run.tower = self._number((len(run), "backward"))
            else:
                run.tower = forward.tower
                open_forward.remove(forward)

    def per_product(self, run: Run) -> int:
        """Number of products of a backward pass for one of the forward pass: 2, or 1 where weights are not trained."""
        forward = self._products.get(run.tower, 0)
        rows = run.layer(0)
        count = self._plain_products(rows[self._nodes.backward[rows]])
        return max(1, round(count / forward)) if forward and count else 2

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _plain_products(self, rows: Ints) -> int:
        return int((self._marks.product[rows] & ~self._marks.attention[rows]).sum())

    def _key(self, run: Run) -> object:
        """Number of layers, and the weights of the first one; with experts each only once, as the routing
        decides how many of them run."""
        rows = run.layer(0)
        of_weights = rows[self._marks.product[rows] | self._marks.convolution[rows]]
        nodes = [self._nodes.nodes[int(self._signature[row])] for row in of_weights.tolist()]
        # A bias has one axis.
        operands = [[key for shape, key in node.reads if len(shape) > 1] for node in nodes]
        weights = Counter(keys[1] for keys in operands if len(keys) > 1)
        if self._marks.routing[rows].any():
            weights = Counter(dict.fromkeys(weights, 1))
        return len(run), frozenset(weights.items())
