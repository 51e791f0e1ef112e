"""The time of the passes where no layers repeat: forward, backward and optimizer by class of operator."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts
from advisor_core.api.renderers import Heatmap, HeatmapView, View
from advisors.fusion.chains import fusion_chains
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.blocks import Pass
from advisors.layers.drawings import PASSES
from advisors.layers.layers import layers
from advisors.messages import message
from advisors.network_structure.updates import updating_kernels
from advisors.step_kernels import step_kernels

Ints = npt.NDArray[np.int64]


def passes_of(backward: npt.NDArray[np.bool_], updating: npt.NDArray[np.bool_]) -> Ints:
    """The pass of each kernel, from whether it is of the backward pass and whether it updates weights."""
    return np.where(updating, Pass.OPTIMIZER, np.where(backward, Pass.BACKWARD, Pass.FORWARD)).astype(np.int64)


@drawing("layers.passes", needs=(step_kernels, kernel_nodes, fusion_chains, PROFILE), wants=(layers,))
def passes(facts: Facts) -> list[View]:
    """Kernel time per step by class of operator and pass, where there is a backward pass and no layers repeat."""
    kernels, backward, rank = facts[step_kernels], facts[kernel_nodes].backward, facts[PROFILE].rank
    if facts.get(layers) is not None or not backward.any():
        return []
    in_pass = passes_of(backward, updating_kernels(kernels, facts[fusion_chains]))
    frame = kernels.frame[["operator_class", "duration_ns"]].assign(in_pass=in_pass)
    sums = frame.groupby(["operator_class", "in_pass"], observed=True)["duration_ns"].sum() / kernels.steps
    shown = [one for one in Pass if (in_pass == one).any()]
    rows = sums.groupby(level=0, observed=True).sum().sort_values(ascending=False, kind="stable").index.tolist()
    values = [[float(sums.get((row, int(one)), 0.0)) for one in shown] for row in rows]
    return [
        HeatmapView(
            id=f"passes-rank{rank}",
            purpose="layers",
            title=message("layers.view.passes", rank=rank),
            unit="ns",
            rank=rank,
            data=Heatmap(
                rows=[Text(en=str(row), zh=str(row)) for row in rows],
                columns=[*(message(PASSES[one.key]) for one in shown), message("layers.sum")],
                values=[[*(round(ns) for ns in line), round(sum(line))] for line in values],
                total=len(shown),
            ),
        )
    ]


DRAWINGS: tuple[Drawing, ...] = (passes,)
