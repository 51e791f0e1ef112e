"""The origin of kernels: the part of the model, the pass, the number of layers, and the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Reference
from advisor_core.api.facts import Facts
from advisors.columns import PER_STEP_NS
from advisors.layers.blocks import Block, Pass
from advisors.layers.layers import layers
from advisors.layers.modules import Modules
from advisors.messages import message
from advisors.step_kernels import call_stack, records, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

SHOWN = 8

PLACES = (
    Column("part_of_model", "text", "", "embedding, norm, attention, ffn, experts, head ...", zh="模型部分"),
    Column("module", "text", "", "class of the modules, with its caller; of the one with most of the time", zh="模块"),
    Column("pass", "text", "", "forward, recomputation, backward or optimizer", zh="阶段"),
    Column("layers", "int", "count", "layers in which they run; 0: in none", zh="层数"),
    Column("runs", "float", "count", "kernels there, per step", zh="kernel 数"),
    PER_STEP_NS,
)
"""The columns that `origin` shows."""


def origin(facts: Facts, part: pd.DataFrame) -> list[Reference]:
    """The place in the model of the kernels ``part``, rows of the frame of `StepKernels`, and the code that calls the
    longest of them; nothing of what is not known. For advisors that want the facts ``layers`` and ``launches`` and the
    table ``host_events``, and show the columns `PLACES`."""
    return [*_places(facts, part), *call_stack(facts, part)]


def _modules(found: Modules, rows: Ints) -> list[str]:
    """The class of the module of each kernel, behind that of its caller; '' unknown."""
    kinds, parents = found.table["kind"].tolist(), found.table["parent"].tolist()
    called = [kind if parent < 0 else f"{kinds[parent]} / {kind}" for kind, parent in zip(kinds, parents, strict=True)]
    return [called[module] if module >= 0 else "" for module in found.module[rows].tolist()]


def _places(facts: Facts, part: pd.DataFrame) -> list[Reference]:
    """The parts of the model with most time first."""
    model_layers = facts.get(layers)
    if model_layers is None or not len(part):
        return []
    rows = part.index.to_numpy()
    frame = pd.DataFrame(
        {
            "block": model_layers.blocks[rows],
            "pass": model_layers.passes[rows],
            "tower": model_layers.tower[rows],
            "layer": model_layers.layer[rows],
            "ns": part["duration_ns"].to_numpy(),
        }
    )
    sums = frame.groupby(["block", "pass"])["ns"].agg(["size", "sum"])
    inside = frame[frame["layer"] >= 0].drop_duplicates(["block", "pass", "tower", "layer"])
    counts = inside.groupby(["block", "pass"]).size().reindex(sums.index, fill_value=0)
    steps = facts[step_kernels].steps
    table = pd.DataFrame(
        {
            "part_of_model": [Block(block).key for block, _ in sums.index],
            "pass": [Pass(pass_number).key for _, pass_number in sums.index],
            "layers": counts.to_numpy(),
            "runs": sums["size"].to_numpy() / steps,
            "per_step_ns": sums["sum"].to_numpy() / steps,
        }
    )
    if model_layers.modules is not None:
        named = pd.Series(_modules(model_layers.modules, rows), index=frame.index)
        longest = frame.assign(module=named).groupby(["block", "pass", "module"])["ns"].sum()
        table["module"] = [longest[place].idxmax() or None for place in sums.index]
    table = table.sort_values("per_step_ns", ascending=False, kind="stable").head(SHOWN)
    return [Metric(message("layers.places"), records(table))]
