"""The first things to look at, by the bound of the step and its phases: a general step, and the problems of that kind.

The classes and what they lead to are those of a published guide (docs/sources.md#classes-of-boundness). Which problems
a report has only its composition knows: a row says which entries of the ledger it is about.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts, ledger, part_ledger, parts
from advisor_core.api.renderers import Grid, TableColumn, TableView, View
from advisors.layers.layers import layers
from advisors.messages import message
from advisors.roofline.boundness import Bound
from advisors.roofline.bounds import Roofline, roofline
from advisors.roofline.named_parts import BOUNDS, GRADES, step_and_phases
from advisors.step_kernels import StepKernels, step_kernels

_NEXT = {
    Bound.COMPUTING: "roofline.next.computing",
    Bound.MEMORY: "roofline.next.memory",
    Bound.COMMUNICATION: "roofline.next.communication",
    Bound.HOST: "roofline.next.host",
    Bound.IDLE: "roofline.next.idle",
    Bound.COPIES: "roofline.next.copies",
    Bound.BALANCED: "roofline.next.balanced",
    Bound.UNKNOWN: "roofline.next.unknown",
}
_COLUMNS = (
    "roofline.first.part",
    "roofline.first.bound",
    "roofline.first.grade",
    "roofline.first.next",
    "roofline.first.problems",
)
_WAITING = {
    Bound.COMMUNICATION: ["communication"],
    Bound.HOST: ["idle"],
    Bound.IDLE: ["idle"],
    Bound.COPIES: ["compute/copy", "idle/copy", "idle/host/copy"],
}
_EVERYTHING = ["communication", "compute", "idle"]


@drawing("roofline.first", needs=(step_kernels, roofline, PROFILE), wants=(layers, ledger, parts, part_ledger))
def first_looks(facts: Facts) -> list[View]:
    """The first things to look at in the step and in each of its phases."""
    own, found, rank = facts[step_kernels], facts[roofline], facts[PROFILE].rank
    if not np.isfinite(found.least_ns).any() or ledger not in facts:
        return []
    named = step_and_phases(facts, own, found, facts.get(layers))
    data = Grid(
        columns=[TableColumn(label=message(name)) for name in _COLUMNS],
        rows=[
            [part.name, message(BOUNDS[part.bound]), message(GRADES[part.grade]), message(_NEXT[part.bound]), None]
            for part in named
        ],
        entries=[entries_of(part.bound, own, found) for part in named],
    )
    title = message("roofline.view.first", rank=rank, bound=message(BOUNDS[named[0].bound]))
    return [TableView(id=f"first-looks-rank{rank}", purpose="first_looks", title=title, rank=rank, data=data)]


def entries_of(bound: Bound, own: StepKernels, found: Roofline) -> list[str]:
    """The entries of the ledger whose time is of this kind: of computing and memory the operator classes whose kernels
    are bound by it for more than half of the time that has a bound."""
    if bound in _WAITING:
        return _WAITING[bound]
    if bound not in (Bound.COMPUTING, Bound.MEMORY):
        return _EVERYTHING
    ns = pd.DataFrame({"computing": found.duration_ns * found.computes, "memory": found.duration_ns * found.moves})
    sums = ns.groupby(own.frame["operator_class"].astype(str).to_numpy()).sum()
    mostly = sums["computing"] > sums["memory"] if bound is Bound.COMPUTING else sums["memory"] > sums["computing"]
    return [f"compute/{name}" for name in sums.index[mostly]]


DRAWINGS: tuple[Drawing, ...] = (first_looks,)
