"""NS070: operators in layers that no part of a layer needs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api import packaged_yaml
from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, aggregated, launches
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS
from advisors.fusion.chains import Chains, fusion_chains
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.blocks import Block
from advisors.layers.layers import Layers, layers
from advisors.layers.marks import Marks, marks_of
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.step_kernels import StepKernels, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

JUDGED_ELSEWHERE = ("aicpu", "format_conversion")
"""Classes whose kernels have findings of their own."""


@advisor(
    "network_structure.new_faces",
    needs=(step_kernels, layers, kernel_nodes, fusion_chains),
    wants=(launches, HOST_EVENTS),
    about=(
        OPERATOR_TYPE,
        Column("part", "text", "", "part of the layer that it runs in: attention, ffn, norm ...", zh="部件"),
    ),
    columns=(
        Column("operator_class", "text", "", "class of operator, as in the ledger", zh="算子类别"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column("in_layers", "int", "count", "layers in which it runs", zh="所在层数"),
        Column("of_layers", "int", "count", "layers of the model", zh="总层数"),
        Column("share_of_step", "float", "ratio", "total_ns over the step", zh="占 step"),
    ),
    evidence=PLACES,
)
def new_faces(facts: Facts, params: Params) -> Observations:
    """Operators in the layers of a model with attention that none of the parts of a layer needs."""
    kernels, model, chains = facts[step_kernels], facts[layers], facts[fusion_chains]
    marks = marks_of(kernels, facts[kernel_nodes], chains)
    inside = (model.layer >= 0) & _with_attention(model, marks)
    if not inside.any():
        raise NotApplicable(message("new_faces.no_attention"))
    rows = np.flatnonzero(inside & ~_needed(kernels, model, marks, chains))
    frame = kernels.frame
    place = model.tower * (int(model.layer.max()) + 1) + model.layer
    found = pd.DataFrame(
        {
            "operator": frame["type"].astype(str).to_numpy()[rows],
            "block": model.blocks[rows],
            "operator_class": frame["operator_class"].astype(str).to_numpy()[rows],
            "ns": frame["duration_ns"].to_numpy(dtype=np.int64)[rows],
            "place": place[rows],
        }
    )
    table = aggregated(
        found,
        ["operator", "block"],
        operator_class=("operator_class", "first"),
        kernels=("ns", "size"),
        mean_ns=("ns", "mean"),
        total_ns=("ns", "sum"),
        in_layers=("place", lambda own: len(np.unique(own))),
    ).sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)
    block = table.pop("block").to_numpy(dtype=np.int64)
    table["part"] = pd.Series([Block(one).key for one in block.tolist()], dtype="str")
    table["of_layers"] = int(model.towers["layers"].sum())
    table[["kernels", "total_ns"]] = table[["kernels", "total_ns"]] / kernels.steps
    table["share_of_step"] = table["total_ns"] / kernels.wall_ns
    if table.empty:
        table = pd.DataFrame([_NONE | {"of_layers": int(model.towers["layers"].sum())}])

    def evidence(row: int) -> list[Reference]:
        own = frame.iloc[
            rows[((found["operator"] == table["operator"][row]) & (found["block"] == block[row])).to_numpy()]
        ]
        return [kernel_rows(message("new_faces.rows"), own), *origin(facts, own)]

    return Observations(table, evidence)


_NONE = {
    **dict.fromkeys(("operator", "part", "operator_class"), ""),
    **dict.fromkeys(("kernels", "mean_ns", "total_ns", "share_of_step"), 0.0),
    "in_layers": 0,
}
"""The observation where every operator is needed: one row, so that the rule passes."""


@cache
def _words() -> dict[str, Any]:
    return dict(packaged_yaml("advisors.network_structure", "needed.yaml"))


def is_needed(operator: str, operator_class: str, part: str, *, routes: bool) -> bool:
    """Whether a part of a layer can need an operator. ``routes``: the layer chooses experts.

    >>> is_needed("Slice", "slice", "ffn", routes=False), is_needed("Sort", "reduction", "ffn", routes=False)
    (True, False)
    >>> is_needed("Sort", "reduction", "experts", routes=True), is_needed("Cos", "elementwise", "norm", routes=False)
    (True, False)
    """
    words = _words()
    own = [*words["types"], *words["parts"].get(part, ()), *(words["parts"]["routing"] if routes else ())]
    if any(fnmatchcase(operator, glob) for glob in own):
        return True
    return operator_class in words["classes"] and not any(fnmatchcase(operator, glob) for glob in words["not"])


def _with_attention(model: Layers, marks: Marks) -> Bools:
    """Whether each kernel is of a stack of layers that have attention."""
    towers = np.unique(model.tower[marks.attention & (model.tower >= 0)])
    return np.isin(model.tower, towers)


def _needed(kernels: StepKernels, model: Layers, marks: Marks, chains: Chains) -> Bools:
    """Whether a part of its layer needs each kernel: by its type, or as a recognised computation is made of it."""
    type_code, types = pd.factorize(kernels.frame["type"])
    class_code, classes = pd.factorize(kernels.frame["operator_class"].astype(str))
    routing_towers = np.unique(model.tower[marks.routing & (model.tower >= 0)])
    routes = np.isin(model.tower, routing_towers)
    keys, code = np.unique(np.stack([type_code, class_code, model.blocks, routes]), axis=1, return_inverse=True)
    by_key = [
        is_needed(str(types[one_type]), str(classes[one_class]), Block(block).key, routes=bool(routed))
        or classes[one_class] in JUDGED_ELSEWHERE
        for one_type, one_class, block, routed in keys.T.tolist()
    ]
    needed = np.array(by_key, dtype=np.bool_)[code]
    needed[chains.members] = True
    return needed | marks.product | marks.attention | marks.norm | marks.cache
