"""Views of the kernel time of a step by block and pass, and by layer."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts
from advisor_core.api.renderers import Heatmap, HeatmapView, View
from advisors.layers.blocks import Block, Pass
from advisors.layers.layers import Layers, layers
from advisors.messages import message

BLOCKS = {
    Block.EMBEDDING.key: "layers.block.embedding",
    Block.NORM.key: "layers.block.norm",
    Block.ATTENTION.key: "layers.block.attention",
    Block.CACHE.key: "layers.block.cache",
    Block.FFN.key: "layers.block.ffn",
    Block.EXPERTS.key: "layers.block.experts",
    Block.CONVOLUTION.key: "layers.block.convolution",
    Block.HEAD.key: "layers.block.head",
    Block.LOSS.key: "layers.block.loss",
    Block.OPTIMIZER.key: "layers.block.optimizer",
    Block.OTHER.key: "layers.block.other",
}
PASSES = {
    Pass.FORWARD.key: "layers.pass.forward",
    Pass.RECOMPUTATION.key: "layers.pass.recomputation",
    Pass.BACKWARD.key: "layers.pass.backward",
    Pass.OPTIMIZER.key: "layers.pass.optimizer",
}
"""The names of the blocks and passes, as messages."""


@drawing("layers.blocks", needs=(layers, PROFILE))
def blocks(facts: Facts) -> list[View]:
    """Kernel time per step by block and pass, and in each layer of a stack by block."""
    model_layers, rank = facts[layers], facts[PROFILE].rank
    return [
        _by_pass(model_layers, rank),
        *(_by_layer(model_layers, rank, int(tower)) for tower in model_layers.towers["tower"]),
    ]


def _by_pass(model_layers: Layers, rank: int) -> View:
    sums = model_layers.times.groupby(["block", "pass"])["ns"].sum()
    rows = [block.key for block in Block if block.key in sums.index.get_level_values("block")]
    passes = [each.key for each in Pass if each.key in sums.index.get_level_values("pass")]
    names = [*(message(PASSES[pass_key]) for pass_key in passes), message("layers.sum")]
    cells = [[sums.get((row, pass_key)) for pass_key in passes] for row in rows]
    values = [[*_rounded(line), _rounded([sum(ns for ns in line if ns is not None)])[0]] for line in cells]
    return HeatmapView(
        id=f"blocks-rank{rank}",
        purpose="layers",
        title=_title(model_layers, rank),
        unit="ns",
        rank=rank,
        data=Heatmap(rows=[_block(row) for row in rows], columns=names, values=values, total=len(passes)),
    )


def _title(model_layers: Layers, rank: int) -> Text:
    counts = ", ".join(str(count) for count in model_layers.towers["layers"])
    return message("layers.view.blocks", rank=rank, layers=counts)


def _by_layer(model_layers: Layers, rank: int, tower: int) -> View:
    tower_times = model_layers.times[model_layers.times["tower"] == tower]
    sums = tower_times.groupby(["block", "layer"])["ns"].sum()
    rows = [block.key for block in Block if block.key in sums.index.get_level_values("block")]
    layer_numbers = sorted(set(tower_times["layer"].tolist()))
    return HeatmapView(
        id=f"layers-rank{rank}-stack{tower}",
        purpose="layers",
        title=message("layers.view.layers", rank=rank, stack=tower),
        unit="ns",
        rank=rank,
        data=Heatmap(
            rows=[_block(row) for row in rows],
            columns=[str(layer) for layer in layer_numbers],
            values=[_rounded([sums.get((row, layer)) for layer in layer_numbers]) for row in rows],
        ),
    )


def _rounded(values: Sequence[float | None]) -> list[int | float | None]:
    return [None if value is None else round(value) for value in values]


def _block(key: str) -> Text:
    return message(BLOCKS[key])


DRAWINGS: tuple[Drawing, ...] = (blocks,)
