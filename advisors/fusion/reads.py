"""The writers of the tensors that kernels read: the nearest kernel before it that wrote a tensor of that size and type.

`dataflow.Window` tries several candidates for an expression that has to fit. This is the answer for questions about
single pairs of kernels, where nothing else decides between candidates, over all kernels of a rank at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import Facts, fact
from advisors.fusion.dataflow import Key, Node
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True)
class Reads:
    """One entry for each tensor of more than one element that a kernel reads and a kernel before it wrote, on its
    stream and with no collective in between; sorted by ``reader``. ``writer`` and ``reader``: rows of the frame of
    `StepKernels`. ``first``: it is the first tensor that the reader lists."""

    writer: Ints
    reader: Ints
    first: npt.NDArray[np.bool_]

    def only(self, readers: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Of every kernel, whether some kernel reads what it wrote and all that do are among ``readers``."""
        read_count = np.bincount(self.writer, minlength=len(readers))
        given_read_count = np.bincount(self.writer[readers[self.reader]], minlength=len(readers))
        return np.asarray((read_count > 0) & (read_count == given_read_count))


@fact("kernel_reads", needs=(step_kernels, kernel_nodes))
def kernel_reads(facts: Facts) -> Reads:
    """The kernel that wrote each tensor that a kernel reads."""
    return reads_of(facts[step_kernels], facts[kernel_nodes])


def reads_of(kernels: StepKernels, nodes: KernelNodes) -> Reads:
    """The same of these kernels; none where no shapes are recorded."""
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    group = np.cumsum(kernels.breaks, dtype=np.int64)
    keys: dict[Key, int] = {}
    read_rows, read_keys, first = _tensors(nodes.nodes, signature, keys, "reads")
    written_rows, written_keys, _ = _tensors(nodes.nodes, signature, keys, "writes")
    # One number for group, key and row: in the sorted writers the one before a reader is the nearest.
    row_count, key_count = len(signature) + 1, len(keys) + 1
    read_codes = (group[read_rows] * key_count + read_keys) * row_count + read_rows
    written_codes = np.unique((group[written_rows] * key_count + written_keys) * row_count + written_rows)
    nearest_index = np.searchsorted(written_codes, read_codes, side="left") - 1
    nearest = written_codes[np.maximum(nearest_index, 0)] if len(written_codes) else np.full(len(read_codes), -1)
    has_writer = (nearest_index >= 0) & (nearest // row_count == read_codes // row_count)
    return Reads((nearest % row_count)[has_writer], read_rows[has_writer], first[has_writer])


def _tensors(
    nodes: Sequence[Node], signature: Ints, keys: dict[Key, int], side: str
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Row and number of the key of each tensor, and whether the kernel lists it first."""
    keys_by_node = [[keys.setdefault(key, len(keys)) for _, key in getattr(node, side)] for node in nodes]
    counts = np.array([len(node_keys) for node_keys in keys_by_node], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    flat_keys = np.array([key for node_keys in keys_by_node for key in node_keys], dtype=np.int64)
    tensor_counts = counts[signature]
    rows = np.repeat(np.arange(len(signature)), tensor_counts)
    position = np.arange(len(rows)) - np.repeat(np.cumsum(tensor_counts) - tensor_counts, tensor_counts)
    return rows, flat_keys[starts[signature][rows] + position], position == 0


FACTS = (kernel_reads,)
