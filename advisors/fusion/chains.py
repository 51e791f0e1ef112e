"""The kernels that one fused kernel replaces, as rows: what they take, and what the fused kernel would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import Column, Facts, aggregated, elements, fact, picked
from advisors.fusion.adapters import BESIDE, adapters
from advisors.fusion.clipping import gradient_clipping
from advisors.fusion.computations import Computation, computations, vocabulary
from advisors.fusion.dataflow import OF_PYTORCH
from advisors.fusion.nodes import DESCRIBED, KernelNodes, kernel_nodes, nodes_of
from advisors.fusion.search import search
from advisors.fusion.sequence import Kernels
from advisors.fusion.tensors import Tensors, tensors_of, traffic
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

COLUMNS = (
    Column("pattern", "text", "", "name of the computation"),
    Column("backward", "bool", "", "it is a chain that autograd runs"),
    Column("kernels", "int", "count", "kernels of the chain"),
    Column("chain_ns", "int", "ns", "their time"),
    Column("kept_ns", "int", "ns", "of it: kernels whose work stays"),
    Column("copied_ns", "int", "ns", "of it: the copy that makes a plain array of the input, where that stays"),
    Column("best_bandwidth", "float", "B/s", "what its best kernel reaches"),
    Column("fused_bytes", "int", "B", "what a fused kernel moves, -1 unknown"),
    Column("types", "text", "", "operator types"),
    Column("shape", "text", "", "its largest tensor"),
)


@dataclass(frozen=True)
class Chains:
    """``frame``: one row per chain. ``members``: rows of the frame of `StepKernels`; ``chain_of``: their chains."""

    frame: pd.DataFrame
    members: Ints
    chain_of: Ints

    def of(self, chains: Ints) -> Ints:
        """The kernels of the chains with these numbers."""
        return self.members[np.isin(self.chain_of, chains)]


@fact("fusion_chains", needs=(step_kernels, kernel_nodes, gradient_clipping, adapters), frames={"frame": COLUMNS})
def fusion_chains(facts: Facts) -> Chains:
    """The kernels that compute what a fused kernel would, a chain of them for each time that it is computed."""
    beside = facts[adapters].members[facts[adapters].role == BESIDE]
    elsewhere = np.concatenate([facts[gradient_clipping].members, beside])
    return find_chains(facts[step_kernels], facts[kernel_nodes], elsewhere)


def find_chains(kernels: StepKernels, nodes: KernelNodes | None = None, elsewhere: Ints | None = None) -> Chains:
    """All chains of all computations; a kernel belongs to one chain at most, and to none if it is one of those
    ``elsewhere``. None where no shapes are recorded."""
    if not kernels.shaped:
        return _summary(kernels, [])
    nodes = nodes or nodes_of(kernels)
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    sequence = Kernels(
        signature,
        nodes.nodes,
        nodes.backward,
        group=np.cumsum(kernels.breaks),
        part=np.cumsum(kernels.begins),
        goes_on=kernels.goes_on,
    )
    sought = [computation for computation in computations() if computation.on_gpus or not nodes.on_gpu]
    return _summary(kernels, _with_forward(search(sequence, sought, elsewhere)))


def _with_forward(chains: Sequence[tuple[Computation, Ints]]) -> list[tuple[Computation, Ints]]:
    """Without backward chains of what was not found in any forward pass: alone they name no computation, as those of
    another one can look alike (a LayerNorm runs backward through what an RMSNorm does)."""
    forward = {computation.api for computation, _ in chains if not computation.backward}
    return [(computation, chain) for computation, chain in chains if computation.api in forward]


def _summary(kernels: StepKernels, chains: Sequence[tuple[Computation, Ints]]) -> Chains:
    lengths = np.array([len(chain) for _, chain in chains], dtype=np.int64)
    members = np.concatenate([chain for _, chain in chains]) if chains else np.zeros(0, dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    chain_of = np.repeat(np.arange(len(chains)), lengths)
    part = picked(kernels.frame, members, ("type", "duration_ns", "bytes", "signature"))
    durations = part["duration_ns"].to_numpy()
    computation_of = [pattern for pattern, _ in chains]
    signatures = part["signature"].to_numpy()
    distinct = np.unique(signatures)
    described = picked(kernels.frame, kernels.firsts[distinct], DESCRIBED).to_dict("records")
    tensors = {signature: tensors_of(row) for signature, row in zip(distinct.tolist(), described, strict=True)}
    operations = vocabulary()
    type_code, known_types = pd.factorize(part["type"].astype(object))
    types = known_types.to_numpy()[type_code]
    described_by_key: dict[tuple[str, bool, bytes], tuple[int, str, str, int]] = {}
    descriptions = []
    for computation, first, last in zip(computation_of, starts, ends, strict=True):
        key = (computation.name, computation.backward, signatures[first:last].tobytes())
        if key not in described_by_key:
            chain = [tensors[signature] for signature in signatures[first:last].tolist()]
            described_by_key[key] = _described(computation, types[first:last].tolist(), chain)
        descriptions.append(described_by_key[key])
    operation = [operations.operation_of(str(name)) for name in known_types]
    keeps = {id(computation): computation.keeps for computation in computation_of}
    row_of = {computation: row for row, computation in enumerate(keeps)}
    kept = np.array([[name in own for name in operation] for own in keeps.values()], dtype=np.bool_)
    rows = np.array([row_of[id(computation)] for computation in computation_of], dtype=np.int64)
    is_kept = kept.reshape(len(keeps), len(operation))[rows[chain_of], type_code]
    copies = np.array([place for _, _, _, place in descriptions], dtype=np.int64)
    copied = np.where(copies >= 0, durations[starts + np.maximum(copies, 0)], 0) if len(chains) else lengths
    bandwidth = np.where(part["bytes"] > 0, part["bytes"] / np.maximum(durations, 1) * 1e9, np.nan)
    sums = pd.DataFrame(
        {"number": chain_of, "chain_ns": durations, "kept_ns": np.where(is_kept, durations, 0), "speed": bandwidth}
    )
    grouped = aggregated(
        sums,
        "number",
        chain_ns=("chain_ns", "sum"),
        kept_ns=("kept_ns", "sum"),
        best_bandwidth=("speed", "max"),
    )
    summary = pd.DataFrame(
        {
            "pattern": pd.Series([computation.name for computation in computation_of], dtype="str"),
            "backward": pd.Series([computation.backward for computation in computation_of], dtype="bool"),
            "kernels": lengths,
            "chain_ns": grouped["chain_ns"].to_numpy(),
            "kept_ns": grouped["kept_ns"].to_numpy(),
            "copied_ns": copied,
            "best_bandwidth": grouped["best_bandwidth"].to_numpy(dtype=np.float64),
            "fused_bytes": pd.Series([fused_bytes for fused_bytes, _, _, _ in descriptions], dtype="int64"),
            "types": pd.Series([types for _, types, _, _ in descriptions], dtype="str"),
            "shape": pd.Series([shape for _, _, shape, _ in descriptions], dtype="str"),
        }
    )
    return Chains(summary, members.astype(np.int64), chain_of)


def _described(computation: Computation, types: list[str], chain: Sequence[Tensors]) -> tuple[int, str, str, int]:
    """The bytes of the fused kernel, the operator types, the largest tensor, and the place of the copy that makes a
    plain array of the input (-1: none that stays)."""
    shapes = [shape for kernel in chain for shape, _ in (*kernel.inputs, *kernel.outputs)]
    largest_shape = max(shapes, key=elements, default=())
    return (
        traffic(chain, computation.passes, wide=computation.wide, appends=computation.appends),
        " + ".join(types),
        ",".join(map(str, largest_shape)),
        _plain_copy(types, chain) if computation.plain_input else -1,
    )


def _plain_copy(types: Sequence[str], chain: Sequence[Tensors]) -> int:
    """The copy in front of all arithmetic of the chain that is as large as its result; -1 if there is none."""
    words = vocabulary()
    result = sum(elements(shape) for shape, _ in chain[-1].outputs)
    for place, (operator, kernel) in enumerate(zip(types, chain, strict=True)):
        operation = words.operation_of(operator)
        if operation not in words.carrying:
            break
        # On GPUs a copy into another type is a cast, which the fused kernel does itself.
        casts = bool(kernel.inputs and kernel.outputs) and kernel.inputs[0][1] != kernel.outputs[0][1]
        written = sum(elements(shape) for shape, _ in kernel.outputs)
        if operation in ("copy", "slice") and written == result and not (casts and operator.startswith(OF_PYTORCH)):
            return place
    return -1


FACTS = (fusion_chains,)
