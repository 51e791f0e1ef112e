"""Rooflines: what operators take at least, by what they compute and what they move, and how near they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Advisor, Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, Groups, NotApplicable, frame_of, launches, pipes
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.phases import Texts
from advisors.roofline.bounds import Roofline
from advisors.roofline.bounds import roofline as bounds
from advisors.roofline.work import KernelWork, kernel_work
from advisors.step_kernels import PIPE_COLUMNS, VECTOR_CORES, StepKernels, kernel_rows, step_kernels

OPERATOR = Column("operator", "text", "", "operator type", zh="算子")

COLUMNS = (
    Column("operator_class", "text", "", "its class in the ledger", zh="算子类别"),
    Column("kernels", "float", "count", "kernels per step", zh="kernel 数"),
    Column("mean_ns", "float", "ns", "mean duration", zh="均值"),
    Column("total_ns", "float", "ns", "time per step", zh="合计"),
    Column(
        "least_ns",
        "float",
        "ns",
        "time per step that its computing or its bytes need at least, if known",
        zh="最小",
    ),
    Column("above_ns", "float", "ns", "total_ns without least_ns, if known", zh="超出下限"),
    Column(
        "bound",
        "text",
        "",
        "what bounds most of its time: computing or memory; '' unknown",
        zh="瓶颈",
    ),
    Column(
        "reached",
        "float",
        "ratio",
        "least_ns over total_ns, else how busy its busiest pipe is; unknown else",
        zh="达到上限的比例",
    ),
    Column("by_pipes", "bool", "", "what it computes is not known: its pipes tell", zh="按流水线"),
    Column("share_of_step", "float", "ratio", "total_ns over the step", zh="占 step"),
    Column("share_of_computing", "float", "ratio", "total_ns over the kernel time of the step", zh="占计算"),
)


@advisor(
    "pipeline_bound.roofline",
    needs=(step_kernels, kernel_work),
    wants=(bounds, pipes, launches, HOST_EVENTS, layers),
    params=("bandwidth",),
    about=(OPERATOR,),
    columns=COLUMNS,
    evidence=PLACES,
)
def roofline(facts: Facts, params: Params) -> Observations:
    """Operators by type: how near they come to what the chip can do.

    Where the chip is known, the bound of the fact ``roofline``: operations at the peak of the matrix unit, or bytes at
    the bandwidth of memory and cache. Else kernels of the vector cores are told by their bytes at the bandwidth of the
    long elementwise kernels of the profile, or at the careful one that the rule gives. What else runs on the cube and
    has no bound is told by its pipes.
    """
    return observed(facts, params, None)


def observed(facts: Facts, params: Params, phases: Texts | None) -> Observations:
    """The observations by type, and by part where the ``phases`` of the kernels are given."""
    own = facts[step_kernels]
    frame = own.frame
    if frame.empty:
        raise NotApplicable(message("pipeline_bound.nothing"))
    names = ["operator"] if phases is None else ["operator", "phase"]
    found = facts.get(bounds)
    bandwidth = own.bandwidth if np.isfinite(own.bandwidth) else float(params["bandwidth"])
    least = _least(own, facts[kernel_work], found, bandwidth)
    busy = _busy(facts, frame)
    duration = frame["duration_ns"].to_numpy(dtype=np.float64)
    known = ~np.isnan(least)
    kernels = pd.DataFrame(
        {
            "operator": frame["type"].astype(str),
            "phase": "" if phases is None else phases,
            "operator_class": frame["operator_class"].astype(str),
            "duration": duration,
            "least": np.where(known, np.minimum(least, duration), np.nan),
            "told": np.where(known, duration, 0.0),
            "busy": busy * duration,
            "computes": np.where(found.computes, duration, 0.0) if found is not None else 0.0,
            "moves": np.where(found.moves, duration, 0.0) if found is not None else 0.0,
            "measured": np.where(np.isnan(busy), 0.0, duration),
        }
    )
    table = _table(kernels, names, own.steps)
    table = table.assign(**own.shares(table["total_ns"]))

    def rows_of(row: int) -> pd.DataFrame:
        return frame[(kernels[names] == table[names].iloc[row]).all(axis=1).to_numpy()]

    def evidence(row: int) -> Sequence[Reference]:
        rows = rows_of(row)
        return [
            kernel_rows(message("pipeline_bound.roofline.rows"), rows, PIPE_COLUMNS),
            *origin(facts, rows),
        ]

    return Observations(table, evidence, cure=lambda row: own.shorter(rows_of(row)))


def _table(kernels: pd.DataFrame, names: list[str], steps: int) -> pd.DataFrame:
    """The sums over the kernels of each operator, those with most time first."""
    groups, summed = Groups(kernels, names), ["duration", "least", "told", "busy", "measured", "computes", "moves"]
    sums = kernels.groupby(names, sort=True)[summed].sum(min_count=1)
    duration, least, told, busy, measured, computes, moves = (sums[name].to_numpy() for name in summed)
    whole = told >= _MOST * duration
    by_pipes = ~whole & (measured >= _MOST * duration)
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = np.where(whole, least / told, np.where(by_pipes, busy / measured, np.nan))
    table = frame_of(
        {
            **groups.keys(),
            "operator_class": groups.of("operator_class", "first"),
            "kernels": groups.sizes / steps,
            "mean_ns": duration / groups.sizes,
            "total_ns": duration / steps,
            "least_ns": np.where(whole, least / steps, np.nan),
            "above_ns": np.where(whole, (duration - least) / steps, np.nan),
            "bound": np.select([whole & (computes > moves), whole & (moves > 0)], ["computing", "memory"], ""),
            "reached": reached,
            "by_pipes": by_pipes,
        },
        len(groups),
    )
    return table.sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)


_MOST = 0.9
"""An operator is told by a bound that is known for nearly all of its time; our choice."""


def _least(own: StepKernels, work: KernelWork, found: Roofline | None, bandwidth: float) -> np.ndarray:
    """ns that each kernel needs at least; NaN where that is not known."""
    if found is not None and np.isfinite(found.peaks.hbm):
        return found.least_ns
    moved = work.per_kernel(own, "read") + work.per_kernel(own, "written")
    by_bytes = np.where(moved > 0, moved / bandwidth * 1e9, np.nan)
    of_vectors = own.frame["core"].isin(VECTOR_CORES).to_numpy()
    computing = np.full(len(own.frame), np.nan) if found is None else found.computing_ns
    return np.where(of_vectors | ~np.isnan(computing), np.fmax(computing, by_bytes), np.nan)


def _busy(facts: Facts, frame: pd.DataFrame) -> np.ndarray:
    """How much of its duration the busiest pipe of each kernel is busy; NaN where that is not recorded."""
    if pipes not in facts:
        return np.full(len(frame), np.nan)
    busy = facts[pipes]["bound_ratio"].to_numpy(dtype=np.float64)
    return np.asarray(busy[frame["row"].to_numpy()])


ADVISORS: tuple[Advisor, ...] = (roofline,)
