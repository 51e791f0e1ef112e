"""The place of collectives in the model: the part, the pass and the kernel that each stands behind, as a table.

Nothing recorded says which kernel wrote the data of a collective. It is told from what ended last before the collective
began, on the stream that computes most: a product that is divided between ranks is followed by the sum of its results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts, aggregated, collective_calls, work
from advisor_core.api.renderers import Cell, View
from advisors.communication.calls import calls_in_steps
from advisors.layers.blocks import Block, Pass
from advisors.layers.drawings import BLOCKS, PASSES
from advisors.layers.layers import layers
from advisors.messages import message
from advisors.rank_tables import rank_table
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

SHOWN = 20
"""Rows of the table, those whose collectives take longest; the title says of how many."""

_COLUMNS = (
    ("layers.collectives.operation", ""),
    ("layers.collectives.behind", ""),
    ("layers.collectives.block", ""),
    ("layers.collectives.pass", ""),
    ("layers.collectives.layers", ""),
    ("communication.group.calls", ""),
    ("communication.group.took", "ns"),
    ("communication.group.uncovered", "ns"),
)


@drawing("layers.collectives", needs=(layers, step_kernels, collective_calls, work, PROFILE))
def collectives(facts: Facts) -> list[View]:
    """Collectives per step by the kernel and the part of the model that they stand behind."""
    calls, kernels, model, rank = calls_in_steps(facts), facts[step_kernels], facts[layers], facts[PROFILE].rank
    before = ended_before(kernels, calls["start_ns"].to_numpy(dtype=np.int64))
    # Of a collective in front of all kernels of the recording nothing is known.
    calls, before = calls[before >= 0], before[before >= 0]
    if calls.empty:
        return []
    kinds = facts[work]["type"].astype(str).to_numpy()[calls["work"].to_numpy()]
    placed = calls.assign(
        kind=[kind.strip("_") or operation for kind, operation in zip(kinds, calls["operation"], strict=True)],
        behind=kernels.frame["type"].astype(str).to_numpy()[before],
        block=model.blocks[before],
        in_pass=model.passes[before],
        place=model.tower[before] * (int(model.layer.max(initial=0)) + 1) + model.layer[before],
        in_layer=model.layer[before] >= 0,
    )
    by = ["kind", "behind", "block", "in_pass"]
    sums = aggregated(
        placed, by, calls=("work", "size"), took=("elapse_ns", "sum"), uncovered=("uncovered_ns", "sum")
    ).sort_values("took", ascending=False, kind="stable")
    of_layers = placed[placed["in_layer"]].groupby(by)["place"].nunique()
    rows = [_row(row, of_layers, kernels.steps) for row in sums.head(SHOWN).itertuples()]
    title = message("layers.view.collectives", rank=rank, shown=len(rows), count=len(sums))
    return [rank_table("collective-places", title, rank, _COLUMNS, rows)]


def _row(row: object, of_layers: pd.Series, steps: int) -> list[Cell]:
    kind, behind, block, in_pass, calls, took, uncovered = (
        getattr(row, name) for name in ("kind", "behind", "block", "in_pass", "calls", "took", "uncovered")
    )
    return [
        kind,
        behind,
        message(BLOCKS[Block(block).key]),
        message(PASSES[Pass(in_pass).key]),
        int(of_layers.get((kind, behind, block, in_pass), 0)) or None,
        calls / steps,
        took / steps,
        uncovered / steps,
    ]


def ended_before(kernels: StepKernels, starts: Ints) -> Ints:
    """The row of the kernel that ended last before each of these times, on the stream that computes longest; -1 where
    none did."""
    frame = kernels.frame
    by_stream = frame.groupby("stream")["duration_ns"].sum()
    main = by_stream.idxmax() if len(by_stream) else -1
    rows = np.flatnonzero((frame["stream"] == main).to_numpy())
    ends = (frame["start_ns"] + frame["duration_ns"]).to_numpy(dtype=np.int64)[rows]
    order = np.argsort(ends, kind="stable")
    place = np.searchsorted(ends[order], starts, side="right") - 1
    return np.append(rows[order], -1)[place]


DRAWINGS: tuple[Drawing, ...] = (collectives,)
