"""The layers of the model, and where the time of a step goes by layer, block and pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import Column, Facts, Unavailable, aggregated, fact, steps
from advisors.fusion.chains import Chains, fusion_chains
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.layers.blocks import Block, Pass, blocks_around, blocks_of_layer
from advisors.layers.marks import marks_of
from advisors.layers.modules import Modules, modules
from advisors.layers.runs import Run, Towers, runs_of
from advisors.layers.stacks import Stack, StepSequence, stacks
from advisors.layers.stages import with_first_blocks
from advisors.messages import message
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

TIMES = (
    Column("tower", "int", "", "stack of layers, from 0; -1: kernels of no layer"),
    Column("layer", "int", "", "number of the layer in its stack, from 0; -1: of no layer"),
    Column("pass", "text", "", "forward, recomputation, backward or optimizer"),
    Column("block", "text", "", "part of the layer, or of the step"),
    Column("kernels", "float", "count", "kernels per step"),
    Column("ns", "float", "ns", "their time per step"),
)

TOWERS = (
    Column("tower", "int", "", "stack of layers, from 0"),
    Column("layers", "int", "count", "layers of the stack"),
    Column("passes", "float", "count", "forward passes over the stack per step: micro-batches or tokens"),
    Column("kernels", "float", "count", "kernels of a layer in a forward pass, median"),
    Column("alike", "float", "ratio", "share of the kernels that all layers have in common"),
)


@dataclass(frozen=True)
class Layers:
    """``times``: per step by layer, pass and block. ``towers``: the stacks. By row of `StepKernels`: ``tower`` and
    ``layer`` (-1: of none), ``passes`` (`Pass`), ``blocks`` (`Block`), and ``run``, the pass over a stack (-1: none).
    ``modules``: those that were recorded, ``None`` without any.
    """

    times: pd.DataFrame
    towers: pd.DataFrame
    tower: Ints
    layer: Ints
    passes: Ints
    blocks: Ints
    run: Ints
    modules: Modules | None = None


@fact(
    "layers",
    needs=(step_kernels, kernel_nodes, fusion_chains, steps),
    wants=(modules,),
    frames={"times": TIMES, "towers": TOWERS},
)
def layers(facts: Facts) -> Layers:
    """The layers of the model, and the time of the kernels by layer, pass and block."""
    kernels = facts[step_kernels]
    starts = facts[steps]["start_ns"].to_numpy()
    step = np.searchsorted(starts, kernels.frame["start_ns"].to_numpy(), side="right") - 1
    booking = _Booking(kernels, facts[kernel_nodes], facts[fusion_chains])
    for number in range(kernels.steps):
        booking.step(np.flatnonzero(step == number))
    if not booking.runs:
        raise Unavailable(message("layers.none"))
    return replace(booking.layers(), modules=facts.get(modules))


class _Booking:
    """The kernels of a rank, booked step by step."""

    def __init__(self, kernels: StepKernels, nodes: KernelNodes, chains: Chains) -> None:
        self._kernels, self._nodes = kernels, nodes
        self._marks = marks_of(kernels, nodes, chains)
        self._signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
        self._type = pd.factorize(kernels.frame["type"])[0]
        # What it writes first; statistics follow.
        written = kernels.frame["output_shapes"].iloc[kernels.firsts].astype(str).str.partition(";")[0]
        self._written = np.asarray(pd.factorize(written)[0][self._signature], dtype=np.int64)
        self._stream = kernels.frame["stream"].to_numpy()
        self._start = kernels.frame["start_ns"].to_numpy()
        self._towers = Towers(self._marks, nodes, self._signature)
        self._stacks: dict[bytes, list[Stack]] = {}
        self._blocks: dict[tuple[bytes, bool, int], Ints] = {}
        self.runs: list[Run] = []
        self._tower, self._layer, self._run = (np.full(len(kernels.frame), -1, dtype=np.int64) for _ in range(3))
        self._passes = np.where(nodes.backward, Pass.BACKWARD, Pass.FORWARD).astype(np.int64)
        self._block = np.full(len(kernels.frame), Block.OTHER, dtype=np.int64)

    def step(self, rows: Ints) -> None:
        """Book the kernels of a step: those of the stream with most products by layers, those of other streams with
        the kernel that runs when they start."""
        if not len(rows):
            return
        _, stream_code = np.unique(self._stream[rows], return_inverse=True)
        is_main = stream_code == np.bincount(stream_code, weights=self._marks.heavy[rows]).argmax()
        main, other_rows = rows[is_main], rows[~is_main]
        step_runs = runs_of(main, self._type[main], self._stacks_of(main), self._marks, self._nodes)
        self._towers.number(step_runs)
        for run in step_runs:
            self._book(run)
        outside = main[self._run[main] < 0]
        around_blocks = blocks_around(outside, step_runs, self._marks, self._nodes.backward)
        self._block[outside], self._passes[outside] = around_blocks
        concurrent = main[np.maximum(np.searchsorted(self._start[main], self._start[other_rows], side="right") - 1, 0)]
        for values in (self._tower, self._layer, self._run, self._passes, self._block):
            values[other_rows] = values[concurrent]

    def _stacks_of(self, rows: Ints) -> list[Stack]:
        signature, backward = self._signature[rows], self._nodes.backward[rows]
        key = signature.tobytes()
        if key not in self._stacks:
            begin = int(backward.argmax()) if backward.any() else len(rows)
            marks = self._marks.part(rows)
            types, written = self._type[rows], self._written[rows]
            sequence = StepSequence(
                signature, types, marks.heavy, marks.rare, marks.convolution, written, self._kernels.shaped
            )
            self._stacks[key] = with_first_blocks(sequence, stacks(sequence, begin), begin)
        return self._stacks[key]

    def _book(self, run: Run) -> None:
        per_product = self._towers.per_product(run) if run.backward else 1
        for position in range(len(run)):
            rows = run.layer(position)
            self._run[rows], self._tower[rows] = len(self.runs), run.tower
            self._layer[rows] = len(run) - 1 - position if run.backward else position
            is_recomputed = ~self._nodes.backward[rows] & run.backward
            self._passes[rows] = np.where(
                is_recomputed, Pass.RECOMPUTATION, Pass.BACKWARD if run.backward else Pass.FORWARD
            )
            for block_rows, backward in ((rows[~is_recomputed], run.backward), (rows[is_recomputed], False)):
                self._block[block_rows] = self._blocks_of(block_rows, backward, per_product)
        self.runs.append(run)

    def _blocks_of(self, rows: Ints, backward: bool, per_product: int) -> Ints:
        key = self._signature[rows].tobytes(), backward, per_product
        if key not in self._blocks:
            marks = self._marks.part(rows)
            self._blocks[key] = blocks_of_layer(marks, backward=backward, per_product=per_product)
        return self._blocks[key]

    def layers(self) -> Layers:
        """The booked kernels, with sums."""
        frame = pd.DataFrame(
            {
                "tower": self._tower,
                "layer": self._layer,
                "pass": self._passes,
                "block": self._block,
                "ns": self._kernels.frame["duration_ns"].to_numpy(),
            }
        )
        sums = aggregated(frame, ("tower", "layer", "pass", "block"), size=("ns", "size"), sum=("ns", "sum"))
        times = pd.DataFrame(
            {
                "tower": sums["tower"],
                "layer": sums["layer"],
                "pass": pd.Series([Pass(code).key for code in sums["pass"].tolist()], dtype="str"),
                "block": pd.Series([Block(code).key for code in sums["block"].tolist()], dtype="str"),
                "kernels": sums["size"] / self._kernels.steps,
                "ns": sums["sum"] / self._kernels.steps,
            }
        )
        return Layers(times, self._tower_rows(), self._tower, self._layer, self._passes, self._block, self._run)

    def _tower_rows(self) -> pd.DataFrame:
        numbers = sorted({run.tower for run in self.runs})
        runs_by_tower = [[run for run in self.runs if run.tower == number] for number in numbers]
        forward = [[run for run in runs if not run.backward] for runs in runs_by_tower]
        lengths = [
            np.concatenate([run.ends - run.starts for run in forward_runs or runs])
            for forward_runs, runs in zip(forward, runs_by_tower, strict=True)
        ]
        return pd.DataFrame(
            {
                "tower": np.array(numbers, dtype=np.int64),
                "layers": np.array([len(runs[0]) for runs in runs_by_tower], dtype=np.int64),
                "passes": np.array([len(runs) / self._kernels.steps for runs in forward], dtype=np.float64),
                "kernels": np.array([np.median(layer_lengths) for layer_lengths in lengths], dtype=np.float64),
                "alike": np.array([min(run.share for run in runs) for runs in runs_by_tower], dtype=np.float64),
            }
        )


FACTS = (layers,)
