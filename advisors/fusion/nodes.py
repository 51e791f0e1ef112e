"""The kernels of a rank as nodes of the data flow, and the pass that each belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_core.api.facts import Facts, fact, picked
from advisors.fusion.computations import vocabulary
from advisors.fusion.dataflow import Node, node_of
from advisors.fusion.passes import backward_kernels
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

DESCRIBED = ["type", "input_shapes", "input_dtypes", "output_shapes", "output_dtypes"]


@dataclass(frozen=True)
class KernelNodes:
    """``nodes``: by signature. ``backward``: of each row of `StepKernels`, as of `passes`."""

    nodes: list[Node]
    backward: npt.NDArray[np.bool_]

    @property
    def on_gpu(self) -> bool:
        """Whether the kernels are those of operators of PyTorch on a GPU."""
        return any(node.views for node in self.nodes)


@fact("kernel_nodes", needs=(step_kernels,))
def kernel_nodes(facts: Facts) -> KernelNodes:
    """The operation of each kernel, the tensors that it reads and writes, and whether it is in the backward pass."""
    return nodes_of(facts[step_kernels])


def nodes_of(kernels: StepKernels) -> KernelNodes:
    """The nodes of these kernels."""
    frame, operations = kernels.frame, vocabulary()
    signature = frame["signature"].to_numpy(dtype=np.int64)
    nodes = [node_of(row, operations) for row in picked(frame, kernels.firsts, DESCRIBED).to_dict("records")]
    backward = np.zeros(len(frame), dtype=np.bool_)
    known: dict[bytes, npt.NDArray[np.bool_]] = {}  # most steps of a program are alike
    for part in kernels.parts():
        run = signature[part]
        key = run.tobytes()
        if key not in known:
            known[key] = backward_kernels(nodes, run)
        backward[part] = known[key]
    return KernelNodes(nodes, backward)


FACTS = (kernel_nodes,)
