"""The kernels of a rank in the order in which a computation is looked for in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.fusion.computations import Computation
from advisors.fusion.dataflow import Node

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True)
class Kernels:
    """The kernels in order: ``signature`` of each, ``nodes`` by signature, ``backward`` as of `passes`. A computation
    does not reach from one ``group`` into another; one that reaches across collectives stays in its ``part``, a stream
    of a step. ``goes_on``: as of `StepKernels`; these belong to what the kernel before belongs to."""

    signature: Ints
    nodes: Sequence[Node]
    backward: Bools
    group: Ints
    part: Ints
    goes_on: Bools

    def calls(self) -> Kernels:
        """The first kernel of each call alone."""
        first = ~self.goes_on
        return Kernels(self.signature[first], self.nodes, self.backward[first], self.group[first], self.part[first],
            self.goes_on[first])  # fmt: skip

    def within(self, computation: Computation) -> Ints:
        """The groups that the computation stays in, by number."""
        return self.part if computation.across else self.group

    def node(self, number: int) -> Node:
        """The node of a kernel."""
        return self.nodes[int(self.signature[number])]
