"""The module of the model that each kernel is of, where the profiler recorded names of modules.

PyTorch's profiler marks each call of a module on the thread that runs it (``nn.Module: Linear_3``, numbered by class).
A kernel is of the innermost call around the operator that launched it. The backward pass runs elsewhere: there the
arrow from an operator to its gradient leads back to the module (real AlexNet exports: 54 such arrows in a step).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    FLOWS,
    HOST_EVENTS,
    PROFILE,
    Column,
    Facts,
    Groups,
    Unavailable,
    enclosing_of,
    fact,
    frame_of,
    launches,
    matching,
    parents_of,
)
from advisors.gradient_arrows import gradient_arrows
from advisors.layers.blocks import Pass
from advisors.messages import message
from advisors.step_kernels import step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

MARK: Final = re.compile("^nn.Module: ")
_NUMBER = re.compile(r"_\d+$")

TABLE = (
    Column("parent", "int", "", "row of the module that calls it, -1 none"),
    Column("name", "text", "", "as recorded, without the mark"),
    Column("kind", "text", "", "its class"),
    Column("depth", "int", "count", "modules around it"),
)


@dataclass(frozen=True)
class Modules:
    """``table``: the modules, each call path once, callers first. By row of `StepKernels`: ``module``, its row there
    (-1: none is known), and ``passes`` (`Pass`)."""

    table: pd.DataFrame
    module: Ints
    passes: Ints


@fact(
    "modules",
    needs=(step_kernels, launches, HOST_EVENTS, PROFILE),
    wants=(FLOWS,),
    frames={"table": TABLE},
)
def modules(facts: Facts) -> Modules:
    """The module of each kernel, by calls of modules and, in the backward pass, by the arrows to gradients."""
    events, words = facts[HOST_EVENTS], facts[PROFILE].vocabulary
    calls = events[matching(events["name"], MARK)]
    if calls.empty:
        raise Unavailable(message("modules.none"), message("modules.none.collect"))
    table, path = _paths(calls)
    launched = facts[launches].frame.iloc[facts[step_kernels].frame["work"].to_numpy()]
    with_launch, threads, times = _launched_at(launched, events)
    module = np.full(len(launched), -1, dtype=np.int64)
    module[with_launch] = _at(calls, path, threads, times)
    passes = np.full(len(launched), Pass.FORWARD, dtype=np.int64)

    outer = events[(events["category"] == "cpu_op").to_numpy() & ~matching(events["name"], words.annotation)]
    outer = outer[~matching(outer["name"], words.step_mark)]
    top = np.full(len(launched), -1, dtype=np.int64)
    top[with_launch] = enclosing_of(outer, threads, times, outermost=True)
    in_gradient = np.zeros(len(launched), dtype=np.bool_)
    in_gradient[top >= 0] = matching(events["name"].iloc[top[top >= 0]], words.optimizer)
    passes[in_gradient & (module >= 0)] = Pass.RECOMPUTATION
    by_arrow = _of_gradients(facts.get(FLOWS), calls, path, outer)
    linked = np.flatnonzero((module < 0) & (top >= 0))
    module[linked] = by_arrow.reindex(top[linked]).fillna(-1).to_numpy(dtype=np.int64)
    passes[linked[module[linked] >= 0]] = Pass.BACKWARD
    if not (module >= 0).any():
        raise Unavailable(message("modules.none"), message("modules.none.collect"))
    return Modules(table, module, passes)


def _paths(calls: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """The modules by the path of their calls, and the row of each call there, by index of ``calls``."""
    starts = calls["start_ns"].to_numpy()
    around = parents_of(calls["thread"].to_numpy(), starts, starts + calls["duration_ns"].to_numpy())
    codes, names = calls["name"].array.codes, calls["name"].array.categories
    path = np.full(len(calls), -1, dtype=np.int64)
    rows: list[pd.DataFrame] = []
    level, depth, count = np.flatnonzero(around < 0), 0, 0
    while len(level):
        parents = np.where(around[level] >= 0, path[around[level]], -1)
        keys = frame_of({"parent": parents, "code": codes[level].astype(np.int64), "depth": depth}, len(level))
        same = Groups(keys, ("parent", "code"), sort=False)
        path[level] = same.codes + count
        rows.append(keys.take(same.firsts))
        count += len(rows[-1])
        depth += 1
        level = np.flatnonzero((path < 0) & (around >= 0) & (path[np.maximum(around, 0)] >= 0))
    table = pd.concat(rows, ignore_index=True)
    name = [MARK.sub("", str(names[code])) for code in table["code"].tolist()]
    table = table.assign(name=name, kind=[_NUMBER.sub("", one) for one in name])
    return table[[column.name for column in TABLE]], pd.Series(path, index=calls.index)


def _launched_at(launched: pd.DataFrame, events: pd.DataFrame) -> tuple[Ints, Ints, Ints]:
    """The kernels whose launch is known, its thread and its time: by their operator, else the launching call."""
    rows = np.where(launched["op_row"] >= 0, launched["op_row"], launched["call_row"])
    known = np.flatnonzero(rows >= 0)
    at = events.iloc[rows[known]]
    return known, at["thread"].to_numpy(), at["start_ns"].to_numpy()


def _at(calls: pd.DataFrame, path: pd.Series, threads: Ints, times: Ints) -> Ints:
    call = enclosing_of(calls, threads, times)
    return path.reindex(call).fillna(-1).to_numpy(dtype=np.int64)


def _of_gradients(flows: pd.DataFrame | None, calls: pd.DataFrame, path: pd.Series, outer: pd.DataFrame) -> pd.Series:
    """By index of an outermost operator of the backward pass: the module whose gradient it computes. One that computes
    those of several is left out."""
    none = pd.Series(np.zeros(0, dtype=np.int64), index=np.zeros(0, dtype=np.int64))
    pairs = None if flows is None else gradient_arrows(flows)
    if pairs is None or pairs.empty:
        return none
    module = _at(calls, path, pairs["thread_forward"].to_numpy(), pairs["time_ns_forward"].to_numpy())
    top = enclosing_of(outer, pairs["thread_backward"].to_numpy(), pairs["time_ns_backward"].to_numpy(), outermost=True)
    found = pd.DataFrame({"top": top, "module": module})
    found = found[(top >= 0) & (module >= 0)].drop_duplicates()
    found = found[~found["top"].duplicated(keep=False)]
    return found.set_index("top")["module"]


FACTS = (modules,)
