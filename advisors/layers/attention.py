"""The stages of attention: the projections before the scores, scores and weighted values, the projection behind them.

What is part of attention is told by the layers. Inside a layer scores and values are what attentions, softmaxes and the
products of two activations beside them compute; in the forward pass the products before them are the projections of
queries, keys and values, the one behind them that of the output. In the backward pass the order is reversed.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts, aggregated
from advisor_core.api.renderers import Cell, View
from advisors.fusion.chains import fusion_chains
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.blocks import Block, Pass
from advisors.layers.drawings import PASSES
from advisors.layers.layers import Layers, layers
from advisors.layers.marks import Marks, marks_of
from advisors.messages import message
from advisors.rank_tables import rank_table
from advisors.roofline.products import products
from advisors.step_kernels import step_kernels

Ints = npt.NDArray[np.int64]

SHOWN = 30
"""Rows of the table, those that take longest; the title says of how many."""


class Stage(IntEnum):
    """The stages of attention, in the order of a forward pass."""

    INPUTS = 0
    CACHE = 1
    CORE = 2
    OUTPUT = 3
    REST = 4


_STAGES = {
    Stage.INPUTS: "layers.attention.inputs",
    Stage.CACHE: "layers.attention.cache",
    Stage.CORE: "layers.attention.core",
    Stage.OUTPUT: "layers.attention.output",
    Stage.REST: "layers.attention.rest",
}
_COLUMNS = (
    ("layers.attention.stage", ""),
    ("layers.collectives.pass", ""),
    ("layers.attention.operator", ""),
    ("layers.attention.size", ""),
    ("layers.collectives.layers", ""),
    ("layers.attention.kernels", ""),
    ("layers.attention.time", "ns"),
)


def stages_of(model: Layers, marks: Marks) -> Ints:
    """The stage of each kernel, by row of `StepKernels`; -1: no part of the attention of a layer."""
    stages = np.full(len(model.blocks), -1, dtype=np.int64)
    rows = np.flatnonzero(np.isin(model.blocks, (Block.ATTENTION, Block.CACHE)) & (model.layer >= 0))
    if not len(rows):
        return stages
    again = model.passes[rows] == Pass.RECOMPUTATION
    _, group = np.unique(np.stack([model.run[rows], model.layer[rows], again]), axis=1, return_inverse=True)
    is_core = marks.attention[rows]
    first, last = np.full(int(group.max()) + 1, len(stages)), np.full(int(group.max()) + 1, -1)
    np.minimum.at(first, group[is_core], rows[is_core])
    np.maximum.at(last, group[is_core], rows[is_core])
    # Without scores (a product whose scores another stream computes) no side is told.
    before, behind = rows < first[group], rows > last[group]
    reverse = model.passes[rows] == Pass.BACKWARD
    projection = marks.product[rows] & ~is_core & (last[group] >= 0)
    stage = np.full(len(rows), Stage.REST, dtype=np.int64)
    stage[projection & np.where(reverse, behind, before)] = Stage.INPUTS
    stage[projection & np.where(reverse, before, behind)] = Stage.OUTPUT
    stage[is_core] = Stage.CORE
    stage[model.blocks[rows] == Block.CACHE] = Stage.CACHE
    stages[rows] = stage
    return stages


@drawing("layers.attention", needs=(layers, step_kernels, kernel_nodes, fusion_chains, PROFILE))
def attention(facts: Facts) -> list[View]:
    """Kernel time of the attention of all layers per step by stage, pass and operator, with the sizes of products."""
    kernels, model, rank = facts[step_kernels], facts[layers], facts[PROFILE].rank
    stage = stages_of(model, marks_of(kernels, facts[kernel_nodes], facts[fusion_chains]))
    rows = np.flatnonzero(stage >= 0)
    if not len(rows):
        return []
    frame = kernels.frame.iloc[rows]
    sizes = products(kernels).set_index("signature")
    named = pd.Series([_size(*numbers) for numbers in sizes[["batch", "m", "n", "k"]].to_numpy()], index=sizes.index)
    table = pd.DataFrame(
        {
            "stage": stage[rows],
            "in_pass": model.passes[rows],
            "operator": frame["type"].astype(str).to_numpy(),
            "size": frame["signature"].map(named).fillna("").to_numpy(dtype=object),
            "place": model.tower[rows] * (int(model.layer.max()) + 1) + model.layer[rows],
            "ns": frame["duration_ns"].to_numpy(dtype=np.int64),
        }
    )
    by = ["stage", "in_pass", "operator", "size"]
    sums = aggregated(
        table, by, kernels=("ns", "size"), took=("ns", "sum"), layers=("place", lambda own: len(set(own)))
    )
    shown = sums.sort_values("took", ascending=False, kind="stable").head(SHOWN)
    shown = shown.sort_values(["in_pass", "stage", "took"], ascending=[True, True, False], kind="stable")
    cells = [_row(row, kernels.steps) for row in shown.itertuples()]
    title = message("layers.view.attention", rank=rank, shown=len(cells), count=len(sums))
    return [rank_table("attention-stages", title, rank, _COLUMNS, cells)]


def _size(batch: int, m: int, n: int, k: int) -> str:
    return f"{m} x {n} x {k}" if batch == 1 else f"{batch} x ({m} x {n} x {k})"


def _row(row: object, steps: int) -> list[Cell]:
    stage, in_pass, operator, size, kernels, took, in_layers = (
        getattr(row, name) for name in ("stage", "in_pass", "operator", "size", "kernels", "took", "layers")
    )
    return [
        message(_STAGES[Stage(stage)]),
        message(PASSES[Pass(in_pass).key]),
        operator,
        size or None,
        int(in_layers),
        kernels / steps,
        took / steps,
    ]


DRAWINGS: tuple[Drawing, ...] = (attention,)
